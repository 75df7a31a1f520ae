"""The training of a reader: it has to find the one of a few similar tools that serves a request, or say that none does.

Each question comes with the tools that the untrained model finds nearest. "None of these" has the log odds 0. The right
tool, or "none of these", must get the highest log odds. In addition, each tool is judged by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from toolsearch_indexes.encoders.protocol import require
from training.lessons import IntArray
from training.pair_model import PairModel, log_odds
from training.reader_lessons import ReadingCourse, Shelf
from training.sentence_model import SentenceModel
from training.transformer_training import TextVectors, ends_of_text, quick_numbers, share_of_rate, without_dropout

_WHAT, _EXTRA = "training a reader", "semantic"
# Source -> its share of the questions.
_SHARES = {"neighbours": 0.4, "written": 0.2, "shipped": 0.2, "parts": 0.12, "public": 0.08}
_UNSERVED_SHARE = 0.3  # the share of questions without any right tool, if there are such questions
_REMOVED_SHARE = 0.3  # the share of other questions whose right tool is not shown
_WEIGHT_OF_SINGLE_TOOLS = 4.0  # the weight of the judgement of each tool alone
_BESIDE, _FARTHER = 16, 8  # tools near a question from its own group, and from others
# Ranks from which tools of other groups are taken; nearer ones might serve the question, too.
_RANKS_OF_OTHERS = (20, 200)
_SIMILAR_COSINE = 0.93  # cosine of two tools from which on neither is a wrong answer for the other
_DECAY = 0.88  # the chance that a tool is drawn, relative to the next nearer one
_REQUEST_TOKENS, _VECTOR_TOKENS = 30, 40
_LONGEST_GRADIENT = 1.0
_BUCKETS, _BATCH = 4, 256


@dataclass(frozen=True, slots=True)
class ReaderTraining:
    """How long and how fast.

    questions  questions in a step, each with *tools* tools
    tokens     tokens of a request and a tool, with the special tokens
    """

    steps: int = 2000
    questions: int = 64
    tools: int = 8
    rate: float = 2e-4
    tokens: int = 64
    seed: int = 0


def train(model: PairModel, course: ReadingCourse, how: ReaderTraining, on_step: Callable[[int, float], None]) -> None:
    """Train *model* in place, and leave it ready to run."""
    torch = require("torch", what=_WHAT, extra=_EXTRA)
    draw = _Questions(course, SentenceModel(model.bert, model.tokenizer), how)
    pairs = _Pairs(course, how.tokens, model.tokenizer)
    parameters = [*model.bert.parameters(), *model.head.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=how.rate, weight_decay=0.01)
    with without_dropout(model.bert):
        for step in range(1, how.steps + 1):
            for group in optimizer.param_groups:
                group["lr"] = how.rate * share_of_rate(step, how.steps)
            asked, shown, right = draw.next()
            loss = told(pairs.log_odds(model, asked, shown).view(how.questions, how.tools), torch.from_numpy(right))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(parameters, _LONGEST_GRADIENT)
            optimizer.step()
            on_step(step, float(loss.detach()))


def told(said: Any, right: Any) -> Any:
    """Return the loss, a scalar. *said* (n, tools) are log odds, *right* (n,) is the tool that serves, or *tools* for
    none.
    """
    torch = require("torch", what=_WHAT, extra=_EXTRA)
    functional = torch.nn.functional
    with_none = torch.cat([said, torch.zeros(len(said), 1)], dim=1)
    serves = functional.one_hot(right, with_none.shape[1])[:, :-1].float()
    return functional.cross_entropy(
        with_none, right
    ) + _WEIGHT_OF_SINGLE_TOOLS / 2 * functional.binary_cross_entropy_with_logits(said, serves)


class _Pairs:
    """Runs a model on pairs of texts, which are given by number."""

    def __init__(self, course: ReadingCourse, tokens: int, tokenizer: Any) -> None:
        self._flat, self._ends, self._tokens = course.flat, course.ends, tokens
        self._lengths = np.diff(course.ends)
        self._first, self._last = ends_of_text(tokenizer)

    def log_odds(self, model: PairModel, asked: IntArray, shown: IntArray) -> Any:
        torch = require("torch", what=_WHAT, extra=_EXTRA)
        requests = np.minimum(self._lengths[asked], _REQUEST_TOKENS)
        tools = np.minimum(self._lengths[shown], self._tokens - 3 - requests)
        buckets = np.array_split(np.argsort(requests + tools, kind="stable"), _BUCKETS)
        said = torch.cat(
            [self._bucket(model, asked[rows], shown[rows], requests[rows], tools[rows]) for rows in buckets]
        )
        return said[torch.from_numpy(np.argsort(np.concatenate(buckets)))]

    def _bucket(self, model: PairModel, asked: IntArray, shown: IntArray, requests: IntArray, tools: IntArray) -> Any:
        torch = require("torch", what=_WHAT, extra=_EXTRA)
        # The end of the request, and the end of the tool.
        middle, end = requests[:, None] + 1, (requests + tools)[:, None] + 2
        place = np.arange(int(end.max()) + 1)
        is_request, is_tool = (place > 0) & (place < middle), (place > middle) & (place < end)
        begins = np.where(is_request, self._ends[asked, None] - 1, self._ends[shown, None] - middle - 1)
        ids = np.where(is_request | is_tool, self._flat[np.where(is_request | is_tool, begins + place, 0)], self._last)
        ids[:, 0] = self._first
        with quick_numbers():
            return log_odds(
                model.bert,
                model.head,
                torch.from_numpy(ids),
                torch.from_numpy((place <= end).astype(np.int64)),
                torch.from_numpy(((place > middle) & (place <= end)).astype(np.int64)),
            )


class _Questions:
    """Draws questions with the tools to choose from."""

    def __init__(self, course: ReadingCourse, model: SentenceModel, how: ReaderTraining) -> None:
        self._how = how
        self._random = np.random.default_rng(how.seed)
        texts = TextVectors(course.flat, course.ends, _VECTOR_TOKENS, model.tokenizer)
        self._shelves = {
            name: _NearShelf.of(shelf, texts, model, self._random)
            for name, shelf in course.shelves.items()
            if shelf.questions
        }
        shares = np.array([_SHARES[name] for name in self._shelves])
        self._names, self._shares = list(self._shelves), shares / shares.sum()

    def next(self) -> tuple[IntArray, IntArray, IntArray]:
        """Return the texts of requests and of tools, both (questions * tools,), and the place of each right tool."""
        chosen = self._random.choice(len(self._names), self._how.questions, p=self._shares)
        drawn = [self._shelves[self._names[each]].draw(self._random, self._how.tools) for each in chosen]
        asked, shown, right = zip(*drawn, strict=True)
        return np.repeat(asked, self._how.tools), np.concatenate(shown), np.array(right)


@dataclass(frozen=True, slots=True)
class _NearShelf:
    """The questions of a shelf, each with the tools near to it.

    texts             (tools, views) of the tools
    questions         (n, 4): text, tool, view, whether it is served
    near              (n, tools) the nearest first
    served, unserved  rows of *questions* that have any tool near to them
    """

    texts: IntArray
    questions: IntArray
    near: IntArray
    served: IntArray
    unserved: IntArray

    @classmethod
    def of(cls, shelf: Shelf, vectors: TextVectors, model: SentenceModel, random: np.random.Generator) -> _NearShelf:
        texts, questions = np.array(shelf.texts), np.array(shelf.questions, np.int64)
        groups = np.unique(np.array(shelf.groups), return_inverse=True)[1]
        near = np.zeros((len(questions), _BESIDE + _FARTHER), np.int64)
        for rows, found in _near(texts, questions, groups, vectors, model, random):
            near[rows] = found
        can_be_asked = near[:, 0] >= 0
        served, unserved = (np.flatnonzero((questions[:, 3] == is_served) & can_be_asked) for is_served in (1, 0))
        return cls(texts, questions, near, served, unserved)

    def draw(self, random: np.random.Generator, tools: int) -> tuple[int, IntArray, int]:
        """Return the text of a question, the texts of *tools* tools, and the place of the right one; *tools*
        for none.
        """
        is_unserved = len(self.unserved) > 0 and random.random() < _UNSERVED_SHARE
        row = random.choice(self.unserved if is_unserved else self.served)
        text, tool, view, _ = self.questions[row]
        is_removed = not is_unserved and random.random() < _REMOVED_SHARE
        chances = _DECAY ** np.arange(self.near.shape[1])
        shown = random.choice(self.near[row], tools - (not is_removed), replace=False, p=chances / chances.sum())
        if not is_removed:  # the right tool is shown; if nothing serves the request, this is the nearest tool
            shown = np.concatenate([[tool], shown])
        return int(text), self.texts[shown, view], tools if is_unserved or is_removed else 0


def _near(
    texts: IntArray,
    questions: IntArray,
    groups: IntArray,
    vectors: TextVectors,
    model: SentenceModel,
    random: np.random.Generator,
) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield rows of *questions*, and the tools near them: first tools of the same group, nearest first, then tools of
    other groups. The question's own tool and similar ones are left out. -1 fills empty places.
    """
    torch = require("torch", what=_WHAT, extra=_EXTRA)
    known = vectors.known(model, np.concatenate([texts.ravel(), questions[:, 0]]))
    tools, group = known[torch.from_numpy(texts[:, 0])].float(), torch.from_numpy(groups)
    for view in range(texts.shape[1]):
        shown = known[torch.from_numpy(texts[:, view])].float()
        of_view = np.flatnonzero(questions[:, 2] == view)
        for rows in np.array_split(of_view, -(-len(of_view) // _BATCH) or 1):
            own = torch.from_numpy(questions[rows, 1])
            cosines = known[torch.from_numpy(questions[rows, 0])].float() @ shown.T
            is_other = tools[own] @ tools.T <= _SIMILAR_COSINE
            is_other[torch.arange(len(own)), own] = False
            is_beside = group[own][:, None] == group
            beside = _nearest(cosines, is_other & is_beside, _BESIDE + _FARTHER)
            others = _nearest(cosines, is_other & ~is_beside, _RANKS_OF_OTHERS[1])[:, _RANKS_OF_OTHERS[0] :]
            others = others[:, random.permutation(others.shape[1])]
            ordered = np.hstack([beside[:, :_BESIDE], others[:, :_FARTHER], beside[:, _BESIDE:]])
            yield rows, np.array([_repeated(row[row >= 0]) for row in ordered]).reshape(-1, _BESIDE + _FARTHER)


def _repeated(tools: IntArray) -> IntArray:
    return np.resize(tools if len(tools) else -1, _BESIDE + _FARTHER)


def _nearest(cosines: Any, possible: Any, count: int) -> IntArray:
    """The *count* nearest of the *possible* tools in each row; -1 fills empty places."""
    torch = require("torch", what=_WHAT, extra=_EXTRA)
    found = cosines.masked_fill(~possible, -2).topk(min(count, cosines.shape[1]), dim=1)
    places: IntArray = torch.where(found.values > -2, found.indices, -1).numpy()
    return places
