"""Tools of catalogs as rows of the store, and back: each is read when it is first asked for, or ahead of that."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, TypeAlias

from toolsearch.catalog.snapshot import LazyTools
from toolsearch.documents.json_values import as_list, as_object, is_object
from toolsearch.errors import Kept, StorageError
from toolsearch.storage.contents import StoredTool
from toolsearch.tools.definition import Tool, ToolCallback, ToolDefinition, ToolMetadata
from toolsearch.tools.json_types import Json, JsonObject

BY_CALLER: Final[JsonObject] = {"kind": "caller"}


# (row, its execution) -> what runs the tool.
MakeCallback: TypeAlias = Callable[[StoredTool, JsonObject], ToolCallback | None]
_FIELDS: Final = tuple(field.name for field in fields(ToolDefinition))
_LISTS: Final = ("tags", "requests")


def to_row(tool: Tool, *, source: str = "", execution: JsonObject = BY_CALLER) -> StoredTool:
    definition = {name: getattr(tool.definition, name) for name in _FIELDS}
    definition |= {name: list(definition[name]) for name in _LISTS}  # lists, since JSON has no tuples
    document: dict[str, Json] = {"definition": definition, "execution": execution}
    if tool.metadata.loads_tools:
        document["loads_tools"] = True
    return StoredTool(tool.name, tool.definition.fingerprint(), document, source)


def definition_of(row: StoredTool) -> ToolDefinition:
    """Raises StorageError for a row that is damaged."""
    try:
        values: dict[str, Any] = dict(as_object(row.document["definition"]) or {})
        values |= {name: tuple(values[name]) for name in _LISTS}
        return ToolDefinition(**values)
    except (KeyError, TypeError) as error:
        raise StorageError(f"the tool {row.name!r} is damaged; write it again", Kept.CONTENTS) from error


def to_tool(row: StoredTool, make_callback: MakeCallback) -> Tool:
    """Raises StorageError for a row that is damaged."""
    definition = definition_of(row)
    execution = as_object(row.document.get("execution")) or BY_CALLER
    metadata = ToolMetadata(loads_tools=row.document.get("loads_tools") is True)
    return Tool(definition, make_callback(row, execution), metadata, row.source)


_TOOL: Final = 800  # bytes of a definition's objects, and of what engines remember of a tool
_VALUE: Final = 50  # bytes of one value of a schema, beside its text
_OBJECT: Final = 190  # bytes of an object in a schema, beside its values


class FoundTools(LazyTools):
    """*fingerprints* has those of all tools, by name. *read* returns one of the tools, or None if it was removed."""

    def __init__(self, fingerprints: Mapping[str, str], read: Callable[[str], Tool | None]) -> None:
        super().__init__(fingerprints)
        self._fingerprints = fingerprints
        self._find = read
        self.tally = Tally()

    def known_fingerprints(self) -> Mapping[str, str]:
        return {name: self._fingerprints[name] for name in self.as_stored()}

    def _read(self, name: str) -> Tool:
        tool = self._find(name)
        if tool is None:
            raise KeyError(name)
        return tool

    def _keep(self, name: str, tool: Tool) -> Tool:
        self.tally.add(tool)
        return super()._keep(name, tool)


@dataclass(slots=True)
class Tally:
    """Estimates the bytes of definitions in memory, as they were stored or replaced."""

    total: int = 0

    def add(self, tool: Tool) -> None:
        self.total += definition_bytes(tool.definition)


def definition_bytes(definition: ToolDefinition) -> int:
    """About how many bytes of memory it takes."""
    parts = [definition.description, definition.input_schema, definition.output_schema, definition.annotations]
    return _TOOL + sum(map(_bytes, parts))


def _bytes(value: Json) -> int:
    if isinstance(value, str):
        return _VALUE + len(value)
    if is_object(value):
        return _OBJECT + sum(map(_bytes, value.values()))
    return _VALUE + sum(map(_bytes, as_list(value) or ()))


_MOST: Final = 500  # tools that are read at once


class ReadAhead:
    """*names* are the sorted names of all tools. *get* reads some of the tools. Safe to share between threads."""

    def __init__(self, names: Sequence[str], get: Callable[[Collection[str]], list[StoredTool]]) -> None:
        self._names = names
        self._get = get
        self._ahead: dict[str, StoredTool] = {}  # tools that were read before they were asked for
        self._next = -1  # the place of the name after the last one that was asked for
        self._count = 1

    def read(self, name: str) -> StoredTool | None:
        """Return the tool; None if it was removed."""
        if (row := self._ahead.pop(name, None)) is not None:
            return row
        place = bisect_left(self._names, name)
        self._count = min(2 * self._count, _MOST) if place == self._next else 1
        self._next = place + self._count
        rows = {row.name: row for row in self._get(self._names[place : self._next] if self._count > 1 else [name])}
        row = rows.pop(name, None)
        self._ahead = rows
        return row
