"""What a process that only passes messages of MCP on has to know of them. It imports nothing heavy.

It stands outside of the package `mcp`, because importing that package loads much more.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from toolsearch.documents.json_values import as_object

if TYPE_CHECKING:
    from toolsearch.tools.json_types import Json, JsonObject

FAILED: Final = -32603  # the code of an error that the client has not caused
_CALL: Final = "tools/call"


def line_of(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def notification(method: str, params: JsonObject) -> JsonObject:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def failed(id_: Json, reason: str) -> JsonObject:
    """The answer to a request that fails for *reason*."""
    return {"jsonrpc": "2.0", "id": id_, "error": {"code": FAILED, "message": reason}}


def unanswered(id_: Json, method: Json, reason: str) -> JsonObject:
    """The answer to a request that may have run. A call of a tool is answered with a result, because models read it."""
    if method != _CALL:
        return failed(id_, reason)
    result: JsonObject = {"content": [{"type": "text", "text": reason}], "isError": True}
    return {"jsonrpc": "2.0", "id": id_, "result": result}


def subscription_of(message: JsonObject) -> Json:
    """The request of 2026 whose stream *message* belongs to; None if it belongs to none."""
    meta = as_object((as_object(message.get("params")) or {}).get("_meta")) or {}
    return meta.get("io.modelcontextprotocol/subscriptionId")
