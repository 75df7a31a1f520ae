"""The arguments of a tool as a form: which fields its schema asks for, and the values that a person has put in."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from toolsearch.documents.json_values import as_list, as_object, is_list
from toolsearch.errors import BadArgumentsError
from toolsearch.tools.json_types import Json, JsonObject

Control: TypeAlias = Literal["text", "integer", "number", "boolean", "choice", "json"]

FIELD_PREFIX: Final = "argument."
_CONTROLS: Final[Mapping[str, Control]] = {
    "string": "text",
    "integer": "integer",
    "number": "number",
    "boolean": "boolean",
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One property of an input schema. *choices* are written as JSON; what has no control of its own is typed as JSON.

    kind  its type, for people
    """

    name: str
    kind: str
    control: Control
    is_required: bool
    description: str = ""
    choices: tuple[str, ...] = ()
    example: str = ""

    @property
    def field(self) -> str:
        return FIELD_PREFIX + self.name


def parameters_of(schema: JsonObject) -> list[Parameter]:
    """Those of the root, the required ones first, otherwise as they are written."""
    required = {name for name in as_list(schema.get("required")) or [] if isinstance(name, str)}
    properties = as_object(schema.get("properties")) or {}
    found = [_parameter(name, as_object(each) or {}, name in required) for name, each in properties.items()]
    return sorted(found, key=lambda parameter: not parameter.is_required)


def arguments_in(parameters: list[Parameter], text_of: Callable[[str], str]) -> JsonObject:
    """Read the form; *text_of* gives the text in a field. Fields that are left empty are left out.

    Raises BadArgumentsError for a text that is not of the type. The schema is checked when the tool is called.
    """
    given: dict[str, Json] = {}
    for parameter in parameters:
        text = text_of(parameter.field)
        if text:
            given[parameter.name] = _value(parameter, text)
    return given


def arguments_in_json(text: str) -> JsonObject:
    """Raises BadArgumentsError unless *text* is a JSON object."""
    try:
        found = as_object(json.loads(text or "{}"))
    except (ValueError, RecursionError) as error:
        raise BadArgumentsError(f"the arguments are not JSON: {error}") from error
    if found is None:
        raise BadArgumentsError('the arguments must be a JSON object, such as {"city": "Berlin"}')
    return found


def _parameter(name: str, schema: JsonObject, is_required: bool) -> Parameter:  # noqa: FBT001
    kind = schema.get("type")
    choices = tuple(json.dumps(choice) for choice in as_list(schema.get("enum")) or [])
    control: Control = "choice" if choices else _CONTROLS.get(kind, "json") if isinstance(kind, str) else "json"
    shown = _shown_kind(schema)
    description, default = schema.get("description"), schema.get("default")
    return Parameter(
        name,
        shown,
        control,
        is_required,
        description if isinstance(description, str) else "",
        choices,
        "" if default is None else default if isinstance(default, str) else json.dumps(default),
    )


def _shown_kind(schema: JsonObject) -> str:
    kind = schema.get("type")
    if is_list(kind):
        return " or ".join(map(str, kind))
    if kind == "array":
        items = as_object(schema.get("items")) or {}
        return f"list of {_shown_kind(items)}" if items else "list"
    return str(kind) if kind else "any"


def _value(parameter: Parameter, text: str) -> Any:
    if parameter.control == "text":
        return text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadArgumentsError(f"{parameter.name} must be {parameter.kind}, as JSON: {text!r} is not") from error
    if parameter.control in ("integer", "number") and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise BadArgumentsError(f"{parameter.name} must be a number, not {text!r}")
    return value
