"""The JSON Schema (2020-12) of a Python type as a model should read it: closed objects, short names, no titles.

`ToolParam` describes one parameter for a model. Hand-written schemas are checked here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUserError
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticSerializationError, SchemaError, to_json

from toolsearch.errors import BadArgumentsError, BadToolError
from toolsearch.tools.json_types import Json, JsonObject, free_name, is_schema, rebuilt, with_refs

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic_core import CoreSchema

REQUIRED = "x-toolsearch-required"  # marks the schema of a field until the object around it is built


@dataclass(frozen=True, slots=True)
class ToolParam:
    """Goes into ``Annotated``, on a parameter or on a field of a model, dataclass or TypedDict at any depth.

    description  overrides a bare string in the same ``Annotated``, a pydantic Field's text, and the docstring's
    required     overrides a default and Optional, which both make a parameter optional. An omitted optional parameter
                 without a default is None. A field of a TypedDict needs `NotRequired` for False.
    """

    description: str = ""
    required: bool | None = None

    # Pydantic calls these for fields only; a parameter's ToolParam is removed first.

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        if self.required is not False:
            return schema
        from pydantic_core.core_schema import with_default_schema

        return with_default_schema(schema, default=None)

    def __get_pydantic_json_schema__(self, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        schema = dict(handler(core_schema))
        if self.required is False:
            schema.pop("default", None)  # None stands for "not given" and may not be of the field's type
        if self.required:
            schema[REQUIRED] = True
        if self.description:
            schema["description"] = self.description
        return schema


def schema_of(adapter: TypeAdapter[Any], *, closed: bool = True) -> dict[str, Json]:
    """The schema of a type. With *closed* false, an object is closed only if its class says so.

    Raises PydanticUserError for a type that JSON cannot carry.
    """
    schema = adapter.json_schema(schema_generator=_CompactSchema)
    schema.pop("title", None)
    schema = rebuilt(rebuilt(schema, _with_required), _without_marks)
    return rebuilt(schema, _closed) if closed else schema


class _CompactSchema(GenerateJsonSchema):
    """Leaves out the titles that pydantic derives from names: they cost tokens and say nothing new."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        # Every key that pydantic may use for a type's definition -> the type's own name.
        self._own_names: dict[str, str] = {}

    # Not annotated in the base class either.
    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012

    def generate(self, schema: Any, mode: Any = "validation") -> dict[str, Any]:
        return _with_short_names(super().generate(schema, mode), self._own_names)

    def get_defs_ref(self, core_mode_ref: Any) -> Any:
        key = super().get_defs_ref(core_mode_ref)
        # Choices go from the type's own name to its full module and qualname.
        choices = self._prioritized_defsref_choices[key]
        self._own_names |= dict.fromkeys(choices, choices[0])
        return key

    def union_schema(self, schema: Any) -> dict[str, Any]:
        """Refuse a union without any member that can be JSON; pydantic would give a schema that nothing fits."""
        made = super().union_schema(schema)
        if made.get("anyOf") == []:
            raise PydanticInvalidForJsonSchema("None of its alternatives can be JSON")
        return made

    def bytes_schema(self, schema: Any) -> dict[str, Any]:
        """Replace ``format: binary``, which pydantic writes: it is OpenAPI's and does not say how bytes become text."""
        made = super().bytes_schema(schema)
        del made["format"]
        return {**made, "contentEncoding": "base64"} if self._config.val_json_bytes == "base64" else made

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        return False


def _with_short_names(schema: dict[str, Json], own_names: Mapping[str, str]) -> dict[str, Json]:
    """Name definitions ``Address`` and ``Address_2``; pydantic puts the modules of equal names into the names.

    A type in a function or in another class also brings that name along, which only matters to its author.
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
    """Whether nobody wrote *title*: it is derived from the name of a type, or is ``Page[...]`` for ``Page_int_``."""
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


UNUSABLE_TYPE = (PydanticUserError, SchemaError)  # errors of pydantic for a type without a schema
_MAX_ERRORS_TOLD = 5


class JsonType:
    """A type and the JSON Schema of its values.

    Raises BadToolError, with the reason, for a type that JSON cannot carry; *role* names its use in the message.
    """

    def __init__(self, python_type: Any, *, role: str = "type", closed: bool = True) -> None:
        self.name = str(getattr(python_type, "__name__", python_type))
        try:
            self._adapter: TypeAdapter[Any] = TypeAdapter(python_type)
            schema = schema_of(self._adapter, closed=closed)
        except UNUSABLE_TYPE as error:
            raise BadToolError(
                f"the {role} {self.name} is one that JSON cannot carry: {why_unusable(error)}"
            ) from error
        self.schema: JsonObject = _with_root_inline(schema)

    def parse(self, value: JsonObject, *, whole: str = "arguments") -> Any:
        """Return *value* as a value of the type.

        Raises BadArgumentsError, which repeats no part of *value* and calls it *whole*.
        """
        try:
            return self._adapter.validate_json(json_bytes(value))
        except ValidationError as error:
            raise BadArgumentsError(explain(error, whole=whole)) from None  # pydantic's text repeats the values


class InputType(JsonType):
    """A type whose values are made from a call's arguments. A type that is not an object also raises BadToolError."""

    def __init__(self, python_type: Any) -> None:
        super().__init__(python_type, role="input type")
        if self.schema.get("type") != "object":
            raise BadToolError(
                f"the input type {self.name} is not a JSON object, as arguments have to be; make it a field of a "
                "dataclass, or define the tool with @tool"
            )
        self.schema = {"properties": {}, **self.schema}


