"""What toolrank has published for LiveMCPBench: its own figures, of models that were not run here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Published:
    """Of the same 94 tasks over 525 tools; here there are 527, of another state of the data."""

    name: str
    recall_5: float
    recall_10: float
    ndcg_10: float
    source: str


_TABLE: Final = "yasinyaman/toolrank 42f0dc2, docs/benchmarks.md and docs/results"
_RERANKED: Final = "yasinyaman/toolrank 42526c8, docs/reports/faz2-rerank.md"

PUBLISHED: Final = (
    Published("BM25, no stemming", 0.3168, 0.3904, 0.3208, _TABLE),
    Published("BM25, with an instruction", 0.2292, 0.3141, 0.2538, _TABLE),
    Published("Qwen3-Embedding-8B", 0.5082, 0.6109, 0.5374, _TABLE),
    Published("Qwen3-Embedding-8B, toolrank heads", 0.5303, 0.6166, 0.5395, _TABLE),
    Published("Qwen3-Embedding-8B in FP8, toolrank heads", 0.5348, 0.6294, 0.5491, _TABLE),
    Published("toolrank backbone 0.2, 8B", 0.5206, 0.6334, 0.5574, _TABLE),
    Published("toolrank backbone 0.2, 8B in FP8", 0.5206, 0.6339, 0.5534, _TABLE),
    Published("toolrank heads, then Qwen3-Reranker-8B", 0.6284, 0.7168, 0.6268, _RERANKED),
    Published("toolrank backbone 0.2, then Qwen3-Reranker-8B", 0.6106, 0.7047, 0.6124, _RERANKED),
)
