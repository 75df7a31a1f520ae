"""The picture of the README: what a conversation sends with and without a search tool, and what a search takes.

    python -m benchmarks.picture [--latency FILE] [--to FOLDER]

The conversation is that of ``toolsearch demo``, played anew; the times are what ``benchmarks.latency`` has stored.
Written twice, for a light and a dark page; the same input gives the same bytes.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from benchmarks.results import read_figures
from toolsearch.catalog.catalog import Catalog
from toolsearch.cli import demo_story as story
from toolsearch.session import Session

_FIGURES = Path(__file__).parent / "figures"


@dataclass(frozen=True, slots=True)
class Colours:
    """Of one page; the two lines differ in lightness too, for those who do not tell the colours apart."""

    text: str
    grid: str
    ours: str
    other: str


PAGES = {
    "light": Colours(text="#1f2328", grid="#d1d9e0", ours="#0969da", other="#bc4c00"),
    "dark": Colours(text="#f0f6fc", grid="#3d444d", ours="#4493f8", other="#f0883e"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    latency: list[dict[str, Any]] = read_figures(options.latency)
    conversation = play()
    options.to.mkdir(parents=True, exist_ok=True)
    for page, colours in PAGES.items():
        _save(draw(conversation, latency, colours), options.to / f"picture-{page}.svg")
    return 0


@dataclass(frozen=True, slots=True)
class Conversation:
    """Tokens of tools that were sent up to each request, with a search tool and with every definition.

    With every definition, the requests that only search would not have been made, and add nothing.
    """

    tools: int
    sent: list[int]
    every: list[int]


def play() -> Conversation:
    """Play the demo's conversation, twice: once for the model's part, once to count after each request."""
    with closing(Catalog()) as catalog:
        story.load_standard_library(catalog)
        with story.open_engine(catalog, None) as engine:
            exchanges = asyncio.run(story.converse(engine, engine.session("played")))
            return Conversation(len(catalog), *asyncio.run(_replay(exchanges, engine.session("counted"))))


async def _replay(exchanges: Sequence[story.StoryExchange], session: Session) -> tuple[list[int], list[int]]:
    sent: list[int] = []
    every: list[int] = []
    for exchange in exchanges:
        session.tools()
        if exchange.reply.get("tool_calls"):
            await session.execute(exchange.reply)
        else:
            session.end_turn()
        savings = session.savings()
        sent.append(savings.sent_tokens + savings.written_tokens)
        every.append(savings.all_tools_tokens)
    return sent, every


def draw(conversation: Conversation, latency: Sequence[Mapping[str, Any]], colours: Colours) -> Figure:
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    _draw_tokens(left, conversation, colours)
    _draw_latency(right, latency, colours)
    return figure


def _draw_tokens(axes: Axes, conversation: Conversation, colours: Colours) -> None:
    sent, every = conversation.sent, conversation.every
    requests = range(1, len(sent) + 1)
    axes.plot(requests, every, color=colours.other, marker="s", markersize=4)
    axes.plot(requests, sent, color=colours.ours, marker="o", markersize=4)
    _label(axes, (requests[-1], every[-1]), f"every definition: {every[-1]:,}", colours.other)
    _label(axes, (requests[-1], sent[-1]), f"with toolSearchTool: {sent[-1]:,}", colours.ours)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda tokens, _: f"{tokens / 1_000:,.0f}k"))
    axes.set_xticks(requests)
    axes.set_ylim(0, max(every) * 1.18)
    _finish(axes, f"Tokens of tools sent so far, of {conversation.tools} tools", "model request", colours)


def _draw_latency(axes: Axes, latency: Sequence[Mapping[str, Any]], colours: Colours) -> None:
    for what, name, colour, marker in (
        ("rank-bm25", "rank-bm25", colours.other, "s"),
        ("keyword", "toolsearch, keyword", colours.ours, "o"),
    ):
        points = [(figure["tools"], figure["median_ms"]) for figure in latency if figure["what"] == what]
        axes.plot(*zip(*points, strict=True), color=colour, marker=marker, markersize=4)
        _label(axes, points[-1], name, colour)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(bottom=0.01, top=200)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda tools, _: f"{tools:,.0f}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda ms, _: f"{ms:g}"))
    _finish(axes, "CPU milliseconds for one search, median", "tools in the catalog", colours)


def _label(axes: Axes, point: tuple[float, float], text: str, colour: str) -> None:
    axes.annotate(text, point, xytext=(0, 8), textcoords="offset points", ha="right", color=colour, weight="bold")


def _finish(axes: Axes, title: str, x_label: str, colours: Colours) -> None:
    axes.set_title(title, color=colours.text, fontsize=11, loc="left")
    axes.set_xlabel(x_label, color=colours.text)
    axes.tick_params(colors=colours.text, which="both")
    axes.grid(color=colours.grid, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_facecolor("none")
    for name, spine in axes.spines.items():
        spine.set_visible(name in ("left", "bottom"))
        spine.set_color(colours.grid)


def _save(figure: Figure, path: Path) -> None:
    # Without a date and with a fixed salt for its ids, the file changes only if the picture does.
    with mpl.rc_context({"svg.hashsalt": "toolsearch"}):
        figure.savefig(path, transparent=True, metadata={"Date": None})


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.picture", description=__doc__.partition("\n")[0])
    parser.add_argument("--latency", type=Path, default=_FIGURES / "latency.json", help="what benchmarks.latency wrote")
    parser.add_argument("--to", type=Path, default=_FIGURES, help="the folder for the pictures")
    return parser


if __name__ == "__main__":
    sys.exit(main())
