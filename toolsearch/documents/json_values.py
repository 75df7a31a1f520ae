"""Narrows values of a JSON document: returns the value if it is of the kind, else None. Finds what is within one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TypeGuard

from toolsearch.tools.json_types import Json, JsonObject


def is_object(value: Json) -> TypeGuard[JsonObject]:
    return isinstance(value, (dict, Mapping))  # most are dicts, and the class itself is compared in no time


def is_list(value: Json) -> TypeGuard[list[Json]]:
    return isinstance(value, list)


def as_object(value: Json) -> JsonObject | None:
    return value if is_object(value) else None


def as_list(value: Json) -> list[Json] | None:
    return value if is_list(value) else None


def as_texts(value: Json) -> list[str]:
    """Return the strings among the items of *value*; empty if it is not a list."""
    return [item for item in as_list(value) or () if isinstance(item, str)]


def texts_in(value: Json) -> Iterator[str]:
    """All texts in *value*, at any depth and in order; the names in objects are left out."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            yield each
        waiting += reversed(as_list(each) or list((as_object(each) or {}).values()))


def pointer_step(name: str) -> str:
    """*name* as a step of a JSON pointer (RFC 6901)."""
    return name.replace("~", "~0").replace("/", "~1")


def name_of_step(step: str) -> str:
    """The name that a step of a JSON pointer stands for."""
    return step.replace("~1", "/").replace("~0", "~")


def object_in(line: bytes | str) -> JsonObject:
    """The JSON object in *line*; {} if it holds none."""
    try:
        value: Json = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return value if is_object(value) else {}
