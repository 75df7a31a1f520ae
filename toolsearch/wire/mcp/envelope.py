"""The parts of a result around its content: ``_meta``, whether it is complete, and how long it may be cached.

The SDK's models refuse a whole result because of one malformed field, and drop fields that they do not know. Results
therefore bypass them: `carrying` gives the SDK an empty result that is valid in every version of the protocol, with the
real one in its ``_meta``, and `carried` and `unpacked` take the real one out again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from toolsearch.documents.json_values import is_object
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.wire.mcp import methods

META: Final = "_meta"
MODERN_FIELDS = ("resultType", "ttlMs", "cacheScope")  # of results from 2026-07-28 on
_RAW = "toolsearch/raw"
_ONCE: JsonObject = {"resultType": "complete"}
_LISTED: JsonObject = {**_ONCE, "ttlMs": 0, "cacheScope": "private"}
_EMPTY: Mapping[str, JsonObject] = {
    methods.LIST_TOOLS: {"tools": [], **_LISTED},
    methods.CALL_TOOL: {"content": [], **_ONCE},
    methods.LIST_RESOURCES: {"resources": [], **_LISTED},
    methods.LIST_TEMPLATES: {"resourceTemplates": [], **_LISTED},
    methods.READ_RESOURCE: {"contents": [], **_LISTED},
    methods.LIST_PROMPTS: {"prompts": [], **_LISTED},
    methods.GET_PROMPT: {"messages": [], **_ONCE},
    methods.COMPLETE: {"completion": {"values": []}, **_ONCE},
    methods.SUBSCRIBE: {},
    methods.UNSUBSCRIBE: {},
    methods.SET_LOG_LEVEL: {},
}


def carrying(method: str, result: Mapping[str, Any], *, ttl_ms: int = 0) -> dict[str, Any]:
    """An empty result of *method* that carries *result*, and says that it may be cached for *ttl_ms*.

    For a method that is not in the table above, *result* itself.
    """
    empty = _EMPTY.get(method)
    if empty is None:
        return dict(result)
    kept = {"ttlMs": ttl_ms} if "ttlMs" in empty else {}
    return {**empty, **kept, META: {_RAW: result}}


def carried(meta: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The result that is carried in *meta*, the ``_meta`` of another one; None if there is none."""
    return (meta or {}).get(_RAW)


def unpacked(result: dict[str, Any]) -> dict[str, Any]:
    """The result that *result* carries, or *result* itself if it carries none.

    What the SDK has added to the empty result is added to the carried one, except that a result which asks for input is
    not marked as complete.
    """
    meta: Mapping[str, Any] = result.get(META) or {}
    raw = carried(meta)
    if raw is None:
        return result
    stamps = {} if asks_for_input(raw) else {key: result[key] for key in MODERN_FIELDS if key in result}
    added = {key: value for key, value in meta.items() if key != _RAW}
    return {**stamps, **(with_meta(raw, added) if added else raw)}


def asks_for_input(result: Mapping[str, Any]) -> bool:
    """Whether a server of 2026 asks the client something before it gives a result."""
    return result.get("resultType") == "input_required"


def as_private(result: Mapping[str, Any]) -> dict[str, Any]:
    """*result*, marked so that no cache gives it to another caller."""
    return {**result, "cacheScope": "private"} if "cacheScope" in result else dict(result)


def meta_of(message: Mapping[str, Any]) -> JsonObject:
    """The ``_meta`` of a request or a result; empty if it has none, or one that is no object."""
    meta = message.get(META)
    return meta if is_object(meta) else {}


def with_meta(message: Mapping[str, Any], added: Mapping[str, Json]) -> dict[str, Any]:
    """*message* with *added* in its ``_meta``."""
    return {**message, META: {**meta_of(message), **added}}
