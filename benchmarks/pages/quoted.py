"""The sentences of pages in which stored figures stand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from benchmarks.pages.sentences import Sentence

_FIGURES: Final = "docs/figures.md"
_ENCODERS: Final = "docs/encoders.md"
_READER: Final = "docs/reader.md"
_LARGE: Final = "docs/large-catalogs.md"
_SAVINGS: Final = "docs/figures-savings.md"
_QUESTION: Final = "claude-opus-5-5, question"

SENTENCES: Final[Sequence[Sentence]] = (
    Sentence(
        _FIGURES,
        "agent_queries",
        "keyword search finds {*/keyword/all/recall_5:.3f} and hybrid {*/hybrid/all/recall_5:.3f}, with the transformer"
        " {*/hybrid (transformer)/all/recall_5:.3f}",
    ),
    Sentence(
        _FIGURES,
        "recall",
        "With the transformer hybrid search finds {*/hybrid (transformer)/recall_5:.3f} on average",
    ),
    Sentence(
        _ENCODERS,
        "recall",
        "hybrid search with it finds {*/hybrid (transformer)/recall_5:.3f} where the built-in encoder finds"
        " {*/hybrid (left out)/recall_5:.3f}",
    ),
    Sentence(
        _ENCODERS,
        "agent_queries",
        "short queries as agents write them it finds {*/hybrid (transformer)/all/recall_5:.3f}, and the built-in "
        "encoder {*/hybrid/all/recall_5:.3f}",
    ),
    Sentence(
        _FIGURES,
        "abstention",
        "hybrid search without the set in question answers {all sets/hybrid (left out)/answered:.1%}",
    ),
    Sentence(
        _READER,
        "abstention",
        "with the built-in encoder {all sets/hybrid, read/answered:.0%} in place of {all sets/hybrid/answered:.0%},"
        " with the transformer {all sets/hybrid (transformer), read/answered:.0%} in place of"
        " {all sets/hybrid (transformer)/answered:.0%}.",
    ),
    Sentence(
        _READER,
        "reading",
        "It takes {loading/cpu_s:.2f} s of CPU time to load, and {loading/memory_mib:.0f} MiB of memory with what runs"
        " it.",
    ),
    Sentence(_FIGURES, "gateway_load", "There were {calls:,} calls and {searches:,} searches"),
    Sentence(
        _FIGURES,
        "gateway_load",
        "took {rss_mib/after_warm_up:.1f} MiB after the warm-up and {rss_mib/end:.1f} MiB at the end",
    ),
    Sentence(_FIGURES, "gateway_load", "the load of {concurrent:,} sessions over HTTP"),
    Sentence(_SAVINGS, "savings", f"**14 tools, {{filesystem server, 14, {_QUESTION}/tokens:,}} tokens: no.**"),
    Sentence(_SAVINGS, "savings", f"**50 tools, {{five MCP servers, 50, {_QUESTION}/tokens:,}} tokens: it depends"),
    Sentence(_SAVINGS, "savings", f"**From 100 tools, {{github, 100, {_QUESTION}/tokens:,}} tokens: yes**"),
    Sentence(
        _FIGURES,
        "service_stores",
        "answers takes {loads/constant, 0, 1, sqlite, 1/cpu_ms:.2f}, a search over 1,000 tools "
        "{loads/search, 1000, 1, sqlite, 1/cpu_ms:.2f}, of which the engine takes "
        "{loads/search, 1000, 1, sqlite, 1/engine_ms:.2f}, and one over 36,900 tools "
        "{loads/search, 36900, 1, sqlite, 1/cpu_ms:.1f}.",
    ),
    Sentence(
        _LARGE,
        "pgvector",
        "takes {hnsw_build_s:.1f} s of CPU to build (the codes take less than a second), {hnsw_bytes_per_tool:,} bytes "
        "for a tool, and {table_bytes_per_tool:,} more for the table",
    ),
)
