"""Tells the shapes of JSON apart in a way that type checkers follow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeGuard

from toolsearch.tools.definition import Json, JsonObject


def is_object(value: Json) -> TypeGuard[JsonObject]:
    """Whether it is a JSON object; its keys are strings, as those of JSON are."""
    return isinstance(value, Mapping)


def is_list(value: Json) -> TypeGuard[list[Json]]:
    return isinstance(value, list)
