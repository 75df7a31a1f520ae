"""A call's arguments from the command line: one JSON object, or ``key=value`` pairs that the tool's schema reads."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from toolsearch.documents.json_values import as_list, as_object
from toolsearch.errors import BadArgumentsError
from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.json_types import Json, JsonObject

_ANYTHING: Final = ("null", "boolean", "integer", "number", "string", "array", "object")
_KINDS: Final[Mapping[str, tuple[type, ...]]] = {
    "null": (type(None),), "boolean": (bool,), "integer": (int,), "number": (int, float), "array": (list,),
    "object": (dict,),
}  # fmt: skip
_MOST_REFERENCES: Final = 20  # that lead from one to the next


def read_arguments(given: Sequence[str], definition: ToolDefinition) -> str | dict[str, Any]:
    """Return the text of a JSON object, from the command line, ``@FILE`` or stdin (``-``); or the values of pairs.

    Raises BadArgumentsError for what is neither, a key that the tool does not take, or a value that is not of its type.
    """
    if len(given) <= 1 and _is_json("".join(given)):
        return _json_text("".join(given))
    pairs: dict[str, list[str]] = {}
    for each in given:
        key, equals, value = each.partition("=")
        if not equals or not key:
            raise BadArgumentsError(
                f"{each!r:.80} is no argument: write key=value, or one JSON object, @FILE with one, or - for stdin"
            )
        pairs.setdefault(key, []).append(value)
    return {key: _value(key, values, definition) for key, values in pairs.items()}


def _is_json(text: str) -> bool:
    return text in ("", "-") or text.lstrip().startswith(("{", "[", "@", '"'))


def _json_text(text: str) -> str:
    if text == "-":
        return sys.stdin.read()
    if not text.startswith("@"):
        return text or "{}"
    try:
        return Path(text[1:]).read_text(encoding="utf-8")
    except OSError as error:
        raise BadArgumentsError(f"{text[1:]!r} with the arguments cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadArgumentsError(f"{text[1:]!r} with the arguments is not UTF-8") from error


def _value(key: str, values: Sequence[str], definition: ToolDefinition) -> Json:
    schema = _schema_of(key, definition)
    types = _types(schema, definition.input_schema)
    if len(values) == 1:
        return _read(key, values[0], types)
    if "array" not in types:
        raise BadArgumentsError(f"{key} is given {len(values)} times, and is no list: it takes {_in_words(types)}")
    items = _types(as_object(schema.get("items")) or {}, definition.input_schema)
    return [_read(key, value, items) for value in values]


def _schema_of(key: str, definition: ToolDefinition) -> JsonObject:
    from toolsearch.tools.naming import did_you_mean

    schema = definition.input_schema
    properties = as_object(schema.get("properties")) or {}
    if key in properties:
        return as_object(properties[key]) or {}
    more = schema.get("additionalProperties", not properties)
    if more is False or (more is True and "additionalProperties" not in schema and properties):
        takes = f"it takes {', '.join(properties)}" if properties else "it takes none"
        raise BadArgumentsError(
            f"{definition.name} has no parameter {key!r:.80}{did_you_mean(key, properties)}; {takes}"
        )
    return as_object(more) or {}


def _types(schema: JsonObject, root: JsonObject, references: int = _MOST_REFERENCES) -> tuple[str, ...]:
    """The JSON types that *schema* takes, as far as a command line needs to know; all of them where it does not say."""
    reference = schema.get("$ref")
    if isinstance(reference, str) and references:
        return _types(_followed(reference, root), root, references - 1)
    said = schema.get("type")
    if isinstance(said, str):
        return (said,)
    if (several := as_list(said)) is not None:
        return tuple(str(each) for each in several)
    for keyword in ("anyOf", "oneOf"):
        if (branches := as_list(schema.get(keyword))) is not None and references:
            found = [_types(as_object(each) or {}, root, references - 1) for each in branches]
            return tuple(dict.fromkeys(name for names in found for name in names))
    values = as_list(schema.get("enum")) or ([schema["const"]] if "const" in schema else [])
    if values and all(isinstance(value, str) for value in values):
        return ("string",)
    return _ANYTHING


def _followed(reference: str, root: JsonObject) -> JsonObject:
    place: Json = root
    for part in reference.removeprefix("#/").split("/"):
        place = (as_object(place) or {}).get(part.replace("~1", "/").replace("~0", "~"))
    return as_object(place) or {}


def _read(key: str, text: str, types: Sequence[str]) -> Json:
    """A value of the first kind that fits; text stays text wherever the tool takes nothing else that it could be."""
    try:
        parsed: Json = json.loads(text)
    except (ValueError, RecursionError):
        pass
    else:
        for name in types:
            if _is(parsed, name):
                return parsed
    if "string" in types:
        return text
    raise BadArgumentsError(f"{key}: {text!r:.80} is not {_in_words(types)}")


def _is(value: Json, name: str) -> bool:
    is_number_for_flag = isinstance(value, bool) and name in ("integer", "number")
    return isinstance(value, _KINDS.get(name, ())) and not is_number_for_flag


def _in_words(types: Sequence[str]) -> str:
    words = {"boolean": "true or false", "array": "a JSON list", "object": "a JSON object", "integer": "an integer"}
    return " or ".join(words.get(name, name if name == "null" else f"a {name}") for name in types)
