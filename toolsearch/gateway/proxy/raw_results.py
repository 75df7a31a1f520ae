"""Slips results past the SDK's own models, which drop what they do not know: what a server sent is what a client gets.

A handler returns an empty result that fits every version, with the real one in its ``_meta``; the middleware puts that
in its place once the SDK has checked and stamped the empty one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

_RAW = "toolsearch/raw"
_NOT_CACHED: Mapping[str, Any] = {"ttlMs": 0, "cacheScope": "private"}
_EMPTY: Mapping[str, Mapping[str, Any]] = {
    "tools/list": {"tools": []},  # which has a hint of its own
    "tools/call": {"content": []},
    "resources/list": {"resources": [], **_NOT_CACHED},
    "resources/templates/list": {"resourceTemplates": [], **_NOT_CACHED},
    "resources/read": {"contents": [], **_NOT_CACHED},
    "prompts/list": {"prompts": [], **_NOT_CACHED},
    "prompts/get": {"messages": []},
    "completion/complete": {"completion": {"values": []}},
}
_STAMPS = ("resultType", "ttlMs", "cacheScope")  # what the SDK adds, for the versions that have it


def raw_result(method: str, result: Mapping[str, Any]) -> dict[str, Any]:
    """The result of *method*, as it is; also one that asks for input."""
    return {**_EMPTY[method], "resultType": "complete", "_meta": {_RAW: result}}


def raw_call_result(result: Mapping[str, Any]) -> dict[str, Any]:
    """A ``tools/call`` result, as it is."""
    return raw_result("tools/call", result)


async def send_raw_results(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """The middleware; results without a raw one in them pass untouched."""
    result = await call_next(ctx)
    if not isinstance(result, dict):
        return result
    meta: dict[str, Any] = result.get("_meta") or {}
    if _RAW not in meta:
        return result
    raw: dict[str, Any] = meta[_RAW]
    stamps = {key: result[key] for key in _STAMPS if key in result and raw.get("resultType") != "input_required"}
    added = {key: value for key, value in meta.items() if key != _RAW}
    all_meta: dict[str, Any] = {**(raw.get("_meta") or {}), **added}
    return {**stamps, **raw, **({"_meta": all_meta} if all_meta else {})}
