"""What every tool must be before a catalog takes it; most definitions come from strangers."""

from __future__ import annotations

import json
from collections.abc import Mapping

from toolsearch.documents.json_values import is_object
from toolsearch.errors import BadToolError
from toolsearch.tools.definition import Tool
from toolsearch.tools.json_types import Json
from toolsearch.tools.naming import CALL_TOOL, TOOL_NAME, require_legal_name

MAX_CHARACTERS = 500_000  # of the schemas as JSON; no model could read more
MAX_DEPTH = 100  # of nesting; what walks schemas later may recurse without fear


def check_tool(tool: Tool) -> None:
    """Raise BadToolError unless models can be shown *tool*: a legal name, an object's schema, JSON of sane size."""
    definition = tool.definition
    require_legal_name(definition.name)
    if definition.name in (TOOL_NAME, CALL_TOOL):
        raise BadToolError(f"the name {definition.name!r} is taken by tool search itself; give this tool another")
    root_type = definition.input_schema.get("type")
    if root_type != "object":
        raise BadToolError(f"{definition.name}: the input schema must have type 'object', not {root_type!r}")
    parts = [definition.input_schema, definition.output_schema, definition.annotations]
    try:
        text = json.dumps(parts, allow_nan=False, sort_keys=True)  # sorted, as fingerprints will want it
    except RecursionError:
        raise BadToolError(f"{definition.name}: its schemas are nested too deeply; flatten them") from None
    except (TypeError, ValueError) as error:
        raise BadToolError(f"{definition.name}: its schemas and annotations must be plain JSON: {error}") from error
    if len(text) > MAX_CHARACTERS:
        raise BadToolError(f"{definition.name}: its schemas take {len(text):,} characters; {MAX_CHARACTERS:,} may be")
    if text.count("{") + text.count("[") > MAX_DEPTH and is_deeper_than(MAX_DEPTH, parts):
        raise BadToolError(f"{definition.name}: its schemas are nested more than {MAX_DEPTH} deep; flatten them")


def is_deeper_than(limit: int, value: Json) -> bool:
    """Whether containers nest more than *limit* deep in *value*, which must have no cycles."""
    level: list[Json] = [value]
    for _ in range(limit + 1):
        level = [child for container in level for child in _children(container)]
        if not level:
            return False
    return True


def _children(container: Json) -> list[Json]:
    values = container.values() if is_object(container) else container
    return [value for value in values if isinstance(value, (Mapping, list, tuple))]
