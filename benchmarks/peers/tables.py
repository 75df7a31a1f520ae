"""The tables of the page and of the terminal, out of stored figures."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any

from benchmarks.figure_tables import markdown_table
from benchmarks.peers.catalogues import BY_THEMSELVES, LIVEMCP, NAMES_ONLY
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


def page_tables(figures: Mapping[str, Any]) -> dict[str, list[str]]:
    """The tables of the pages, by their names."""
    catalogues = figures["catalogues"]
    tables = {
        f"peers, {name}": markdown_table(COLUMNS, with_published(name, catalogue))
        for name, catalogue in catalogues.items()
    }
    tables["peers, recall@5"] = markdown_table(("", *map(_title, catalogues)), _compared(catalogues))
    tables["peers, versions"] = markdown_table(("package", "Python", "and for its vectors"), _versions(figures))
    return tables


def _title(catalogue: str) -> str:
    return f"{int(catalogue):,} tools" if catalogue.isdecimal() else catalogue


def _compared(catalogues: Mapping[str, Any]) -> list[list[str]]:
    """Of the systems that more than one catalogue was asked with."""
    asked = [catalogue["systems"] for catalogue in catalogues.values()]
    return [
        [name, *(_cell(systems.get(name, {}), "recall_5", "{:.3f}") for systems in asked)]
        for name in SYSTEMS
        if sum(name in systems for systems in asked) > 1
    ]


def learnt_tables(recall: Mapping[str, Any]) -> dict[str, list[str]]:
    """What ours finds with encoders that have learnt more or less of the sets, as `benchmarks.recall` has stored it."""
    sets = [systems for name, systems in recall.items() if name not in NAMES_ONLY]
    rows = [
        [
            system,
            f"{statistics.mean(each[system]['recall_5'] for each in sets):.3f}",
            *(f"{recall[name][system]['recall_5']:.3f}" for name in BY_THEMSELVES),
        ]
        for system in LEARNT
    ]
    return {"learnt": markdown_table(("system", "mean of seven sets", *BY_THEMSELVES), rows)}


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
