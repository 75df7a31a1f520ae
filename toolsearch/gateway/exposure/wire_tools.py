"""A server's tool as a client of one era is listed it: the entry as it came, under our name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, cast

from mcp.types import methods
from pydantic import ValidationError

from toolsearch.discovery.shown import ShownDefinitions
from toolsearch.gateway.caller import Era
from toolsearch.tools.definition import Tool
from toolsearch.tools.json_types import JsonObject
from toolsearch.wire.formats import render_definition

_VERSIONS = {Era.LEGACY: "2025-11-25", Era.MODERN: "2026-07-28"}  # the strictest of each era
_AROUND = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
_NEEDED = frozenset({"name", "inputSchema"})
_WITH_PARTS = frozenset({"annotations", "inputSchema"})  # of these, what is wrong is left out, and the rest stays
_MAX_PASSES = 4


def within_bound(tool: Tool, definitions: ShownDefinitions, max_tokens: int | None) -> Tool | None:
    """*tool* as clients are shown it, whose definition takes at most *max_tokens*; None if it cannot be made so short.

    Fields that no version knows are left out where the entry is too long with them.
    """
    shown = definitions.of(tool.definition, max_tokens).definition
    if shown is None:
        return None
    if shown is tool.definition and definitions.fits(raw_entry(tool), max_tokens):
        return tool
    return replace(tool, definition=shown, origin=None)


def raw_entry(tool: Tool) -> JsonObject:
    """The entry as its server sent it, or as we write it where there is none."""
    return tool.origin.raw if tool.origin else render_definition(tool.definition, "mcp")


def wire_entry(tool: Tool, era: Era) -> dict[str, Any]:
    """The raw entry renamed, with the input schema as it was mended, and without what would spoil a whole list.

    Clients refuse a list for one optional field of one tool that is not as their version has it; such a field is left
    out here. What no version knows stays.
    """
    entry = {**raw_entry(tool), "name": tool.name, "inputSchema": tool.definition.input_schema}
    if tool.definition.output_schema is None:
        entry.pop("outputSchema", None)
    for _ in range(_MAX_PASSES):
        places = _refused_places(entry, era)
        if not places:
            return entry
        entry = _without(entry, places)
    return {key: entry[key] for key in sorted(_NEEDED)}


def _refused_places(entry: Mapping[str, Any], era: Era) -> list[tuple[str, ...]]:
    """What the models of the client's version find wrong, as paths into *entry* of at most two keys."""
    try:
        methods.validate_server_result("tools/list", _VERSIONS[era], {**_AROUND, "tools": [entry]})
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
