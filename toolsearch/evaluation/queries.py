"""Queries whose right tools are known: read from files, or proposed from the tools' own words.

A bad line of a file is reported, and the others are read. Proposed queries find their tools too often, because a real
user does not know the tool's words. They show whether tools can be told apart, and whether a change of descriptions or
of the engine breaks something. Only queries of people or models show how good a search really is.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import dropwhile, zip_longest
from pathlib import Path
from random import Random
from typing import NamedTuple

from toolsearch.access.reach import Reach
from toolsearch.discovery.view import View
from toolsearch.documents.json_values import as_object, is_list, is_object
from toolsearch.documents.reading import BadLine
from toolsearch.engine import ToolSearch
from toolsearch.errors import BadQueryError, BadSettingError, UnknownToolError
from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.naming import MAX_NAME_LENGTH, near_names
from toolsearch_indexes.analysis import fold, name_words, stem, terms, words
from toolsearch_indexes.queries import Pattern, read_form
from toolsearch_indexes.regex import compile_pattern

_TOOL_KEYS = ("relevant", "tools", "tool")
_CSV_SEPARATOR = ";"
_MOST_HINTS = 20  # unknown names that get suggestions; with the wrong catalog each name is unknown


@dataclass(frozen=True, slots=True)
class LabelledQuery:
    """A query and all of its right tools; no tools if the right answer is that nothing fits.

    is_proposed  made by `propose_queries` from the tool's own words
    """

    text: str
    relevant: frozenset[str]
    is_proposed: bool = False


@dataclass(frozen=True, slots=True)
class QueryFile:
    """The queries of a file, in its order, and its bad lines."""

    queries: tuple[LabelledQuery, ...]
    bad_lines: tuple[BadLine, ...] = ()


def read_queries(path: str | Path, engine: ToolSearch, *, reach: Reach | None = None) -> QueryFile:
    """Read labelled queries for *engine* from a ``.csv`` file, or from JSON lines in any other.

    A JSON line is ``{"query": ..., "relevant": [names]}``, or has ``tools``, or one ``tool``; an empty list says that
    nothing fits. A CSV file has the columns ``query`` and ``tools``, names being separated by ``;``. A line that names
    a tool outside *reach* is a bad one, too. Raises OSError, and BadQueryError if no line can be used.
    """
    path = Path(path)
    checker = _Checker(engine.view(Reach() if reach is None else reach))
    queries: list[LabelledQuery] = []
    bad: list[BadLine] = []
    for line, entry in _csv_lines(path) if path.suffix.lower() == ".csv" else _json_lines(path):
        try:
            query = _query(entry)
            checker.check(query)
        except (BadQueryError, UnknownToolError) as error:
            bad.append(BadLine(line, str(error)))
        else:
            queries.append(query)
    if not queries:
        first = f"; line {bad[0].line}: {bad[0].reason}" if bad else ""
        raise BadQueryError(f"{path} holds no query that can be used{first}")
    return QueryFile(tuple(queries), tuple(bad))


def write_queries(path: str | Path, queries: Iterable[LabelledQuery]) -> None:
    """Write JSON lines that `read_queries` takes, names sorted."""
    lines = (json.dumps(_entry(query), ensure_ascii=False) + "\n" for query in queries)
    Path(path).write_text("".join(lines), encoding="utf-8")


def _entry(query: LabelledQuery) -> dict[str, Json]:
    entry: dict[str, Json] = {"query": query.text, "relevant": sorted(query.relevant)}
    return entry | {"proposed": True} if query.is_proposed else entry


class _Checker:
    """Checks that queries can be searched for and that their tools exist."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._hints_left = _MOST_HINTS

    def check(self, query: LabelledQuery) -> None:
        """Raises BadQueryError or UnknownToolError."""
        form = read_form(query.text)
        if isinstance(form, Pattern):
            compile_pattern(form.pattern)
        for name in sorted(query.relevant):
            if self._view.find(name) is None:
                raise UnknownToolError(name, near=self._near(name))

    def _near(self, name: str) -> list[str]:
        if not self._hints_left:
            return []
        self._hints_left -= 1
        return near_names(name, self._view.names)


