"""Plain dicts and lists of JSON, whatever mappings and sequences a value is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeGuard, cast

from toolsearch.tools.json_types import Json, JsonObject

ToPlain: TypeAlias = Callable[[Json], Any]  # `deep_copy` or `itself_if_plain`


def is_plain_object(value: Json) -> TypeGuard[dict[str, Json]]:
    """For values that are plain all through: to ask any value whether it is a mapping takes much longer."""
    return isinstance(value, dict)


def deep_copy(value: Json) -> Any:
    """A deep copy of plain dicts and lists."""
    if isinstance(value, Mapping):
        return {key: deep_copy(item) for key, item in cast("JsonObject", value).items()}
    if isinstance(value, list | tuple):
        return [deep_copy(item) for item in cast("Sequence[Json]", value)]
    return value


def itself_if_plain(value: Json) -> Any:
    """*value* itself if it is made of plain dicts and lists all through, else a copy that is."""
    if isinstance(value, Mapping):
        fields = cast("JsonObject", value)
        made = {key: itself_if_plain(item) for key, item in fields.items()}
        is_plain = type(cast("object", fields)) is dict and all(made[key] is item for key, item in fields.items())
        return fields if is_plain else made
    if isinstance(value, list | tuple):
        items = cast("Sequence[Json]", value)
        copied = [itself_if_plain(item) for item in items]
        is_plain = type(cast("object", items)) is list and all(
            new is old for new, old in zip(copied, items, strict=True)
        )
        return items if is_plain else copied
    return value
