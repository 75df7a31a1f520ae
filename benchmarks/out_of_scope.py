"""Which requests that no tool serves are answered? By how near they are to the tools of five real catalogues.

    python -m benchmarks.out_of_scope [--encoder SPEC] [--reader SPEC] [--catalogues github] [--json FILE]

Hybrid search, with tools indexed without any requests of users and with those that ship. Three kinds of request are
written by hand, in out_of_scope.jsonl; the fourth is each query of `benchmarks.agent_queries` with all its right tools
out of reach. Beside them, the same queries with their tools in reach: how many of these are refused.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from benchmarks.abstention import Outcome, judge, outcome_of
from benchmarks.agent_queries import CATALOGUES
from benchmarks.choosing import named, opened
from benchmarks.datasets import OUT_OF_SCOPE
from benchmarks.enrichment import Asked, asked_by_agents
from benchmarks.figure_tables import markdown_table, print_table
from benchmarks.recall import READ, add_reader_option, reader_to_measure
from benchmarks.results import write_figures
from toolsearch_indexes.encoders.opening import BUILT_IN, open_encoder
from toolsearch_indexes.encoders.protocol import Encoder
from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.reader import Reader

REMOVED: Final = "right tool removed"
KINDS: Final = (REMOVED, "wrong object", "same field", "other field")  # nearest to the tools first
EVERY_KIND: Final = "all kinds"
ALL: Final = "all catalogues"
_COLUMNS: Final = ("requests of users", "", EVERY_KIND, *KINDS, "served, but not")


@dataclass(frozen=True, slots=True)
class OutOfScope:
    """A request that no tool of the catalogue serves.

    kind   "wrong object": a tool comes near and does something else; "same field": a task of the catalogue's field that
           it has no tool for; "other field": a task of another field
    near   the name of the tool that comes nearest; empty where none does
    """

    catalogue: str
    request: str
    kind: str
    near: str


@dataclass(frozen=True, slots=True)
class Row:
    """Shares in 0 to 1, best 0; of all kinds together the mean of the kinds' shares.

    requests          of users that tools are indexed with: "none" or "shipped"; where a reader has read the first tools
                      of each answer again, "none, read" or "shipped, read"
    asked             by kind: how many requests that nothing serves
    answered          by kind: the share of them that is answered
    fitting, sure     by kind: the share that gets an answer that is not weak, and one of high confidence
    served            how many requests that some tool serves
    refused           the share of them that gets no answer
    weak, unsure      the share that gets a weak answer or none, and the share that gets none of high confidence
    """

    catalogue: str
    requests: str
    asked: Mapping[str, int]
    answered: Mapping[str, float]
    fitting: Mapping[str, float]
    sure: Mapping[str, float]
    served: int
    refused: float
    weak: float
    unsure: float


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    makers = {name: partial(asked_by_agents, name) for name in CATALOGUES}
    encoder, reader, written = open_encoder(options.encoder), reader_to_measure(options.reader), read_out_of_scope()
    outcomes: dict[str, dict[str, list[Outcome]]] = {}
    for name, asked in opened(makers, named(parser, options.catalogues, makers, "catalogue")):
        outcomes[name] = measure(asked, [each for each in written if each.catalogue == name], encoder, reader)
    if not outcomes:
        return 2
    conditions = next(iter(outcomes.values()))
    outcomes[ALL] = {each: [outcome for of in outcomes.values() for outcome in of[each]] for each in conditions}
    rows = [asdict(judged(name, each, found)) for name, of in outcomes.items() for each, found in of.items()]
    for name in outcomes:
        print_table(_COLUMNS, _cells([row for row in rows if row["catalogue"] == name]), title=name)
    if options.json:
        write_figures(options.json, "out_of_scope", rows)
    return 0


def read_out_of_scope(path: Path = OUT_OF_SCOPE) -> list[OutOfScope]:
    return [OutOfScope(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def measure(
    asked: Asked, written: Sequence[OutOfScope], encoder: Encoder, reader: Reader | None = None
) -> dict[str, list[Outcome]]:
    """The outcomes without requests of users, then with those that the documents of *asked* have.

    If there is a *reader*, then the same with it.
    """
    bare = [replace(document, requests=()) for document in asked.documents]
    indexes = {
        "none": ToolSearchIndex(bare, encoder=encoder),
        "shipped": ToolSearchIndex(asked.documents, encoder=encoder),
    }
    outcomes = {requests: list(_outcomes(index, asked, written)) for requests, index in indexes.items()}
    if reader:
        for requests, index in indexes.items():
            index.reader = reader
            outcomes[f"{requests}{READ}"] = list(_outcomes(index, asked, written))
    return outcomes


def _outcomes(index: ToolSearchIndex, asked: Asked, written: Iterable[OutOfScope]) -> Iterator[Outcome]:
    search = partial(index.search, limit=1, strategy="hybrid")
    names = {document.name for document in asked.documents}
    for each in written:
        yield outcome_of(each.kind, search(each.request))
    for text, relevant in asked.queries:
        yield outcome_of(REMOVED, search(text, within=names - relevant))
        yield outcome_of("", search(text))


def judged(catalogue: str, requests: str, outcomes: Sequence[Outcome]) -> Row:
    """Raises ValueError if *outcomes* has none of any kind."""
    by_kind = {kind: [outcome for outcome in outcomes if outcome.kind == kind] for kind in KINDS}
    shares = {kind: judge(found) for kind, found in by_kind.items() if found}
    served = [outcome for outcome in outcomes if not outcome.kind]
    return Row(
        catalogue,
        requests,
        asked={EVERY_KIND: len(outcomes) - len(served), **{kind: len(by_kind[kind]) for kind in shares}},
        answered=_with_mean({kind: share.answered or 0.0 for kind, share in shares.items()}),
        fitting=_with_mean({kind: share.fitting or 0.0 for kind, share in shares.items()}),
        sure=_with_mean({kind: share.sure or 0.0 for kind, share in shares.items()}),
        served=len(served),
        refused=judge(served).refused or 0.0,
        weak=judge(served).weak or 0.0,
        unsure=judge(served).unsure or 0.0,
    )


def _with_mean(shares: Mapping[str, float]) -> dict[str, float]:
    return {EVERY_KIND: round(fmean(shares.values()), 4), **shares}


def page_tables(figures: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Over all catalogues."""
    return {"out of scope": markdown_table(_COLUMNS, _cells([row for row in figures if row["catalogue"] == ALL]))}


_LINES: Final = (
    ("answered", "answered", "refused"),
    ("not weak", "fitting", "weak"),
    ("with high confidence", "sure", "unsure"),
)


def _cells(rows: Sequence[Mapping[str, Any]]) -> Iterator[list[str]]:
    """How many were asked, and then three lines for each of *rows*, which are of one catalogue."""
    counts = rows[0]["asked"]
    yield ["", "asked", *(str(counts.get(kind, 0)) for kind in (EVERY_KIND, *KINDS)), str(rows[0]["served"])]
    for row in rows:
        for what, by_kind, served in _LINES:
            shares = [row[by_kind].get(kind) for kind in (EVERY_KIND, *KINDS)] + [row[served]]
            yield [row["requests"], what, *("-" if share is None else f"{share:.1%}" for share in shares)]


def _parser() -> argparse.ArgumentParser:
    summary = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.out_of_scope", description=summary)
    parser.add_argument("--catalogues", default=",".join(CATALOGUES), help="only these, by comma")
    parser.add_argument("--encoder", default=BUILT_IN, help="what tools and requests are embedded with")
    add_reader_option(parser)
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    return parser


if __name__ == "__main__":
    sys.exit(main())
