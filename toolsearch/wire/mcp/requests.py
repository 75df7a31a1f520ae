"""Parameters of requests: the tool that is called, its arguments, and the ``_meta`` that is passed on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolsearch.documents.json_values import is_object
from toolsearch.tools.calls import ToolCall
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.wire.mcp.envelope import meta_of

_RESERVED = "io.modelcontextprotocol/"  # protocol version, capabilities and client; every connection has its own
_PROGRESS_TOKEN = "progressToken"  # noqa: S105  identifies notifications on one connection


def call_params(name: str, arguments: JsonObject) -> dict[str, Json]:
    """The parameters of a call of the tool that its server calls *name*."""
    return {"name": name, "arguments": dict(arguments)}


def read_call(params: Mapping[str, Any], call_id: str = "") -> ToolCall:
    """The call that *params* ask for. A name or arguments of the wrong type count as missing."""
    return ToolCall(call_id, called_name(params), arguments_in(params))


def called_name(params: Mapping[str, Any]) -> str:
    name = params.get("name")
    return name if isinstance(name, str) else ""


def arguments_in(params: Mapping[str, Any]) -> JsonObject:
    arguments = params.get("arguments")
    return arguments if is_object(arguments) else {}


def target_of(params: Mapping[str, Any]) -> str:
    """What a request is about: the name of a tool or a prompt, or the URI of a resource."""
    return str(params.get("name", params.get("uri", "")))


def forwarded_meta(params: Mapping[str, Any]) -> dict[str, Json]:
    """The ``_meta`` that a gateway passes on to the server, such as ``traceparent``.

    What describes the connection between client and gateway is left out.
    """
    meta = meta_of(params)
    return {key: value for key, value in meta.items() if key != _PROGRESS_TOKEN and not key.startswith(_RESERVED)}
