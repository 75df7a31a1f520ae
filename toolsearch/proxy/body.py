"""The body of a request as text: new values are put into it, and all else keeps its bytes."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from toolsearch.tools.json_types import Json

MOST_ITEMS: Final = 20_000  # of a list that is read item by item; no conversation and no list of tools has more
_SPACE: Final = re.compile(r"[ \t\n\r]*")
_SCAN: Final = json.JSONDecoder().raw_decode


class Part(NamedTuple):
    """A JSON value, and where the text that stands for it begins and ends.

    items  the elements of a list, if they are wanted
    known  the text, if it was known before. It is left out of the text around it
    """

    value: Json
    start: int
    end: int
    items: tuple[Part, ...] = ()
    known: str = ""


@dataclass(frozen=True, slots=True)
class Body:
    """A JSON object: its text without the parts that were known, and the values of its keys."""

    text: str
    parts: Mapping[str, Part]

    @classmethod
    def read(
        cls, content: bytes, lists: Collection[str] = (), known: Mapping[str, Collection[str]] | None = None
    ) -> Body | None:
        """None unless *content* is one JSON object in UTF-8 that has no key twice.

        lists  the keys of lists whose items are wanted, of which each may have MOST_ITEMS
        known  the keys whose texts alone are wanted. A text of these that was read before is not read again
        """
        try:
            return cls(*_read(content.decode(), lists, known or {}))
        except (ValueError, IndexError, RecursionError):
            return None

    def get(self, key: str) -> Json:
        part = self.parts.get(key)
        return None if part is None else part.value

    def written(self, part: Part) -> str:
        """The text that stands for *part*."""
        return part.known or self.text[part.start : part.end]

    def written_at(self, key: str, default: str) -> str:
        """The text that stands for the value of *key*."""
        return self.written(self.parts[key]) if key in self.parts else default

    def items(self, key: str) -> list[tuple[Json, str]]:
        """The elements of the list under *key*, each with its text; ``[]`` if they are not wanted, or none."""
        part = self.parts.get(key)
        return [(item.value, self.written(item)) for item in part.items] if part is not None else []

    def without_value(self, key: str) -> Body:
        """The same body, with only the text of the value of *key*: objects of Python take several times as much."""
        less = {key: self.parts[key]._replace(value=None, items=())} if key in self.parts else {}
        return Body(self.text, {**self.parts, **less})

    def replaced(self, values: Mapping[str, str]) -> bytes:
        """The body with *values*, as JSON, under their keys. New keys come last."""
        pieces, at = list[str](), 0
        for key, part in self.parts.items():  # in the order of the text
            if key in values or part.known:
                pieces += [self.text[at : part.start], values.get(key, part.known)]
                at = part.end
        end = self.text.rindex("}")
        pieces.append(self.text[at:end])
        added = [f"{json.dumps(key)}:{value}" for key, value in values.items() if key not in self.parts]
        pieces.append(",".join([*([""] if self.parts and added else []), *added]))
        return "".join([*pieces, self.text[end:]]).encode()


def list_text(texts: Sequence[str]) -> str:
    return f"[{','.join(texts)}]"


def has_repeated_keys(text: str) -> bool:
    """Whether an object anywhere in the JSON *text* has a key twice: readers differ in which of them counts."""

    def without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs):
            raise _RepeatedKeyError
        return made

    try:
        json.loads(text, object_pairs_hook=without_repeats)
    except _RepeatedKeyError:
        return True
    return False


class _RepeatedKeyError(Exception):
    """Only raised here."""


def list_items(text: str) -> list[tuple[Json, str]]:
    """The elements of the list that *text* stands for, each with its text. Raises ValueError above MOST_ITEMS."""
    return [(item.value, text[item.start : item.end]) for item in _list_part(text, 0).items]


def _read(text: str, lists: Collection[str], known: Mapping[str, Collection[str]]) -> tuple[str, dict[str, Part]]:
    """The text of a body without what is *known*, and its parts. Raises ValueError, IndexError or RecursionError."""
    parts = dict[str, Part]()
    at = _expect("{", text, 0)
    while text[at] != "}":
        if text[at] != '"':
            raise ValueError
        key, at = _SCAN(text, at)
        if key in parts:
            raise ValueError
        at = _expect(":", text, at)
        if found := next((each for each in known.get(key, ()) if text.startswith(each, at)), ""):
            parts[key] = Part(None, at, at, known=found)
            text = text[:at] + text[at + len(found) :]
        elif key in known:
            parts[key] = _part(text, at)._replace(value=None)
        else:
            parts[key] = _list_part(text, at) if key in lists and text[at] == "[" else _part(text, at)
        at = _after(text, parts[key].end)
        if text[at] != "}":
            at = _expect(",", text, at)
            if text[at] == "}":
                raise ValueError
    if _after(text, at + 1) != len(text):
        raise ValueError
    return text, parts


def _part(text: str, at: int) -> Part:
    value, end = _SCAN(text, at)
    return Part(value, at, end)


def _list_part(text: str, at: int) -> Part:
    """The list at *at*, with its items, each of which costs far more time than reading it as a part of its list."""
    items, place = list[Part](), _expect("[", text, at)
    while text[place] != "]":
        if len(items) == MOST_ITEMS:
            raise ValueError
        items.append(_part(text, place))
        place = _after(text, items[-1].end)
        if text[place] != "]":
            place = _expect(",", text, place)
            if text[place] == "]":
                raise ValueError
    return Part([item.value for item in items], at, place + 1, tuple(items))


def _expect(character: str, text: str, at: int) -> int:
    """The place of the next token after *character*, which has to stand at *at* or after white space."""
    at = _after(text, at)
    if text[at] != character:
        raise ValueError
    return _after(text, at + 1)


def _after(text: str, at: int) -> int:
    if text[at : at + 1] > " ":
        return at
    found = _SPACE.match(text, at)
    return found.end() if found is not None else at
