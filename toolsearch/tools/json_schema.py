"""The JSON Schema (2020-12) of a Python type as a model should read it: closed objects, short names, no titles.

Every object with properties has ``additionalProperties: false`` unless its class says otherwise, what is used twice or
within itself stands in ``$defs`` at the root, and titles are only those that somebody wrote.
"""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter
from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic.json_schema import GenerateJsonSchema

from toolsearch.tools.definition import Json
from toolsearch.tools.schema_walk import free_name, rebuilt, with_refs


def schema_of(adapter: TypeAdapter[Any]) -> dict[str, Json]:
    """Raises PydanticUserError for a type that JSON cannot carry."""
    schema = adapter.json_schema(schema_generator=_CompactSchema)
    schema.pop("title", None)
    return rebuilt(_with_short_names(schema), _closed)


class _CompactSchema(GenerateJsonSchema):
    """Without the titles that pydantic derives from names: they cost tokens and say nothing new."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012  # as the base class has it

    def union_schema(self, schema: Any) -> dict[str, Any]:
        """Refuse a union none of whose members can be JSON; pydantic would give a schema that nothing fits."""
        made = super().union_schema(schema)
        if made.get("anyOf") == []:
            raise PydanticInvalidForJsonSchema("None of its alternatives can be JSON")
        return made

    def bytes_schema(self, schema: Any) -> dict[str, Any]:
        """Pydantic writes ``format: binary``, which is OpenAPI's and leaves open how bytes become text."""
        made = super().bytes_schema(schema)
        del made["format"]
        return {**made, "contentEncoding": "base64"} if self._config.val_json_bytes == "base64" else made

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        return False


def _with_short_names(schema: dict[str, Json]) -> dict[str, Json]:
    """Name definitions ``Address`` and ``Address_2``, where pydantic writes out the modules of namesakes."""
    definitions: dict[str, Json] = schema.pop("$defs", {})
    if not definitions:
        return schema
    titles: dict[str, str] = {key: definition.pop("title", key) for key, definition in definitions.items()}
    renamed: dict[str, str] = {key: key for key, title in titles.items() if not key.endswith(f"__{title}")}
    for key, title in titles.items():
        if key not in renamed:
            renamed[key] = free_name(title, renamed.values())
        elif title != key:  # somebody wrote it
            definitions[key]["title"] = title
    named = {renamed[key]: definition for key, definition in definitions.items()}
    return with_refs({**schema, "$defs": named}, renamed)


def _closed(node: dict[str, Json]) -> dict[str, Json]:
    if "properties" in node:
        node.setdefault("additionalProperties", False)
    return node
