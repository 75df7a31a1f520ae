"""The input of a search: names, a pattern or words; its parts, its strategy, and the visible tools."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence, Sized
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, SupportsIndex, TypeAlias, get_args

from toolsearch_indexes.errors import BadQueryError

_LONGEST_QUERY = 4_000  # characters; the rest of the query is not read
_SELECT = "select:"
_AROUND_A_NAME = " \t\r\n.,:;!?*'\"`()[]{}<>\u00ab\u00bb\u2018\u2019\u201c\u201d\u201e"
_CALL = re.compile(r"^([^\s()]+)\(.*$", re.DOTALL)  # matches a call such as ``send_email(to, subject``


# A separator is required, so that "tool search" is kept.
_WRAPPER = re.compile(r"(?:mcp[_-]|(?:mcp|functions?|tools?|default_api)[.:/])[_.:/]*")
_SEPARATORS = b"_-./: \t\r\n"


@dataclass(frozen=True, slots=True)
class Select:
    """``select:name_a,name_b``: these tools, by name, in this order."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pattern:
    """``/pattern/``: a regular expression."""

    pattern: str


@dataclass(frozen=True, slots=True)
class Words:
    """Any other query. It is ranked, unless the whole of it is the name of a tool."""

    text: str


QueryForm: TypeAlias = Select | Pattern | Words


def require_text(given: object, role: str) -> str:
    """Return *given*. If it is not a text, raise BadQueryError, which calls it *role*."""
    if not isinstance(given, str):
        raise BadQueryError(f"{role} must be a text, not {_shown(given)}")
    return given


def require_limit(limit: object) -> int:
    """Return *limit*. Raises BadQueryError if it is not a whole number of 1 or more."""
    if type(limit) is int:  # an isinstance check with the protocol takes longer than some searches
        number = limit
    elif isinstance(limit, bool) or not isinstance(limit, SupportsIndex):
        raise BadQueryError(f"limit must be a whole number, not {_shown(limit)}")
    else:
        number = limit.__index__()
    if number < 1:
        raise BadQueryError(f"limit must be at least 1, not {number}")
    return number


def _shown(value: object) -> str:
    return f"{value!r:.80}"


def read_form(query: str) -> QueryForm:
    """Raises BadQueryError if *query* is empty, selects nothing, or is no text."""
    text = require_text(query, "the query").strip()[:_LONGEST_QUERY]
    if not text:
        raise BadQueryError("the query is empty; say in a few words what the tool should do")
    if text[: len(_SELECT)].lower() == _SELECT:
        names = tuple(dict.fromkeys(name.strip() for name in text[len(_SELECT) :].split(",") if name.strip()))
        if not names:
            raise BadQueryError("select: needs names, as in select:name_a,name_b")
        return Select(names)
    if len(text) > 2 and text[0] == text[-1] == "/":
        return Pattern(text[1:-1])
    return Words(text)


def select_missing(query: str, search: Callable[[str], Sized]) -> list[str]:
    """The names in a ``select:`` query that match no tool; empty for other queries.

    *search* is asked for each name alone, so that reach, server and the readings of a name count as in the search.
    Raises BadQueryError as `read_form` does.
    """
    form = read_form(query)
    return [name for name in form.names if not len(search(f"{_SELECT}{name}"))] if isinstance(form, Select) else []


def name_candidates(name: str) -> list[str]:
    """The names that *name* may mean, in lower case, the most literal first.

    First comes *name* itself, then *name* without quotes, brackets, call arguments or punctuation around it, and last
    without a prefix that clients and models add: ``functions.``, ``tools.``, ``mcp__``, ``mcp__server__``,
    ``server__``.
    """
    folded = name.casefold()
    bare = folded.strip(_AROUND_A_NAME)
    if "(" in bare:
        bare = _CALL.sub(r"\1", bare).strip(_AROUND_A_NAME)
    candidates = [folded, bare]
    while (wrapper := _WRAPPER.match(bare)) or "__" in bare:
        bare = bare[wrapper.end() :] if wrapper else bare.partition("__")[2]
        candidates.append(bare)
    return [candidate for candidate in dict.fromkeys(candidates) if candidate]


def name_key(name: str) -> str:
    """A key that is equal for all spellings of *name*: ``updateRole``, ``UPDATE_ROLE``, ``update role`` and
    ``update-role``.

    Case and the separators ``_ - . / :`` and space are removed. A name that has nothing else is its own key.
    """
    folded = name.casefold()
    # Bytes.translate is 4 times as fast as str.translate.
    letters = folded.encode("utf-8", "surrogatepass").translate(None, _SEPARATORS)
    return letters.decode("utf-8", "surrogatepass") or folded


_MOST_PARTS = 6  # parts of one request that are searched for separately
_LEAST_WORDS = 2
_LONGEST_BEGINNING = 80  # characters of a part in which its first words are
_WORD = re.compile(r"[\w']+")
_ABBREVIATED = "".join(
    rf"(?<!\b{each}\.)" for each in ("St", "Dr", "Mr", "Ms", "Mrs", "No", r"e\.g", r"i\.e", r"[ap]\.m")
)
_SENTENCE_BREAK = re.compile(rf"(?<=[.!?;]){_ABBREVIATED}\s+|(?<=[\u3002\uff01\uff1f\uff1b])|\n+", re.IGNORECASE)

_BREAK = re.compile(
    r"(?<=[.!?;\u3002\uff01\uff1f\uff1b])\s+"
    r"|\n+"
    r"|[;\uff1b]"
    r"|,?\s+(?:and\s+then|then|after\s+that|afterwards|finally|and\s+also|as\s+well\s+as|also|next|plus)\s+"
    r"|,\s+(?:and\s+)?"
    r"|\s+(?:and|&)\s+",
    re.IGNORECASE,
)

