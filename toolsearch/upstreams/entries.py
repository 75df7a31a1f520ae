"""Makes tools of the raw entries that an MCP server lists; a malformed entry costs only itself."""

from __future__ import annotations

from collections.abc import Iterable

from toolsearch.errors import BadToolError
from toolsearch.tools.definition import Tool, ToolOrigin
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.naming import all_namespaced, namespaced
from toolsearch.tools.refusal import Refusal
from toolsearch.wire.mcp.definitions import read_tool, tool_name


def read_listing(server: str, entries: Iterable[Json], source: str) -> tuple[list[Tool], list[Refusal]]:
    """Return the tools among *entries* in their order, and why each other entry is none.

    Names that differ for the server and would be one for a model are kept apart by a tail, in whatever order they are
    listed. A second tool of the very same name is refused, since a call could not say which one is meant.
    """
    listed = [(entry, tool_name(entry) or "") for entry in entries]
    names = all_namespaced(server, (name for _, name in listed if name))
    tools: dict[str, Tool] = {}  # by the name that the server gives them
    refused: list[Refusal] = []
    for place, (entry, name) in enumerate(listed, start=1):
        try:
            definition = read_tool(entry, name=names.get(name, ""), server=server)
            if name in tools:
                raise BadToolError(f"the server lists {name!r} before, under the same name")  # noqa: TRY301
        except BadToolError as reason:
            label = namespaced(server, name) if name else f"{server}: entry {place}"
            refused.append(Refusal(label, source, str(reason)))
            continue
        raw: JsonObject = entry
        tools[name] = Tool(definition, source=source, origin=ToolOrigin(server, name, raw))
    return list(tools.values()), refused
