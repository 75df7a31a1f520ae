"""The page of one tool: its definition, its cost, a form to call it, and the calls from this form. A skill, a prompt
and a resource have the same page; they are read by the form.

Calls are kept sealed, for this browser alone, and as long as it is signed in.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Final, Literal, TypeAlias

from fastapi import APIRouter, Depends, Request, Response

from toolsearch.access.scopes import includes
from toolsearch.discovery.view import View
from toolsearch.documents.json_values import as_list, as_object, is_list
from toolsearch.documents.skills import Skill, skill_of
from toolsearch.errors import BadArgumentsError, ToolSearchError, UnknownRecordError
from toolsearch.service.calls.calls import Calls, HandedBack
from toolsearch.service.corpora.asked import opened, ref_of
from toolsearch.service.pages import frame
from toolsearch.service.pages.filters import Exact
from toolsearch.service.pages.frame import PageRoute, SentForm, see_other, sent_with, visit_with
from toolsearch.service.web.callers import Visit
from toolsearch.service.web.parts import ServiceParts, the_service
from toolsearch.storage.records import Record
from toolsearch.storage.seal import Seal
from toolsearch.threads import search_threads
from toolsearch.tools.calls import ToolResult
from toolsearch.tools.definition import SafetyClass, Tool, ToolDefinition, safety_of
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.results import in_words
from toolsearch.wire.sendable_tools import sending_notes

Control: TypeAlias = Literal["text", "integer", "number", "boolean", "choice", "json"]
FIELD_PREFIX: Final = "argument."

_CONTROLS: Final[Mapping[str, Control]] = {
    "string": "text",
    "integer": "integer",
    "number": "number",
    "boolean": "boolean",
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One property of an input schema. *choices* are written as JSON. Properties without a control of their own are
    typed as JSON.

    kind  its type, for people
    """

    name: str
    kind: str
    control: Control
    is_required: bool
    description: str = ""
    choices: tuple[str, ...] = ()
    example: str = ""

    @property
    def field(self) -> str:
        return FIELD_PREFIX + self.name


def parameters_of(schema: JsonObject) -> list[Parameter]:
    """The properties of the root schema, required ones first, otherwise in the written order."""
    required = {name for name in as_list(schema.get("required")) or [] if isinstance(name, str)}
    properties = as_object(schema.get("properties")) or {}
    found = [_parameter(name, as_object(each) or {}, name in required) for name, each in properties.items()]
    return sorted(found, key=lambda parameter: not parameter.is_required)


def arguments_in(parameters: list[Parameter], text_of: Callable[[str], str]) -> JsonObject:
    """Read the form; *text_of* gives the text in a field. Fields that are left empty are left out.

    Raises BadArgumentsError for a text that is not of the type. The schema is checked when the tool is called.
    """
    given: dict[str, Json] = {}
    for parameter in parameters:
        text = text_of(parameter.field)
        if text:
            given[parameter.name] = _value(parameter, text)
    return given


def arguments_in_json(text: str) -> JsonObject:
    """Raises BadArgumentsError unless *text* is a JSON object."""
    try:
        found = as_object(json.loads(text or "{}"))
    except (ValueError, RecursionError) as error:
        raise BadArgumentsError(f"the arguments are not JSON: {error}") from error
    if found is None:
        raise BadArgumentsError('the arguments must be a JSON object, such as {"city": "Berlin"}')
    return found


def _parameter(name: str, schema: JsonObject, is_required: bool) -> Parameter:  # noqa: FBT001
    kind = schema.get("type")
    choices = tuple(json.dumps(choice) for choice in as_list(schema.get("enum")) or [])
    control: Control = "choice" if choices else _CONTROLS.get(kind, "json") if isinstance(kind, str) else "json"
    shown = _shown_kind(schema)
    description, default = schema.get("description"), schema.get("default")
    return Parameter(
        name,
        shown,
        control,
        is_required,
        description if isinstance(description, str) else "",
        choices,
        "" if default is None else default if isinstance(default, str) else json.dumps(default),
    )