def _query(entry: Json | BadQueryError) -> LabelledQuery:
    if isinstance(entry, BadQueryError):
        raise entry
    if not is_object(entry):
        raise BadQueryError('the line is no object; write {"query": "...", "relevant": ["name"]}')
    text = entry.get("query")
    if not isinstance(text, str):
        raise BadQueryError('"query" must be text')
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BadQueryError('"query" is not valid UTF-8') from None
    return LabelledQuery(text, _relevant(entry), is_proposed=entry.get("proposed") is True)


def _relevant(entry: JsonObject) -> frozenset[str]:
    keys = [key for key in _TOOL_KEYS if key in entry]
    if len(keys) != 1:
        raise BadQueryError('the tools must be said once, as "relevant": [names]; [] where nothing fits')
    value = entry[keys[0]]
    names = [value] if keys[0] == "tool" else value
    if not is_list(names) or not all(isinstance(name, str) and name for name in names):
        raise BadQueryError(f'"{keys[0]}" must be {"a name" if keys[0] == "tool" else "a list of names"}')
    return frozenset(names)


def _json_lines(path: Path) -> Generator[tuple[int, Json | BadQueryError]]:
    # Bytes that are not UTF-8 become surrogates. These are refused in the lines that contain them, and other lines are
    # read.
    with path.open(encoding="utf-8-sig", errors="surrogateescape") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                yield number, json.loads(line)
            except (ValueError, RecursionError) as error:
                yield number, BadQueryError(f"the line is no JSON: {error}")


def _csv_lines(path: Path) -> Generator[tuple[int, Json | BadQueryError]]:
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as lines:
        rows = csv.DictReader(lines)
        try:
            missing = {"query", "tools"}.difference(rows.fieldnames or ())
            if missing:
                raise BadQueryError(f"{path} lacks the column {', '.join(sorted(missing))}; it needs query and tools")
            for row in rows:
                yield rows.line_num, _csv_entry(row)
        except csv.Error as error:
            yield rows.line_num, BadQueryError(f"the line is no CSV, nothing after it is read: {error}")


def _csv_entry(row: Mapping[str | None, Json]) -> Json | BadQueryError:
    if None in row or None in row.values():  # csv puts extra cells under the key None, and gives None for missing cells
        return BadQueryError("the line has not as many cells as the header; put a text with commas in quotes")
    names = [name.strip() for name in row["tools"].split(_CSV_SEPARATOR)]
    return {"query": row["query"], "tools": [name for name in names if name]}


_FEWEST_WORDS = 2  # stop words do not count; one word alone is a tool's whole name, or fits many
_MOST_SENTENCE_WORDS = 12
_MOST_PARAMETERS = 3
_SHORTEST_MISTYPED = 5  # letters; in shorter words a typo makes another word


def propose_queries(definitions: Iterable[ToolDefinition], count: int, *, seed: int = 0) -> list[LabelledQuery]:
    """Return at most *count* queries, each marked as proposed and made from one of *definitions*.

    A tool gives up to five queries: verb and object of its name, the same with a typo, the same in the plural, the
    first sentence of its description without the words of its name, and its object with its parameters. A query that
    two tools would give is left out. Each tool gives one query before any gives a second one. The same arguments give
    the same queries. Another tool removes only queries that it would give as well. Raises BadSettingError if
    *count* < 1.
    """
    if count < 1:
        raise BadSettingError(f"the number of queries to propose must be at least 1, not {count}")
    made = {definition.name: _proposals(definition, seed) for definition in definitions}
    owners = Counter(words for proposals in made.values() for words in {proposal.words for proposal in proposals})
    in_turn = sorted(made, key=lambda name: (_random(seed, name).random(), name))
    unshared = ([(name, each.text) for each in made[name] if owners[each.words] == 1] for name in in_turn)
    proposed = [pair for turn in zip_longest(*unshared) for pair in turn if pair is not None]
    return [LabelledQuery(text, frozenset({name}), is_proposed=True) for name, text in proposed[:count]]


