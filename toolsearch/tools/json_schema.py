"""The JSON Schema (2020-12) of a Python type as a model should read it: closed objects, short names, no titles.

Every object with properties has ``additionalProperties: false`` unless its class says otherwise, what is used twice or
within itself stands in ``$defs`` at the root, and titles are only those that somebody wrote.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter
from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic.json_schema import GenerateJsonSchema

from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.params import REQUIRED
from toolsearch.tools.schema_walk import free_name, is_schema, rebuilt, with_refs


def schema_of(adapter: TypeAdapter[Any], *, closed: bool = True) -> dict[str, Json]:
    """With *closed* false, an object is closed only if its class says so.

    Raises PydanticUserError for a type that JSON cannot carry.
    """
    schema = adapter.json_schema(schema_generator=_CompactSchema)
    schema.pop("title", None)
    schema = rebuilt(rebuilt(schema, _with_required), _without_marks)
    return rebuilt(schema, _closed) if closed else schema


class _CompactSchema(GenerateJsonSchema):
    """Without the titles that pydantic derives from names: they cost tokens and say nothing new."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._own_names: dict[str, str] = {}  # of each type, by every key that pydantic may give to its definition

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012  # as the base class has it

    def generate(self, schema: Any, mode: Any = "validation") -> dict[str, Any]:
        return _with_short_names(super().generate(schema, mode), self._own_names)

    def get_defs_ref(self, core_mode_ref: Any) -> Any:
        key = super().get_defs_ref(core_mode_ref)
        choices = self._prioritized_defsref_choices[key]  # from the type's own name to all of its module and qualname
        self._own_names |= dict.fromkeys(choices, choices[0])
        return key

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


def _with_short_names(schema: dict[str, Json], own_names: Mapping[str, str]) -> dict[str, Json]:
    """Name definitions ``Address`` and ``Address_2``, where pydantic writes out the modules of namesakes.

    A type in a function, or in another class, brings their names along, which are nobody's business but its author's.
    """
    definitions: dict[str, Json] = schema.pop("$defs", {})
    renamed: dict[str, str] = {}
    for key, definition in definitions.items():
        own_name = own_names.get(key, key)
        if _is_derived(definition.get("title", ""), own_name):
            definition.pop("title", None)
        renamed[key] = free_name(own_name.rstrip("_") or "Type", renamed.values())
    if not definitions:
        return schema
    named = {renamed[key]: definition for key, definition in definitions.items()}
    return with_refs({**schema, "$defs": named}, renamed)


def _is_derived(title: str, own_name: str) -> bool:
    """Whether nobody wrote *title*: it is the name of a type, or ``Page[...]`` for ``Page_int_``."""
    origin, bracket, _ = title.partition("[")
    return own_name.startswith(f"{origin}_") if bracket else title == own_name


def _with_required(node: dict[str, Json]) -> dict[str, Json]:
    """Require the properties whose `ToolParam` says so, whatever default they have."""
    properties: JsonObject = node.get("properties", {})
    marked = {name for name, schema in properties.items() if is_schema(schema) and REQUIRED in schema}
    if marked:
        node["properties"] = {
            name: {key: value for key, value in schema.items() if key != "default"} if name in marked else schema
            for name, schema in properties.items()
        }
        node["required"] = [name for name in properties if name in marked or name in node.get("required", ())]
    return node


def _without_marks(node: dict[str, Json]) -> dict[str, Json]:
    node.pop(REQUIRED, None)
    return node


def _closed(node: dict[str, Json]) -> dict[str, Json]:
    if "properties" in node:
        node.setdefault("additionalProperties", False)
    return node