_SIGNS = frozenset(".!?;,\n")  # every ASCII break has one of these signs, or contains a joining word
_JOINERS = frozenset({"and", "&", "then", "after", "afterwards", "finally", "as", "also", "next", "plus"})


@lru_cache(maxsize=16)  # a search asks for those of its request, and of its parts, several times
def clauses(request: str) -> Sequence[str]:
    """Return the parts of *request* that are requests by themselves, in order; none if it asks for one thing.

    A single word is not a part: ``search and replace`` asks for one thing.
    """
    if request.isascii() and _SIGNS.isdisjoint(request) and _JOINERS.isdisjoint(request.lower().split()):
        return ()  # a quick check, since most requests ask for one thing
    return _parts(_BREAK, request)


# Words that a request may begin with, and those that may stand before them.
_ASKING = frozenset(
    """
    add analyse analyze apply archive ask assign book build buy calculate call cancel change check choose clear clone
    close collect combine commit compare compile compose compute configure connect convert copy count crawl create
    decrypt define delete deploy describe design detect determine develop disable display download draft draw edit email
    enable encode encrypt enter estimate evaluate execute explain explore export extract fetch filter find fix forecast
    format generate get give go grab help hide identify import improve include increase initialize insert inspect
    install invite join kick launch list load locate log look make map mark measure merge modify monitor move navigate
    notify open order organize output parse perform place plan play plot post predict prepare present print process
    produce provide publish pull push put query read recommend record register remove rename render reorder replace
    reply report request reserve reset resize resolve restart restore resume retrieve return reverse review roll run
    save scale scan schedule scrape search see select send set share show sign simulate solve sort split start stop
    store submit subscribe suggest summarise summarize switch take tell test trace track train transcribe transfer
    transform translate turn unregister update upload use validate verify view visit visualise visualize wait watch
    write zip are did do does how is what what's when where which who whom whose why
    """.split()  # noqa: SIM905 - a list of two hundred strings does not read
)
_BEFORE_ASKING = frozenset(
    """
    after afterwards also and can could finally first firstly help i i'd just last lastly let lets let's like me need
    next now please kindly second secondly that then third to us want will would you
    """.split()  # noqa: SIM905
)
_FIRST_WORDS = 6  # words of a part among which one has to ask
_MOST_STEPS = 8
_STEP = re.compile(
    r",? (?P<then>and then|then|after that|afterwards|finally|and also|also|next|plus) |, (?:and )?| (?:and|&) ",
    re.IGNORECASE,
)


@lru_cache(maxsize=16)
def steps(request: str) -> Sequence[str]:
    """Return the parts of *request* that ask for one thing each, in order; none if it asks for one thing.

    Each sentence or line is a part, whether it asks for something or not; there are eight at most. A sentence is cut
    before words such as "then", and at a comma or "and" only if what follows asks for something: "compute the mean and
    plot it" has two parts, "the mean and the variance" one.
    """
    if request.isascii() and _SIGNS.isdisjoint(request) and _JOINERS.isdisjoint(request.lower().split()):
        return ()  # a quick check, since most requests ask for one thing
    found: list[str] = []
    for sentence in _SENTENCE_BREAK.split(request):
        line, start = " ".join(sentence.split()), 0
        for cut in _STEP.finditer(line):
            if cut["then"] or _asks(line[cut.end() : cut.end() + _LONGEST_BEGINNING]):
                found.append(line[start : cut.start()])
                start = cut.end()
        found.append(line[start:])
    parts = [part.strip(" ,.") for part in found if len(part.split()) >= _LEAST_WORDS]
    return tuple(parts[:_MOST_STEPS]) if len(parts) > 1 else ()


def _asks(beginning: str) -> bool:
    for word in _WORD.findall(beginning.lower())[:_FIRST_WORDS]:
        if word not in _BEFORE_ASKING:
            return word in _ASKING
    return False


def sentences(request: str) -> Sequence[str]:
    """Return the sentences and lines of *request*, under the same rules as `clauses`."""
    return _parts(_SENTENCE_BREAK, request)


def _parts(breaks: re.Pattern[str], request: str) -> Sequence[str]:
    found = [part.strip(" ,.") for part in breaks.split(request)]
    found = [part for part in found if len(part.split()) >= _LEAST_WORDS]
    return tuple(found[:_MOST_PARTS]) if len(found) > 1 else ()


Ranking: TypeAlias = Literal["hybrid", "keyword", "semantic", "regex"]
Strategy: TypeAlias = Literal["auto", Ranking]  # auto means hybrid if there is an encoder, else keyword
RANKINGS: Final[tuple[Ranking, ...]] = get_args(Ranking)
STRATEGIES: Final[tuple[Strategy, ...]] = get_args(Strategy)


class Selection:
    """The tools whose names *allows* accepts.

    An index caches its findings about a selection as long as the selection lives, and checks only new tools after a
    change. So *allows* must always give the same answer for one version of a tool. Make one selection per reach and
    share it. Safe to share between threads.
    """

    def __init__(self, allows: Callable[[str], bool]) -> None:
        self.allows = allows

    @classmethod
    def of(cls, names: Collection[str]) -> Selection:
        """Raises BadQueryError for a plain text, because its letters would be taken for names."""
        if isinstance(names, str | bytes):
            raise BadQueryError(f"within must be a collection of names, not one text; write [{names[:80]!r}]")
        return cls(frozenset(names).__contains__)
