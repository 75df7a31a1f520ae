"""Two definitions side by side: the differences at each place, with removed and new words marked."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final, NamedTuple

from toolsearch.documents.json_values import is_list, is_object
from toolsearch.scanning.texts import printable
from toolsearch.tools.json_types import Json, JsonObject

_WORD: Final = re.compile(r"\s+|\w+|[^\w\s]")
_LONGEST_WRITTEN_OUT: Final = 5  # characters that one character may become; `printable` allows twice as many
_MOST_WORDS: Final = 2_000  # words of a text that are compared; a longer text is marked as a whole


class Run(NamedTuple):
    """Some words of a text, and whether the other text has them too."""

    text: str
    is_marked: bool


@dataclass(frozen=True, slots=True)
class Place:
    """One place of both definitions, such as ``inputSchema.properties.path``. A definition without it has an empty
    side.
    """

    name: str
    before: tuple[Run, ...]
    now: tuple[Run, ...]

    @property
    def is_changed(self) -> bool:
        return any(run.is_marked for run in (*self.before, *self.now))


def places_of(before: JsonObject | None, now: JsonObject) -> list[Place]:
    """Every place of either definition, in the written order. Invisible characters are written out."""
    old, new = dict(_leaves("", before)) if before else {}, dict(_leaves("", now))
    names = [*new, *(name for name in old if name not in new)]
    return [Place(printable(name), *_marked(old.get(name), new.get(name))) for name in names]


def worded(place: Place) -> str:
    """The place on one line: ``Reads a {+secret +}file [-from disk-]``. Marks within the texts are broken up."""
    old, new, parts = [*place.before], [*place.now], list[str]()
    while old or new:
        if old and old[0].is_marked:
            parts.append(f"[-{_on_one_line(old.pop(0).text)}-]")
        elif new and new[0].is_marked:
            parts.append(f"{{+{_on_one_line(new.pop(0).text)}+}}")
        else:  # words that both have
            parts.append(_on_one_line(new.pop(0).text))
            old = old[1:]
    return "".join(parts)


def _on_one_line(text: str) -> str:
    for mark in ("[-", "-]", "{+", "+}"):
        text = text.replace(mark, f"{mark[0]}\\{mark[1]}")
    return text.replace("\n", "\\n")


def _leaves(place: str, value: Json) -> Iterator[tuple[str, str]]:
    if is_object(value) and value:
        for key, each in value.items():
            yield from _leaves(f"{place}.{key}" if place else key, each)
    elif is_list(value) and value and any(is_object(each) or is_list(each) for each in value):
        for index, each in enumerate(value):
            yield from _leaves(f"{place}[{index}]", each)
    else:
        yield place, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _marked(before: str | None, now: str | None) -> tuple[tuple[Run, ...], tuple[Run, ...]]:
    if before is None or now is None:
        return _whole(before), _whole(now)
    old, new = _WORD.findall(_shown(before)), _WORD.findall(_shown(now))
    if old == new:
        return (Run("".join(old), is_marked=False),), (Run("".join(new), is_marked=False),)
    if max(len(old), len(new)) > _MOST_WORDS:
        return _whole(before), _whole(now)
    left: list[Run] = []
    right: list[Run] = []
    for kind, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        is_marked = kind != "equal"
        left.append(Run("".join(old[i:j]), is_marked))
        right.append(Run("".join(new[k:m]), is_marked))
    return tuple(run for run in left if run.text), tuple(run for run in right if run.text)


def _whole(text: str | None) -> tuple[Run, ...]:
    return () if text is None else (Run(_shown(text), is_marked=True),)


def _shown(text: str) -> str:
    """The whole *text*. Characters that hide or turn others are written out."""
    return "\n".join(printable(line, _LONGEST_WRITTEN_OUT * len(line) + 1) for line in text.split("\n"))
