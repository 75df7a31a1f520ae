"""Slips results past the SDK's own models, which drop what they do not know: what a server sent is what a client gets.

A handler returns an empty result that fits every version, with the real one in its ``_meta``; the middleware puts that
in its place once the SDK has checked and stamped the empty one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

_RAW = "toolsearch/raw"


def raw_tools(entries: list[dict[str, Any]]) -> dict[str, Any]:
    """A ``tools/list`` result of these entries, as they are."""
    return {"tools": [], "resultType": "complete", "_meta": {_RAW: {"tools": entries}}}


def raw_call_result(result: Mapping[str, Any]) -> dict[str, Any]:
    """A ``tools/call`` result, as it is; also one that asks for input."""
    return {"content": [], "resultType": "complete", "_meta": {_RAW: result}}


async def send_raw_results(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """The middleware; results without a raw one in them pass untouched."""
    result = await call_next(ctx)
    if not isinstance(result, dict):
        return result
    stamps: dict[str, Any] = dict(result.pop("_meta", None) or {})
    raw: dict[str, Any] = stamps.pop(_RAW, {})
    meta: dict[str, Any] = {**(raw.get("_meta") or {}), **stamps}
    return {**result, **raw, **({"_meta": meta} if meta else {})}
