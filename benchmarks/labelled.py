"""Labelled sets, tools and queries whose right tools are known, and what rankings of them are judged by."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.datasets import TEST
from toolsearch.evaluation.evaluation import Quality, quality
from toolsearch.evaluation.queries import LabelledQuery

__all__ = ["SAMPLE", "SEED", "LabelledQuery", "LabelledSet", "Quality", "quality", "read_labelled", "read_set"]

SAMPLE = 1_000  # test queries of a set at most
SEED = 0


@dataclass(frozen=True, slots=True)
class LabelledSet:
    """A folder's ``tools.jsonl`` (ids are unique, names need not be) and the sample of its test queries."""

    name: str
    tools: Sequence[Mapping[str, Any]]
    queries: Sequence[LabelledQuery]


def read_set(folder: Path) -> LabelledSet:
    """Read the tools and the test queries; of more than SAMPLE queries, a fixed random sample."""
    queries = read_labelled(folder / TEST)
    if len(queries) > SAMPLE:
        queries = random.Random(SEED).sample(queries, SAMPLE)
    return LabelledSet(folder.name, _rows(folder / "tools.jsonl"), queries)


def read_labelled(path: Path) -> list[LabelledQuery]:
    """All queries of a file, in its order."""
    return [LabelledQuery(row["query"], frozenset(row["relevant"])) for row in _rows(path)]


def _rows(path: Path) -> list[Any]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
