"""Reports of an evaluation: as JSON for programs that compare runs, and as a picture with bars.

Keys of the JSON are added, never renamed. The picture shows each measure by strategy, and the interval of recall@5.
"""

# pyright: reportUnknownMemberType=false
# matplotlib leaves the types of its **kwargs open.
from __future__ import annotations

from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolsearch.errors import BadSettingError, MissingExtraError
from toolsearch.evaluation.evaluation import Evaluation, FoundNames, Quality, StrategyResult
from toolsearch.tools.json_types import Json

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMAT = 1
_DIGITS = 4


def as_json(evaluation: Evaluation, *, misses: int = 10) -> dict[str, Json]:
    """Return the figures, at most *misses* of the main strategy's misses, and every answer; shares have four digits.

    A measure without queries of its kind is null. Found names are best first, expected ones sorted.
    """
    return {
        "format": FORMAT,
        "queries": {
            "all": len(evaluation.queries),
            "answerable": evaluation.answerable,
            "proposed": evaluation.proposed,
        },
        "strategies": [_figures(result) for result in evaluation.strategies],
        "misses": [_answer(miss) for miss in evaluation.main.misses(misses)],
        "answers": {
            result.strategy: [_answer(answer) for answer in result.answers] for result in evaluation.strategies
        },
    }


def _figures(result: StrategyResult) -> dict[str, Json]:
    measured = asdict(result.quality) if result.quality else dict.fromkeys(field.name for field in fields(Quality))
    interval = result.recall_5_interval
    return {
        "strategy": result.strategy,
        **{measure: _rounded(value) for measure, value in measured.items()},
        "recall_5_interval": [_rounded(end) for end in interval] if interval else None,
        "answered_wrongly": _rounded(result.answered_wrongly),
        "refused_wrongly": _rounded(result.refused_wrongly),
    }


def _answer(answer: FoundNames) -> dict[str, Json]:
    query = answer.query
    return {
        "query": query.text,
        "expected": sorted(query.relevant),
        "found": list(answer.found),
        "ndcg_10": _rounded(answer.ndcg_10),
        "proposed": query.is_proposed,
    }


def _rounded(share: float | None) -> float | None:
    return None if share is None else round(share, _DIGITS)


_LABELS = {
    "recall_1": "recall@1",
    "recall_5": "recall@5",
    "recall_10": "recall@10",
    "ndcg_10": "nDCG@10",
    "mrr_10": "MRR@10",
}

_COLOURS = ("#0969da", "#bc4c00", "#57606a")  # the colours differ in lightness, too, for colour-blind readers
_GROUP_WIDTH = 0.8  # the share of a measure's room that its bars fill


def check_picture(path: Path) -> None:
    """Raise BadSettingError or MissingExtraError before any work is done, if `draw` would, whatever the queries are."""
    if path.suffix.lower() not in (".png", ".svg"):
        raise BadSettingError(f"cannot draw {path}: name a file that ends in .png or .svg")
    try:
        import matplotlib  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ImportError as error:
        raise MissingExtraError("drawing", "plot") from error


def draw(evaluation: Evaluation, path: Path) -> None:
    """Write the picture to *path* in the format of its ending. The same evaluation gives the same bytes.

    Raises BadSettingError for another ending than .png or .svg, or if there is no query that a tool fits, and
    MissingExtraError without matplotlib.
    """
    check_picture(path)
    if not evaluation.answerable:
        raise BadSettingError("there is nothing to draw: no query has a tool that fits")
    import matplotlib as mpl
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4), layout="constrained")
    axes: Axes = figure.subplots()
    for place, result in enumerate(evaluation.strategies):
        _draw_bars(axes, result, place, len(evaluation.strategies))
    _finish(axes, evaluation)
    # Without a date and with a fixed salt for its ids, the file changes only if the picture does.
    metadata: dict[str, Any] = {"Date": None} if path.suffix.lower() == ".svg" else {}
    with mpl.rc_context({"svg.hashsalt": "toolsearch"}):
        figure.savefig(path, dpi=150, metadata=metadata)


def _draw_bars(axes: Axes, result: StrategyResult, place: int, count: int) -> None:
    width = _GROUP_WIDTH / count
    shift = (place - (count - 1) / 2) * width
    heights = [getattr(result.quality, measure) for measure in _LABELS]
    colour = _COLOURS[place % len(_COLOURS)]
    bars = axes.bar(
        [group + shift for group in range(len(_LABELS))], heights, width, label=result.strategy, color=colour
    )
    axes.bar_label(bars, fmt="%.2f", padding=2, fontsize=8)
    if result.recall_5_interval:
        low, high = result.recall_5_interval
        beside_the_label = list(_LABELS).index("recall_5") + shift + 0.4 * width
        axes.vlines(beside_the_label, low, high, color="black", linewidth=1)


def _finish(axes: Axes, evaluation: Evaluation) -> None:
    title = f"{evaluation.answerable:,} queries; line: recall@5 at 95 % confidence"
    if evaluation.proposed:
        title += f"\n{evaluation.proposed:,} proposed from the tools' own words, which flatters"
    axes.set_title(title, fontsize=10, loc="left")
    axes.set_xticks(range(len(_LABELS)), list(_LABELS.values()))
    axes.set_ylim(0, 1.1)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
