"""Tools of catalogs as rows of the store, and back.

A row's document has the ``definition``, by the names of the fields of `ToolDefinition`, and the ``execution``:
``{"kind": "caller"}`` for a tool that lives with the caller, ``{"kind": "http", ...}`` for an operation of an OpenAPI
document, ``{"kind": "python", "spec": ...}`` for a registered Python tool. Tools of MCP servers are not among the
rows: what a server lists is kept with its connection.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, Final, TypeAlias

from toolsearch.documents.json_values import as_object
from toolsearch.errors import ContentsStoreError
from toolsearch.storage.contents import StoredTool
from toolsearch.tools.definition import Tool, ToolCallback, ToolDefinition
from toolsearch.tools.json_types import JsonObject

BY_CALLER: Final[JsonObject] = {"kind": "caller"}

MakeCallback: TypeAlias = Callable[[StoredTool, JsonObject], ToolCallback | None]  # of a row and its execution

_FIELDS: Final = tuple(field.name for field in fields(ToolDefinition))
_LISTS: Final = ("tags", "requests")


def to_row(tool: Tool, *, source: str = "", execution: JsonObject = BY_CALLER) -> StoredTool:
    definition = {name: getattr(tool.definition, name) for name in _FIELDS}
    definition |= {name: list(definition[name]) for name in _LISTS}  # as they come back
    return StoredTool(
        tool.name, tool.definition.fingerprint(), {"definition": definition, "execution": execution}, source
    )


def definition_of(row: StoredTool) -> ToolDefinition:
    """Raises ContentsStoreError for a row that is damaged."""
    try:
        values: dict[str, Any] = dict(as_object(row.document["definition"]) or {})
        values |= {name: tuple(values[name]) for name in _LISTS}
        return ToolDefinition(**values)
    except (KeyError, TypeError) as error:
        raise ContentsStoreError(f"the tool {row.name!r} is damaged; write it again") from error


def to_tool(row: StoredTool, make_callback: MakeCallback) -> Tool:
    """Raises ContentsStoreError for a row that is damaged."""
    definition = definition_of(row)
    execution = as_object(row.document.get("execution")) or BY_CALLER
    return Tool(definition, make_callback(row, execution), source=row.source)
