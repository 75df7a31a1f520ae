"""toolrank: its scorers, with tools as its ingest makes them and its benchmark's."""

from __future__ import annotations

import json
from typing import Any

import minilm
import numpy as np
from toolrank.adapters.bm25 import BM25Scorer
from toolrank.adapters.dense import DenseScorer
from toolrank.adapters.hybrid import HybridScorer
from toolrank.domain import Query, Tool


class BM25:
    def __init__(self) -> None:
        self._scorer = BM25Scorer()

    def index(self, tools: list[dict[str, Any]]) -> None:
        self._scorer.index([_as_theirs(tool) for tool in tools])

    def search(self, query: str, limit: int) -> list[str]:
        ranked = self._scorer.rank([Query("1", query, {})], limit)[0]
        return list(ranked.tool_ids)


class BM25AsPublished(BM25):
    """Without stemming, as in the row of its table."""

    def __init__(self) -> None:
        self._scorer = BM25Scorer(stem=False)


class _Encoder:
    name = "all-MiniLM-L6-v2"

    def encode(self, texts: list[str], *, kind: str = "document") -> np.ndarray:
        return minilm.embed_tools(texts) if kind == "document" else minilm.embed(texts)


class Dense(BM25):
    tool_format = "name_desc"  # as DenseScorer has it, and better with this model than "documentation"

    def __init__(self) -> None:
        minilm.model()
        self._scorer = DenseScorer(_Encoder(), self.tool_format)


class DenseAsPublished(Dense):
    """All of a tool as one text, with its server's name."""

    tool_format = "documentation"


class Hybrid(BM25):
    def __init__(self) -> None:
        minilm.model()
        self._scorer = HybridScorer(DenseScorer(_Encoder(), Dense.tool_format), BM25Scorer())


def _as_theirs(tool: dict[str, Any]) -> Tool:
    document = {"name": tool["local_name"], "description": tool["description"], "inputSchema": tool["input_schema"]}
    if tool["server"]:
        document = {"server": tool["server"], **document}
    return Tool(tool["name"], document, json.dumps(document, ensure_ascii=False), tool["server"])