def json_bytes(arguments: JsonObject) -> bytes:
    """Return *arguments* as JSON. Pydantic's strict models take dates, enums and bytes only from JSON."""
    try:
        return to_json(dict(arguments), inf_nan_mode="constants")
    except (PydanticSerializationError, UnicodeError, ValueError):
        raise BadArgumentsError("the arguments hold something that is not JSON, or half of a character") from None


def explain(error: ValidationError, *, whole: str = "arguments") -> str:
    """Describe at most 5 faults, each with its place, and without the values; *whole* is the name of the root."""
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    told = [f"{_place(problem['loc']) or whole}: {problem['msg']}" for problem in problems[:_MAX_ERRORS_TOLD]]
    more = len(problems) - len(told)
    return "; ".join(told) + (f"; and {more} more" if more else "")


def why_unusable(error: Exception) -> str:
    """Describe in a sentence what is wrong with a type, according to an `UNUSABLE_TYPE` error."""
    if isinstance(error, SchemaError):
        reason = str(error).splitlines()[-1].strip().removeprefix("SchemaError: ")
        return (
            f"{reason}; in a TypedDict, NotRequired makes it optional" if "cannot have a default" in reason else reason
        )
    return str(error).splitlines()[0].split(". ")[0]


def _place(location: tuple[int | str, ...]) -> str:
    return ".".join(map(str, location))


def _with_root_inline(schema: dict[str, Json]) -> dict[str, Json]:
    """Copy the definition of a recursive type to the root, where model APIs want an object and not a reference."""
    reference: str = schema.pop("$ref", "")
    return {**schema["$defs"][reference.removeprefix("#/$defs/")], **schema} if reference else schema


# Keywords beside which further properties may be defined.
_ROOT_ALTERNATIVES = frozenset({"$ref", "allOf", "anyOf", "oneOf"})
_LONGEST_REASON = 200  # characters of a reason that are kept


def require_schema(schema: JsonObject, role: str = "input_schema") -> JsonObject:
    """Return *schema*. Raises BadToolError, which names it by its *role*, unless it is a JSON Schema of an object."""
    if not isinstance(cast("object", schema), Mapping) or schema.get("type") != "object":
        raise BadToolError(f"{role} must be a JSON Schema whose type is 'object'")
    try:
        json.dumps(schema, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadToolError(f"{role} must be plain JSON: {error}") from error
    _require_well_formed(schema, role)
    return schema


def require_callable_by(schema: JsonObject, own: JsonObject) -> None:
    """Raise BadToolError unless a function whose own schema is *own* can be called with the arguments that *schema*
    describes.
    """
    offered = schema.get("properties", {}).keys()
    refused = sorted(offered - own["properties"].keys())
    if refused and own.get("additionalProperties") is False:
        raise BadToolError(f"input_schema has the property {refused[0]!r}, but the function does not take it")
    missing = [name for name in own.get("required", ()) if name not in offered]
    if missing and not _ROOT_ALTERNATIVES & schema.keys():
        raise BadToolError(f"input_schema lacks the property {missing[0]!r}, but the function needs it")


def _require_well_formed(schema: JsonObject, role: str) -> None:
    from jsonschema import exceptions, validators  # type: ignore[import-untyped]

    jsonschema: Any = validators
    try:
        # No format checker is used, because it would give the schema's patterns to Python's re.
        jsonschema.validator_for(schema, default=jsonschema.Draft202012Validator).check_schema(
            dict(schema), format_checker=None
        )
    except exceptions.SchemaError as error:
        fault: Any = error
        reason = fault.message[:_LONGEST_REASON]
        raise BadToolError(f"{role} is no JSON Schema, at {fault.json_path}: {reason}") from None
