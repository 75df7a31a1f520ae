"""Narrows values of a JSON document: returns the value if it is of the kind, else None."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TypeGuard

from toolsearch.tools.json_types import Json, JsonObject


def is_object(value: Json) -> TypeGuard[JsonObject]:
    return isinstance(value, Mapping)


def is_list(value: Json) -> TypeGuard[list[Json]]:
    return isinstance(value, list)


def as_object(value: Json) -> JsonObject | None:
    return value if is_object(value) else None


def as_list(value: Json) -> list[Json] | None:
    return value if is_list(value) else None


def as_texts(value: Json) -> list[str]:
    """Return the strings among the items of *value*; empty if it is not a list."""
    return [item for item in as_list(value) or () if isinstance(item, str)]


def object_in(line: bytes | str) -> JsonObject:
    """The JSON object in *line*; {} if it holds none."""
    try:
        value: Json = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return value if is_object(value) else {}