class _Proposal(NamedTuple):
    """A query and its sorted words without the typo. A search cannot tell two queries with the same words apart."""

    text: str
    words: tuple[str, ...]


def _random(seed: int, name: str) -> Random:
    return Random(f"{seed} {name}")  # noqa: S311  not a secret; a text as seed gives the same numbers in every process


def _proposals(definition: ToolDefinition, seed: int) -> list[_Proposal]:
    """The queries that *definition* gives, without repetition, in an order of its own."""
    random = _random(seed, definition.name)
    made = {text: _Proposal(text, tuple(sorted(terms(meant)))) for text, meant in _forms(definition, random)}
    usable = [proposal for proposal in made.values() if _is_usable(proposal.text)]
    random.shuffle(usable)
    return usable


def _is_usable(text: str) -> bool:
    """Whether the text has enough words and can be printed. Other texts might not be writable to a file."""
    return len(terms(text)) >= _FEWEST_WORDS and text.isprintable()


def _forms(definition: ToolDefinition, random: Random) -> Generator[tuple[str, str]]:
    """Queries, each with its form without a mistake."""
    own = _own_words(definition)
    verb_and_object = " ".join(dict.fromkeys((own[0], own[-1]))) if own else ""
    yield verb_and_object, verb_and_object
    yield _with_a_typo(verb_and_object, random), verb_and_object
    for text in (
        _plural(verb_and_object),
        _sentence_without(own, definition.description),
        _by_parameters(own, definition.input_schema),
    ):
        yield text, text


def _own_words(definition: ToolDefinition) -> list[str]:
    """The words of the name without the server's prefix. Empty if the name was cut: it ends in a hash."""
    if len(definition.name) >= MAX_NAME_LENGTH:
        return []
    of_server = set(name_words(definition.server).split())
    return list(dropwhile(of_server.__contains__, name_words(definition.local_name).split()))


def _with_a_typo(text: str, random: Random) -> str:
    """Swap two different neighbours inside the longest word, or return "" if no word is long enough."""
    word = max(text.split(), key=len, default="")
    places = [place for place in range(1, len(word) - 2) if word[place] != word[place + 1]]
    if len(word) < _SHORTEST_MISTYPED or not places:
        return ""
    place = random.choice(places)
    mistyped = word[:place] + word[place + 1] + word[place] + word[place + 2 :]
    return text.replace(word, mistyped, 1)


def _plural(text: str) -> str:
    """Put the last word into the plural, or return "" if it seems to be in it, or is no English word."""
    if not text.isascii() or not text[-1:].isalpha() or text.endswith("s"):
        return ""
    if text.endswith("y") and text[-2:-1] not in "aeiou":
        return f"{text[:-1]}ies"
    return f"{text}es" if text.endswith(("x", "z", "ch", "sh")) else f"{text}s"


def _sentence_without(own: Iterable[str], description: str) -> str:
    """Twelve words at most of the first sentence of *description*: no stop words, and no *own* in any inflexion."""
    known = {stem(fold(word)) for word in own}
    sentence = " ".join(description.split()).partition(". ")[0]
    telling = [word for word in words(sentence) if (found := terms(word)) and not known.intersection(found)]
    return " ".join(list(dict.fromkeys(telling))[:_MOST_SENTENCE_WORDS])


def _by_parameters(own: Sequence[str], schema: JsonObject) -> str:
    """A query such as ``time by source timezone and target timezone``."""
    properties = as_object(schema.get("properties"))
    if not own or not properties:
        return ""
    names = [name_words(name) for name in properties]
    return f"{own[-1]} by {' and '.join(names[:_MOST_PARAMETERS])}"
