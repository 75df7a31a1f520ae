"""What the definitions of the three model APIs share: a name and description, and a root that is an object."""

from __future__ import annotations

from typing import Any, cast

from toolsearch.tools.definition import ToolDefinition
from toolsearch.wire.json_copies import ToPlain


def name_and_description(definition: ToolDefinition) -> dict[str, Any]:
    """The title stands in for a missing description, as these formats have no place for it."""
    description = definition.description or definition.title
    return {"name": definition.name, "description": description} if description else {"name": definition.name}


def object_schema(definition: ToolDefinition, plain: ToPlain) -> dict[str, Any]:
    """The input schema as model APIs take it: they refuse the whole request for one tool whose root is no plain object.

    Alternatives at the root are laid over each other, so that the model still reads of every property. Arguments are
    validated by the original.
    """
    schema: dict[str, Any] = dict(plain(definition.input_schema))
    properties: dict[str, Any] = schema.pop("properties", {})
    required: list[str] = schema.pop("required", [])
    for keyword in ("allOf", "anyOf", "oneOf"):
        for branch in schema.pop(keyword, []):
            known = cast("dict[str, Any]", branch) if isinstance(branch, dict) else {}
            properties = known.get("properties", {}) | properties
            if keyword == "allOf":
                required = required + [name for name in known.get("required", []) if name not in required]
    for keyword in ("not", "enum"):
        schema.pop(keyword, None)
    return schema | {"type": "object", "properties": properties} | ({"required": required} if required else {})
