"""Rows of what searches find, and of what they should not have found."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean
from typing import Any

from benchmarks.agent_queries import STYLES
from benchmarks.figure_tables import markdown_table
from benchmarks.recall import READ

Tables = dict[str, list[str]]


def recall(figures: Mapping[str, Mapping[str, Mapping[str, float]]]) -> Tables:
    """recall@5 of all searches but those with a reader; and these beside the same without it."""
    systems = [system for system in next(iter(figures.values())) if not system.endswith(READ)]
    rows = [[name, *(f"{judged[system]['recall_5']:.3f}" for system in systems)] for name, judged in figures.items()]
    means = [fmean(judged[system]["recall_5"] for judged in figures.values()) for system in systems]
    table = markdown_table(["set", *systems], [*rows, ["mean", *(f"{mean:.3f}" for mean in means)]])
    return {"recall": table, "recall, read": _read(figures, "set")}


def agent_queries(figures: Mapping[str, Mapping[str, Mapping[str, Mapping[str, float]]]]) -> Tables:
    """recall@5 in each style of asking: of queries in the tool's words, in synonyms, and of the need behind them.

    But for those with a reader, which stand beside the same without it, over all styles.
    """
    columns = (*STYLES, "all")
    rows = [
        [name, strategy, *(f"{judged[style]['recall_5']:.3f}" if style in judged else "-" for style in columns)]
        for name, by_strategy in figures.items()
        for strategy, judged in by_strategy.items()
        if not strategy.endswith(READ)
    ]
    of_all = {name: {system: judged["all"] for system, judged in each.items()} for name, each in figures.items()}
    return {
        "agent queries": markdown_table(["catalogue", "search", *columns], rows),
        "agent queries, read": _read(of_all, "catalogue"),
    }


def _read(figures: Mapping[str, Mapping[str, Mapping[str, float]]], what: str) -> list[str]:
    """recall@1 and recall@5 of each search that has a reader: without it, and with it."""
    read = [system for system in next(iter(figures.values())) if system.endswith(READ)]
    pairs = [(each, measure) for each in read for measure in ("recall_1", "recall_5")]
    columns = [(system, measure) for each, measure in pairs for system in (each.removesuffix(READ), each)]
    head = [f"{system} @{measure[-1]}" for system, measure in columns]
    values = {name: [judged[system][measure] for system, measure in columns] for name, judged in figures.items()}
    values["mean"] = [fmean(column) for column in zip(*values.values(), strict=True)]
    return markdown_table([what, *head], [[name, *(f"{one:.3f}" for one in of)] for name, of in values.items()])


def abstention(figures: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Tables:
    """Over all sets. Shares of the requests that no tool serves, then of those that a tool serves."""
    over_all = figures["all sets"]
    kinds = list(next(iter(over_all.values()))["answered_by_kind"])
    rows = [
        [
            system,
            *(_percent(of["answered"]), *(_percent(of["answered_by_kind"][kind]) for kind in kinds)),
            *(_percent(of[name]) for name in ("fitting", "sure", "refused", "weak", "unsure")),
        ]
        for system, of in over_all.items()
    ]
    asked = [kind.replace("_", " ") for kind in kinds]
    of_others = ["refused", "weak", "not with high confidence"]
    head = ["search", "answered", *asked, "not weak", "with high confidence", *of_others]
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
