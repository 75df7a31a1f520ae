"""Calls of tools: ``/v1/calls`` and ``/v1/sessions/{session}/calls``."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends

from toolsearch.api.calls import CallAnswer, CallReport, Executed, HandedBackCall, ModelReply, NewCall, SessionCall
from toolsearch.service.callers import ServiceCaller, caller_with
from toolsearch.service.calls import CallOutcome, Done, HandedBack
from toolsearch.service.routes.corpus_asked import corpus_asked
from toolsearch.service.service import Service, the_service
from toolsearch.wire.mcp.results import content_of, error_code, is_error, structured_of

router = APIRouter(tags=["calls"])

_Service = Annotated[Service, Depends(the_service)]
_Caller = Annotated[ServiceCaller, Depends(caller_with("call", within_reach=True))]


@router.post("/calls", summary="Call a tool of a catalog, a toolset or a session")
async def call(body: NewCall, service: _Service, caller: _Caller) -> CallAnswer:
    """A tool that fails, and arguments that do not fit, are answers with `is_error`, for the model to read. Send an
    ``Idempotency-Key`` to be able to repeat the request without running the tool twice.
    """
    if body.session is not None:
        return _answer(await service.calls.call_in_session(caller, body.session, body.name, body.arguments))
    return _answer(await service.calls.call(caller, corpus_asked(body, caller), body.name, body.arguments))


@router.post("/sessions/{session}/calls", summary="Call a tool in a session")
async def call_in_session(session: str, body: SessionCall, service: _Service, caller: _Caller) -> CallAnswer:
    """As ``/v1/calls``, also for the search tool."""
    return _answer(await service.calls.call_in_session(caller, session, body.name, body.arguments))


@router.post("/calls/{call}/result", status_code=204, summary="Report how a call ended that was handed back")
async def report(call: str, body: CallReport, service: _Service, caller: _Caller) -> None:
    """Once for each call, and within a day. What the tool gave is not asked for."""
    await service.calls.report(caller, call, is_error=body.is_error)


@router.post("/sessions/{session}/execute", summary="Run the tool calls of a model's reply")
async def execute(session: str, body: ModelReply, service: _Service, caller: _Caller) -> Executed:
    """Takes a whole reply of the OpenAI or Anthropic SDK as JSON, searches included, and gives the messages to append
    in the same format.
    """
    executed = await service.replies.execute(caller, session, body.reply)
    handed_back = [
        HandedBackCall(call_id=call_id, **_handed_back(each).model_dump()) for call_id, each in executed.handed_back
    ]
    return Executed(messages=executed.messages, handed_back=handed_back)


def _answer(outcome: CallOutcome) -> CallAnswer:
    if not isinstance(outcome, Done):
        return _handed_back(outcome)
    raw = outcome.raw
    return CallAnswer(
        status="done",
        name=outcome.name,
        content=[dict(block) for block in content_of(raw)],
        structured_content=structured_of(raw),
        is_error=is_error(raw),
        code=error_code(raw),
    )


def _handed_back(outcome: HandedBack) -> CallAnswer:
    return CallAnswer(
        id=outcome.id,
        status="handed_back",
        name=outcome.name,
        arguments=dict(outcome.arguments),
        fingerprint=outcome.fingerprint,
    )
