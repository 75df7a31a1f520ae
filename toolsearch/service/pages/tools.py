"""One tool: its definition, what it costs, and a form to call it by hand, with what came of it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Request, Response

from toolsearch.access.reach import Reach
from toolsearch.access.scopes import includes
from toolsearch.errors import BadArgumentsError, ToolSearchError
from toolsearch.service.calls import Done, HandedBack
from toolsearch.service.corpora.corpus import Corpus
from toolsearch.service.pages import frame, recorded_calls
from toolsearch.service.pages.corpus_choice import opened, ref_of
from toolsearch.service.pages.filters import Exact
from toolsearch.service.pages.parameters import Parameter, arguments_in, arguments_in_json, parameters_of
from toolsearch.service.pages.recorded_calls import RecordedCall
from toolsearch.service.pages.routing import PageRoute, Sent, see_other, sent_with, visit_with
from toolsearch.service.service import Service, the_service
from toolsearch.service.visits import Visit
from toolsearch.threads import search_threads
from toolsearch.tools.blocks import in_words
from toolsearch.tools.definition import Tool, ToolDefinition
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.safety import SafetyClass, safety_of
from toolsearch.wire.mcp.results import content_of, error_code, is_error, structured_of
from toolsearch.wire.sendable_tools import sending_notes

router = APIRouter(route_class=PageRoute, include_in_schema=False)

_Service = Annotated[Service, Depends(the_service)]
_Searcher = Annotated[Visit, Depends(visit_with("search", within_reach=True))]
_Calling = Annotated[Visit, Depends(visit_with("call", within_reach=True))]
_Sent = Annotated[Sent, Depends(sent_with("call", within_reach=True))]

_TOOL: Final = "/tools/{kind}/{name}/{tool}"


@dataclass(frozen=True, slots=True)
class ToolPage:
    """What the page of a tool shows."""

    tool: Tool
    tokens: int

    @property
    def definition(self) -> ToolDefinition:
        return self.tool.definition

    @property
    def parameters(self) -> list[Parameter]:
        return parameters_of(self.definition.input_schema)

    @property
    def notes(self) -> list[str]:
        """What models are sent otherwise than the definition has it."""
        return sending_notes(self.definition)

    @property
    def safety(self) -> SafetyClass:
        return safety_of(self.definition.annotations)


@router.get(_TOOL)
async def show(request: Request, service: _Service, visit: _Searcher, kind: str, name: str, tool: str) -> Response:
    return await _page(request, service, visit, f"{kind}/{name}", tool)


@router.post(f"{_TOOL}/call")
async def call(request: Request, service: _Service, sent: _Sent, kind: str, name: str, tool: str) -> Response:
    corpus = f"{kind}/{name}"
    sent.visit.caller.require("search")  # for the definition
    found = await _found(service, sent.visit, corpus, tool)
    try:
        arguments = _arguments(sent, found)
    except BadArgumentsError as error:
        return await _page(request, service, sent.visit, corpus, tool, refused=str(error), sent=sent)
    made = await _called(service, sent.visit, corpus, tool, arguments)
    await recorded_calls.record(service, sent.visit, made)
    return see_other(f"{frame.ROOT}/calls/{made.id}")


@router.get("/calls/{recorded_id}")
async def recorded(request: Request, service: _Service, visit: _Calling, recorded_id: str) -> Response:
    found = await recorded_calls.recorded(service, visit, recorded_id)
    return frame.page(request, "call.html", visit=visit, call=found)


async def _page(
    request: Request,
    service: Service,
    visit: Visit,
    corpus: str,
    tool: str,
    *,
    refused: str = "",
    sent: Sent | None = None,
) -> Response:
    found = await _found(service, visit, corpus, tool)
    fields = {each.field: each.example for each in found.parameters}
    may_call = includes(visit.caller.scopes, "call")
    calls = await recorded_calls.latest(service, visit) if may_call else []
    return frame.page(
        request,
        "tool.html",
        visit=visit,
        status=422 if refused else 200,
        corpus=corpus,
        shown=found,
        may_call=may_call,
        calls=[each for each in calls if (each.corpus, each.tool) == (corpus, tool)],
        refused=refused,
        given=sent.typed(*fields) if sent else fields,
        as_json=Exact(sent.text("json")) if sent else "",
    )


async def _found(service: Service, visit: Visit, corpus: str, tool: str) -> ToolPage:
    """Raises UnknownRecordError, or UnknownToolError also for a tool out of reach."""
    async with opened(service, visit, corpus) as used:
        return await search_threads.run(_in_reach, used, visit.caller.principal.reach, tool)


def _in_reach(corpus: Corpus, reach: Reach, name: str) -> ToolPage:
    view = corpus.engine.view(reach)
    tool = view.get(name)
    return ToolPage(tool, view.tokens_of(tool.definition))


def _arguments(sent: Sent, found: ToolPage) -> JsonObject:
    """Raises BadArgumentsError. Whether they fit the schema is asked when the tool is called."""
    if sent.text("by") == "json":
        return arguments_in_json(sent.text("json"))
    return arguments_in(found.parameters, sent.text)


async def _called(service: Service, visit: Visit, corpus: str, tool: str, arguments: JsonObject) -> RecordedCall:
    """Call it as agents do. What fails on the way is recorded too."""
    at_s, began_s = service.clock(), service.steady()
    try:
        outcome = await service.calls.call(visit.caller, ref_of(visit, corpus), tool, arguments)
    except ToolSearchError as error:
        told = _told("failed", str(error), code=error.code)
    else:
        told = _of(outcome)
    took_ms = (service.steady() - began_s) * 1_000
    return RecordedCall(recorded_calls.new_call_id(at_s), corpus, tool, at_s, took_ms, arguments, **told)


def _of(outcome: Done | HandedBack) -> dict[str, str]:
    if isinstance(outcome, HandedBack):
        return _told("handed back", "This tool lives with the caller: an agent would run it now, and report the end.")
    raw = outcome.raw
    state = "failed" if is_error(raw) else "done"
    content = "\n\n".join(map(in_words, content_of(raw)))
    structured = structured_of(raw)
    return _told(
        state,
        content,
        structured="" if structured is None else json.dumps(structured, indent=2, ensure_ascii=False),
        code=error_code(raw) or "",
    )


def _told(state: str, content: str, *, structured: str = "", code: str = "") -> dict[str, str]:
    shorten = recorded_calls.shortened
    return {"state": state, "content": shorten(content), "structured": shorten(structured), "code": code}
