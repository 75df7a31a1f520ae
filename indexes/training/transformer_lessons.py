"""The lessons of the transformer: those of the built-in encoder, and the requests that ship with tools.

They contain nothing from the benchmarks: no labelled set, and no catalog of agent queries. So the benchmarks measure
tools that the model has not seen.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from toolsearch_indexes.semantic import spaced
from training.corpora import TrainingTool
from training.lessons import IntArray, Lesson, Lessons, Texts

_FEWEST = 3  # requests that a tool needs: one is asked, and two describe the tool
_MEASURED_FILES = frozenset({"aws", "github", "google"})  # catalogues of benchmarks.agent_queries
_MEASURED_SERVERS = frozenset(
    {"everything", "fetch", "filesystem", "git", "github", "memory", "sequential-thinking", "time"}
)
_MEASURED_SERVICES = "google_"  # what the servers' names begin with


def requests_to_learn(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the tools of the requests that ship by file, without those that the benchmarks measure on."""
    files = [path for path in sorted(folder.glob("*.jsonl")) if path.stem not in _MEASURED_FILES]
    rows = {path.stem: map(json.loads, path.read_text(encoding="utf-8").splitlines()) for path in files}
    return {name: [tool for tool in tools if not _is_measured(tool["server"])] for name, tools in rows.items()}


def _is_measured(server: str) -> bool:
    return server in _MEASURED_SERVERS or server.startswith(_MEASURED_SERVICES)


class Tokens:
    """Cuts texts into the numbers of a tokenizer's tokens, for `Texts`."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def numbers(self, text: str) -> Sequence[int]:
        numbers: Sequence[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return numbers


@dataclass(frozen=True, slots=True)
class Course:
    """All lessons as rows of five numbers: a text, the three fields of its tool, and the tool.

    requests  by source
    parts     one part of a tool with another, by groups of neighbours
    flat      the tokens of all texts, one after the other, without start and end tokens; *ends* has the end of each
    """

    requests: Mapping[str, IntArray]
    parts: Mapping[str, IntArray]
    flat: IntArray
    ends: IntArray

    @classmethod
    def of(
        cls,
        tokenizer: Any,
        public: Iterable[TrainingTool],
        written: Iterable[TrainingTool],
        shipped: Path,
    ) -> Course:
        """*shipped* is a folder of requests that ship, ``*.jsonl``."""
        texts = Texts(Tokens(tokenizer))
        lessons = Lessons(texts)
        lessons.add_tools("public", public)
        lessons.add_tools("written", written, with_parts=False)
        requests = {name: _rows([request.lesson for request in found]) for name, found in lessons.requests.items()}
        for name, tools in requests_to_learn(shipped).items():
            if found := list(_shipped(tools, texts, lessons.tools + 1)):
                requests[name] = _rows(found)
                lessons.tools = found[-1].tool
        flat, ends = texts.flat()
        return cls(requests, {name: _rows(found) for name, found in lessons.parts.items()}, flat, ends)


def _shipped(tools: Iterable[Mapping[str, Any]], texts: Texts, first: int) -> Iterator[Lesson]:
    """Each request of a tool, to be near to the tool's name and to two of its other requests.

    This is how a tool with requests is embedded; the sources know no more of a tool than its name.
    """
    for number, tool in enumerate(tools, first):
        if len(tool["requests"]) < _FEWEST:
            continue
        name = texts.add(f"{spaced(tool['server'])} {spaced(tool['name'])}")
        requests = [texts.add(request) for request in tool["requests"]]
        for place, request in enumerate(requests):
            one, other = (requests[:place] + requests[place + 1 :])[:2]
            yield Lesson(request, (name, one, other), number)


def _rows(lessons: Sequence[Lesson]) -> IntArray:
    return np.array([[lesson.text, *lesson.fields, lesson.tool] for lesson in lessons], np.int64)
