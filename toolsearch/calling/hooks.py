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

from collections.abc import Awaitable, Iterable
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar, cast

from toolsearch.errors import BadSettingError
from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.definition import Tool, ToolContext
from toolsearch.tools.json_types import JsonObject

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