def _shown_kind(schema: JsonObject) -> str:
    kind = schema.get("type")
    if is_list(kind):
        return " or ".join(map(str, kind))
    if kind == "array":
        items = as_object(schema.get("items")) or {}
        return f"list of {_shown_kind(items)}" if items else "list"
    return str(kind) if kind else "any"


def _value(parameter: Parameter, text: str) -> Any:
    if parameter.control == "text":
        return text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadArgumentsError(f"{parameter.name} is {text!r}; write {parameter.kind} as JSON") from error
    if parameter.control in ("integer", "number") and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise BadArgumentsError(f"{parameter.name} must be a number, not {text!r}")
    return value


RECORDED_CALL: Final = "recorded call"  # the kind of the records of such calls
_MOST_CHARACTERS: Final = 200_000  # characters of a result that are kept
_LISTED: Final = 200


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One call. *state* is done, failed, or handed back, which means that the caller runs it.

    content     the text that the model would read
    structured  the same as JSON, if the tool gives any
    """

    id: str
    corpus: str
    tool: str
    at_s: float
    took_ms: float
    arguments: JsonObject
    state: str
    content: str
    structured: str = ""
    code: str = ""


async def record(service: ServiceParts, visit: Visit, call: RecordedCall) -> None:
    call_text = json.dumps(asdict(call))
    await asyncio.to_thread(
        service.storage.records.put,
        visit.caller.tenant,
        RECORDED_CALL,
        _place(visit, call.id),
        {"sealed": service[Seal].seal(call_text)},
        over=0,
        at_s=call.at_s,
        expires_s=call.at_s + service.settings.serve.visit_s,
    )


def new_call_id(at_s: float) -> str:
    """Ids grow with time."""
    return f"{int(at_s * 1_000):015d}-{secrets.token_hex(4)}"


async def recorded(service: ServiceParts, visit: Visit, call_id: str) -> RecordedCall:
    """Raises UnknownRecordError if this browser has not made the call."""
    found = await asyncio.to_thread(
        service.storage.records.get,
        visit.caller.tenant,
        RECORDED_CALL,
        _place(visit, call_id),
        at_s=service.clock(),
    )
    if found is None:
        raise UnknownRecordError(RECORDED_CALL, call_id)
    return _read(service, found)


async def latest(service: ServiceParts, visit: Visit) -> list[RecordedCall]:
    """The newest first."""
    start = _place(visit, "")
    found = await asyncio.to_thread(
        service.storage.records.page,
        visit.caller.tenant,
        RECORDED_CALL,
        after=start,
        limit=_LISTED,
        at_s=service.clock(),
    )
    return [_read(service, each) for each in reversed(found) if each.id.startswith(start)]


def shortened(text: str) -> str:
    left_out = len(text) - _MOST_CHARACTERS
    return text if left_out <= 0 else f"{text[:_MOST_CHARACTERS]}\n… and {left_out:,} characters more"


def _place(visit: Visit, call_id: str) -> str:
    return f"{visit.id[:32]}.{call_id}"


def _read(service: ServiceParts, found: Record) -> RecordedCall:
    values: dict[str, Any] = json.loads(service[Seal].open(str(found.document["sealed"])))
    return RecordedCall(**values)


router = APIRouter(route_class=PageRoute, include_in_schema=False)
_Service = Annotated[ServiceParts, Depends(the_service)]
_Searcher = Annotated[Visit, Depends(visit_with("search", within_reach=True))]
_Calling = Annotated[Visit, Depends(visit_with("call", within_reach=True))]
_Sent = Annotated[SentForm, Depends(sent_with("call", within_reach=True))]
_TOOL: Final = "/tools/{kind}/{name}/{tool}"


@dataclass(frozen=True, slots=True)
class ToolPage:
    """The data for the page of a tool. *skill* is the manifest of a skill."""

    tool: Tool
    tokens: int
    skill: Skill | None

    @property
    def definition(self) -> ToolDefinition:
        return self.tool.definition

    @property
    def parameters(self) -> list[Parameter]:
        return parameters_of(self.definition.input_schema)

    @property
    def notes(self) -> list[str]:
        """The differences between the definition and the form that models are sent, which is only done with tools."""
        return sending_notes(self.definition) if self.definition.kind == "tool" else []

    @property
    def safety(self) -> SafetyClass:
        return safety_of(self.definition.annotations)


@router.get(_TOOL)
async def show(request: Request, service: _Service, visit: _Searcher, kind: str, name: str, tool: str) -> Response:
    return await _page(request, service, visit, f"{kind}/{name}", tool)


@router.post(f"{_TOOL}/call")
async def call(request: Request, service: _Service, sent: _Sent, kind: str, name: str, tool: str) -> Response:
    corpus = f"{kind}/{name}"
    sent.visit.caller.require("search")  # the page shows the tool's definition
    found = await _found(service, sent.visit, corpus, tool)
    try:
        arguments = _arguments(sent, found)
    except BadArgumentsError as error:
        return await _page(request, service, sent.visit, corpus, tool, refused=str(error), sent=sent)
    made = await _called(service, sent.visit, corpus, tool, arguments)
    await record(service, sent.visit, made)
    return see_other(f"{frame.ROOT}/calls/{made.id}")


@router.get("/calls/{recorded_id}")
async def recorded_page(request: Request, service: _Service, visit: _Calling, recorded_id: str) -> Response:
    found = await recorded(service, visit, recorded_id)
    return frame.page(request, "call.html", visit=visit, call=found)


async def _page(
    request: Request,
    service: ServiceParts,
    visit: Visit,
    corpus: str,
    tool: str,
    *,
    refused: str = "",
    sent: SentForm | None = None,
) -> Response:
    found = await _found(service, visit, corpus, tool)
    fields = {each.field: each.example for each in found.parameters}
    may_call = includes(visit.caller.scopes, "call")
    calls = await latest(service, visit) if may_call else []
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


async def _found(service: ServiceParts, visit: Visit, corpus: str, tool: str) -> ToolPage:
    """Raises UnknownRecordError, or UnknownToolError also for a tool out of reach."""
    async with opened(service, visit, corpus) as used:
        return await search_threads.run(_in_reach, used.view_of(visit.caller), tool)


def _in_reach(view: View, name: str) -> ToolPage:
    tool = view.get_entry(name)
    return ToolPage(tool, view.tokens_of(tool.definition), skill_of(tool))


def _arguments(sent: SentForm, found: ToolPage) -> JsonObject:
    """Raises BadArgumentsError. Whether they fit the schema is asked when the tool is called."""
    if sent.text("by") == "json":
        return arguments_in_json(sent.text("json"))
    return arguments_in(found.parameters, sent.text)


async def _called(service: ServiceParts, visit: Visit, corpus: str, tool: str, arguments: JsonObject) -> RecordedCall:
    """Call the tool as agents do. Errors before the call are recorded, too."""
    at_s, began_s = service.clock(), service.steady()
    try:
        outcome = await service[Calls].call(visit.caller, ref_of(visit, corpus), tool, arguments)
    except ToolSearchError as error:
        told = _told("failed", str(error), code=error.code)
    else:
        told = _of(outcome)
    took_ms = (service.steady() - began_s) * 1_000
    return RecordedCall(new_call_id(at_s), corpus, tool, at_s, took_ms, arguments, **told)


def _of(outcome: ToolResult | HandedBack) -> dict[str, str]:
    if isinstance(outcome, HandedBack):
        return _told("handed back", "This tool lives with the caller: an agent would run it now, and report the end.")
    structured = outcome.structured
    return _told(
        "failed" if outcome.is_error else "done",
        "\n\n".join(map(in_words, outcome.content)),
        structured="" if structured is None else json.dumps(structured, indent=2, ensure_ascii=False),
        code=outcome.error_code or "",
    )


def _told(state: str, content: str, *, structured: str = "", code: str = "") -> dict[str, str]:
    shorten = shortened
    return {"state": state, "content": shorten(content), "structured": shorten(structured), "code": code}
