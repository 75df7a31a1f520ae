"""The lessons of the built-in encoder: requests with tools, one part of a tool with another, words with glosses.

Texts are kept as rows of pieces, one after the other in one array, so that a batch of them is a few array operations.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from toolsearch_indexes.semantic import FIELDS, first_sentence, spaced
from training.corpora import TrainingTool
from training.wordnet import Synset

IntArray = NDArray[np.int64]
Fields = tuple[int, ...]  # the embedded texts of a tool, by their numbers

_LONGEST_TEXT = 500  # characters
_LEAST_TEXT = 30  # characters that a part of a tool needs to become a lesson


class Cutter(Protocol):
    """Cuts a text into pieces, each a number."""

    def numbers(self, text: str) -> Sequence[int]: ...


class Texts:
    """Texts by number. Each is a row of pieces."""

    def __init__(self, cutter: Cutter) -> None:
        self._cutter = cutter
        self._rows: list[IntArray] = []

    def add(self, text: str) -> int:
        self._rows.append(np.array(self._cutter.numbers(text[:_LONGEST_TEXT]), np.int64))
        return len(self._rows) - 1

    def is_blank(self, number: int) -> bool:
        return not len(self._rows[number])

    def flat(self) -> tuple[IntArray, IntArray]:
        """Return all pieces in one array, and where each text begins in it, with the end of the last."""
        ends = np.cumsum([0, *map(len, self._rows)])
        return np.concatenate(self._rows), ends


class Lesson(NamedTuple):
    """A text, and the fields of the tool that it should be near. *tool* identifies the tool."""

    text: int
    fields: Fields
    tool: int


class Request(NamedTuple):
    """A lesson with both sides known to the teacher: the request, and the whole text of its tool."""

    lesson: Lesson
    words: str
    whole: str


@dataclass(slots=True)
class Lessons:
    """All lessons by source, in the order in which the sources came."""

    texts: Texts
    requests: dict[str, list[Request]] = field(default_factory=lambda: defaultdict(list))
    parts: dict[str, list[Lesson]] = field(default_factory=lambda: defaultdict(list))
    synsets: list[tuple[list[int], int]] = field(default_factory=list)  # (words, gloss)
    tools: int = 0  # the number of tools; each lesson has a tool's number

    def add_tools(self, source: str, tools: Iterable[TrainingTool], *, with_parts: bool = True) -> None:
        """Learn the requests of *tools* and, *with_parts*, one part of each from another.

        The parts are grouped with the tool's neighbours, from which it has to be distinguished.
        """
        for tool in tools:
            name = spaced(tool.name)
            first = first_sentence(tool.description) or name
            whole = whole_text(tool)
            fields = tuple(map(self.texts.add, (name, first, whole)))
            if self.texts.is_blank(fields[-1]):
                continue
            self.tools += 1
            for words in tool.queries:
                lesson = Lesson(self.texts.add(words), fields, self.tools)
                self.requests[source].append(Request(lesson, words, whole))
            if with_parts and tool.description:
                self.parts[tool.group.partition("/")[0]] += self._parts(tool, name, first, fields)

    def _parts(self, tool: TrainingTool, name: str, first: str, fields: Fields) -> list[Lesson]:
        """Pair each part of a tool with other parts that do not contain it."""
        of_name, of_first, _ = fields
        rest = tool.description[len(first) :].strip()
        whole = self.texts.add(tool.description)
        found = [(whole, (of_name,) * FIELDS), (of_name, (of_first, of_first, whole)), (of_first, fields)]
        if len(tool.description) > _LEAST_TEXT:
            found.append((of_first, (of_name,) * FIELDS))
        if len(rest) > _LEAST_TEXT:
            found.append((self.texts.add(rest), (of_name, of_first, self.texts.add(f"{name}: {first}"))))
        if len(tool.parameters) > _LEAST_TEXT:
            found.append((self.texts.add(tool.parameters), fields))
        return [Lesson(text, other, self.tools) for text, other in found]

    def add_synsets(self, synsets: Sequence[Synset]) -> None:
        for synset in synsets:
            self.synsets.append(([self.texts.add(word) for word in synset.words], self.texts.add(synset.gloss)))


def whole_text(tool: TrainingTool) -> str:
    """The text of a tool as the semantic arm puts it together."""
    return f"{spaced(tool.name)}: {tool.description}".strip(": ")
