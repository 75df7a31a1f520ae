"""Teaching a sentence model which requests go with which tools, without its forgetting what it knew.

The loss is InfoNCE in both directions, with the other pairs of the batch as negatives (Source: van den Oord et al.,
2018), plus the distance of each vector to the one that the unchanged model gives.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from toolsearch_indexes.analysis import name_words
from toolsearch_indexes.documents import ToolDocument
from toolsearch_indexes.encoders.extras import require
from toolsearch_indexes.semantic import semantic_text
from training.corpora import TrainingTool
from training.sentence_model import SentenceModel

_WHAT, _EXTRA = "training a transformer", "semantic"
_SCALE = 20.0  # inverse temperature, as sentence-transformers trains with
_KEEP = 1.0  # weight of not forgetting; cosine distances are a tenth of what InfoNCE starts at
_WARM_UP = 0.1  # of all steps
_LONGEST_GRADIENT = 1.0
_ONE_SOURCE = 0.5  # of the batches; there the negatives are neighbours, and harder


@dataclass(frozen=True, slots=True)
class Pair:
    """A request and the text, as an index embeds it, of a tool that serves it."""

    request: str
    text: str


@dataclass(frozen=True, slots=True)
class Tuning:
    """How long and how fast to learn; the same tuning of the same pairs on the same machine gives the same model."""

    steps: int
    batch_size: int = 64
    learning_rate: float = 5e-5
    seed: int = 0


def pairs(tools: Sequence[TrainingTool]) -> list[Pair]:
    """Return the known requests for *tools*, each with its tool; if there are none, their names with descriptions."""
    asked = [
        Pair(request, semantic_text(ToolDocument(name=tool.name, description=tool.description)))
        for tool in tools
        for request in tool.queries
    ]
    return asked or [Pair(name_words(tool.name), tool.description) for tool in tools if tool.description]


def tune(
    model: SentenceModel,
    teacher: SentenceModel,
    sources: Mapping[str, Sequence[Pair]],
    tuning: Tuning,
    *,
    on_step: Callable[[int, float], None] | None = None,
) -> list[float]:
    """Train *model* in place, leave it ready to run, and return the loss of each step.

    teacher  the unchanged model, with vectors of the same width
    on_step  is told the number of each step, from 1, and its loss
    """
    torch = require("torch", what=_WHAT, extra=_EXTRA)
    torch.manual_seed(tuning.seed)  # dropout
    draw = _Batches(sources, tuning)
    optimizer = torch.optim.AdamW(model.bert.parameters(), lr=tuning.learning_rate)
    rates = torch.optim.lr_scheduler.LambdaLR(optimizer, partial(_rate, steps=tuning.steps))
    losses: list[float] = []
    model.bert.train()
    for step in range(1, tuning.steps + 1):
        loss = _loss(model, teacher, draw.next())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.bert.parameters(), _LONGEST_GRADIENT)
        optimizer.step()
        rates.step()
        losses.append(float(loss.detach()))
        if on_step:
            on_step(step, losses[-1])
    model.bert.eval()
    return losses


def contrastive_loss(requests: Any, texts: Any, *, same: Any) -> Any:
    """Return InfoNCE in both directions, a scalar: request i belongs to text i.

    requests, texts  (n, d) unit rows
    same             (n, n) bool, where request i suits text j as well, so that they are no negatives
    """
    torch = require("torch", what=_WHAT, extra=_EXTRA)
    own = torch.eye(len(requests), dtype=torch.bool, device=requests.device)
    logits = (_SCALE * requests @ texts.T).masked_fill(same & ~own, -torch.inf)
    targets = torch.arange(len(requests), device=requests.device)
    cross_entropy = torch.nn.functional.cross_entropy
    return (cross_entropy(logits, targets) + cross_entropy(logits.T, targets)) / 2


def _loss(model: SentenceModel, teacher: SentenceModel, batch: Sequence[Pair]) -> Any:
    torch = require("torch", what=_WHAT, extra=_EXTRA)
    request_texts, tool_texts = [pair.request for pair in batch], [pair.text for pair in batch]
    requests, texts = model.vectors(request_texts), model.vectors(tool_texts)
    with torch.no_grad():
        known = torch.cat([teacher.vectors(request_texts), teacher.vectors(tool_texts)])
    forgotten = 1 - (torch.cat([requests, texts]) * known).sum(dim=1).mean()
    same = torch.tensor(
        [[one.request == other.request or one.text == other.text for other in batch] for one in batch],
        device=requests.device,
    )
    return contrastive_loss(requests, texts, same=same) + _KEEP * forgotten


def _rate(step: int, steps: int) -> float:
    """Rise to the full learning rate during the warm-up, then fall to zero, both in a straight line."""
    warm_up = max(1, round(_WARM_UP * steps))
    return (step + 1) / warm_up if step < warm_up else (steps - step) / max(1, steps - warm_up)


class _Batches:
    """Draws by the square roots of the sources' sizes, so that the largest does not drown the others."""

    def __init__(self, sources: Mapping[str, Sequence[Pair]], tuning: Tuning) -> None:
        self._sources = [sources[name] for name in sorted(sources) if sources[name]]
        self._weights = [len(source) ** 0.5 for source in self._sources]
        self._size = tuning.batch_size
        self._random = random.Random(tuning.seed)

    def next(self) -> list[Pair]:
        if self._random.random() < _ONE_SOURCE:
            (source,) = self._random.choices(self._sources, self._weights)
            return self._random.sample(source, min(self._size, len(source)))
        drawn = self._random.choices(self._sources, self._weights, k=self._size)
        return [self._random.choice(source) for source in drawn]
