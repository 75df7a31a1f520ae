"""Plots of stored figures as SVG files for a page, with a legend, a ground, and colours for light and dark.

A picture in a page follows the scheme of the reader's system, which need not be that of the page around it; on its own
ground it can be read either way. The same figures give the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any, Final

from toolsearch.bench.report_page import COLOURS, HEIGHT, SERIES, WIDTH, Curve, ReportPlot, as_svg

FOLDER: Final = "docs/images/figures"

_SVG: Final = "http://www.w3.org/2000/svg"
_TITLE: Final = 30  # what the title above a plot takes, in units of the plot
_LINE: Final = 18  # and each line of the legend below
_EDGE: Final = 12

_STYLE: Final = """
svg { overflow: visible; }
text { font: 13px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
.title { font-weight: 600; }
.key, polyline { fill: none; stroke-width: 2; }
.limit polyline, .limit .key { stroke-dasharray: 5 4; }
"""


def pictures(stored: Mapping[str, Any]) -> dict[str, str]:
    """By the name of the file, what is drawn of *stored*: figures by the stem of their file."""
    plots: dict[str, ReportPlot] = {}
    if growth := stored.get("growth"):
        plots |= _growth_plots(growth)
    if latency := stored.get("latency"):
        plots["search-real.svg"] = _latency_plot(latency)
    return {name: picture(plot) for name, plot in plots.items()}


def _growth_plots(growth: Mapping[str, Any]) -> Iterator[tuple[str, ReportPlot]]:
    by_strategy = {
        strategy: [each for each in growth["searches"] if each["strategy"] == strategy]
        for strategy in dict.fromkeys(each["strategy"] for each in growth["searches"])
    }
    for strategy, points in by_strategy.items():
        curves = (
            _curve(strategy, points, "tools", "median_ms"),
            _curve("reading what it has to read", points, "tools", "least_ms", is_limit=True),
        )
        yield f"search-{strategy}.svg", _plot(f"A search, {strategy}: CPU ms", "tools", curves)
    curves = (
        _curve("the index", growth["indexes"], "tools", "memory_mib"),
        _curve("texts and vectors alone", growth["indexes"], "tools", "least_mib", is_limit=True),
    )
    yield "memory.svg", _plot("Memory of an index: MiB", "tools", curves)
    sessions = growth["sessions"]
    curves = (
        _curve("opening it and one search", sessions, "sessions", "us_each"),
        _curve("that search of the index alone", sessions, "sessions", "least_us", is_limit=True),
    )
    yield "session-time.svg", _plot("A session: CPU µs", "sessions", curves)
    curves = (
        _curve("a session", sessions, "sessions", "kib_each"),
        _curve("the names that it has to keep", sessions, "sessions", "least_kib", is_limit=True),
    )
    yield "session-memory.svg", _plot("Memory of a session: KiB", "sessions", curves)


def _latency_plot(latency: Sequence[Mapping[str, Any]]) -> ReportPlot:
    curves = [
        _curve(what, [each for each in latency if each["what"] == what], "tools", "median_ms")
        for what in ("rank-bm25", "keyword", "hybrid")
    ]
    return _plot("A search: CPU ms", "tools", curves)


def _curve(name: str, points: Iterable[Mapping[str, Any]], across: str, up: str, *, is_limit: bool = False) -> Curve:
    return Curve(name, tuple((each[across], each[up]) for each in points), is_limit)


def _plot(title: str, across: str, curves: Iterable[Curve]) -> ReportPlot:
    return ReportPlot(title, across, "", tuple(curves), is_log=True)


def picture(plot: ReportPlot) -> str:
    """An SVG file of *plot* that stands alone."""
    width, height = WIDTH + 3 * _EDGE, _TITLE + HEIGHT + _LINE * len(plot.curves) + 2 * _EDGE
    return "\n".join(
        [
            f'<svg xmlns="{_SVG}" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
            f"<style>{_style()}</style>",
            f'<rect class="ground" width="{width}" height="{height}" rx="8"/>',
            f'<text class="title" x="{_EDGE}" y="{_EDGE + 12}">{escape(plot.title)}</text>',
            f'<svg x="{_EDGE}" y="{_TITLE + _EDGE}" width="{WIDTH}" height="{HEIGHT}">{as_svg(plot)}</svg>',
            *(_key(curve, number) for number, curve in enumerate(plot.curves)),
            "</svg>\n",
        ]
    )


def _style() -> str:
    """Without variables, which not all that draw SVG know."""
    light = _colours({name: colour for name, (colour, _) in COLOURS.items()})
    dark = _colours({name: colour for name, (_, colour) in COLOURS.items()})
    return f"{_STYLE}{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n"


def _colours(of: Mapping[str, str]) -> str:
    rules = [
        f"text {{ fill: {of['faint']}; }} .title {{ fill: {of['ink']}; }}",
        f".ground {{ fill: {of['ground']}; }} .grid {{ stroke: {of['edge']}; }}",
    ]
    for number in range(SERIES):
        kind, colour = f".series-{number}", of[f"series-{number}"]
        rules.append(f"{kind} polyline, {kind} .key {{ stroke: {colour}; }} {kind} circle {{ fill: {colour}; }}")
    return "\n".join(rules)


def _key(curve: Curve, number: int) -> str:
    y = _TITLE + HEIGHT + _EDGE + _LINE * number + 12
    line = f'<line class="key" x1="{_EDGE}" x2="{_EDGE + 26}" y1="{y - 4}" y2="{y - 4}"/>'
    kind = f"series-{number}{' limit' * curve.is_limit}"
    return f'<g class="{kind}">{line}<text x="{_EDGE + 34}" y="{y}">{escape(curve.name)}</text></g>'
