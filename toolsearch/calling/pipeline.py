"""The steps of a call, the same for every caller of tools (library, chat, gateway, service):

admit   known, in reach, its arguments fit
review  the hooks may deny it or change its arguments
run     by a callback, or by a server; the caller of `CallPipeline.complete` says how
review  the hooks may withhold the result or put another in its place
"""

from __future__ import annotations

import copy
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, replace
from inspect import isawaitable
from typing import Any, TypeAlias, cast

from toolsearch.calling.delivery import failure
from toolsearch.calling.hooks import AfterCall, Allow, BeforeCall, Decision, Deny, Edit, checked_hooks, log_failure
from toolsearch.calling.validation import checked_arguments
from toolsearch.errors import (
    CallDeniedError,
    CallLimitError,
    ToolExecutionError,
    ToolSearchError,
    UnfinishedCallError,
    UnknownToolError,
    shown_name,
    text_for_model,
)
from toolsearch.telemetry import Telemetry, ToolCallSpan
from toolsearch.tools.callbacks import contained
from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.definition import Tool, ToolContext
from toolsearch.tools.json_types import JsonObject
from toolsearch.wire.sendable_tools import own_arguments


@dataclass(frozen=True, slots=True)
class Admitted:
    """A call that may run: its tool is known and in reach, and *arguments* fit. *key* is the turn counter's, if any."""

    call: ToolCall
    tool: Tool
    arguments: JsonObject
    key: str = ""


@dataclass(frozen=True, slots=True)
class Refused:
    """A call that will not be run."""

    call: ToolCall
    error: ToolSearchError


def admit(call: ToolCall, resolve: Callable[[str], Tool]) -> Admitted:
    """Return *call* with its tool and its checked arguments; *resolve* finds the tool by name within the caller's
    reach.

    A model may have been sent other names for some of the parameters; from here on, the arguments have the tool's own
    names. Raises UnfinishedCallError, then the errors of *resolve*, then BadArgumentsError.
    """
    if call.unfinished:
        raise UnfinishedCallError(call.unfinished)
    tool = resolve(call.name)
    arguments = own_arguments(tool.definition.input_schema, call.parsed_arguments)
    return Admitted(call, tool, checked_arguments(tool.definition, arguments))


logger = logging.getLogger(__name__)


async def decide(hooks: Sequence[BeforeCall], admitted: Admitted, context: ToolContext) -> Admitted:
    """Ask *hooks* in order, each with the arguments that the previous hook left, and return the call to run.

    Raises CallDeniedError, or BadArgumentsError for an edit that does not fit.
    """
    tool, arguments = admitted.tool, admitted.arguments
    for hook in hooks:
        decision = await _decision(hook, replace(admitted.call, arguments=arguments), tool, context)
        match decision:
            case Allow():
                pass
            case Deny(reason):
                raise CallDeniedError(f"the call was denied: {reason}")
            case Edit(edited):
                arguments = checked_arguments(tool.definition, edited)
    return admitted if arguments is admitted.arguments else replace(admitted, arguments=arguments)


async def _decision(hook: BeforeCall, call: ToolCall, tool: Tool, context: ToolContext) -> Decision:
    try:
        with contained("a hook"):
            # Hooks get a copy: only an Edit, which is checked, may change arguments.
            returned = hook(copy.deepcopy(call), tool, context)
            decision = cast("object", await returned if isawaitable(returned) else returned)
    except CallDeniedError:
        raise
    except Exception as error:
        logger.exception("a hook failed before the call of %s", tool.name)
        raise CallDeniedError("the call was denied: its approval hook failed") from error
    if not isinstance(decision, Allow | Deny | Edit):
        logger.error("a hook returned a %s before the call of %s", type(decision).__name__, tool.name)
        raise CallDeniedError("the call was denied: its approval hook gave no decision")
    return decision


async def revise(hooks: Sequence[AfterCall], admitted: Admitted, result: ToolResult) -> ToolResult:
    """Show *result* to *hooks* in order and return the last hook's result.

    Returns *result* itself if no hook replaced it. Raises ToolExecutionError if a hook failed: the result is withheld.
    """
    call, tool = admitted.call, admitted.tool
    for hook in hooks:
        try:
            with contained("a hook"):
                returned = hook(call, tool, result)
                revised = await returned if isawaitable(returned) else returned
                if revised is not None and revised is not result:
                    result = _with_true_fields(revised, call)
        except Exception as error:
            logger.exception("a hook failed after the call of %s", tool.name)
            raise ToolExecutionError(
                f"the tool {tool.name!r} ran, but its result is withheld: a hook for results failed"
            ) from error
    return result


