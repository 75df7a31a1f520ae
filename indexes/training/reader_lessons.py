"""The lessons of the reader: requests with similar tools, of which one or none serves the request.

The sources are those of the transformer, with the same tools left out. Parts of public tools serve as requests, too: a
first sentence is the request, and the tools are shown without their first sentences.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from toolsearch_indexes.reranking import as_read
from toolsearch_indexes.semantic import first_sentence, spaced
from training.corpora import TrainingTool
from training.lessons import IntArray, Texts
from training.transformer_lessons import Tokens, requests_to_learn

_LEAST_TEXT = 20  # characters that a part of a tool needs to become a question


class Question(NamedTuple):
    """A text, and the tool that serves it or that comes nearest; both as numbers, the tool's of its shelf.

    view  how the tools show themselves: the column of the shelf's texts
    """

    text: int
    tool: int
    view: int
    is_served: bool


@dataclass(slots=True)
class Shelf:
    """Similar tools that have to be distinguished, and the requests for them.

    texts   the texts of each tool, by view
    groups  the group of each tool, shared with its neighbours
    """

    texts: list[tuple[int, ...]] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ReadingCourse:
    """All shelves by where they come from; texts as in `training.transformer_lessons.Course`."""

    shelves: dict[str, Shelf]
    flat: IntArray
    ends: IntArray

    @classmethod
    def of(
        cls,
        tokenizer: Any,
        public: Iterable[TrainingTool],
        written: Iterable[TrainingTool],
        shipped: Path,
        unserved: Path,
        neighbours: Path,
        seed: int,
    ) -> ReadingCourse:
        """*shipped* is a folder of requests that ship, *unserved* a file of requests that none of these tools serves,
        and *neighbours* one of public tools that are alike, with requests of both kinds.
        """
        texts = Texts(Tokens(tokenizer))
        public = list(public)
        shelves = {
            "parts": _parts([tool for tool in public if tool.description], texts, random.Random(seed)),
            "public": _requests([tool for tool in public if tool.queries], texts),
            "written": _requests([replace(tool, group="") for tool in written], texts),
            "shipped": _shipped(shipped, unserved, texts),
            "neighbours": _neighbours(neighbours, public, texts),
        }
        return cls(shelves, *texts.flat())


def _parts(tools: Sequence[TrainingTool], texts: Texts, chance: random.Random) -> Shelf:
    """One question for each tool, about a part of its text. The tools are then shown without that part."""
    shelf = Shelf()
    for number, tool in enumerate(tools):
        name, first = spaced(tool.name), first_sentence(tool.description)
        rest = tool.description[len(first) :].strip()
        views = (f"{name}: {rest} {tool.parameters}", f"{name}: {first}", tool.description)
        shelf.texts.append(tuple(map(texts.add, views)))
        shelf.groups.append(tool.group.partition("/")[0])
        asked = [(first, 0), (rest, 1), (tool.parameters, 1), (name, 2)]
        possible = [(text, view) for text, view in asked if len(text) >= _LEAST_TEXT]
        if possible:
            text, view = chance.choice(possible)
            shelf.questions.append(Question(texts.add(text), number, view, is_served=True))
    return shelf


def _requests(tools: Iterable[TrainingTool], texts: Texts) -> Shelf:
    """Each request among tools that show their descriptions; every other one among such that show requests, too."""
    shelf = Shelf()
    for number, tool in enumerate(tools):
        others = (_others(tool.queries, place) for place in range(4))
        views = [as_read(tool.name, tool.description, requests) for requests in ((), *others)]
        shelf.texts.append(tuple(map(texts.add, views)))
        shelf.groups.append(tool.group)
        for place, request in enumerate(tool.queries[:4]):
            view = 1 + place if (number + place) % 3 == 0 else 0
            shelf.questions.append(Question(texts.add(request), number, view, is_served=True))
    return shelf


def _shipped(folder: Path, unserved: Path, texts: Texts) -> Shelf:
    """Tools with only names and requests, and requests that none of them serves."""
    shelf, numbers = Shelf(), dict[tuple[str, str], int]()
    for tool in chain.from_iterable(requests_to_learn(folder).values()):
        number = numbers[tool["server"], tool["name"]] = len(shelf.texts)
        name, requests = f"{tool['server']} {tool['name']}", tool["requests"]
        views = [spaced(name), *(as_read(name, "", _others(requests, place)) for place in range(4))]
        shelf.texts.append(tuple(map(texts.add, views)))
        shelf.groups.append(tool["server"])
        for place, request in enumerate(requests[:4]):
            view = 0 if (number + place) % 4 == 0 else 1 + place
            shelf.questions.append(Question(texts.add(request), number, view, is_served=True))
    for line in unserved.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        near = numbers.get((case["server"], case["near"]))
        if near is not None:
            view = len(shelf.questions) % 5
            shelf.questions.append(Question(texts.add(case["request"]), near, view, is_served=False))
    return shelf


def _neighbours(file: Path, public: Iterable[TrainingTool], texts: Texts) -> Shelf:
    """A few similar tools of an API, with requests that one of them serves and requests that nearly fit."""
    shelf, known = Shelf(), {(tool.group, tool.name): tool for tool in public}
    for group, line in enumerate(file.read_text(encoding="utf-8").splitlines()):
        few = json.loads(line)
        numbers = dict[int, int]()
        for place, asked in enumerate(few["tools"]):
            tool = known.get((asked["api"], asked["name"]))
            if tool is None:
                continue  # another seed takes other operations of a large API
            numbers[place] = number = len(shelf.texts)
            others = (_others(asked["requests"], one) for one in (0, 1))
            views = [as_read(tool.name, tool.description, requests) for requests in ((), *others)]
            shelf.texts.append(tuple(map(texts.add, views)))
            shelf.groups.append(str(group))
            for one, request in enumerate(asked["requests"][:2]):
                view = 1 + one if (number + one) % 4 == 0 else 0
                shelf.questions.append(Question(texts.add(request), number, view, is_served=True))
        for case in few["unserved"]:
            if case["near"] in numbers:
                question = Question(texts.add(case["request"]), numbers[case["near"]], 0, is_served=False)
                shelf.questions.append(question)
    return shelf


def _others(requests: Sequence[str], place: int) -> Sequence[str]:
    """The requests beside the one at *place*."""
    return [*requests[:place], *requests[place + 1 :]]
