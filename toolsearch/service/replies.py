"""Whole replies of models: their calls are run, and answered in the format of the reply."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from toolsearch.calling.inner_call import inner_call
from toolsearch.errors import StorageError, ToolSearchError, UnfinishedCallError, UnknownSessionError, text_for_model
from toolsearch.service.callers import ServiceCaller
from toolsearch.service.calls import Calls, Done, HandedBack, search_result
from toolsearch.service.limits import Limits
from toolsearch.service.sessions import OpenSession, Sessions
from toolsearch.sessions.conversation import Conversation
from toolsearch.tools.arguments import parse_arguments
from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.naming import TOOL_NAME
from toolsearch.wire.formats import WireFormat, render_change, render_results
from toolsearch.wire.mcp.results import error_result, read_result
from toolsearch.wire.replies import parse_tool_calls
from toolsearch.wire.usage import input_tokens

logger = logging.getLogger(__name__)

_MOST_AT_ONCE: Final = 16  # calls of one reply


@dataclass(frozen=True, slots=True)
class ExecutedReply:
    """*messages* answer what was run here; *handed_back* are the others, with the ids that the model gave them."""

    messages: list[dict[str, Any]]
    handed_back: list[tuple[str, HandedBack]]


@dataclass(frozen=True, slots=True)
class Replies:
    calls: Calls
    sessions: Sessions
    limits: Limits

    async def execute(self, caller: ServiceCaller, session_id: str, reply: object) -> ExecutedReply:
        """Run the calls of a model's reply, as `Session.execute` does. One that fails discards no other.

        Raises BadArgumentsError for what is no reply, and as `Sessions.using` and `Limits.calls`.
        """
        wire_format, calls = parse_tool_calls(reply)
        calls = list(map(inner_call, calls))
        await self.limits.calls(caller, max(1, len(calls)))
        async with self.sessions.using(caller, session_id) as opened:
            outcomes = list(zip(calls, await self._run(caller, opened, calls), strict=True))
            results = [each for _, each in outcomes if isinstance(each, ToolResult)]
            try:
                written = await opened.run(partial(_written, results, wire_format, input_tokens(reply)))
            except (StorageError, UnknownSessionError) as error:  # must not have the caller repeat what has run
                logger.warning("what a reply has come to is not noted in its session: %s", error)
                written = render_results(results, wire_format)
        return ExecutedReply(written, [(call.id, each) for call, each in outcomes if isinstance(each, HandedBack)])

    async def _run(
        self, caller: ServiceCaller, opened: OpenSession, calls: Sequence[ToolCall]
    ) -> list[ToolResult | HandedBack]:
        """Searches run first, one after the other: what they find has to be listed in the same order every time."""
        searches = [call for call in calls if call.name == TOOL_NAME]
        found: dict[int, ToolResult | HandedBack] = {}
        for call in searches:
            found[id(call)] = await self._found(caller, opened, call, is_search_round=len(searches) == len(calls))
        room = asyncio.Semaphore(_MOST_AT_ONCE)

        async def outcome(call: ToolCall) -> ToolResult | HandedBack:
            if id(call) in found:
                return found[id(call)]
            async with room:
                return await self._called(caller, opened, call)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(outcome(call)) for call in calls]
        return [task.result() for task in tasks]

    async def _called(self, caller: ServiceCaller, opened: OpenSession, call: ToolCall) -> ToolResult | HandedBack:
        try:
            _require_finished(call)
            outcome = await self.calls.run(caller, opened, call.name, parse_arguments(call.arguments))
        except ToolSearchError as error:
            return _failed(call, error)
        return read_result(outcome.raw, call) if isinstance(outcome, Done) else outcome

    async def _found(
        self, caller: ServiceCaller, opened: OpenSession, call: ToolCall, *, is_search_round: bool
    ) -> ToolResult:
        try:
            _require_finished(call)
            arguments = parse_arguments(call.arguments)
            answered = await self.calls.search(caller, opened, arguments, is_search_round=is_search_round)
        except ToolSearchError as error:
            return _failed(call, error)
        return search_result(answered, call.id)


def _require_finished(call: ToolCall) -> None:
    if call.unfinished:
        raise UnfinishedCallError(call.unfinished)


def _failed(call: ToolCall, error: ToolSearchError) -> ToolResult:
    return replace(read_result(error_result(text_for_model(error), error.code), call), error_code=error.code)


def _written(
    results: Sequence[ToolResult], wire_format: WireFormat, prompt_tokens: int, conversation: Conversation
) -> list[dict[str, Any]]:
    """The messages to append, and after them what changes the list of tools, where the format has that."""
    conversation.note_usage(prompt_tokens)
    written = render_results(results, wire_format, native_search=conversation.native_search())
    if not written or not conversation.is_for(wire_format):  # what was not written does not count as said
        return written
    return written + render_change(conversation.tool_change(), wire_format)
