"""Messages of MCP for a process that only passes them on. Nothing heavy may be imported here.

This module stands outside of the package `mcp`, because importing that package loads much more.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from toolsearch.documents.json_values import as_object

if TYPE_CHECKING:
    from toolsearch.tools.json_types import Json, JsonObject

FAILED: Final = -32603  # code of errors that the client has not caused
_CALL: Final = "tools/call"


def is_request(message: JsonObject) -> bool:
    return "id" in message and "method" in message


def line_of(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def notification(method: str, params: JsonObject) -> JsonObject:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def failed(id_: Json, reason: str) -> JsonObject:
    """The error with which a request is answered, for *reason*."""
    return {"jsonrpc": "2.0", "id": id_, "error": {"code": FAILED, "message": reason}}


def unanswered(id_: Json, method: Json, reason: str) -> JsonObject:
    """The answer to a request that may have run. For a call of a tool it is a result, because models read results."""
    if method != _CALL:
        return failed(id_, reason)
    result: JsonObject = {"content": [{"type": "text", "text": reason}], "isError": True}
    return {"jsonrpc": "2.0", "id": id_, "result": result}


def subscription_of(message: JsonObject) -> Json:
    """The id of the subscription that *message* belongs to, for clients of 2026; None if it belongs to none."""
    meta = as_object((as_object(message.get("params")) or {}).get("_meta")) or {}
    return meta.get("io.modelcontextprotocol/subscriptionId")
