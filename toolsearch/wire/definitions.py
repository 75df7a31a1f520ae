"""What the definitions of the three model APIs share: how they say what a tool does, and how they are read."""

from __future__ import annotations

from typing import Any

from toolsearch.documents.json_values import as_object
from toolsearch.errors import BadToolError
from toolsearch.tools.definition import NO_PARAMETERS, ToolDefinition
from toolsearch.tools.json_types import JsonObject


def name_and_description(definition: ToolDefinition) -> dict[str, Any]:
    """These formats have no place for a title, so it stands in for a missing description."""
    description = definition.description or definition.title
    return {"name": definition.name, "description": description} if description else {"name": definition.name}


def read_definition(fields: JsonObject, schema_key: str) -> ToolDefinition:
    """Return the definition in *fields*, whose schema is under *schema_key*. Titles, annotations and output schemas are
    read although no model API has a place for each of them: listings of tools are written in these formats as well.

    A schema is made an object's where only that was left unsaid; none at all means no parameters. Raises BadToolError,
    which says why, for what is no definition.
    """
    name = text_in(fields, "name")
    if not name:
        raise BadToolError("it has no name")
    return ToolDefinition(
        name=name,
        description=text_in(fields, "description"),
        input_schema=_input_schema(fields, schema_key),
        title=text_in(fields, "title"),
        output_schema=as_object(fields.get("output_schema")) or as_object(fields.get("outputSchema")),
        annotations=as_object(fields.get("annotations")) or {},
    )


def _input_schema(fields: JsonObject, key: str) -> JsonObject:
    value = fields.get(key)
    if value is None:
        if fields.get("type", "function") not in ("function", "custom"):
            raise BadToolError(f"it is a tool of its provider, {fields['type']!r}, which has no definition to show")
        return NO_PARAMETERS
    schema = as_object(value)
    if schema is None:
        raise BadToolError(f"its {key} must be an object")
    if not schema:
        return NO_PARAMETERS
    return schema if "type" in schema else {"type": "object", **schema}


def text_in(fields: JsonObject, key: str) -> str:
    """The text under *key*, "" if there is none. Raises BadToolError if something else is there."""
    value = fields.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BadToolError(f"its {key} must be text")
    return value
