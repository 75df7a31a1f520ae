"""The tools of a corpus, by name, each read from the store when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from toolsearch.catalog.lazy_tools import LazyTools
from toolsearch.documents.json_values import as_list, is_object
from toolsearch.tools.definition import Tool, ToolDefinition
from toolsearch.tools.json_types import Json

_TOOL: Final = 800  # bytes of the objects around a definition, and of what engines remember of each
_VALUE: Final = 50  # of one value of a schema, beside its text
_OBJECT: Final = 190  # of an object of a schema, beside its values


class FoundTools(LazyTools):
    """*fingerprints* are those of all tools, by name, and *read* gives one of them, or None if it is gone."""

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
    """About how many bytes the definitions take that are in memory, as they were stored or written over others."""

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
