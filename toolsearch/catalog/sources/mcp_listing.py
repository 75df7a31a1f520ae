"""Makes definitions of the raw entries that an MCP server lists; a malformed entry costs only itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from toolsearch.catalog.loading import Refusal
from toolsearch.catalog.sources.json_values import is_object
from toolsearch.tools.definition import NO_PARAMETERS, Json, JsonObject, ToolDefinition
from toolsearch.tools.naming import namespaced


@dataclass(frozen=True, slots=True)
class ListedTool:
    """A definition, and the name by which the server itself knows the tool."""

    remote_name: str
    definition: ToolDefinition


class _MalformedToolError(Exception):
    """An entry is no tool; the text is the reason to report."""


def read_listing(server: str, entries: Iterable[Json], source: str) -> tuple[list[ListedTool], list[Refusal]]:
    """Return the tools among *entries* in their order, and why each other entry is none.

    A second tool of the same name is refused, since a call could not say which one is meant.
    """
    taken: dict[str, ListedTool] = {}
    refused: list[Refusal] = []
    for place, entry in enumerate(entries, start=1):
        try:
            tool = _read_tool(server, entry)
            if twin := taken.get(tool.definition.name):
                raise _MalformedToolError(f"the server lists {twin.remote_name!r} before, under the same name")  # noqa: TRY301
        except _MalformedToolError as reason:
            refused.append(Refusal(_label(server, entry, place), source, str(reason)))
            continue
        taken[tool.definition.name] = tool
    return list(taken.values()), refused


def _read_tool(server: str, entry: Json) -> ListedTool:
    if not is_object(entry):
        raise _MalformedToolError("the entry is not an object")
    name = entry.get("name")
    if not isinstance(name, str) or not name.strip():
        raise _MalformedToolError("it has no name")
    annotations = _object(entry, "annotations") or {}
    return ListedTool(
        name,
        ToolDefinition(
            name=namespaced(server, name),
            title=_text(entry, "title") or _text(annotations, "title"),
            description=_text(entry, "description"),
            input_schema=_input_schema(entry),
            output_schema=_object(entry, "outputSchema"),
            annotations=annotations,
            server=server,
        ),
    )


def _input_schema(fields: JsonObject) -> JsonObject:
    """The schema as listed, or mended where only its obvious root type is missing.

    Arguments are an object in every version of MCP, so leaving the type out, or the whole schema, can only mean that.
    """
    schema = fields.get("inputSchema")
    if schema is None or schema == {}:
        return NO_PARAMETERS
    if not is_object(schema):
        raise _MalformedToolError("its inputSchema is not an object")
    declared = schema.get("type")
    if declared is None:
        return {"type": "object", **schema}
    if declared != "object":
        raise _MalformedToolError(f"its inputSchema has the type {declared!r}, but arguments are an object")
    return schema


def _text(fields: JsonObject, key: str) -> str:
    value = fields.get(key)
    return value if isinstance(value, str) else ""


def _object(fields: JsonObject, key: str) -> JsonObject | None:
    value = fields.get(key)
    return value if is_object(value) else None


def _label(server: str, entry: Json, place: int) -> str:
    name = entry.get("name") if is_object(entry) else None
    return namespaced(server, name) if isinstance(name, str) and name.strip() else f"{server}: entry {place}"
