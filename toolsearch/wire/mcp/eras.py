"""The two eras of the protocol: how entries, results and questions are adapted to clients of either."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, cast

from mcp import MCPError
from mcp.types import INVALID_PARAMS, METHOD_NOT_FOUND, SERVER_INFO_META_KEY, methods
from pydantic import ValidationError

from toolsearch.documents.json_values import is_object
from toolsearch.tools.definition import Tool
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.wire.mcp.definitions import INPUT_SCHEMA, OUTPUT_SCHEMA, renamed_entry, with_optional_tasks
from toolsearch.wire.mcp.requests import ELICIT, LIST_ROOTS, LIST_TOOLS, META, MODERN_FIELDS, SAMPLE, as_private


class Era(Enum):
    """The protocol versions up to 2025-11-25, or those from 2026-07-28 on."""

    LEGACY = "legacy"  # up to 2025-11-25: a handshake opens a session
    MODERN = "modern"  # from 2026-07-28 on: no sessions; every request names its client


_VERSIONS = {Era.LEGACY: "2025-11-25", Era.MODERN: "2026-07-28"}  # the newest version of MCP in each era
_MODERN_LIST_FIELDS = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
_NEEDED = frozenset({"name", INPUT_SCHEMA})


# Only the invalid parts of these fields are left out, not the whole field.
_WITH_PARTS = frozenset({"annotations", INPUT_SCHEMA})
_MAX_PASSES = 4


def entry_for(tool: Tool, era: Era) -> dict[str, Any]:
    """The entry of *tool* for the list of a client of *era*: the server's entry under our name.

    Clients refuse a whole list because of one invalid optional field of one tool, so such fields are left out. Fields
    that no version knows stay. The output schema of a tool without a server is left out: clients refuse results that do
    not fit, and a callback may return text or a cut result.
    """
    entry = dict(with_optional_tasks(renamed_entry(tool)))
    if tool.origin is None:
        entry.pop(OUTPUT_SCHEMA, None)
    for _ in range(_MAX_PASSES):
        places = _refused_places(entry, era)
        if not places:
            return entry
        entry = _without(entry, places)
    return {key: entry[key] for key in sorted(_NEEDED)}


def result_for(result: Mapping[str, Any], era: Era) -> dict[str, Any]:
    """*result* without the fields that no version of *era* has, and marked as private to the caller."""
    if era is Era.MODERN:
        return as_private(result)
    kept = {key: value for key, value in result.items() if key not in MODERN_FIELDS}
    if not is_object(kept.get("structuredContent", {})):
        del kept["structuredContent"]  # older clients accept only objects here; the content says the same
    meta = kept.get(META)
    if is_object(meta) and SERVER_INFO_META_KEY in meta:
        kept[META] = {key: value for key, value in meta.items() if key != SERVER_INFO_META_KEY}
        if not kept[META]:
            del kept[META]
    return kept


def _refused_places(entry: Mapping[str, Any], era: Era) -> list[tuple[str, ...]]:
    """The fields that the client's version finds invalid, as paths into *entry* of at most two keys."""
    try:
        methods.validate_server_result(LIST_TOOLS, _VERSIONS[era], {**_MODERN_LIST_FIELDS, "tools": [entry]})
    except ValidationError as error:
        # A location looks like ("tools", 0, "annotations", "readOnlyHint", ...).
        return [tuple(map(str, found["loc"][2:4])) for found in error.errors(include_url=False, include_input=False)]
    return []


def _without(entry: Mapping[str, Any], places: Iterable[tuple[str, ...]]) -> dict[str, Any]:
    kept = dict(entry)
    for field, *parts in places:
        value = kept.get(field)
        if field in _WITH_PARTS and parts and isinstance(value, dict) and parts[0] in value:
            kept[field] = {key: part for key, part in cast("dict[str, Any]", value).items() if key != parts[0]}
        elif field not in _NEEDED:
            kept.pop(field, None)
    return kept


