"""Questions of a server to its client, in both of the protocol's forms.

A server of the older era sends requests of its own while a call runs. One of 2026 answers the call with a result that
asks for input, and the client makes the call again, with its answers and the state that it was handed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mcp import MCPError
from mcp.types import INVALID_PARAMS, METHOD_NOT_FOUND

from toolsearch.documents.json_values import is_object
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.wire.mcp.envelope import META
from toolsearch.wire.mcp.methods import ELICIT, LIST_ROOTS, SAMPLE

ASKABLE = ("elicitation", "sampling", "roots")  # the capabilities of a client that can be asked something
_NEEDED = {ELICIT: "elicitation", SAMPLE: "sampling", LIST_ROOTS: "roots"}
_REQUESTS, _RESPONSES, _STATE = "inputRequests", "inputResponses", "requestState"


def check_askable(capabilities: Mapping[str, Any], method: str, params: Mapping[str, Any]) -> None:
    """Raise MCPError, which is sent to the server, if a client with these *capabilities* cannot be asked this."""
    needed = _NEEDED.get(method)
    if needed is None or needed not in capabilities:
        raise MCPError(METHOD_NOT_FOUND, f"the client of this request cannot be asked: no {needed or method}")
    declared = capabilities[needed]
    details: Mapping[str, Any] = declared if is_object(declared) else {}
    if needed == "elicitation":
        mode = params.get("mode", "form")
        if not isinstance(mode, str) or mode not in (
            details or {"form": {}}
        ):  # declared empty it means forms, as it did before there were others
            raise MCPError(INVALID_PARAMS, f"the client of this request knows no elicitation of mode {mode!r}")
    elif needed == "sampling" and params.get("tools") and "tools" not in details:
        raise MCPError(INVALID_PARAMS, "the client of this request knows no sampling with tools")


def as_input_request(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """A request of an older server, in the form that it has in a result of 2026 that asks for input."""
    kept = {key: value for key, value in params.items() if key not in (META, "task", "elicitationId")}
    return {"method": method, **({"params": kept} if kept else {})}


def as_live_request(params: Mapping[str, Any], number: int) -> dict[str, Any]:
    """The parameters of a question of 2026, for an older client; a page to be visited needs an id there."""
    if params.get("mode") == "url" and "elicitationId" not in params:
        return {**params, "elicitationId": f"toolsearch-{number}"}
    return dict(params)


def input_required(requests: Mapping[str, Any], state: str) -> dict[str, Any]:
    """A result that asks the client *requests*, by key. The client sends back *state* with its answers."""
    return {"resultType": "input_required", _REQUESTS: requests, _STATE: state}


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
    """The state that a client carries from one round to the next, in a result or a request; None if there is none."""
    return message.get(_STATE)


def with_state(message: Mapping[str, Any], state: Json) -> dict[str, Any]:
    return {**message, _STATE: state}


def without_round(params: Mapping[str, Any]) -> dict[str, Any]:
    """*params* without answers and state of earlier rounds, and without ``_meta``."""
    return {key: value for key, value in params.items() if key not in (_RESPONSES, _STATE, META)}
