"""The training of a static encoder: a table of pieces, changed until requests lie near their tools.

Three kinds of lessons take turns. Requests and parts of tools have to be nearer to their tool than to the others of the
batch, as in InfoNCE. Words have to be near their glosses. Similarities have to equal the teacher's.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolsearch_indexes.encoders.protocol import require
from training.lessons import IntArray, Lesson, Lessons
from training.teacher import Teacher

FloatArray = NDArray[np.float32]

_SCALE = 20.0  # the factor of cosines before the softmax
_MASKED = -1e4
_REQUEST_DROPOUT, _PART_DROPOUT, _TOOL_DROPOUT = 0.1, 0.25, 0.1  # the shares of pieces that are left out
_WARM_UP = 30  # warm-up steps
_ONE_GROUP = 256  # lessons from one group of tools in a batch of neighbours


@dataclass(frozen=True, slots=True)
class StaticTraining:
    """How long and how fast. *words*, *likeness*: the shares of steps on glosses and on the teacher's likenesses; the
    rest is halved between requests and parts of tools.

    together  the requests that follow each other in a source and come into a batch together; tools that are alike
              follow each other, so that the wrong answers are near ones
    """

    steps: int = 850
    batch: int = 1024
    rate: float = 5e-3
    words: float = 0.15
    likeness: float = 0.15
    together: int = 1
    seed: int = 0


def train(
    table: FloatArray,
    lessons: Lessons,
    teacher: Teacher | None,
    examples: Sequence[str],
    how: StaticTraining,
    on_step: Callable[[int, float], None],
) -> FloatArray:
    """Return *table* after training. *examples* are texts whose similarities the teacher gives. Without a teacher, the
    lessons alone count.
    """
    torch = require("torch", what="training an encoder", extra="semantic")
    course = _Course(torch, table, lessons, teacher, examples, how)
    optimizer = torch.optim.Adam([course.table], lr=how.rate, fused=True)
    for step in range(how.steps):
        rate = how.rate * min(1.0, (step + 1) / _WARM_UP) * max(0.02, 1 - step / how.steps)
        for group in optimizer.param_groups:
            group["lr"] = rate
        loss = course.loss()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        on_step(step + 1, float(loss.detach()))
    trained: FloatArray = course.table.detach().numpy().copy()
    trained[0] = 0  # row 0 stands for unknown words, so its vector is zero
    return trained


class _Course:
    """The table, and the lessons as arrays."""

    def __init__(
        self,
        torch: Any,
        table: FloatArray,
        lessons: Lessons,
        teacher: Teacher | None,
        examples: Sequence[str],
        how: StaticTraining,
    ) -> None:
        self._torch, self._how = torch, how
        self._random = np.random.default_rng(how.seed)
        self.table = torch.nn.Parameter(torch.tensor(table))
        self._requests = [request for source in lessons.requests.values() for request in source]
        self._sources = _runs(list(map(len, lessons.requests.values())))
        self._parts = [lesson for group in lessons.parts.values() for lesson in group]
        self._groups = _runs(list(map(len, lessons.parts.values())))
        self._synsets = lessons.synsets
        self._examples = [lessons.texts.add(text) for text in examples]
        self._flat, self._ends = lessons.texts.flat()
        self._is_taught = teacher is not None
        if teacher is None:
            return
        self._teach_examples = torch.tensor(teacher.vectors(examples))
        # Each source is embedded by itself, so that leaving one out gives the teacher no new texts.
        sources = list(lessons.requests.values())
        self._teach_requests = torch.tensor(np.concatenate([teacher.vectors([r.words for r in s]) for s in sources]))
        self._teach_tools = torch.tensor(np.concatenate([teacher.vectors([r.whole for r in s]) for s in sources]))

    def loss(self) -> Any:
        kind = self._random.random()
        if kind < self._how.words:
            return self._words_loss()
        if kind < self._how.words + self._how.likeness:
            return self._likeness_loss()
        return self._requests_loss() if self._random.random() < 0.5 else self._parts_loss()

    def _requests_loss(self) -> Any:
        chosen = self._choose_requests()
        lessons = [self._requests[i].lesson for i in chosen]
        scores = self._lesson_scores(lessons, _REQUEST_DROPOUT)
        told_apart = self._told_apart(scores, lessons)
        if not self._is_taught:
            return told_apart
        return told_apart + self._as_taught(scores, self._teach_requests[chosen] @ self._teach_tools[chosen].T)

    def _parts_loss(self) -> Any:
        lessons = [self._parts[i] for i in self._choose_parts()]
        return self._told_apart(self._lesson_scores(lessons, _PART_DROPOUT), lessons)

    def _words_loss(self) -> Any:
        """A word and its gloss, or as often another word of the same meaning."""
        words: list[int] = []
        others: list[int] = []
        for i in self._random.permutation(len(self._synsets))[: self._how.batch]:
            synonyms, gloss = self._synsets[i]
            words.append(synonyms[self._random.integers(len(synonyms))])
            is_gloss = self._random.random() < 0.5 or len(synonyms) < 2
            others.append(gloss if is_gloss else synonyms[self._random.integers(len(synonyms))])
        one, other = self._vectors([words, others], [0.0, _TOOL_DROPOUT])
        return self._matched(one @ other.T * _SCALE)

    def _likeness_loss(self) -> Any:
        torch = self._torch
        chosen = self._random.integers(0, len(self._examples), self._how.batch)
        (vectors,) = self._vectors([[self._examples[i] for i in chosen]], [0.0])
        known = self._teach_examples[chosen]
        itself = torch.eye(len(chosen)) * _MASKED
        return self._as_taught(vectors @ vectors.T * _SCALE + itself, known @ known.T + itself / _SCALE)

    def _choose_requests(self) -> IntArray:
        """Half of the batches have one source, the others all; the weight of a source is the root of its size."""
        share = np.array([len(run) ** 0.5 for run in self._sources])
        share /= share.sum()
        if self._random.random() < 0.5:
            run = self._sources[self._random.choice(len(self._sources), p=share)]
            together = self._how.together
            starts = self._random.permutation(len(run) // together)[: self._how.batch // together] * together
            chosen: IntArray = run[(starts[:, None] + np.arange(together)).ravel()]
            return chosen
        sources = self._random.choice(len(self._sources), self._how.batch, p=share)
        return np.unique([self._sources[s][self._random.integers(len(self._sources[s]))] for s in sources])

    def _choose_parts(self) -> IntArray:
        """Half of the batches have a few groups of neighbours, the others all groups."""
        batch = self._how.batch
        if self._random.random() < 0.5:
            return np.unique(self._random.integers(0, len(self._parts), batch))
        share = np.array([len(run) ** 0.75 for run in self._groups])
        share /= share.sum()
        chosen: list[int] = []
        while len(chosen) < batch:
            run = self._groups[self._random.choice(len(self._groups), p=share)]
            chosen += self._random.permutation(run)[:_ONE_GROUP].tolist()
        return np.unique(chosen)[:batch]

    def _lesson_scores(self, lessons: Sequence[Lesson], dropout: float) -> Any:
        """Scaled cosines of all texts with all tools, (n, n); a tool is the mean of its fields."""
        fields = list(map(list, zip(*(lesson.fields for lesson in lessons), strict=True)))
        texts = [lesson.text for lesson in lessons]
        text, *tool = self._vectors([texts, *fields], [dropout, *[_TOOL_DROPOUT] * len(fields)])
        return text @ self._unit(sum(tool)).T * _SCALE

    def _told_apart(self, scores: Any, lessons: Sequence[Lesson]) -> Any:
        torch = self._torch
        tools = torch.tensor([lesson.tool for lesson in lessons])
        same = (tools[:, None] == tools[None, :]) & ~torch.eye(len(tools), dtype=torch.bool)
        return self._matched(scores.masked_fill(same, _MASKED))

    def _matched(self, scores: Any) -> Any:
        """InfoNCE in both directions. The matching pairs are on the diagonal."""
        right = self._torch.arange(len(scores))
        cross_entropy = self._torch.nn.functional.cross_entropy
        return (cross_entropy(scores, right) + cross_entropy(scores.T, right)) / 2

    def _as_taught(self, scores: Any, known: Any) -> Any:
        functional = self._torch.nn.functional
        return functional.kl_div(
            functional.log_softmax(scores, 1), functional.softmax(known * _SCALE, 1), reduction="batchmean"
        )

    def _vectors(self, texts: Sequence[Sequence[int]], dropouts: Sequence[float]) -> Sequence[Any]:
        """Return the unit vectors of several lists of texts. A random share of the pieces is left out."""
        torch = self._torch
        numbers = np.concatenate([np.asarray(some, np.int64) for some in texts])
        dropout = np.repeat(np.asarray(dropouts, np.float32), list(map(len, texts)))
        lengths = self._ends[numbers + 1] - self._ends[numbers]
        begins = np.cumsum([0, *lengths[:-1]])
        pieces = self._flat[np.repeat(self._ends[numbers] - begins, lengths) + np.arange(lengths.sum())]
        kept = self._random.random(len(pieces), dtype=np.float32) >= np.repeat(dropout, lengths)
        owners = np.repeat(np.arange(len(numbers)), lengths)[kept]
        offsets = torch.from_numpy(np.searchsorted(owners, np.arange(len(numbers))))
        sums = torch.nn.functional.embedding_bag(torch.from_numpy(pieces[kept]), self.table, offsets, mode="sum")
        split: Sequence[Any] = torch.split(self._unit(sums), list(map(len, texts)))
        return split

    def _unit(self, vectors: Any) -> Any:
        return self._torch.nn.functional.normalize(vectors, dim=1, eps=1e-6)


def _runs(sizes: Sequence[int]) -> list[IntArray]:
    """Return the indexes of consecutive lists of these *sizes*."""
    ends = np.cumsum([0, *sizes])
    return [np.arange(start, end) for start, end in itertools.pairwise(ends)]