ASKABLE = ("elicitation", "sampling", "roots")  # client capabilities that let a server ask the client something
_NEEDED_TO_ASK = {ELICIT: "elicitation", SAMPLE: "sampling", LIST_ROOTS: "roots"}
_REQUESTS, _RESPONSES, _STATE = "inputRequests", "inputResponses", "requestState"


def check_askable(capabilities: Mapping[str, Any], method: str, params: Mapping[str, Any]) -> None:
    """Raise MCPError, which is sent to the server, if a client with these *capabilities* does not support *method*."""
    needed = _NEEDED_TO_ASK.get(method)
    if needed is None or needed not in capabilities:
        raise MCPError(METHOD_NOT_FOUND, f"the client of this request cannot be asked: no {needed or method}")
    declared = capabilities[needed]
    details: Mapping[str, Any] = declared if is_object(declared) else {}
    if needed == "elicitation":
        mode = params.get("mode", "form")
        if not isinstance(mode, str) or mode not in (
            details or {"form": {}}
        ):  # an empty declaration means forms: in the first version there was nothing else
            raise MCPError(INVALID_PARAMS, f"the client of this request knows no elicitation of mode {mode!r}")
    elif needed == "sampling" and params.get("tools") and "tools" not in details:
        raise MCPError(INVALID_PARAMS, "the client of this request knows no sampling with tools")


def as_input_request(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """The request of an older server as a 2026 result that asks for input holds it."""
    kept = {key: value for key, value in params.items() if key not in (META, "task", "elicitationId")}
    return {"method": method, **({"params": kept} if kept else {})}


def as_live_request(params: Mapping[str, Any], number: int) -> dict[str, Any]:
    """The parameters of a question of 2026, for an older client. A page to visit needs an id in that protocol."""
    if params.get("mode") == "url" and "elicitationId" not in params:
        return {**params, "elicitationId": f"toolsearch-{number}"}
    return dict(params)


def input_required(requests: Mapping[str, Any], state: str) -> dict[str, Any]:
    """A result that asks the client *requests*, by key. The client sends back *state* with its answers."""
    return {"resultType": "input_required", _REQUESTS: requests, _STATE: state}


def with_questions(message: Mapping[str, Any], requests: Mapping[str, Any]) -> dict[str, Any]:
    """*message* with questions for the client, by key."""
    return {**message, _REQUESTS: dict(requests)}


def questions_in(result: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """The key, the method and the parameters of each question in a result that asks for input."""
    wanted = result.get(_REQUESTS)
    for key, each in wanted.items() if is_object(wanted) else ():
        if is_object(each):
            params = each.get("params")
            yield key, str(each.get("method")), params if is_object(params) else {}


def answers_in(params: Mapping[str, Any]) -> JsonObject | None:
    """The answers by key that a client has sent; None if it has sent none."""
    answers = params.get(_RESPONSES)
    return answers if is_object(answers) else None


def with_answers(params: Mapping[str, Any], answers: JsonObject) -> dict[str, Any]:
    return {**params, _RESPONSES: answers}


def has_state(message: Mapping[str, Any]) -> bool:
    return _STATE in message


def state_in(message: Mapping[str, Any]) -> Json:
    """The state that the client brings from one round to the next, in a result or a request; None if there is none."""
    return message.get(_STATE)


def with_state(message: Mapping[str, Any], state: Json) -> dict[str, Any]:
    return {**message, _STATE: state}


def without_answers(params: Mapping[str, Any]) -> dict[str, Any]:
    """*params* without answers and state of earlier rounds."""
    return {key: value for key, value in params.items() if key not in (_RESPONSES, _STATE)}


def without_round(params: Mapping[str, Any]) -> dict[str, Any]:
    """*params* without answers and state of earlier rounds, and without ``_meta``."""
    return {key: value for key, value in without_answers(params).items() if key != META}
