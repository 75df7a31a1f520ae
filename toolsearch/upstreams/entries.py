"""Makes definitions of the raw entries that an MCP server lists; a malformed entry costs only itself."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from toolsearch.documents.json_values import is_object
from toolsearch.tools.definition import NO_PARAMETERS, Tool, ToolDefinition, ToolOrigin
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.naming import all_namespaced, namespaced
from toolsearch.tools.refusal import Refusal

_HEADER_KEY = "x-mcp-header"  # in the schema of an argument that the protocol of 2026 wants in an HTTP header as well
_LONGEST_REASON = 200  # characters of what the SDK says, which quotes the server


class _MalformedToolError(Exception):
    """An entry is no tool; the text is the reason to report."""


def read_listing(server: str, entries: Iterable[Json], source: str) -> tuple[list[Tool], list[Refusal]]:
    """Return the tools among *entries* in their order, and why each other entry is none.

    Names that differ for the server and would be one for a model are kept apart by a tail, in whatever order they are
    listed. A second tool of the very same name is refused, since a call could not say which one is meant.
    """
    listed = list(entries)
    names = all_namespaced(server, (name for entry in listed if (name := _remote_name(entry)) is not None))
    taken: set[str] = set()
    tools: list[Tool] = []
    refused: list[Refusal] = []
    for place, entry in enumerate(listed, start=1):
        try:
            tool = _read_tool(server, entry, names, source)
            if tool.remote_name in taken:
                raise _MalformedToolError(f"the server lists {tool.remote_name!r} before, under the same name")  # noqa: TRY301
        except _MalformedToolError as reason:
            refused.append(Refusal(_label(server, entry, place), source, str(reason)))
            continue
        taken.add(tool.remote_name)
        tools.append(tool)
    return tools, refused


def _remote_name(entry: Json) -> str | None:
    name = entry.get("name") if is_object(entry) else None
    return name if isinstance(name, str) and name.strip() else None


def _read_tool(server: str, entry: Json, names: Mapping[str, str], source: str) -> Tool:
    if not is_object(entry):
        raise _MalformedToolError("the entry is not an object")
    name = _remote_name(entry)
    if name is None:
        raise _MalformedToolError("it has no name")
    annotations = _object(entry, "annotations") or {}
    definition = ToolDefinition(
        name=names[name],
        title=_text(entry, "title") or _text(annotations, "title"),
        description=_text(entry, "description"),
        input_schema=_with_usable_headers(_input_schema(entry)),
        output_schema=_object(entry, "outputSchema"),
        annotations=annotations,
        server=server,
    )
    return Tool(definition, source=source, origin=ToolOrigin(server, name, entry))


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


def _with_usable_headers(schema: JsonObject) -> JsonObject:
    """*schema* itself, unless it asks for a header that cannot be sent: such a tool must not be offered.

    The protocol says so of HTTP alone; a gateway passes on over HTTP what it was told over stdio, so we do not ask.
    """
    if _HEADER_KEY in json.dumps(schema):
        from mcp.shared.inbound import find_invalid_x_mcp_header  # here, since few need what takes long to load

        if (reason := find_invalid_x_mcp_header(schema)) is not None:
            raise _MalformedToolError(f"it asks for an HTTP header that cannot be sent: {reason[:_LONGEST_REASON]}")
    return schema


def _text(fields: JsonObject, key: str) -> str:
    value = fields.get(key)
    return value if isinstance(value, str) else ""


def _object(fields: JsonObject, key: str) -> JsonObject | None:
    value = fields.get(key)
    return value if is_object(value) else None


def _label(server: str, entry: Json, place: int) -> str:
    name = _remote_name(entry)
    return f"{server}: entry {place}" if name is None else namespaced(server, name)
