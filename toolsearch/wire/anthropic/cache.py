"""The mark up to which Anthropic keeps a prompt for the next requests. Without a mark it keeps nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from toolsearch.tools.json_types import JsonObject
from toolsearch.wire.anthropic.tools import DEFERRED

MARK: Final = "cache_control"
_KEPT: Final[JsonObject] = {"type": "ephemeral"}
_MOST_MARKS = 4  # a request with more is refused


def with_cache_mark(request: Mapping[str, Any], *, marks_requests: bool) -> dict[str, Any]:
    """Return *request*, to be kept for the next ones; the marks that it has stay, and it is never given too many.

    marks_requests  as in `Capabilities`. Where it is false, the mark stands on the last tool of the list, since a
                    session does not see the messages. A deferred tool cannot have it
    """
    marks = sum(MARK in block for block in _blocks(request))
    if MARK in request or marks >= _MOST_MARKS:
        return dict(request)
    if marks_requests:
        last = _last_block(request)
        return dict(request) if MARK in last else {**request, MARK: _KEPT}  # two lifetimes in one place are refused
    listed = [place for place, tool in enumerate(request.get("tools", ())) if not DEFERRED.items() <= tool.items()]
    if marks or not listed:  # one that lives longer must not come after ours
        return dict(request)
    tools = list(request["tools"])
    tools[listed[-1]] = {**tools[listed[-1]], MARK: _KEPT}
    return {**request, "tools": tools}


def _blocks(request: Mapping[str, Any]) -> Iterator[JsonObject]:
    yield from request.get("tools", ())
    for text in (request.get("system"), *(message["content"] for message in request.get("messages", ()))):
        if isinstance(text, list):
            yield from cast("list[JsonObject]", text)


def _last_block(request: Mapping[str, Any]) -> JsonObject:
    messages = request.get("messages", ())
    content: object = messages[-1]["content"] if messages else ()
    return cast("list[JsonObject]", content)[-1] if content and isinstance(content, list) else {}
