"""Does learning from use help, and can it be used to push a tool into every answer?

python -m benchmarks.usage [--sets ../shared/eval] [--only metatool,azcli,tldr] [--encoder SPEC] [--requests]
                              [--json FILE]

With ``--requests``, each tool has the requests that were written for it in benchmarks/requests (metatool alone).

Simulated users make the train queries of a set, a session each, and call the right tools if the first five hold them;
one in ten calls a wrong one instead. Then the test queries are asked, which no user has made. Attackers come after the
users: they make everybody's queries, with the name of one tool added so that it is found, and call that tool.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from benchmarks.datasets import REQUESTS, TRAIN, add_sets_option
from benchmarks.enrichment import requests_in
from benchmarks.figure_tables import print_table
from benchmarks.labelled import LabelledQuery, LabelledSet, Quality, quality, read_labelled, read_set
from benchmarks.recall import documents_of
from benchmarks.results import write_figures
from toolsearch.sessions.usage import UsageLog
from toolsearch.sessions.usage_evidence import IndexVocabulary
from toolsearch_indexes.analysis import name_words
from toolsearch_indexes.encoders.opening import open_encoder
from toolsearch_indexes.encoders.protocol import Encoder
from toolsearch_indexes.index import ToolSearchIndex

SETS = "metatool,azcli,tldr"
SHOWN = 5
DEPTH = 10
PRINCIPAL = "everybody"

_USERS = 3_000  # train queries of a set at most
_WRONG_SHARE = 0.1
_TARGETS = 3  # tools that are pushed, one at a time
_SEED = 0


class Deployment:
    """A catalogue whose searches learn from use."""

    def __init__(
        self, tools: Sequence[Mapping[str, Any]], encoder: Encoder | None, requests: Mapping[str, tuple[str, ...]]
    ) -> None:
        documents = [replace(each, requests=requests.get(each.name, ())) for each in documents_of(tools)]
        self.index = ToolSearchIndex(documents, encoder=encoder)
        self.local_names = {tool["id"]: str(tool["name"]) for tool in tools}
        self._vocabulary = IndexVocabulary(self.index)
        self.log = UsageLog(clock=lambda: 0.0)

    def search(self, query: str, limit: int) -> list[str]:
        favour = self.log.favour(PRINCIPAL, self._vocabulary.terms_of(query))
        return [hit.name for hit in self.index.search(query, limit=limit, favour=favour)]

    def use(self, session_id: str, query: str) -> list[str]:
        """Search as a session; return what it is shown."""
        shown = self.search(query, SHOWN)
        self.log.discovered(PRINCIPAL, session_id, self._vocabulary.terms_of(query), shown)
        return shown

    def call(self, session_id: str, tool: str) -> None:
        self.log.called(PRINCIPAL, session_id, tool)


def serve_users(deployment: Deployment, queries: Iterable[LabelledQuery]) -> frozenset[str]:
    """Let each query be made by a session of its own; return the right tools that were called."""
    chance = random.Random(_SEED)
    called: set[str] = set()
    for number, query in enumerate(queries):
        session_id = f"user {number}"
        shown = deployment.use(session_id, query.text)
        is_wrong = bool(shown) and chance.random() < _WRONG_SHARE
        right = [tool for tool in shown if tool in query.relevant]
        for tool in [chance.choice(shown)] if is_wrong else right:
            deployment.call(session_id, tool)
        called |= set() if is_wrong else set(right)
    return frozenset(called)


@dataclass(frozen=True, slots=True)
class Attack:
    """So many sessions, each with so many searches, and so many calls of the pushed tool after each search."""

    name: str
    sessions: int
    searches: int
    calls: int


ATTACKS = (
    Attack("one session, 10,000 calls", sessions=1, searches=500, calls=20),
    Attack("50 sessions, 10,000 calls", sessions=50, searches=100, calls=2),
    Attack("called in 1,000 sessions, for everything", sessions=1_000, searches=1, calls=1),
)


def carry_out(attack: Attack, deployment: Deployment, queries: Sequence[LabelledQuery], tool: str) -> None:
    query = cycle(queries)
    for number in range(attack.sessions):
        session_id = f"{attack.name} {number}"
        for asked in islice(query, attack.searches):
            deployment.use(session_id, f"{asked.text} {name_words(deployment.local_names[tool])}")
            for _ in range(attack.calls):
                deployment.call(session_id, tool)


@dataclass(frozen=True, slots=True)
class Gain:
    """The test queries before and after the users' sessions.

    known  of these, those with a right tool that the users had called, by count; the others must not lose by it
    """

    before: Quality
    after: Quality
    known: int
    known_before: Quality | None
    known_after: Quality | None
    other_before: Quality | None
    other_after: Quality | None
    pairs: int


@dataclass(frozen=True, slots=True)
class Damage:
    """Means over the pushed tools, without the attack and with it.

    share   of the test queries that the tool is not right for, those whose first five hold it
    """

    attack: str
    share_before: float
    share_after: float
    recall_1_before: float
    recall_1_after: float
    ndcg_10_before: float
    ndcg_10_after: float


Rankings = list[tuple[list[str], frozenset[str]]]


def rankings(deployment: Deployment, queries: Sequence[LabelledQuery]) -> Rankings:
    return [(deployment.search(query.text, DEPTH), query.relevant) for query in queries]


def measure_gain(deployment: Deployment, labelled: LabelledSet, train: Sequence[LabelledQuery]) -> Gain:
    before = rankings(deployment, labelled.queries)
    called = serve_users(deployment, train)
    after = rankings(deployment, labelled.queries)
    is_known = [bool(query.relevant & called) for query in labelled.queries]

    def judged(of: Rankings, *, known: bool) -> Quality | None:
        chosen = [ranking for ranking, is_one in zip(of, is_known, strict=True) if is_one is known]
        return quality(chosen) if chosen else None

    return Gain(
        quality(before),
        quality(after),
        sum(is_known),
        judged(before, known=True),
        judged(after, known=True),
        judged(before, known=False),
        judged(after, known=False),
        len(deployment.log.inspect(PRINCIPAL)),
    )


def measure_damage(
    deployment: Deployment, labelled: LabelledSet, train: Sequence[LabelledQuery], attack: Attack
) -> Damage:
    figures: list[tuple[float, ...]] = []
    for tool in random.Random(_SEED).sample(sorted(deployment.local_names), _TARGETS):
        deployment.log.reset()
        serve_users(deployment, train)
        before = rankings(deployment, labelled.queries)
        carry_out(attack, deployment, train, tool)
        after = rankings(deployment, labelled.queries)
        first, last = quality(before), quality(after)
        shares = [share_of_answers(tool, ranked) for ranked in (before, after)]
        figures.append((*shares, first.recall_1, last.recall_1, first.ndcg_10, last.ndcg_10))
    means = [sum(column) / len(figures) for column in zip(*figures, strict=True)]
    return Damage(attack.name, *means)


def share_of_answers(tool: str, ranked: Rankings) -> float:
    """Of the queries that *tool* is not right for, the share whose first SHOWN tools hold it."""
    unrelated = [found[:SHOWN] for found, relevant in ranked if tool not in relevant]
    return sum(tool in found for found in unrelated) / len(unrelated)


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    folders = [options.sets / name for name in options.only.split(",")]
    if missing := [folder for folder in folders if not (folder / TRAIN).is_file()]:
        print(f"no labelled set with train queries in {missing[0]}", file=sys.stderr)
        return 2
    encoder = open_encoder(options.encoder) if options.encoder else None
    gains: dict[str, Gain] = {}
    damages: dict[str, list[Damage]] = {}
    for folder in folders:
        labelled, train = read_set(folder), read_train(folder)
        written = requests_in(REQUESTS / f"{folder.name}.jsonl") if options.requests else {}
        deployment = Deployment(labelled.tools, encoder, written)
        gains[folder.name] = measure_gain(deployment, labelled, train)
        damages[folder.name] = [measure_damage(deployment, labelled, train[:1_000], attack) for attack in ATTACKS]
    _print(gains, damages)
    if options.json:
        figures = {
            name: {"gain": _rounded(asdict(gain)), "attacks": [_rounded(asdict(damage)) for damage in damages[name]]}
            for name, gain in gains.items()
        }
        strategy = "hybrid" if encoder else "keyword"
        write_figures(options.json, "usage", {"strategy": strategy, "sets": figures}, seed=_SEED)
    return 0


def read_train(folder: Path) -> list[LabelledQuery]:
    """A fixed random sample of the train queries, in random order."""
    queries = read_labelled(folder / TRAIN)
    return random.Random(_SEED).sample(queries, min(_USERS, len(queries)))


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(inner) for key, inner in value.items()}
    return round(value, 4) if isinstance(value, float) else value


def _print(gains: Mapping[str, Gain], damages: Mapping[str, Sequence[Damage]]) -> None:
    rows: list[Sequence[str]] = []
    for name, gain in gains.items():
        for which, before, after in (
            ("all", gain.before, gain.after),
            (f"{gain.known} of tools called before", gain.known_before, gain.known_after),
            ("the others", gain.other_before, gain.other_after),
        ):
            if before and after:
                pairs = [(getattr(before, key), getattr(after, key)) for key in ("recall_1", "recall_5", "ndcg_10")]
                rows.append((name, which, *(f"{first:.3f} {last:.3f} {last - first:+.3f}" for first, last in pairs)))
    columns = ("set", "test queries", "recall@1", "recall@5", "nDCG@10")
    print_table(columns, rows, title="Before and after use", by_first=True)
    pushed = [
        (
            name,
            damage.attack,
            f"{damage.share_before:.2%} {damage.share_after:.2%}",
            f"{damage.recall_1_before:.3f} {damage.recall_1_after:.3f}",
            f"{damage.ndcg_10_before:.3f} {damage.ndcg_10_after:.3f}",
        )
        for name, each in damages.items()
        for damage in each
    ]
    columns = ("set", "attack", "in unrelated answers", "recall@1", "nDCG@10")
    print_table(columns, pushed, title="A tool is pushed", by_first=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.usage", description=__doc__.partition("\n")[0])
    add_sets_option(parser)
    parser.add_argument("--only", default=SETS, help="these sets, by comma; they must have train queries")
    parser.add_argument("--encoder", help="rank by hybrid, with this encoder; else by keyword")
    parser.add_argument("--requests", action="store_true", help="with the requests that were written for the tools")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    return parser


if __name__ == "__main__":
    sys.exit(main())
