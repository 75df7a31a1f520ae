"""What a client can be asked by a server, by the capabilities that it has declared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp import MCPError
from mcp.types import INVALID_PARAMS, METHOD_NOT_FOUND

from toolsearch.documents.json_values import is_object

ASKABLE = ("elicitation", "sampling", "roots")
_NEEDED = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}


def check_askable(capabilities: Mapping[str, Any], method: str, params: Mapping[str, Any]) -> None:
    """Raise MCPError, for the server to read, if a client of these *capabilities* cannot be asked this."""
    needed = _NEEDED.get(method)
    if needed is None or needed not in capabilities:
        raise MCPError(METHOD_NOT_FOUND, f"the client of this request cannot be asked: no {needed or method}")
    declared = capabilities[needed]
    details: Mapping[str, Any] = declared if is_object(declared) else {}
    if needed == "elicitation":
        mode = params.get("mode", "form")
        if mode not in (details or {"form": {}}):  # declared empty it means forms, as it did before there were others
            raise MCPError(INVALID_PARAMS, f"the client of this request knows no elicitation of mode {mode!r}")
    elif needed == "sampling" and params.get("tools") and "tools" not in details:
        raise MCPError(INVALID_PARAMS, "the client of this request knows no sampling with tools")


def as_input_request(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """What an older server asks, as the protocol of 2026 has it in a result that asks for input."""
    kept = {key: value for key, value in params.items() if key not in ("_meta", "task", "elicitationId")}
    return {"method": method, **({"params": kept} if kept else {})}


def as_live_request(params: Mapping[str, Any], number: int) -> dict[str, Any]:
    """What a server of 2026 asks, as older clients are asked it: there a page to be visited has an id."""
    if params.get("mode") == "url" and "elicitationId" not in params:
        return {**params, "elicitationId": f"toolsearch-{number}"}
    return dict(params)
