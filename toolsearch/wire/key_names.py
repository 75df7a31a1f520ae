"""Names of properties that every model API takes, for those that not every one does."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Final

from toolsearch.documents.json_values import as_texts
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.wire.json_copies import is_plain_object
from toolsearch.wire.tool_rules import KEY, LONGEST_KEY

_OF_NAMES: Final = frozenset({"properties", "dependencies", "dependentRequired", "dependentSchemas"})
_WORDS: Final = (("<=", "_lte"), (">=", "_gte"), ("!=", "_ne"), ("<", "_lt"), (">", "_gt"), ("=", "_eq"), ("!", "_not"))
_OTHERS: Final = re.compile(r"[^A-Za-z0-9_.-]+")
_ROOM_FOR_NUMBER: Final = 6
_READ: Final = 1_000  # characters of a name; more would not fit anyway


def is_sendable_key(name: object) -> bool:
    return isinstance(name, str) and KEY.fullmatch(name) is not None


def sendable_keys(schema: JsonObject) -> dict[str, str]:
    """The name to send for each property anywhere in *schema* whose own name cannot be sent.

    No two get the same one, nor one that a property has anyway. The result does not depend on the order of the schema.
    """
    names = set(_property_names(schema))
    refused = sorted(name for name in names if not is_sendable_key(name))
    free = FreeKeys(names)
    return {name: free.name(name) for name in refused}


class FreeKeys:
    """Gives names that can be sent, none of them twice and none of *taken*."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._numbers: dict[str, int] = {}

    def name(self, wanted: str) -> str:
        """*wanted* itself if that can be sent and is free, else one that is like it."""
        base = wanted if is_sendable_key(wanted) else readable_key(wanted)
        candidate = base
        while candidate in self._taken:
            number = self._numbers[base] = self._numbers.get(base, 1) + 1
            candidate = f"{base[: LONGEST_KEY - _ROOM_FOR_NUMBER]}_{number}"
        self._taken.add(candidate)
        return candidate


def readable_key(name: str) -> str:
    """``StartTime<`` gives ``StartTime_lt``, ``$filter`` gives ``filter``, and what has no letter is ``parameter``."""
    text = "".join(c for c in unicodedata.normalize("NFKD", name[:_READ]) if not unicodedata.combining(c))
    for sign, word in _WORDS:
        text = text.replace(sign, word)
    text = _OTHERS.sub("_", text).strip("_.-")
    return text[:LONGEST_KEY].rstrip("_.-") or "parameter"


def _property_names(schema: JsonObject) -> Iterator[str]:
    """What may be the name of a property, and a little more: a loop, as nobody has bounded the schema yet."""
    waiting: list[Json] = [schema]
    while waiting:
        value = waiting.pop()
        if is_plain_object(value):
            for keyword, each in value.items():
                if keyword in _OF_NAMES and is_plain_object(each):
                    for name, depending in each.items():
                        yield from as_texts([name])
                        yield from as_texts(depending)
                elif keyword == "required":
                    yield from as_texts(each)
                if isinstance(each, (dict, list)):
                    waiting.append(each)
        else:
            waiting += [each for each in value if isinstance(each, (dict, list))]
