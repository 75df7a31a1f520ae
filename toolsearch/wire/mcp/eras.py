"""The two eras of the protocol, and how entries and results are adapted to clients of either."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, cast

from mcp.types import SERVER_INFO_META_KEY, methods
from pydantic import ValidationError

from toolsearch.documents.json_values import is_object
from toolsearch.tools.definition import Tool
from toolsearch.wire.mcp.definitions import INPUT_SCHEMA, OUTPUT_SCHEMA, renamed_entry
from toolsearch.wire.mcp.envelope import META, MODERN_FIELDS, as_private
from toolsearch.wire.mcp.methods import LIST_TOOLS


class Era(Enum):
    """The protocol up to 2025-11-25, or from 2026-07-28 on."""

    LEGACY = "legacy"  # begins with a handshake, and has sessions
    MODERN = "modern"  # has no sessions: every request says who makes it


_VERSIONS = {Era.LEGACY: "2025-11-25", Era.MODERN: "2026-07-28"}  # the strictest of each era
_AROUND = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
_NEEDED = frozenset({"name", INPUT_SCHEMA})
_WITH_PARTS = frozenset({"annotations", INPUT_SCHEMA})  # only the invalid parts of these are left out
_MAX_PASSES = 4


def entry_for(tool: Tool, era: Era) -> dict[str, Any]:
    """The entry of *tool* for the list of a client of *era*: the server's entry under our name.

    Clients refuse a whole list because of one invalid optional field of one tool, so such fields are left out. Fields
    that no version knows stay. An output schema is left out if no server stands by it: clients refuse each result that
    does not fit, and what a callback returns may be text, or cut.
    """
    entry = renamed_entry(tool)
    if tool.origin is None:
        entry.pop(OUTPUT_SCHEMA, None)
    for _ in range(_MAX_PASSES):
        places = _refused_places(entry, era)
        if not places:
            return entry
        entry = _without(entry, places)
    return {key: entry[key] for key in sorted(_NEEDED)}


def result_for(result: Mapping[str, Any], era: Era) -> dict[str, Any]:
    """*result* without the fields that no version of *era* has, and marked as private to the caller."""
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
    """The fields that the client's version finds invalid, as paths into *entry* of at most two keys."""
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
