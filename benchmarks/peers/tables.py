"""The tables of the page and of the terminal, out of stored figures."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.peers.catalogues import LIVEMCP, NAMES_ONLY
from benchmarks.peers.published import PUBLISHED
from benchmarks.peers.systems import SYSTEMS
from benchmarks.peers.verdicts import published_verdict, verdict

COLUMNS = ("system", "recall@1", "recall@5", "recall@10", "nDCG@10", "CPU ms a search", "CPU s to index", "ours")
LEARNT = ("keyword", "hybrid", "hybrid (left out)", "hybrid (minilm)")
_QUALITIES = ("recall_1", "recall_5", "recall_10", "ndcg_10")


def rows_of(catalogue: Mapping[str, Any]) -> list[list[str]]:
    """A row for each system; in the last cell whether ours is ahead, or why not."""
    systems = catalogue["systems"]
    return [
        [
            name,
            *(_cell(row, quality, "{:.3f}") for quality in _QUALITIES),
            _cell(row, "query_ms", "{:,.2f}"),
            _cell(row, "index_s", "{:,.2f}"),
            "" if SYSTEMS[name].is_ours and "missing" not in row else verdict(name, systems),
        ]
        for name, row in systems.items()
    ]


def published_rows(catalogue: Mapping[str, Any]) -> list[list[str]]:
    return [
        [
            f"{row.name} (published)",
            "",
            *(f"{value:.3f}" for value in (row.recall_5, row.recall_10, row.ndcg_10)),
            "",
            "",
            published_verdict(row, catalogue["systems"]),
        ]
        for row in PUBLISHED
    ]


def with_published(name: str, catalogue: Mapping[str, Any]) -> list[list[str]]:
    return rows_of(catalogue) + (published_rows(catalogue) if name == LIVEMCP else [])


def page_tables(figures: Mapping[str, Any], recall: Mapping[str, Any]) -> dict[str, list[str]]:
    """The rows of the page's tables, by their names. *recall* is what `benchmarks.recall` has stored."""
    tables = {
        name: [_line(row) for row in with_published(name, catalogue)]
        for name, catalogue in figures["catalogues"].items()
    }
    tables["learnt"] = [_line(row) for row in _learnt(recall)]
    tables["versions"] = [_line(row) for row in _versions(figures)]
    return tables


def _learnt(recall: Mapping[str, Any]) -> list[list[str]]:
    """What ours finds with encoders that have learnt more or less from the sets."""
    sets = [systems for name, systems in recall.items() if name not in NAMES_ONLY]
    return [
        [
            system,
            f"{statistics.mean(each[system]['recall_5'] for each in sets):.3f}",
            f"{recall[LIVEMCP][system]['recall_5']:.3f}",
        ]
        for system in LEARNT
    ]


def _versions(figures: Mapping[str, Any]) -> list[list[str]]:
    """A row for each environment: the first package is the peer, the others are its models'."""
    rows = []
    for environment in figures["environments"].values():
        peer, *models = environment["requires"]
        rows.append(
            [peer.replace("==", " "), environment["python"], ", ".join(each.replace("==", " ") for each in models)]
        )
    return rows


def _cell(row: Mapping[str, Any], name: str, form: str) -> str:
    return form.format(row[name]) if name in row else "-"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
