"""Refusing a request, or a part of one, that cannot be read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NoReturn, cast

from toolsearch.errors import BadArgumentsError
from toolsearch.tools.json_types import Json, JsonObject


def refuse_request(what: str, *, api: str) -> NoReturn:
    raise BadArgumentsError(f"this is no request of {api}: {what}")


def objects_in(value: Json, name: str, *, api: str) -> Iterator[JsonObject]:
    """The objects in the list *value*. Raises BadArgumentsError, which names *name*, if it holds anything else."""
    if not isinstance(value, list | tuple):
        refuse_request(f"its {name} must be a list", api=api)
    for number, item in enumerate(cast("list[Json]", value), 1):
        if not isinstance(item, Mapping):
            refuse_request(f"{name} number {number} is not an object", api=api)
        yield cast("JsonObject", item)
