"""Rows of what searches find, and of what they should not have found."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean
from typing import Any

from benchmarks.agent_queries import STYLES
from benchmarks.figure_tables import markdown_table

Tables = dict[str, list[str]]


def recall(figures: Mapping[str, Mapping[str, Mapping[str, float]]]) -> Tables:
    systems = list(next(iter(figures.values())))
    rows = [[name, *(f"{judged[system]['recall_5']:.3f}" for system in systems)] for name, judged in figures.items()]
    means = [fmean(judged[system]["recall_5"] for judged in figures.values()) for system in systems]
    return {"recall": markdown_table(["set", *systems], [*rows, ["mean", *(f"{mean:.3f}" for mean in means)]])}


def agent_queries(figures: Mapping[str, Mapping[str, Mapping[str, Mapping[str, float]]]]) -> Tables:
    """recall@5 in each style of asking, of queries in the tool's words, in synonyms, and of the need behind them."""
    columns = (*STYLES, "all")
    rows = [
        [name, strategy, *(f"{judged[style]['recall_5']:.3f}" if style in judged else "-" for style in columns)]
        for name, by_strategy in figures.items()
        for strategy, judged in by_strategy.items()
    ]
    return {"agent queries": markdown_table(["catalogue", "search", *columns], rows)}


def abstention(figures: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Tables:
    """Over all sets. Shares of the requests that no tool serves, then of those that a tool serves."""
    over_all = figures["all sets"]
    kinds = list(next(iter(over_all.values()))["answered_by_kind"])
    rows = [
        [
            system,
            *(_percent(of["answered"]), *(_percent(of["answered_by_kind"][kind]) for kind in kinds)),
            *(_percent(of[name]) for name in ("sure", "refused", "unsure")),
        ]
        for system, of in over_all.items()
    ]
    asked = [kind.replace("_", " ") for kind in kinds]
    head = ["search", "answered", *asked, "with high confidence", "refused", "with low confidence"]
    return {"abstention": markdown_table(head, rows)}


def usage(figures: Mapping[str, Any]) -> Tables:
    """recall@1 before and after use, and how many unrelated answers hold the tool that the strongest attack pushes."""
    rows: list[list[str]] = []
    for name, of in figures["sets"].items():
        gain, worst = of["gain"], max(of["attacks"], key=lambda each: each["share_after"] - each["share_before"])
        recalls = [f"{gain[when]['recall_1']:.3f}" for when in ("before", "after")]
        shares = [f"{worst[when]:.2%}" for when in ("share_before", "share_after")]
        rows.append([name, *recalls, worst["attack"], *shares])
    head = ["set", "recall@1 before", "after", "strongest attack", "in unrelated answers before", "after it"]
    return {"usage": markdown_table(head, rows)}


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"
