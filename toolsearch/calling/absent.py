"""Nulls in place of omitted properties: models write them, and in OpenAI's strict mode they have to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias, cast

from toolsearch.calling.schema_validator import Violation, branches, violations
from toolsearch.tools.json_types import Json, JsonObject

_Path: TypeAlias = tuple[str | int, ...]
_MAX_NULLS = 1_000  # that are looked at in one call


def without_absent(schema: JsonObject, arguments: JsonObject) -> JsonObject:
    """Return *arguments* without the nulls of properties that *schema* neither requires nor lets be null.

    Nulls that it takes stay, and so do those that it requires not to be null: these are faults. In a union, the first
    alternative counts that would fit without them. Raises BadToolError as `violations` does.
    """
    if not _holds_null(arguments):
        return arguments
    refused = _nulls_of(violations(schema, arguments, limit=_MAX_NULLS))
    if not refused:
        return arguments
    missing = _missing(violations(schema, _without(arguments, refused), limit=_MAX_NULLS))
    return cast("JsonObject", _without(arguments, refused - missing))


def _holds_null(arguments: JsonObject) -> bool:
    waiting: list[Json] = [arguments]  # a loop, since a model can nest deeper than Python can recurse
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
    """The places of nulls that alone make *faults*, as far as some do."""
    found = [_nulls_behind(fault) for fault in faults]
    return frozenset[_Path]().union(*found)


def _nulls_behind(fault: Violation) -> frozenset[_Path]:
    """The places of the nulls without which *fault* would not be; none if it has another cause."""
    path = tuple(fault.absolute_path)
    if fault.instance is None and path and isinstance(path[-1], str):
        return frozenset([path])
    for branch in branches(fault):
        found = [_nulls_behind(each) for each in branch]
        if all(found):
            return frozenset[_Path]().union(*found)
    return frozenset()


def _missing(faults: Iterable[Violation]) -> frozenset[_Path]:
    required = [fault for fault in faults if fault.validator == "required"]
    return frozenset((*fault.absolute_path, name) for fault in required for name in fault.validator_value)


def _without(value: Json, paths: Iterable[_Path]) -> Json:
    """A copy of *value* without the properties at *paths*; what is not on the way to one is not copied."""
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
