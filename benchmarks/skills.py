"""What do skills beside tools cost the tools, and are skills found among tools? Recall, answers, tokens, memory.

    python -m benchmarks.skills SKILLS REQUESTS [--half odd] [--sets ../shared/eval] [--json FILE]

SKILLS and REQUESTS are files of JSON lines that you collect, since skills of others are not part of this project:

    {"id": "s0001", "name": "docx", "text": "the whole SKILL.md"}
    {"request": "turn this report into a Word document", "ids": ["s0001"]}

The ids of a request are those of all skills that serve it equally well. With ``--half`` only the skills of odd or of
even lines are loaded, so that one half can be for fitting and the other for reporting: requests for the other half are
left out. Each labelled set gives a catalog of at most 1,000 tools. The skills stand beside them, and what is found with
and without them is compared.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median, quantiles
from tempfile import TemporaryDirectory
from typing import Any, Final

from benchmarks.abstention import Unanswerable, read_unanswerable
from benchmarks.answers import CallsNothing
from benchmarks.anticipation import asked_in
from benchmarks.datasets import UNANSWERABLE, add_sets_option, set_folders
from benchmarks.figure_tables import markdown_table, print_table
from benchmarks.labelled import SEED, LabelledQuery, LabelledSet, read_set
from benchmarks.results import write_figures
from toolsearch import Catalog, PassThrough, SessionOptions, Tool, ToolDefinition, ToolSearch
from toolsearch.catalog.indexing import document_of
from toolsearch.catalog.sources.skills import SkillsSource
from toolsearch.discovery.search_tool import MAX_QUERY_CHARACTERS
from toolsearch.documents.skills import SKILL_FILE
from toolsearch.tokens import default_counter
from toolsearch.tools.definition import TOOLS
from toolsearch_indexes.encoders.opening import BUILT_IN, open_encoder
from toolsearch_indexes.index import ToolSearchIndex, index_bytes

_MOST_TOOLS: Final = 1_000  # of a catalog
_FIRST: Final = 5
_ANSWERED: Final = 100  # requests of a set that are asked in sessions, whose tokens are counted
_TIMED: Final = 100
_WITHOUT: Final = ("kind:skill",)
_ALL: Final = "mean"

Figures = dict[str, Any]


@dataclass(frozen=True, slots=True)
class SkillRequest:
    """The question, and the names in the catalog of the skills that serve it."""

    text: str
    relevant: frozenset[str]


@dataclass(frozen=True, slots=True)
class Material:
    """Skills as a catalog loads them, the requests for them, and the text of each."""

    skills: Sequence[Tool]
    requests: Sequence[SkillRequest]
    texts: Sequence[str]


@dataclass(frozen=True, slots=True)
class Beside:
    """A catalog with tools and skills, and what is asked of it.

    queries   for its tools
    nothing   requests that none of its tools serves
    """

    name: str
    tools: Sequence[ToolDefinition]
    queries: Sequence[LabelledQuery]
    nothing: Sequence[Unanswerable]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    for path in (options.skills, options.requests):
        if not path.is_file():
            parser.error(f"there is no file {path}; python -m benchmarks.skills --help says what it holds")
    folders = set_folders(options.sets)
    if not folders:
        print(f"no labelled sets in {options.sets}: folders with tools.jsonl and queries.test.jsonl", file=sys.stderr)
        return 2
    nothing = read_unanswerable(UNANSWERABLE)
    with loaded(options.skills, options.requests, options.half) as material:
        figures = measure(material, (catalog_of(read_set(folder), nothing) for folder in folders))
    for name, table in tables(figures).items():
        print_table(*table, title=name)
    if options.json:
        write_figures(options.json, "skills", figures, seed=SEED)
    return 0


# Material


@contextmanager
def loaded(skills: Path, requests: Path, half: str | None) -> Generator[Material]:
    """Load the skills as users do: out of a folder, which is there as long as the context."""
    rows = [row for number, row in enumerate(_rows(skills)) if half in (None, ("odd", "even")[number % 2])]
    with TemporaryDirectory() as folder:
        for row in rows:
            place = Path(folder, "skills", row["id"], row["name"])
            place.mkdir(parents=True)
            (place / SKILL_FILE).write_text(row["text"], encoding="utf-8", newline="")
        found = SkillsSource(Path(folder, "skills")).load().tools
        names = {Path(tool.source).parts[-3]: tool.name for tool in found}
        asked = [
            SkillRequest(row["request"], frozenset(names[each] for each in row["ids"] if each in names))
            for row in _rows(requests)
        ]
        yield Material(found, [each for each in asked if each.relevant], [row["text"] for row in rows])


def catalog_of(labelled: LabelledSet, nothing: Sequence[Unanswerable]) -> Beside:
    """The set cut to 1,000 tools: those of as many queries as fit, then others, evenly."""
    needed: set[str] = set()
    for query in labelled.queries:
        if len(needed | query.relevant) <= _MOST_TOOLS:
            needed |= query.relevant
    others = [tool["id"] for tool in labelled.tools if tool["id"] not in needed]
    room = min(_MOST_TOOLS - len(needed), len(others))
    kept = needed.union(others[number * len(others) // room] for number in range(room))
    tools = [tool for tool in labelled.tools if tool["id"] in kept]
    queries = [query for query in labelled.queries if query.relevant <= kept]
    asked = asked_in(LabelledSet(labelled.name, tools, queries), most=len(queries))
    here = [each for each in nothing if each.set == labelled.name]
    return Beside(labelled.name, list(asked.tools.values()), asked.queries, here)


def _rows(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


# Measuring


def measure(material: Material, catalogs: Iterable[Beside]) -> Figures:
    figures: Figures = {"tools": [], "skills": [_alone(material)], "nothing": [], "answers": []}
    for beside in catalogs:
        print(beside.name, file=sys.stderr)
        with _opened([*map(Tool, beside.tools)], material.skills) as engine:
            figures["tools"].append(_tools_found(engine, beside, len(material.skills)))
            figures["skills"].append(_skills_found(engine, beside.name, material.requests, len(beside.tools)))
            if beside.nothing:
                figures["nothing"].append(_nothing_found(engine, beside))
            figures["answers"].append(_answers(engine, beside, material.requests))
    for name, key in (("tools", "set"), ("nothing", "set"), ("answers", "set")):
        figures[name].append(_mean(figures[name], key))
    figures["skills"].append(_mean(figures["skills"][1:], "beside"))
    return figures | {"costs": _costs(material)}


@contextmanager
def _opened(tools: Sequence[Tool], skills: Sequence[Tool]) -> Generator[ToolSearch]:
    """An engine over tools that can be called, and skills."""
    options = SessionOptions(pass_through=PassThrough(max_tools=0))
    catalog = Catalog([*(Tool(tool.definition, CallsNothing()) for tool in tools), *skills])
    with catalog, ToolSearch(catalog, encoder=BUILT_IN, options=options) as engine:
        yield engine


def _tools_found(engine: ToolSearch, beside: Beside, skills: int) -> Figures:
    """Shares of the right tools among the first ones, with a place lost to each skill."""
    found: dict[str, list[float]] = {"recall_1": [], "recall_5": [], "recall_1_beside": [], "recall_5_beside": []}
    for query in beside.queries:
        alone = [hit.name for hit in engine.search(query.text, limit=_FIRST, kinds=TOOLS)]
        both = [hit.name for hit in engine.search(query.text, limit=_FIRST)]
        for names, ending in ((alone, ""), (both, "_beside")):
            for first in (1, _FIRST):
                share = len(query.relevant.intersection(names[:first])) / len(query.relevant)
                found[f"recall_{first}{ending}"].append(share)
    return {
        "set": beside.name,
        "tools": len(beside.tools),
        "skills": skills,
        "asked": len(beside.queries),
        **{name: round(fmean(shares), 4) for name, shares in found.items()},
    }


def _alone(material: Material) -> Figures:
    with _opened([], material.skills) as engine:
        return _skills_found(engine, "", material.requests, 0)


def _skills_found(engine: ToolSearch, name: str, requests: Sequence[SkillRequest], tools: int) -> Figures:
    """Shares of the requests for which a right skill is first, or among the first five."""
    found = [(each, [hit.name for hit in engine.search(each.text, limit=_FIRST)]) for each in requests]
    return {
        "beside": name,
        "tools": tools,
        "asked": len(found),
        "right_1": _share(not each.relevant.isdisjoint(names[:1]) for each, names in found),
        "right_5": _share(not each.relevant.isdisjoint(names) for each, names in found),
    }


def _nothing_found(engine: ToolSearch, beside: Beside) -> Figures:
    """Shares of the requests that no tool serves: those that get an answer, and a sure one. A skill may serve some."""
    alone = [engine.search(each.query, limit=1, kinds=TOOLS) for each in beside.nothing]
    both = [engine.search(each.query, limit=1) for each in beside.nothing]
    return {
        "set": beside.name,
        "asked": len(both),
        "answered": _share(map(bool, alone)),
        "answered_beside": _share(map(bool, both)),
        "sure": _share(bool(hits) and hits[0].confidence == "high" for hits in alone),
        "sure_beside": _share(bool(hits) and hits[0].confidence == "high" for hits in both),
    }


def _answers(engine: ToolSearch, beside: Beside, requests: Sequence[SkillRequest]) -> Figures:
    """Mean tokens of an answer, and how often a right tool is loaded in it, or a right skill named."""
    askable = [query for query in beside.queries if len(query.text) <= MAX_QUERY_CHARACTERS]
    queries = random.Random(SEED).sample(askable, min(_ANSWERED, len(askable)))
    of_tools = {ending: [_asked(engine, query.text, deny) for query in queries] for ending, deny in _BOTH.items()}
    of_skills = [_asked(engine, each.text, ()) for each in requests]
    figures: Figures = {"set": beside.name, "asked": len(queries)}
    for ending, found in of_tools.items():
        right = (not query.relevant.isdisjoint(tools) for query, (_, tools, _) in zip(queries, found, strict=True))
        figures[f"loaded{ending}"] = _share(right)
        figures[f"tokens{ending}"] = round(fmean(tokens for tokens, _, _ in found), 1)
    named = (not each.relevant.isdisjoint(names) for each, (_, _, names) in zip(requests, of_skills, strict=True))
    told = _share(bool(names) for _, _, names in of_tools["_beside"])
    tokens = round(fmean(tokens for tokens, _, _ in of_skills), 1)
    return figures | {
        "told": told,
        "skills_asked": len(of_skills),
        "skills_named": _share(named),
        "skill_tokens": tokens,
    }


_BOTH: Final[Mapping[str, Sequence[str]]] = {"": _WITHOUT, "_beside": ()}


def _asked(engine: ToolSearch, query: str, deny: Sequence[str]) -> tuple[int, Sequence[str], Sequence[str]]:
    """The tokens of the answer in a session of its own, and the names of its loaded tools and of its skills."""
    session = engine.session("asked", deny=deny, exposure="append")
    output: Any = session.answer({"query": query})
    text = "\n".join(block["text"] for block in output.content)
    engine.sessions.evict(session.id)
    return default_counter().count(text), output.structured["tools"], output.structured.get("skills", ())


def _costs(material: Material) -> Figures:
    """Bytes and seconds that one skill takes on average, and tokens of its text."""
    documents = [document_of(skill.definition) for skill in material.skills]
    encoder = open_encoder(BUILT_IN)
    encoder.encode_queries(["warm"])
    index = ToolSearchIndex(encoder=encoder)
    taken_ms = _cpu_ms(lambda: index.update(documents))
    searches_ms = [_cpu_ms(lambda text=each.text: index.search(text, limit=_FIRST)) for each in material.requests]  # type: ignore[misc]
    tokens = [default_counter().count(text) for text in material.texts]
    return {
        "skills": len(documents),
        "index_kib_each": round(index_bytes(index) / 1024 / len(documents), 1),
        "index_ms_each": round(taken_ms / len(documents), 3),
        "search_ms": round(median(searches_ms[-_TIMED:]), 3),
        "text_tokens": {
            "median": round(median(tokens)),
            "90 %": round(quantiles(tokens, n=10)[-1]),
            "most": max(tokens),
        },
    }


def _cpu_ms(action: Callable[[], object]) -> float:
    started_ns = time.process_time_ns()
    action()
    return (time.process_time_ns() - started_ns) / 1e6


def _share(truths: Iterable[bool]) -> float:
    return round(fmean(map(float, truths)), 4)


# Tables

_Table = tuple[Sequence[str], Sequence[Sequence[str]]]


def tables(figures: Mapping[str, Any]) -> dict[str, _Table]:
    """Head and rows of each table, by its name."""
    of_tools, of_skills, nothing, answers = (figures[each] for each in ("tools", "skills", "nothing", "answers"))
    recalls = [("recall_1", "recall_1_beside"), ("recall_5", "recall_5_beside")]
    rows = [
        (row["set"], *(f"{row[each]:,}" for each in ("tools", "asked")), *_beside(row, recalls)) for row in of_tools
    ]
    found = [
        (row["beside"] or "no tools", f"{row['tools']:,}", *(f"{row[each]:.3f}" for each in ("right_1", "right_5")))
        for row in of_skills
    ]
    vain = [(row["set"], f"{row['asked']:,}", *(f"{row[each]:.1%}" for each in _OF_NOTHING)) for row in nothing]
    told = [
        (
            row["set"],
            *(f"{row[each]:.3f}" for each in ("loaded", "loaded_beside")),
            *(f"{row[each]:,.0f}" for each in ("tokens", "tokens_beside")),
            f"{row['told']:.1%}",
            f"{row['skills_named']:.3f}",
            f"{row['skill_tokens']:,.0f}",
        )
        for row in answers
    ]
    costs = figures["costs"]
    taken = [(name, f"{costs[key]:,}") for name, key in _OF_COSTS.items()]
    taken += [(f"tokens of its {SKILL_FILE}, {name}", f"{tokens:,}") for name, tokens in costs["text_tokens"].items()]
    return {
        "skills, tools": (("set", "tools", "asked", "@1", "beside skills", "@5", "beside skills", "lost @5"), rows),
        "skills, found": (("beside", "tools", "first right", "right in five"), found),
        "skills, nothing": (("set", "asked", "answered", "beside skills", "sure", "beside skills"), vain),
        "skills, answers": (
            (
                *("set", "right tool loaded", "beside skills", "tokens of an answer", "beside skills"),
                *("with a skill", "right skill named", "tokens then"),
            ),
            told,
        ),
        "skills, costs": (("a skill", "takes"), taken),
    }


_OF_NOTHING: Final = ("answered", "answered_beside", "sure", "sure_beside")
_OF_COSTS: Final = {
    "KiB in the index": "index_kib_each",
    "CPU ms of indexing": "index_ms_each",
    "CPU ms that a search takes longer": "search_ms",
}


def _beside(row: Mapping[str, Any], pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Each figure without and with skills, and what is lost of the last."""
    alone, beside = pairs[-1]
    return [f"{row[each]:.3f}" for pair in pairs for each in pair] + [f"{row[alone] - row[beside]:.3f}"]


def _mean(rows: Sequence[Mapping[str, Any]], name: str) -> dict[str, Any]:
    """The mean over the sets of shares, tokens and sizes, and the sum of what was asked."""
    keys = [key for key in (rows[0] if rows else ()) if key != name]
    means = {key: round(fmean(row[key] for row in rows), _DIGITS.get(key, 4)) for key in keys}
    return {name: _ALL} | means | {key: sum(row[key] for row in rows) for key in keys if key.endswith("asked")}


_DIGITS: Final[Mapping[str, int | None]] = {"tools": None, "skills": None}


def page_tables(figures: Mapping[str, Any]) -> dict[str, list[str]]:
    return {name: markdown_table(*table) for name, table in tables(figures).items()}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.skills",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("skills", type=Path, help="a file of skills, as above")
    parser.add_argument("requests", type=Path, help="a file of requests for them, as above")
    parser.add_argument("--half", choices=("odd", "even"), help="only the skills of odd, or of even lines, from 1 on")
    add_sets_option(parser)
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    return parser


if __name__ == "__main__":
    sys.exit(main())
