"""Hooks around each call: what may stop it or change its arguments, and what may change its result.

To have a person approve what changes something:

    asking = asyncio.Lock()  # calls of a batch are asked about at the same time, a person is not

    async def approve(call: ToolCall, tool: Tool, context: ToolContext) -> Decision:
        if tool.definition.annotations.get("readOnlyHint"):
            return Allow()
        async with asking:
            answer = await ask(context["user"], f"May I call {call.name} with {call.arguments}?")
        return Allow() if answer == "yes" else Deny(f"the user said: {answer}")

    ToolCallingManager(before=[approve])
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass, replace
from inspect import isawaitable
from typing import Protocol, TypeAlias, TypeVar, cast

from toolsearch.calling.result import ToolResult
from toolsearch.calling.validation import checked_arguments
from toolsearch.calling.wire import ToolCall
from toolsearch.errors import BadSettingError, CallDeniedError, ToolExecutionError
from toolsearch.tools.containment import contained
from toolsearch.tools.definition import Tool, ToolContext
from toolsearch.tools.json_types import JsonObject

logger = logging.getLogger(__name__)

HookType = TypeVar("HookType")


@dataclass(frozen=True, slots=True)
class Allow:
    """Let the call through, as far as this hook is concerned."""


@dataclass(frozen=True, slots=True)
class Deny:
    """Do not run the call; the model reads *reason*."""

    reason: str


@dataclass(frozen=True, slots=True)
class Edit:
    """Run the call with these arguments instead, if they fit the tool's schema."""

    arguments: JsonObject


Decision: TypeAlias = Allow | Deny | Edit


class BeforeCall(Protocol):
    """Decides about a call that is otherwise ready to run: its tool is known, its arguments are an object and fit.

    Plain or async; a plain one must not wait. No timeout holds here, since a person may take minutes, and calls of one
    batch come through at the same time. *context* is the one that the tool is going to get.
    A hook that raises, or returns anything but a `Decision`, denies the call.
    """

    def __call__(self, call: ToolCall, tool: Tool, context: ToolContext, /) -> Decision | Awaitable[Decision]: ...


class AfterCall(Protocol):
    """Sees the result of each call that ran, failed ones too, and may return another one in its place.

    Plain or async, and not under the tool's timeout. If it raises, the result is withheld: it may have been there to
    take out what the model must not see.
    """

    def __call__(
        self, call: ToolCall, tool: Tool, result: ToolResult, /
    ) -> ToolResult | Awaitable[ToolResult | None] | None: ...


def checked_hooks(given: Iterable[HookType], option: str) -> tuple[HookType, ...]:
    """Return *given* as a tuple. Raises BadSettingError for anything else than a list of functions."""
    value = cast("object", given)
    hooks = tuple(given) if isinstance(value, Iterable) else None
    if hooks is None or not all(callable(hook) for hook in hooks):
        raise BadSettingError(f"{option} must be a list of functions; write {option}=[function]")
    return hooks


async def decide(
    hooks: Sequence[BeforeCall], call: ToolCall, arguments: JsonObject, tool: Tool, context: ToolContext
) -> JsonObject:
    """Ask *hooks* in order, each about what the one before has left, and return the arguments to run with.

    Raises CallDeniedError, or BadArgumentsError for an edit that does not fit.
    """
    for hook in hooks:
        decision = await _decision(hook, replace(call, arguments=arguments), tool, context)
        match decision:
            case Allow():
                pass
            case Deny(reason):
                raise CallDeniedError(f"the call was denied: {reason}")
            case Edit(edited):
                arguments = checked_arguments(tool.definition, edited)
    return arguments


async def _decision(hook: BeforeCall, call: ToolCall, tool: Tool, context: ToolContext) -> Decision:
    try:
        with contained("a hook"):
            returned = hook(copy.deepcopy(call), tool, context)  # only an Edit, which is checked, changes arguments
            decision = cast("object", await returned if isawaitable(returned) else returned)
    except CallDeniedError:
        raise
    except Exception as error:
        logger.exception("a hook failed before the call of %s", tool.name)
        raise CallDeniedError("the call was denied: what had to approve it failed") from error
    if not isinstance(decision, Allow | Deny | Edit):
        logger.error("a hook returned a %s before the call of %s", type(decision).__name__, tool.name)
        raise CallDeniedError("the call was denied: what had to approve it gave no decision")
    return decision


async def revise(hooks: Sequence[AfterCall], call: ToolCall, tool: Tool, result: ToolResult) -> ToolResult:
    """Show *result* to the hooks in order, each what the one before has made of it; it stays the result of *call*.

    Raises ToolExecutionError if it is withheld.
    """
    for hook in hooks:
        try:
            with contained("a hook"):
                returned = hook(call, tool, result)
                revised = await returned if isawaitable(returned) else returned
        except Exception as error:
            logger.exception("a hook failed after the call of %s", tool.name)
            raise ToolExecutionError(
                f"the tool {tool.name!r} ran, but its result is withheld: what had to look at it failed"
            ) from error
        if revised is not None:
            result = _sound(revised, call)
    return result


def _sound(result: ToolResult, call: ToolCall) -> ToolResult:
    """What a hook made up, with what others rely on: whose result it is, and what goes with a failure."""
    code = (result.error_code or ToolExecutionError.code) if result.is_error else None
    is_direct = result.return_direct and not result.is_error
    return replace(result, call_id=call.id, name=call.name, return_direct=is_direct, error_code=code)
