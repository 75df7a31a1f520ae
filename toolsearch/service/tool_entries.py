"""Entries of listings as tools of a catalog, in any of the formats, and tools as entries of an export."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from toolsearch.catalog.checks import check_tool
from toolsearch.catalog.sources.json_listing import ListingReader
from toolsearch.documents.json_values import as_object
from toolsearch.errors import BadToolError
from toolsearch.tools.definition import Tool, ToolDefinition
from toolsearch.tools.json_types import Json
from toolsearch.wire.mcp.definitions import write_tool

FULL_NAME: Final = "is_full_name"  # of an entry whose name has that of its server in front already


class EntryReader:
    """Reads the entries of one request, whose tools must have different names."""

    def __init__(self, description: str) -> None:
        self._reader = ListingReader(description)

    def read(self, entry: Json) -> Tool:
        """Raises BadToolError, which says why, for what cannot be a tool of a catalog."""
        tool = self._reader.read(entry, is_full_name=(as_object(entry) or {}).get(FULL_NAME) is True)
        check_tool(tool)
        return tool

    def name_for_people(self, entry: Json, place: int) -> str:
        return self._reader.name_for_people(entry, place)


def export_entry(definition: ToolDefinition, source: str) -> dict[str, Any]:
    """An entry that `EntryReader` reads as the same definition."""
    entry: dict[str, Any] = {**write_tool(definition), FULL_NAME: True}
    if definition.server:
        entry["server"] = definition.server
    if definition.tags:
        entry["tags"] = list(definition.tags)
    if definition.requests:
        entry["requests"] = list(definition.requests)
    return entry | ({"source": source} if source else {})


def changed_definition(definition: ToolDefinition, changes: dict[str, Any]) -> ToolDefinition:
    """*definition* with other values for some fields. Raises BadToolError."""
    try:
        changed = replace(definition, **changes)
    except TypeError as error:
        raise BadToolError(f"{definition.name}: {error}") from error
    check_tool(Tool(changed))
    return changed
