"""Checks whether the arguments of a call fit the tool's schema, and tells the model how to fix them.

Models write nulls in place of omitted properties, and OpenAI's strict mode demands it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, cast

from toolsearch.calling.schema_validator import Violation, branches, violations
from toolsearch.errors import BadArgumentsError
from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.json_types import Json, JsonObject

_Path: TypeAlias = tuple[str | int, ...]
_MAX_NULLS = 1_000  # most nulls that are examined in one call


def without_absent(schema: JsonObject, arguments: JsonObject) -> JsonObject:
    """Return *arguments* without the nulls of properties that *schema* neither requires nor lets be null.

    Nulls that the schema allows are kept. Nulls in required, non-nullable properties are kept as well, so that
    validation reports them. In a union, the first alternative that would fit without the nulls decides. Raises
    BadToolError as `violations` does.
    """
    if not _holds_null(arguments):
        return arguments
    refused = _nulls_of(violations(schema, arguments, limit=_MAX_NULLS))
    if not refused:
        return arguments
    missing = _missing_properties(violations(schema, _without(arguments, refused), limit=_MAX_NULLS))
    return cast("JsonObject", _without(arguments, refused - missing))


def _holds_null(arguments: JsonObject) -> bool:
    waiting: list[Json] = [arguments]  # a loop, because a model can nest deeper than Python can recurse
    while waiting:
        value = waiting.pop()
        if value is None:
            return True
        if isinstance(value, Mapping):
            waiting.extend(cast("JsonObject", value).values())
        elif isinstance(value, list):
            waiting.extend(cast("Sequence[Json]", value))
    return False


def _nulls_of(faults: Iterable[Violation]) -> frozenset[_Path]:
    """The places of nulls that are the only cause of some of *faults*."""
    found = [_nulls_behind(fault) for fault in faults]
    return frozenset[_Path]().union(*found)


def _nulls_behind(fault: Violation) -> frozenset[_Path]:
    """The places of the nulls that cause *fault*; none if it has another cause."""
    path = tuple(fault.absolute_path)
    if fault.instance is None and path and isinstance(path[-1], str):
        return frozenset([path])
    for branch in branches(fault):
        found = [_nulls_behind(each) for each in branch]
        if all(found):
            return frozenset[_Path]().union(*found)
    return frozenset()


def _missing_properties(faults: Iterable[Violation]) -> frozenset[_Path]:
    required = [fault for fault in faults if fault.validator == "required"]
    return frozenset((*fault.absolute_path, name) for fault in required for name in fault.validator_value)


def _without(value: Json, paths: Iterable[_Path]) -> Json:
    """A copy of *value* without the properties at *paths*; values outside these paths are not copied."""
    below: defaultdict[str | int, list[_Path]] = defaultdict(list)
    for first, *rest in paths:
        below[first].append(tuple(rest))
    copy: Any = dict(cast("JsonObject", value)) if isinstance(value, Mapping) else list(value)
    for key, rests in below.items():
        if () in rests:
            del copy[key]
        else:
            copy[key] = _without(copy[key], rests)
    return copy


_MAX_VIOLATIONS = 5  # most violations reported to a model at once
_MAX_SHOWN = 120  # characters shown of a schema's value


def checked_arguments(definition: ToolDefinition, arguments: JsonObject) -> JsonObject:
    """Return *arguments*, without the nulls that stand for omitted properties (see `without_absent`).

    Raises BadArgumentsError if they do not fit the input schema, with the place and the expected value. The message
    never quotes an argument's value: it may be huge or secret. Raises BadToolError if the schema itself cannot be used:
    see `violations`.
    """
    arguments = without_absent(definition.input_schema, arguments)
    faults = faults_of(definition.input_schema, arguments)
    if faults:
        raise BadArgumentsError(f"the arguments do not fit the schema of {definition.name!r}: {faults}")
    return arguments


def faults_of(schema: JsonObject, value: JsonObject, *, whole: str = "arguments") -> str:
    """Say how *value* does not fit *schema*, without quoting it; "" if it does. *whole* is the name of *value* in the
    text.
    """
    found = violations(schema, value, limit=_MAX_VIOLATIONS)
    # Each violation of "required" lists all that is missing, so equal texts are reported once.
    return "; ".join(dict.fromkeys(_in_words(_innermost(violation), whole) for violation in found))


def _innermost(violation: Violation) -> Violation:
    """Follow anyOf and oneOf into the intended branch, if exactly one has the right type and constants."""
    while violation.context:
        meant = [faults for faults in branches(violation) if not any(_is_another_kind(fault) for fault in faults)]
        if len(meant) != 1:
            break
        violation = meant[0][0]
    return violation


def _is_another_kind(fault: Violation) -> bool:
    depth = len(fault.relative_path)
    return (fault.validator == "type" and depth == 0) or (fault.validator == "const" and depth <= 1)


def _in_words(violation: Violation, whole: str) -> str:
    describe = _DESCRIBERS.get(violation.validator or "")
    if describe is not None:
        text = describe(violation)
    elif violation.validator in _PHRASES:
        text = _PHRASES[violation.validator].format(_shown(violation.validator_value))
    elif violation.validator is None:  # jsonschema does not name the place that ``false`` refuses
        text = "a property or item that the schema rules out"
    else:
        text = f"does not meet {violation.validator!r} of the schema"
    return f"{_place(violation.absolute_path) or whole}: {text}"


def _place(path: Sequence[str | int]) -> str:
    """``filters[2].name``; "" for the whole value."""
    steps = [f"[{step}]" if isinstance(step, int) else f".{step[:40]}" for step in path]
    return "".join(steps).removeprefix(".")[:200]


def _type(violation: Violation) -> str:
    return f"expected {_expected(violation)}, got {_json_type(violation.instance)}"


def _expected(violation: Violation) -> str:
    types: str | list[str] = violation.validator_value
    return types if isinstance(types, str) else " or ".join(types)


def _missing(violation: Violation) -> str:
    missing = [name for name in violation.validator_value if name not in violation.instance]
    return f"missing {', '.join(missing)[:400]}"


def _alternatives(violation: Violation) -> str:
    if not violation.context:
        return "fits several of the schema's alternatives, but must fit just one"
    faults = violation.context
    if all(fault.validator == "type" and not fault.relative_path for fault in faults):
        expected = " or ".join(_expected(fault) for fault in faults)
        return f"expected {expected}, got {_json_type(violation.instance)}"
    return f"fits none of the schema's {len(violation.validator_value)} alternatives"


def _own_words(violation: Violation) -> str:
    return violation.message


_DESCRIBERS: Mapping[str, Callable[[Violation], str]] = {
    "type": _type,
    "required": _missing,
    "anyOf": _alternatives,
    "oneOf": _alternatives,
    "additionalProperties": _own_words,
    "uniqueItems": _own_words,
}

_PHRASES: Mapping[str | None, str] = {
    "enum": "must be one of {}",
    "const": "must be {}",
    "pattern": "must match the pattern {}",
    "minimum": "must be at least {}",
    "maximum": "must be at most {}",
    "exclusiveMinimum": "must be more than {}",
    "exclusiveMaximum": "must be less than {}",
    "multipleOf": "must be a multiple of {}",
    "minLength": "must have at least {} characters",
    "maxLength": "must have at most {} characters",
    "minItems": "must have at least {} items",
    "maxItems": "must have at most {} items",
    "minProperties": "must have at least {} properties",
    "maxProperties": "must have at most {} properties",
}

_JSON_TYPES = {
    "NoneType": "null",
    "bool": "boolean",
    "int": "integer",
    "float": "number",
    "str": "string",
    "list": "array",
    "dict": "object",
}


def _shown(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "..."


def _json_type(value: Json) -> str:
    python_name = type(value).__name__
    return _JSON_TYPES.get(python_name, python_name)