def _with_true_fields(result: ToolResult, call: ToolCall) -> ToolResult:
    """Return the result of a hook, with the fields corrected that a hook must not change."""
    code = (result.error_code or ToolExecutionError.code) if result.is_error else None
    is_direct = result.return_direct and not result.is_error
    return replace(result, call_id=call.id, name=call.name, return_direct=is_direct, error_code=code)


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """The outcome of a call.

    result      for the caller, the hooks, limits and spans; empty if *is_pending*
    raw         the answer of an MCP server, for callers that pass it on whole; None if *result* is all there is
    error       the reason why the tool gave no answer, for callers that do not send *result* to a model
    was_run     False if the tool was not run after all; the hooks are not shown such a result
    is_pending  the call has not ended: in *raw*, the server asks its client something
    ends_turn   an error for the application to handle; the history still gets the result
    """

    result: ToolResult
    raw: Mapping[str, Any] | None = None
    error: Exception | None = None
    was_run: bool = True
    is_pending: bool = False
    ends_turn: Exception | None = None


RunCall: TypeAlias = Callable[[Admitted, ToolContext], Awaitable[CallOutcome]]


class CallPipeline:
    """Keeps no state of a call, so one pipeline serves all calls, also on several loops.

    max_result_characters  longest text about a call that failed on our side
    before, after          hooks around each call, in this order; see `toolsearch.calling.hooks`
    clock                  gives seconds for the log; only differences count
    """

    def __init__(
        self,
        max_result_characters: int,
        *,
        before: Sequence[BeforeCall] = (),
        after: Sequence[AfterCall] = (),
        telemetry: Telemetry | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._max_result_characters = max_result_characters
        self._before = checked_hooks(before, "before")
        self._after = checked_hooks(after, "after")
        self._telemetry = telemetry or Telemetry()
        self._clock = clock

    async def complete(
        self,
        item: Admitted | Refused,
        run: RunCall,
        context: ToolContext,
        room: AbstractAsyncContextManager[Any] = nullcontext(),  # noqa: B008  nullcontext holds no state
    ) -> CallOutcome:
        """Take a call through to its end. *run* runs it; a failure that the caller should read is an outcome as well.

        *room* is entered once the call may run; its span does not include the wait for room.
        """
        if isinstance(item, Admitted):
            item = await self._reviewed(item, context)
        if isinstance(item, Refused):
            return self._refuse(item)
        async with room:
            return await self._observed(item, run, context)

    def failed(self, call: ToolCall, error: ToolSearchError, *, was_run: bool = True) -> CallOutcome:
        """The outcome of a call that has failed on our side."""
        result = failure(call, text_for_model(error), error, self._max_result_characters)
        return CallOutcome(result, error=error, was_run=was_run)

    async def _reviewed(self, admitted: Admitted, context: ToolContext) -> Admitted | Refused:
        """Let the hooks decide. They run outside the room for parallel calls, because they may wait for a person."""
        try:
            return await decide(self._before, admitted, context)
        except ToolSearchError as error:
            return Refused(admitted.call, error)

    def _refuse(self, refused: Refused) -> CallOutcome:
        call, error = refused.call, refused.error
        log_failure(logger, f"call of {shown_name(call.name)!r} refused", error)
        # Calls that hit a limit or were cut off were refused before the lookup.
        is_known = not isinstance(error, UnknownToolError | CallLimitError | UnfinishedCallError)
        with self._telemetry.tool_call(call.name, call_id=call.id, is_known=is_known) as span:
            span.failed(error.code)
        return self.failed(call, error, was_run=False)

    async def _observed(self, admitted: Admitted, run: RunCall, context: ToolContext) -> CallOutcome:
        call, name, definition = admitted.call, admitted.tool.name, admitted.tool.definition
        started_s = self._clock()
        with self._telemetry.tool_call(
            name,
            call_id=call.id,
            arguments=admitted.arguments,
            description=definition.description,
            input_schema=definition.input_schema,
        ) as span:
            outcome = await run(admitted, context)
            if self._after and outcome.was_run and not outcome.is_pending:
                outcome = await self._revised(admitted, outcome)
            code = _record_result(span, outcome)
        logger.debug("tool %s: %s after %.1f ms", name, code or "answered", (self._clock() - started_s) * 1_000)
        return outcome

    async def _revised(self, admitted: Admitted, outcome: CallOutcome) -> CallOutcome:
        try:
            revised = await revise(self._after, admitted, outcome.result)
        except ToolExecutionError as error:
            seen = self.failed(admitted.call, error)
        else:
            # With a hook's result, everything that a server sent is dropped, in particular its ``_meta``.
            seen = outcome if revised is outcome.result else CallOutcome(revised)
        return replace(seen, ends_turn=outcome.ends_turn)


def _record_result(span: ToolCallSpan, outcome: CallOutcome) -> str | None:
    """Record the result in *span*; return the code of the error, if it is one."""
    if outcome.is_pending:
        return None
    if outcome.result.error_code is not None:
        span.failed(outcome.result.error_code)
    span.answered(outcome.result.text)
    return outcome.result.error_code
