"""Rows of what searches, loops, the gateway and answers take, in time, memory and tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from benchmarks import gateway_faults, growth, large, pgvector, prompt_cache
from benchmarks.figure_tables import markdown_table
from benchmarks.pages.quality import Tables
from toolsearch.wire.formats import TOOL_FORMATS

Row = Mapping[str, Any]


def latency(figures: Sequence[Row]) -> Tables:
    """Medians, a column for each size; what was not run at a size is left free."""
    median_ms = {(each["what"], each["tools"]): each["median_ms"] for each in figures}
    sizes = sorted({each["tools"] for each in figures} - {0})
    searches = dict.fromkeys(each["what"] for each in figures if each["tools"])
    rows = [[what, *(rounded_ms(median_ms.get((what, size))) for size in sizes)] for what in searches]
    without = [[each["what"], rounded_ms(each["median_ms"])] for each in figures if not each["tools"]]
    return {
        "latency": markdown_table(["", *(f"{size:,}" for size in sizes)], rows),
        "latency without tools": markdown_table(["", "CPU ms"], without),
    }


def rounded_ms(milliseconds: float | None) -> str:
    if milliseconds is None:
        return ""
    return f"{milliseconds:,.2f}" if milliseconds < 10 else f"{milliseconds:,.0f}"


def growing(figures: Row) -> Tables:
    return {f"growth, {name}": markdown_table(*table) for name, table in growth.tables(figures).items()}


def large_catalogues(figures: Sequence[dict[str, Any]]) -> Tables:
    return {"large": markdown_table(*large.table(figures))}


def in_pgvector(figures: dict[str, Any]) -> Tables:
    return {"pgvector": markdown_table(*pgvector.table(figures))}


def overhead(figures: Sequence[Row]) -> Tables:
    rows = [
        [each["loop"], *(f"{each[name]:,.0f}" for name in ("answer_us", "round_us", "call_us"))] for each in figures
    ]
    head = ["loop", "an answer without calls", "one more round with a call", "one more call in a round"]
    return {"overhead": markdown_table(head, rows)}


def prompt_caches(figures: Row) -> Tables:
    return {"prompt cache": markdown_table(prompt_cache.COLUMNS, map(prompt_cache.cells, figures["rows"]))}


def answers(figures: Row) -> Tables:
    """Each catalogue and each kind of task, before a change if it was measured, and now."""
    head = ["", "", "right tool loaded", "right tool named", "tools loaded", "tokens of answers", "tokens in all"]
    formats = (*figures["now"]["search_tool"],)
    of_tool = [[when, *(f"{of['search_tool'][name]:,}" for name in formats)] for when, of in figures.items()]
    exposed = [
        [name, f"{of['mean']:,.0f}", f"{of['largest']:,}"] for name, of in figures["now"].get("exposures", {}).items()
    ]
    return {
        "answers": markdown_table(head, _answer_rows(figures)),
        "answers by exposure": markdown_table(["exposure", "mean tokens of an answer", "largest"], exposed),
        "search tool": markdown_table(["", *formats], of_tool),
    }


def _answer_rows(figures: Row) -> Iterator[list[str]]:
    for part in ("searches", "tasks"):
        for name in figures["now"][part]:
            for when, of in figures.items():
                if row := of[part].get(name):
                    shares = [f"{row[key]:.3f}" for key in ("right_loaded", "right_named")]
                    means = [f"{row['tools_loaded']:.1f}", *(f"{row[key]:,.0f}" for key in ("answer_tokens", "tokens"))]
                    yield [name, when, *shares, *means]


def faults(figures: Sequence[Row]) -> Tables:
    names = [field.name for field in fields(gateway_faults.Row)]
    rows = [gateway_faults.Row(**{name: each[name] for name in names}) for each in figures]
    return {"gateway faults": markdown_table(gateway_faults.COLUMNS, map(gateway_faults.cells, rows))}


def clients(figures: Mapping[str, Any]) -> Tables:
    """What one question costs in each coding agent, over two servers and over 300 tools."""
    columns = [
        "",
        *(f"{what}, {way}" for what in ("requests", "failed calls", "tokens") for way in ("direct", "gateway")),
    ]
    tables: Tables = {}
    for task in ("time", "many"):
        rows: list[list[str]] = []
        for name, agent in figures.items():
            ways = [agent["tasks"][task][way] for way in ("direct", "gateway")]
            cells = [f"{way[what]:,}" for what in ("rounds", "failed_calls", "tokens") for way in ways]
            rows.append([f"{name} {agent['version']}", *cells])
        tables[f"clients, {task}"] = markdown_table(columns, rows)
    return tables


def clients_search(figures: Mapping[str, Mapping[str, float]]) -> Tables:
    columns = ["", "servers attached directly", "`whole`", "the gateway's search"]
    rows = [[name, *(f"{found[way]:.3f}" for way in ("direct", "whole", "fixed"))] for name, found in figures.items()]
    return {"clients, search": markdown_table(columns, rows)}


def wild(figures: Mapping[str, Row]) -> Tables:
    """The sums: of a list of which nobody is to look at single servers, they are all that is told."""
    columns = ["", "loaded", "tools", "refused", "cut names", *TOOL_FORMATS, "held by the scan", "get requests"]
    rows = [
        [
            name,
            found["sum"]["name"],
            *(f"{found['sum'][what]:,}" for what in ("tools", "refused", "cut")),
            *(f"{found['sum']['listed'][wire]:,} / {found['sum']['sent'][wire]:,}" for wire in TOOL_FORMATS),
            *(f"{found['sum'][what]:,}" for what in ("held", "found")),
        ]
        for name, found in figures.items()
    ]
    return {"wild": markdown_table(columns, rows)}


def scanning(figures: Mapping[str, Row]) -> Tables:
    columns = ["", "poisoned texts", "held", "harmless texts", "held"]
    rows = [[name, *_held(found["poisoned"]), *_held(found["harmless"])] for name, found in figures.items()]
    return {"scanning": markdown_table(columns, [row for row in rows if not row[0].startswith("technique")])}


def _held(texts: Row) -> list[str]:
    return [f"{texts['texts']:,}", f"{100 * texts['held']:.0f}%"] if texts["texts"] else ["", ""]


def gateway_start(figures: Mapping[str, Mapping[str, float]]) -> Tables:
    rows = [
        [name, *(f"{seconds[step]:.2f}" for step in ("handshake", "first list"))] for name, seconds in figures.items()
    ]
    return {"gateway start": markdown_table(["", "handshake, s", "first list, s"], rows)}


def gateway_load(figures: Row) -> Tables:
    rows = [
        [what, *(f"{figures[f'{what}_ms'][part]:,.1f}" for part in ("p50", "p99"))]
        for what in ("search", "direct", "proxied", "added")
    ]
    return {"gateway load": markdown_table(["", "p50 ms", "p99 ms"], rows)}
