"""The protocol's two ways of working, and what of an entry or a result a client of either can take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, cast

from mcp.types import SERVER_INFO_META_KEY, methods
from pydantic import ValidationError

from toolsearch.documents.json_values import is_object
from toolsearch.tools.definition import Tool
from toolsearch.wire.mcp.definitions import INPUT_SCHEMA, renamed_entry
from toolsearch.wire.mcp.envelope import META, MODERN_FIELDS, as_private
from toolsearch.wire.mcp.methods import LIST_TOOLS


class Era(Enum):
    """Which of its two ways of working somebody speaks MCP in."""

    LEGACY = "legacy"  # shakes hands, has a session, up to 2025-11-25
    MODERN = "modern"  # says all with every request, has none, from 2026-07-28


_VERSIONS = {Era.LEGACY: "2025-11-25", Era.MODERN: "2026-07-28"}  # the strictest of each era
_AROUND = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
_NEEDED = frozenset({"name", INPUT_SCHEMA})
_WITH_PARTS = frozenset({"annotations", INPUT_SCHEMA})  # of these, what is wrong is left out, and the rest stays
_MAX_PASSES = 4


def entry_for(tool: Tool, era: Era) -> dict[str, Any]:
    """*tool* as a client of *era* is listed it: the entry as it came, under our name, without what would spoil a list.

    Clients refuse a list for one optional field of one tool that is not as their version has it; such a field is left
    out here. What no version knows stays.
    """
    entry = renamed_entry(tool)
    for _ in range(_MAX_PASSES):
        places = _refused_places(entry, era)
        if not places:
            return entry
        entry = _without(entry, places)
    return {key: entry[key] for key in sorted(_NEEDED)}


def result_for(result: Mapping[str, Any], era: Era) -> dict[str, Any]:
    """*result* without what no version of *era* has; nobody but the caller may be given it from a cache."""
    if era is Era.MODERN:
        return as_private(result)
    kept = {key: value for key, value in result.items() if key not in MODERN_FIELDS}
    if not is_object(kept.get("structuredContent", {})):
        del kept["structuredContent"]  # which had to be an object; the content says the same
    meta = kept.get(META)
    if is_object(meta) and SERVER_INFO_META_KEY in meta:
        kept[META] = {key: value for key, value in meta.items() if key != SERVER_INFO_META_KEY}
        if not kept[META]:
            del kept[META]
    return kept


def _refused_places(entry: Mapping[str, Any], era: Era) -> list[tuple[str, ...]]:
    """What the models of the client's version find wrong, as paths into *entry* of at most two keys."""
    try:
        methods.validate_server_result(LIST_TOOLS, _VERSIONS[era], {**_AROUND, "tools": [entry]})
    except ValidationError as error:
        # ("tools", 0, "annotations", "readOnlyHint", ...)
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
