"""The sentences of pages in which stored figures stand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from benchmarks.pages.sentences import Sentence

_SEARCH: Final = "benchmarks/search.md"
_SPEED: Final = "benchmarks/speed.md"
_GATEWAY: Final = "benchmarks/gateway.md"
_SCALING: Final = "benchmarks/scaling.md"
_SAVINGS: Final = "benchmarks/savings.md"
_EVIDENCE: Final = "docs/evidence.md"
_ENCODERS: Final = "docs/encoders.md"
_READER: Final = "docs/reader.md"
_QUESTION: Final = "claude-opus-5-5, question"

SENTENCES: Final[Sequence[Sentence]] = (
    Sentence(
        _EVIDENCE,
        "recall",
        "| eight labelled sets of public data | {*/keyword/recall_5:.3f} | {*/hybrid (left out)/recall_5:.3f} |",
    ),
    Sentence(
        _EVIDENCE,
        "agent_queries",
        "| short queries of agents over real tools | {*/keyword/all/recall_5:.3f} | {*/hybrid/all/recall_5:.3f} |",
    ),
    Sentence(
        _EVIDENCE,
        "unseen",
        "right tool among the first five for {hybrid, shipped, agent/right_5:.0%} of the agents' requests, and for "
        "{hybrid, shipped, plain/right_5:.0%} of plain requests of users",
    ),
    Sentence(
        _EVIDENCE,
        "abstention",
        "Hybrid search still finds tools for {all sets/hybrid (left out)/answered:.0%} of these requests. Most of "
        "these answers are marked as [weak](scores.md): only {all sets/hybrid (left out)/fitting:.0%} of the requests "
        "get an answer that is not weak. Requests that a tool serves get no answer in "
        "{all sets/hybrid (left out)/refused:.1%} of the cases.",
    ),
    Sentence(_EVIDENCE, "savings", f"| 14 tools, {{filesystem server, 14, {_QUESTION}/tokens:,}} tokens |"),
    Sentence(_EVIDENCE, "savings", f"| 50 tools, {{five MCP servers, 50, {_QUESTION}/tokens:,}} tokens |"),
    Sentence(_EVIDENCE, "savings", f"| from 100 tools, {{github, 100, {_QUESTION}/tokens:,}} tokens |"),
    Sentence(
        _EVIDENCE,
        "latency",
        "A hybrid search over 1,000 tools takes {1000, hybrid/median_ms:.2f} ms of CPU time, and over 36,900 tools "
        "{36900, hybrid/median_ms:.2f} ms.",
    ),
    Sentence(
        _EVIDENCE,
        "service_stores",
        "The service needs {loads/search, 1000, 1, sqlite, 1/cpu_ms:.1f} ms of CPU time for a search over 1,000 tools",
    ),
    Sentence(_EVIDENCE, "large", "One process searches 200,000 tools in {200000/search_ms/hybrid/median:.1f} ms"),
    Sentence(
        _EVIDENCE,
        "gateway_load",
        "With {concurrent:,} sessions on two busy cores, the gateway added {added_ms/p50:.0f} ms to a call at the "
        "median, and {added_ms/p99:.0f} ms at the 99th percentile.",
    ),
    Sentence(
        _EVIDENCE,
        "proxy",
        "The proxy adds {added/*, begin, False/p50_ms:.0f} ms at the median to a request with 500 tools",
    ),
    Sentence(
        _EVIDENCE,
        "scanning",
        "It finds {hand c/poisoned/held:.0%} and {hand d/poisoned/held:.0%} of two writers' poisoned texts, and "
        "reports {hand c/harmless/held:.0%} and {hand d/harmless/held:.0%} of their harmless texts",
    ),
    Sentence(
        _SEARCH,
        "agent_queries",
        "keyword search finds {*/keyword/all/recall_5:.3f} and hybrid {*/hybrid/all/recall_5:.3f}, with the transformer"
        " {*/hybrid (transformer)/all/recall_5:.3f}",
    ),
    Sentence(
        _SEARCH,
        "recall",
        "With the transformer hybrid search finds {*/hybrid (transformer)/recall_5:.3f} on average",
    ),
    Sentence(
        _ENCODERS,
        "recall",
        "Hybrid search finds {*/hybrid (transformer)/recall_5:.3f} of the right tools among the first five with the "
        "transformer, and {*/hybrid (left out)/recall_5:.3f} with the built-in encoder.",
    ),
    Sentence(
        _SEARCH,
        "abstention",
        "hybrid search without the set in question answers {all sets/hybrid (left out)/answered:.1%}",
    ),
    Sentence(
        _READER,
        "abstention",
        "Of the requests that no tool serves, {all sets/hybrid, read/answered:.0%} get an answer with a reader, and "
        "{all sets/hybrid/answered:.0%} without it.",
    ),
    Sentence(
        _READER,
        "reading",
        "With a reader, a search takes about {rows/all catalogues, hybrid, read/median_ms:.0f} ms of CPU time",
    ),
    Sentence(
        _READER,
        "reading",
        "Loading takes {loading/cpu_s:.2f} s of CPU time and {loading/memory_mib:.0f} MiB of memory.",
    ),
    Sentence(_GATEWAY, "gateway_load", "There were {calls:,} calls and {searches:,} searches"),
    Sentence(
        _GATEWAY,
        "gateway_load",
        "took {rss_mib/after_warm_up:.1f} MiB after the warm-up and {rss_mib/end:.1f} MiB at the end",
    ),
    Sentence(_GATEWAY, "gateway_load", "the load of {concurrent:,} sessions over HTTP"),
    Sentence(_SAVINGS, "savings", f"**14 tools, {{filesystem server, 14, {_QUESTION}/tokens:,}} tokens: no.**"),
    Sentence(_SAVINGS, "savings", f"**50 tools, {{five MCP servers, 50, {_QUESTION}/tokens:,}} tokens: it depends"),
    Sentence(_SAVINGS, "savings", f"**From 100 tools, {{github, 100, {_QUESTION}/tokens:,}} tokens: yes**"),
    Sentence(
        _SCALING,
        "service_stores",
        "answers takes {loads/constant, 0, 1, sqlite, 1/cpu_ms:.2f}, a search over 1,000 tools "
        "{loads/search, 1000, 1, sqlite, 1/cpu_ms:.2f}, of which the engine takes "
        "{loads/search, 1000, 1, sqlite, 1/engine_ms:.2f}, and one over 36,900 tools "
        "{loads/search, 36900, 1, sqlite, 1/cpu_ms:.1f}.",
    ),
    Sentence(
        "docs/scaling.md",
        "service_stores",
        "A search over 10,000 tools takes {loads/search, 10000, 50, postgres, 1/cpu_ms:.1f} ms of processor time.",
    ),
    Sentence(
        _SPEED,
        "pgvector",
        "takes {hnsw_build_s:.1f} s of CPU to build (the codes take less than a second), {hnsw_bytes_per_tool:,} bytes "
        "for a tool, and {table_bytes_per_tool:,} more for the table",
    ),
)
