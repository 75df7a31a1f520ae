"""The training of a transformer for tools: a small MiniLM, changed until requests lie near their tools.

A text has to be nearer to its tool than to the others of its batch, as in InfoNCE in both directions (Source: van den
Oord et al., 2018). Half of the texts are requests, half are parts of tools. Many batches have tools that the teacher
finds similar, or neighbours of one API. With these as negatives the model learns to distinguish similar tools. The
teacher is MiniLM with all its layers. Similarities should equal the teacher's, and vectors should stay near its own, so
that nothing is forgotten.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from toolsearch_indexes.encoders.protocol import require
from training.lessons import IntArray
from training.sentence_model import SentenceModel, unit_vectors
from training.transformer_lessons import Course

FloatArray = NDArray[np.float32]

_WHAT, _EXTRA = "training a transformer", "semantic"
_SCALE = 20.0  # the factor of cosines before the softmax
_MASKED = -1e4
_SIMILAR_COSINE = 0.93  # the teacher's cosine of two tools from which on neither is a wrong answer for the other
_TOKEN_DROPOUT = 0.05
_CLUSTERED, _NEIGHBOURS = 0.4, 0.3  # shares of the batches; the others are drawn from all lessons
_OF_ONE_CLUSTER, _OF_ONE_GROUP = 64, 128  # lessons in a batch
_LESSONS_PER_CLUSTER = 150
_LEAST_CLUSTER, _LEAST_GROUP = 16, 32  # lessons that a cluster or a group needs for batches of its own
_SHORT_SHARE = 0.35  # the share of lessons that show only a tool's name and first sentence
_WARM_UP = 1 / 12  # the share of steps for warming up
_LEAST_RATE = 0.01  # the last learning rate, relative to the highest
_LONGEST_GRADIENT = 1.0
_BUCKETS = 5  # buckets of texts with similar lengths, so that there is little padding
_TEACHER_BATCH = 512


@dataclass(frozen=True, slots=True)
class TransformerTraining:
    """The length and speed of a training. The same training with the same lessons on the same machine gives the same
    model.

    keep, likeness  the weights of staying near the teacher's vectors, and of having its similarities
    tokens          the maximum length of texts, without start and end tokens
    """

    steps: int = 600
    batch: int = 512
    rate: float = 3e-4
    keep: float = 1.0
    likeness: float = 0.3
    tokens: int = 40
    seed: int = 0


def train(
    model: SentenceModel,
    teacher: SentenceModel,
    course: Course,
    how: TransformerTraining,
    on_step: Callable[[int, float], None],
) -> None:
    """Train *model* in place, and leave it ready to run. *teacher* has vectors of the same width."""
    torch = require("torch", what=_WHAT, extra=_EXTRA)
    torch.manual_seed(how.seed)  # the seed decides which tokens are left out
    texts = TextVectors(course.flat, course.ends, how.tokens, model.tokenizer)
    known = texts.known(teacher, _used(course))
    draw = _Batches(course, known, how)
    optimizer = torch.optim.AdamW(model.bert.parameters(), lr=how.rate, weight_decay=0.01)
    with without_dropout(model.bert):
        for step in range(1, how.steps + 1):
            for group in optimizer.param_groups:
                group["lr"] = how.rate * share_of_rate(step, how.steps)
            loss = _loss(model, texts, known, draw.next(), how)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.bert.parameters(), _LONGEST_GRADIENT)
            optimizer.step()
            on_step(step, float(loss.detach()))


def told_apart(texts: Any, tools: Any, *, same: Any) -> Any:
    """Return InfoNCE in both directions, a scalar: text i belongs to tool i.

    texts, tools  (n, d) unit rows
    same          (n, n) bool, where tool j is no wrong answer for text i; the diagonal does not count
    """
    torch = require("torch", what=_WHAT, extra=_EXTRA)
    own = torch.eye(len(texts), dtype=torch.bool)
    logits = (_SCALE * texts @ tools.T).masked_fill(same & ~own, _MASKED)
    right = torch.arange(len(texts))
    cross_entropy = torch.nn.functional.cross_entropy
    return (cross_entropy(logits, right) + cross_entropy(logits.T, right)) / 2


def _loss(model: SentenceModel, read: TextVectors, known: Any, lessons: IntArray, how: TransformerTraining) -> Any:
    torch = require("torch", what=_WHAT, extra=_EXTRA)
    functional = torch.nn.functional
    is_short = torch.rand(len(lessons)).numpy() < _SHORT_SHARE
    rows = np.concatenate([lessons[:, 0], lessons[:, 1], np.where(is_short, lessons[:, 2], lessons[:, 3])])
    vectors, taught = read.vectors(model, rows, dropout=_TOKEN_DROPOUT), known[torch.from_numpy(rows)].float()
    (texts, tools), (known_texts, known_tools) = _sides(vectors), _sides(taught)
    text, tool = torch.from_numpy(lessons[:, 0]), torch.from_numpy(lessons[:, -1])
    same = (text[:, None] == text) | (tool[:, None] == tool) | (known_tools @ known_tools.T > _SIMILAR_COSINE)
    unlike = functional.kl_div(
        functional.log_softmax(_SCALE * texts @ tools.T, 1),
        functional.softmax(_SCALE * known_texts @ known_tools.T, 1),
        reduction="batchmean",
    )
    forgotten = 1 - (vectors * taught).sum(dim=1).mean()
    return told_apart(texts, tools, same=same) + how.likeness * unlike + how.keep * forgotten


def _sides(vectors: Any) -> tuple[Any, Any]:
    """Return the vectors of texts, and the vectors of tools, which are normalised sums of two fields."""
    texts, names, others = vectors.chunk(3)
    normalize = require("torch", what=_WHAT, extra=_EXTRA).nn.functional.normalize
    return texts, normalize(names + others, dim=-1)


def share_of_rate(step: int, steps: int) -> float:
    """Rise to the full learning rate during the warm-up, then fall, both in a straight line."""
    warm_up = max(1, int(_WARM_UP * steps))
    return step / warm_up if step <= warm_up else max(_LEAST_RATE, (steps - step + 1) / (steps - warm_up))


class TextVectors:
    """From the numbers of texts, kept as in `Course`, to their vectors; in bfloat16 where that is quicker."""

    def __init__(self, flat: IntArray, ends: IntArray, tokens: int, tokenizer: Any) -> None:
        self._flat, self._ends = flat, ends
        self._lengths = np.minimum(np.diff(ends), tokens)
        self._first, self._last = ends_of_text(tokenizer)

    def vectors(self, model: SentenceModel, rows: IntArray, *, dropout: float = 0.0) -> Any:
        """Return (n, d) unit rows, in the order of *rows*; *dropout* is the share of tokens that are left out."""
        torch = require("torch", what=_WHAT, extra=_EXTRA)
        buckets = np.array_split(np.argsort(self._lengths[rows], kind="stable"), _BUCKETS)
        vectors = torch.cat([self._bucket(model, rows[bucket], dropout) for bucket in buckets if len(bucket)])
        return vectors[torch.from_numpy(np.argsort(np.concatenate(buckets)))]

    def known(self, model: SentenceModel, rows: IntArray) -> Any:
        """Return *model*'s vectors of *rows*: (texts, d) in half precision, all others zero."""
        torch = require("torch", what=_WHAT, extra=_EXTRA)
        used = np.unique(rows)
        used = used[np.argsort(self._lengths[used], kind="stable")]  # a batch is padded to its longest
        known = torch.zeros(len(self._lengths), model.bert.config.hidden_size, dtype=torch.float16)
        with torch.no_grad():
            for begin in range(0, len(used), _TEACHER_BATCH):
                batch = used[begin : begin + _TEACHER_BATCH]
                known[torch.from_numpy(batch)] = self.vectors(model, batch).half()
        return known

    def _bucket(self, model: SentenceModel, rows: IntArray, dropout: float) -> Any:
        torch = require("torch", what=_WHAT, extra=_EXTRA)
        lengths, begins = self._lengths[rows, None], self._ends[rows, None]
        # Places relative to the first token of the text; the start token is at -1.
        place = np.arange(lengths.max() + 2) - 1
        is_text = (place >= 0) & (place < lengths)
        ids = np.where(is_text, self._flat[np.where(is_text, begins + place, 0)], self._last)
        ids[:, 0] = self._first
        mask = torch.from_numpy(place <= lengths)
        if dropout:
            mask = mask & ~(torch.from_numpy(is_text) & (torch.rand(mask.shape) < dropout))
        with quick_numbers():
            return unit_vectors(model.bert, torch.from_numpy(ids), mask.long())


