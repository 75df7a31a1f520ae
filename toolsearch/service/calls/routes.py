"""Calls of tools: ``/v1/calls`` and ``/v1/sessions/{session}/calls``; and models' replies with calls to run."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends

from toolsearch.api.sessions import CallAnswer, CallReport, Executed, HandedBackCall, ModelReply, NewCall, SessionCall
from toolsearch.discovery.call_tools import inner_call
from toolsearch.errors import StorageError, ToolSearchError, UnfinishedCallError, UnknownSessionError, text_for_model
from toolsearch.service.calls.calls import Calls, HandedBack
from toolsearch.service.corpora.asked import corpus_asked
from toolsearch.service.sessions.sessions import OpenSession, Sessions
from toolsearch.service.web.callers import ServiceCaller, caller_with
from toolsearch.service.web.limits import Limits
from toolsearch.service.web.parts import ServiceParts, the_service
from toolsearch.sessions.conversation import Conversation
from toolsearch.tools.calls import ToolCall, ToolResult, parse_arguments
from toolsearch.tools.naming import TOOL_NAME
from toolsearch.tools.results import text_block
from toolsearch.wire.formats import WireFormat, render_change, render_results
from toolsearch.wire.replies import input_tokens, parse_tool_calls

logger = logging.getLogger(__name__)
_MOST_AT_ONCE: Final = 16  # calls of one reply that run at the same time


@dataclass(frozen=True, slots=True)
class ExecutedReply:
    """The result of a reply. *messages* answer the calls that were run; *handed_back* are the others, with the model's
    ids.
    """

    messages: list[dict[str, Any]]
    handed_back: list[tuple[str, HandedBack]]


@dataclass(frozen=True, slots=True)
class Replies:
    calls: Calls
    sessions: Sessions
    limits: Limits

    async def execute(self, caller: ServiceCaller, session_id: str, reply: object) -> ExecutedReply:
        """Run the calls of a model's reply, as `Session.execute` does. A failed call does not affect the others.

        Raises BadArgumentsError if *reply* is not a reply, and the errors of `Sessions.using` and `Limits.calls`.
        """
        wire_format, calls = parse_tool_calls(reply)
        await self.limits.calls(caller, max(1, len(calls)))
        async with self.sessions.using(caller, session_id) as opened:
            view = opened.corpus.engine.view(opened.principal.reach)
            calls = [inner_call(call, view.find_entry) for call in calls]
            outcomes = list(zip(calls, await self._run(caller, opened, calls), strict=True))
            results = [each for _, each in outcomes if isinstance(each, ToolResult)]
            try:
                written = await opened.run(partial(_written, results, wire_format, input_tokens(reply)))
            # An error here would make the caller repeat calls that have run.
            except (StorageError, UnknownSessionError) as error:
                logger.warning("the outcome of a reply is not noted in its session: %s", error)
                written = render_results(results, wire_format)
        return ExecutedReply(written, [(call.id, each) for call, each in outcomes if isinstance(each, HandedBack)])

    async def _run(
        self, caller: ServiceCaller, opened: OpenSession, calls: Sequence[ToolCall]
    ) -> list[ToolResult | HandedBack]:
        """Run searches first, one after the other, so that found tools are always listed in the same order; then the
        others.
        """
        searches = [call for call in calls if call.name == TOOL_NAME]
        answer = partial(self._answered, caller, opened, is_search_round=len(searches) == len(calls))
        found = {id(call): await answer(call) for call in searches}
        room = asyncio.Semaphore(_MOST_AT_ONCE)

        async def outcome(call: ToolCall) -> ToolResult | HandedBack:
            if id(call) in found:
                return found[id(call)]
            async with room:
                return await answer(call)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(outcome(call)) for call in calls]
        return [task.result() for task in tasks]

    async def _answered(
        self, caller: ServiceCaller, opened: OpenSession, call: ToolCall, *, is_search_round: bool
    ) -> ToolResult | HandedBack:
        """A failure is a result, for the model to read."""
        try:
            if call.unfinished:
                raise UnfinishedCallError(call.unfinished)
            arguments = parse_arguments(call.arguments)
            outcome = await self.calls.run(caller, opened, call.name, arguments, is_search_round=is_search_round)
        except ToolSearchError as error:
            text = text_block(text_for_model(error))
            return ToolResult(call.id, call.name, (text,), is_error=True, error_code=error.code)
        return replace(outcome, call_id=call.id, name=call.name) if isinstance(outcome, ToolResult) else outcome


def _written(
    results: Sequence[ToolResult], wire_format: WireFormat, prompt_tokens: int, conversation: Conversation
) -> list[dict[str, Any]]:
    """The messages to append, followed by the change of the tool list, if the format has such a message."""
    conversation.note_usage(prompt_tokens)
    written = render_results(results, wire_format, native_search=conversation.native_search())
    if not written or not conversation.is_for(wire_format):  # an unwritten change must not count as told
        return written
    return written + render_change(conversation.tool_change(), wire_format)


router = APIRouter(tags=["calls"])
_Service = Annotated[ServiceParts, Depends(the_service)]
_Caller = Annotated[ServiceCaller, Depends(caller_with("call", within_reach=True))]


@router.post("/calls", summary="Call a tool of a catalog, a toolset or a session")
async def call(body: NewCall, service: _Service, caller: _Caller) -> CallAnswer:
    """A tool that fails, and arguments that do not fit, are answers with `is_error`, for the model to read. Send an
    ``Idempotency-Key`` to be able to repeat the request without running the tool twice.
    """
    if body.session is not None:
        return _answer(await service[Calls].call_in_session(caller, body.session, body.name, body.arguments))
    return _answer(await service[Calls].call(caller, corpus_asked(body, caller), body.name, body.arguments))


@router.post("/sessions/{session}/calls", summary="Call a tool in a session")
async def call_in_session(session: str, body: SessionCall, service: _Service, caller: _Caller) -> CallAnswer:
    """As ``/v1/calls``, also for the search tool."""
    return _answer(await service[Calls].call_in_session(caller, session, body.name, body.arguments))


@router.post("/calls/{call}/result", status_code=204, summary="Report how a call ended that was handed back")
async def report(call: str, body: CallReport, service: _Service, caller: _Caller) -> None:
    """Once for each call, and within a day. What the tool gave is not asked for."""
    await service[Calls].report(caller, call, is_error=body.is_error)


@router.post("/sessions/{session}/execute", summary="Run the tool calls of a model's reply")
async def execute(session: str, body: ModelReply, service: _Service, caller: _Caller) -> Executed:
    """Takes a whole reply of the OpenAI or Anthropic SDK as JSON, searches included, and gives the messages to append
    in the same format.
    """
    executed = await service[Replies].execute(caller, session, body.reply)
    handed_back = [
        HandedBackCall(call_id=call_id, **_handed_back(each).model_dump()) for call_id, each in executed.handed_back
    ]
    return Executed(messages=executed.messages, handed_back=handed_back)


def _answer(outcome: ToolResult | HandedBack) -> CallAnswer:
    if isinstance(outcome, HandedBack):
        return _handed_back(outcome)
    return CallAnswer(
        status="done",
        name=outcome.name,
        content=[dict(block) for block in outcome.content],
        structured_content=outcome.structured,
        is_error=outcome.is_error,
        code=outcome.error_code,
    )


def _handed_back(outcome: HandedBack) -> CallAnswer:
    return CallAnswer(
        id=outcome.id,
        status="handed_back",
        name=outcome.name,
        arguments=dict(outcome.arguments),
        fingerprint=outcome.fingerprint,
    )
