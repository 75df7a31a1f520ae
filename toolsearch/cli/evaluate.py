"""``toolsearch evaluate``, also ``toolsearch bench quality``: how good the search is, on queries with known tools."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolsearch.cli.command_line import ExitCode
from toolsearch.cli.opening import opened_engine
from toolsearch.cli.options import (
    AllowOption,
    DenyOption,
    EncoderOption,
    IndexOption,
    JsonFileOption,
    JsonOption,
    SettingsOption,
    SourceOption,
    strategies,
)
from toolsearch.cli.output import line, put_record, stdout, table, tell, warn
from toolsearch.errors import BadQueryError, BadSettingError

if TYPE_CHECKING:
    from toolsearch.access.reach import Reach
    from toolsearch.engine import ToolSearch
    from toolsearch.evaluation.evaluation import Evaluation, FoundNames, StrategyResult
    from toolsearch.evaluation.queries import LabelledQuery, QueryFile
    from toolsearch_indexes.queries import Strategy

_MOST_WARNINGS = 20
_ROUNDING = 1e-9  # a recall that equals --min-recall passes in spite of rounding
_SHOWN_INSTEAD = 3  # found tools that are listed for each miss
_FLATTERY = "made from the tools' own words. They flatter: trust queries of people or models more"


def evaluate(
    queries: Annotated[
        Path | None,
        typer.Argument(
            metavar="QUERIES", help="JSON lines of query and relevant, a list of names; or CSV: query,tools."
        ),
    ] = None,
    *,
    index: IndexOption = None,
    source: SourceOption = None,
    settings: SettingsOption = None,
    strategy: Annotated[
        list[str] | None,
        typer.Option(
            autocompletion=strategies,
            help="hybrid, semantic or keyword; repeatable, the first one counts. Default: all there are.",
        ),
    ] = None,
    misses: Annotated[int, typer.Option(min=0, help="How many of the worst misses to list.")] = 10,
    min_recall: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Exit with 4 if recall@5 of the first strategy is less; for CI."),
    ] = None,
    propose: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="In place of QUERIES, make N from the tools' own words. The results flatter."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="For --propose: another seed gives other queries.")] = 0,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --propose, write the queries here and measure nothing.")
    ] = None,
    allow: AllowOption = None,
    deny: DenyOption = None,
    encoder: EncoderOption = None,
    as_json: JsonOption = False,
    json_to: JsonFileOption = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the figures: a .png or .svg file.")] = None,
) -> int:
    """Measure how well each strategy finds the tools for your queries.

    Unusable lines of QUERIES cause a warning, and with --min-recall an error. 'False hits' is the share of answers
    among the queries for no tool. 'Refused' is the share of the other queries without an answer.
    """
    from toolsearch.access.reach import EVERY_TOOL, Reach
    from toolsearch.evaluation.evaluation import evaluate as measured
    from toolsearch.evaluation.queries import write_queries
    from toolsearch.evaluation.report import check_picture, draw
    from toolsearch.setting_types import read_strategy

    if (queries is None) == (propose is None):
        raise BadSettingError("give either a file of QUERIES or --propose N")
    if out is not None and propose is None:
        raise BadSettingError("--out needs --propose N; write figures by --json-to and --plot")
    if plot is not None:
        check_picture(plot)
    reach = Reach.parse(allow or EVERY_TOOL, deny or ())
    with opened_engine(index, source, settings, index__encoder=encoder) as engine:
        given = _given(engine, reach, queries, propose, seed)
        if min_recall is not None and given.bad_lines:
            raise BadQueryError(f"{queries} has unusable lines: mend them before you use --min-recall")
        if out is not None:
            write_queries(out, given.queries)
            tell(f"Wrote {len(given.queries):,} queries, {_FLATTERY}.")
            return ExitCode.OK
        strategies: list[Strategy] | None = [read_strategy(name) for name in strategy] if strategy else None
        evaluation = measured(engine, given.queries, strategies, reach=reach)
        notes = engine.notes
    is_below = _is_below(evaluation, min_recall)
    put_record(
        lambda: _report(evaluation, given, misses, min_recall, notes),
        lambda: _show(evaluation, misses),
        as_json=as_json,
        to=json_to,
    )
    if plot is not None:
        draw(evaluation, plot)
    return ExitCode.BELOW if is_below else ExitCode.OK


def _given(engine: ToolSearch, reach: Reach, path: Path | None, propose: int | None, seed: int) -> QueryFile:
    """The queries of the file at *path*, or *propose* queries made from the catalog."""
    from toolsearch.evaluation.queries import QueryFile, read_queries

    if path is None:
        return QueryFile(_proposed(engine, reach, propose or 0, seed))
    given = read_queries(path, engine, reach=reach)
    for bad in given.bad_lines[:_MOST_WARNINGS]:
        warn(f"{path}, line {bad.line} is left out: {bad.reason}")
    if len(given.bad_lines) > _MOST_WARNINGS:
        warn(f"{len(given.bad_lines) - _MOST_WARNINGS:,} more lines are left out; --json lists them")
    return given


def _proposed(engine: ToolSearch, reach: Reach, count: int, seed: int) -> tuple[LabelledQuery, ...]:
    from toolsearch.evaluation.queries import propose_queries

    proposed = propose_queries(engine.view(reach).definitions, count, seed=seed)
    if not proposed:
        raise BadQueryError("the tools' own words give no query that points at one tool alone; write some yourself")
    if len(proposed) < count:
        warn(f"the tools' own words give {len(proposed):,} queries that point at one tool alone, not {count:,}")
    return tuple(proposed)


def _is_below(evaluation: Evaluation, min_recall: float | None) -> bool:
    """Whether recall is below *min_recall*, which is then reported on stderr."""
    if min_recall is None:
        return False
    result = evaluation.main
    if result.quality is None:
        raise BadQueryError("no query has a tool that fits, so --min-recall has no recall to judge")
    is_below = result.quality.recall_5 < min_recall - _ROUNDING
    if is_below:
        tell(f"recall@5 by {result.strategy} is {result.quality.recall_5:.4f}, below {min_recall}.")
    return is_below


def _report(
    evaluation: Evaluation, given: QueryFile, misses: int, min_recall: float | None, notes: Sequence[str]
) -> dict[str, Any]:
    from toolsearch.evaluation.report import as_json

    return as_json(evaluation, misses=misses) | {
        "bad_lines": [{"line": bad.line, "reason": bad.reason} for bad in given.bad_lines],
        "min_recall": min_recall,
        "notes": list(notes),
    }


def _show(evaluation: Evaluation, misses: int) -> None:
    # Each in two lines, so that 80 columns are enough.
    measures = ("recall\n@1", "recall@5\nat 95 %", "recall\n@10", "nDCG\n@10", "MRR\n@10", "false\nhits", "refused")
    shown = table(_title(evaluation), ("strategy", *measures), numbers=measures)
    for result in evaluation.strategies:
        shown.add_row(result.strategy, *_cells(result))
    stdout().print(shown)
    if evaluation.proposed:
        stdout().print(f"{evaluation.proposed:,} of these queries were {_FLATTERY}.\n")
    _show_misses(evaluation.main, misses)


def _title(evaluation: Evaluation) -> str:
    unanswerable = len(evaluation.queries) - evaluation.answerable
    return f"{len(evaluation.queries):,} queries; nothing fits {unanswerable:,} of them"


def _cells(result: StrategyResult) -> list[str]:
    quality, interval = result.quality, result.recall_5_interval
    if quality is None or interval is None:
        of_answerable = [""] * 5
    else:
        low, high = interval
        of_answerable = [
            f"{quality.recall_1:.3f}",
            f"{quality.recall_5:.3f}\n{low:.2f}-{high:.2f}",
            f"{quality.recall_10:.3f}",
            f"{quality.ndcg_10:.3f}",
            f"{quality.mrr_10:.3f}",
        ]
    return [*of_answerable, _percent(result.answered_wrongly), _percent(result.refused_wrongly)]


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.1%}"


def _show_misses(result: StrategyResult, limit: int) -> None:
    worst = result.misses(limit)
    if not worst:
        return
    shown = table(f"Worst misses by {result.strategy}", ("query", "expected", "found instead"), flexible="query")
    for miss in worst:
        shown.add_row(
            line(miss.query.text), line(", ".join(sorted(miss.query.relevant)) or "nothing"), line(_found(miss))
        )
    stdout().print(shown)


def _found(miss: FoundNames) -> str:
    wrong = [name for name in miss.found if name not in miss.query.relevant]
    return ", ".join(wrong[:_SHOWN_INSTEAD]) or "nothing"
