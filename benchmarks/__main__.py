"""All benchmarks by one command: which there are, run some or all of them, and compare what two runs have found.

    python -m benchmarks --list
    python -m benchmarks [--only recall,latency] [--out FOLDER]
    python -m benchmarks --only recall --out FOLDER -- --encoder minilm
    python -m benchmarks --compare OLD NEW [--tolerance 10]

Exit codes: 1 if a question failed, or a figure became worse; 2 if there was nothing to do.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.choosing import named, those_of
from benchmarks.figure_tables import print_table
from benchmarks.runner.comparing import Comparison, NothingToCompareError, comparisons
from benchmarks.runner.question import Question
from benchmarks.runner.questions import QUESTIONS
from benchmarks.runner.running import Outcome, Start, run_all


def main(
    arguments: Sequence[str] | None = None,
    questions: Sequence[Question] = QUESTIONS,
    start: Start | None = None,
) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.list:
        print_questions(questions)
        return 0
    if options.compare:
        old, new = options.compare
        return _compare(old, new, questions, options.tolerance / 100)
    chosen = _chosen(parser, options.only, questions)
    if options.more and len(chosen) != 1:
        parser.error("arguments after -- are for one question: name it by --only")
    return _run(chosen, options.out, options.more, start, is_asked=bool(options.only))


def print_questions(questions: Sequence[Question]) -> None:
    rows = [
        (
            each.name,
            each.asks,
            f"{each.cpu_minutes:g}",
            each.stored,
            ", ".join(need.what for need in each.needs),
            "; ".join(f"{need.what}: {need.remedy}" for need in each.missing()),
        )
        for each in questions
    ]
    print_table(("question", "asks", "CPU minutes", "file", "needs", "missing here"), rows)


def _chosen(parser: argparse.ArgumentParser, only: str, questions: Sequence[Question]) -> list[Question]:
    by_name = {each.name: each for each in questions}
    return [by_name[name] for name in those_of(named(parser, only, by_name, "question"), by_name)]


def _run(
    chosen: Sequence[Question], out: Path | None, more: Sequence[str], start: Start | None, *, is_asked: bool
) -> int:
    """What cannot be run here is a failure where it was asked for by name."""
    able = [each for each in chosen if is_asked or not each.missing()]
    if not able:
        print("none of the questions can be run here: --list says what is missing", file=sys.stderr)
        return 2
    outcomes: list[Outcome] = []
    for outcome in run_all(able, out, more=more, start=start):
        outcomes.append(outcome)
        if outcome.problem:
            print(f"{outcome.question}: {outcome.problem}", file=sys.stderr, flush=True)
    rows = [(each.question, f"{each.cpu_minutes:.1f}", each.problem or "answered") for each in outcomes]
    left_out = [(each.name, "-", "left out: --list says what is missing") for each in chosen if each not in able]
    print_table(("question", "CPU minutes", ""), [*rows, *left_out], title="What has been run")
    return int(any(each.problem for each in outcomes))


def _compare(old: Path, new: Path, questions: Sequence[Question], tolerance: float) -> int:
    try:
        compared, left_out = comparisons(old, new, questions)
    except (NothingToCompareError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    print_comparisons(compared, tolerance)
    for told in left_out:
        print(told)
    if not any(change.rule for each in compared for change in each.changes):
        print(f"{old} and {new} have no figure in common that can be compared", file=sys.stderr)
        return 2
    worse = sum(change.is_worse(tolerance) for each in compared for change in each.changes)
    may = f"CPU time and memory may differ by {tolerance:.0%}, counts and qualities not at all"
    print(f"{worse} figures are worse ({may})")
    return int(worse > 0)


def print_comparisons(compared: Sequence[Comparison], tolerance: float) -> None:
    """All figures that differ, with what is said of them."""
    rows = [
        (
            each.question,
            change.figure,
            f"{change.old:,.6g}",
            f"{change.new:,.6g}",
            "" if change.share is None else f"{change.share:+.1%}",
            "WORSE" if change.is_worse(tolerance) else "" if change.rule else "shown only",
        )
        for each in compared
        for change in each.changes
        if change.old != change.new
    ]
    if rows:
        print_table(("question", "figure", "OLD", "NEW", "change", ""), rows, by_first=True)
    for each in compared:
        same = sum(change.old == change.new for change in each.changes)
        print(f"{each.question}: {same} of {len(each.changes)} figures are the same")
        for note in each.notes:
            print(f"{each.question}: {note}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").partition("\n")[0])
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--list", action="store_true", help="say which questions there are, and what each lacks here")
    action.add_argument(
        "--compare", nargs=2, type=Path, metavar=("OLD", "NEW"), help="two results, or two folders of them"
    )
    action.add_argument("--only", default="", metavar="NAMES", help="ask these, by comma; else all that can be asked")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="write the result of each question into it")
    parser.add_argument(
        "--tolerance", type=_percent, default=10.0, metavar="PERCENT", help="by which CPU time and memory may grow"
    )
    parser.add_argument("more", nargs="*", metavar="-- ARGUMENTS", help="of the one question that is asked")
    return parser


def _percent(text: str) -> float:
    value = float(text)
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"a percentage of 0 or more, not {text}")
    return value


if __name__ == "__main__":
    sys.exit(main())
