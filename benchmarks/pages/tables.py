"""The tables of figures by name, out of each stored file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from benchmarks import (
    ablation,
    anticipation,
    enrichment,
    gateway_daemon,
    languages,
    out_of_scope,
    proxy,
    published_savings,
    reading,
    savings,
    service_load,
    service_scaling,
    skills,
    unseen,
)
from benchmarks.pages import costs, quality
from benchmarks.pages.quality import Tables
from benchmarks.peers.tables import learnt_tables, page_tables

OF_FILE: Final[Mapping[str, Callable[[Any], Tables]]] = {
    "recall": lambda figures: quality.recall(figures) | learnt_tables(figures),
    "agent_queries": quality.agent_queries,
    "unseen": unseen.page_tables,
    "enrichment": enrichment.page_tables,
    "ablation": ablation.page_tables,
    "languages": languages.page_tables,
    "abstention": quality.abstention,
    "out_of_scope": out_of_scope.page_tables,
    "reading": reading.page_tables,
    "peers": page_tables,
    "usage": quality.usage,
    "answers": costs.answers,
    "prompt_cache": costs.prompt_caches,
    "savings": savings.page_tables,
    "published_savings": published_savings.page_tables,
    "skills": skills.page_tables,
    "anticipation": anticipation.page_tables,
    "latency": costs.latency,
    "growth": costs.growing,
    "large": costs.large_catalogues,
    "pgvector": costs.in_pgvector,
    "overhead": costs.overhead,
    "gateway_faults": costs.faults,
    "clients": costs.clients,
    "clients_search": costs.clients_search,
    "wild": costs.wild,
    "scanning": costs.scanning,
    "gateway_start": costs.gateway_start,
    "gateway_daemon": gateway_daemon.page_tables,
    "gateway_load": costs.gateway_load,
    "proxy": proxy.page_tables,
    "service_stores": service_load.stored_tables,
    "service_scaling": service_scaling.tables,
}


def tables(stored: Mapping[str, Any]) -> Tables:
    """Those of *stored*, figures by the stem of their file; a file that is not there has none."""
    made = [OF_FILE[stem](figures) for stem, figures in stored.items() if stem in OF_FILE]
    return {name: rows for each in made for name, rows in each.items()}
