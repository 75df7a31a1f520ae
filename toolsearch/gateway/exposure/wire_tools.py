"""A server's tool as a client of one era is listed it: the entry as it came, under our name."""

from __future__ import annotations

from typing import Any

from toolsearch.gateway.principals.protocol import Era
from toolsearch.gateway.tools import GatewayTool


def wire_entry(tool: GatewayTool, era: Era) -> dict[str, Any]:
    """The raw entry renamed, with the input schema as it was mended, and without what would spoil a whole list."""
    entry = {**tool.raw, "name": tool.name, "inputSchema": dict(tool.definition.input_schema)}
    if not _is_output_schema(tool, era):
        entry.pop("outputSchema", None)
    return entry


def _is_output_schema(tool: GatewayTool, era: Era) -> bool:
    """Up to 2025-11-25 its root has to be an object, and clients refuse the whole list for one that is not."""
    schema = tool.definition.output_schema
    return schema is not None and (era is Era.MODERN or schema.get("type") == "object")