def ends_of_text(tokenizer: Any) -> tuple[int, int]:
    """The numbers of the tokens at the start and the end of a text."""
    first, last = tokenizer.encode("").ids or (0, 0)
    return first, last


def quick_numbers() -> Any:
    """A context in which a model computes in bfloat16, if the processor supports it well."""
    torch = require("torch", what=_WHAT, extra=_EXTRA)
    return torch.autocast("cpu", torch.bfloat16, enabled=torch.ops.mkldnn._is_mkldnn_bf16_supported())


def _used(course: Course) -> IntArray:
    """The texts that lessons are of."""
    lessons = (*course.requests.values(), *course.parts.values())
    return np.concatenate([rows[:, :-1].ravel() for rows in lessons])


class _Batches:
    """Draws lessons: similar ones, neighbours, or any. The weights of sources and groups are the roots of
    their sizes.
    """

    def __init__(self, course: Course, known: Any, how: TransformerTraining) -> None:
        self._size = how.batch
        self._random = np.random.default_rng(how.seed)
        self._kinds = [_Kind.of(groups, known, how.seed) for groups in (course.requests, course.parts)]

    def next(self) -> IntArray:
        kind = self._kinds[self._random.integers(len(self._kinds))]
        chance = self._random.random()
        if chance < _CLUSTERED and kind.clusters:
            return self._some_of(kind, kind.clusters, _OF_ONE_CLUSTER)
        if chance < _CLUSTERED + _NEIGHBOURS and kind.groups:
            return self._some_of(kind, kind.groups, _OF_ONE_GROUP)
        return kind.lessons[self._random.permutation(len(kind.lessons))[: self._size]]

    def _some_of(self, kind: _Kind, groups: Sequence[IntArray], of_each: int) -> IntArray:
        share = np.sqrt(list(map(len, groups)))
        count = min(len(groups), -(-self._size // of_each))
        chosen = self._random.choice(len(groups), count, replace=False, p=share / share.sum())
        rows = np.concatenate([self._random.permutation(groups[i])[:of_each] for i in chosen])
        lessons: IntArray = kind.lessons[rows[: self._size]]
        return lessons


@dataclass(frozen=True, slots=True)
class _Kind:
    """Requests or parts: all lessons, and the rows of similar ones or neighbours."""

    lessons: IntArray
    clusters: Sequence[IntArray]
    groups: Sequence[IntArray]

    @classmethod
    def of(cls, groups: Mapping[str, IntArray], known: Any, seed: int) -> _Kind:
        lessons = np.concatenate(list(groups.values()))
        ends = np.cumsum([0, *map(len, groups.values())])
        rows = [np.arange(begin, end) for begin, end in itertools.pairwise(ends)]
        return cls(
            lessons, list(_clusters(lessons, known, seed)), [group for group in rows if len(group) >= _LEAST_GROUP]
        )


def _clusters(lessons: IntArray, known: Any, seed: int) -> Iterator[IntArray]:
    """Yield the rows of lessons whose tools the teacher finds similar."""
    torch = require("torch", what=_WHAT, extra=_EXTRA)
    count = len(lessons) // _LESSONS_PER_CLUSTER
    if not count:
        return
    tools = sum(known[torch.from_numpy(lessons[:, field])].float() for field in (1, 2, 3))
    directions = torch.nn.functional.normalize(tools, dim=-1).numpy()
    means = faiss.Kmeans(directions.shape[1], count, niter=6, seed=seed, max_points_per_centroid=40)
    means.train(directions)
    nearest = means.index.search(directions, 1)[1][:, 0]
    order = np.argsort(nearest, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(nearest[order])) + 1):
        if len(rows) >= _LEAST_CLUSTER:
            yield rows


@contextmanager
def without_dropout(bert: Any) -> Iterator[None]:
    """Train without: with so few layers it costs a third of the time and was not needed."""
    torch = require("torch", what=_WHAT, extra=_EXTRA)
    layers = [module for module in bert.modules() if isinstance(module, torch.nn.Dropout)]
    shares = [layer.p for layer in layers]
    for layer in layers:
        layer.p = 0.0
    bert.train()
    try:
        yield
    finally:
        bert.eval()
        for layer, share in zip(layers, shares, strict=True):
            layer.p = share
