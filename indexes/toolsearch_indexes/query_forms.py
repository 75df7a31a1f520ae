"""What kind of query this is: names to fetch, a pattern, or words. Understood before anything is ranked."""

from __future__ import annotations

import re
from collections.abc import Callable, Sized
from dataclasses import dataclass
from typing import SupportsIndex, TypeAlias

from toolsearch_indexes.errors import BadQueryError

_LONGEST_QUERY = 4_000  # characters; what lies behind is not read
_SELECT = "select:"
_AROUND_A_NAME = " \t\r\n.,:;!?*'\"`()[]{}<>\u00ab\u00bb\u2018\u2019\u201c\u201d\u201e"
_CALL = re.compile(r"^([^\s()]+)\(.*$", re.DOTALL)  # send_email(to, subject
_WRAPPER = re.compile(r"(?:mcp[_-]|(?:mcp|functions?|tools?|default_api)[.:/])[_.:/]*")  # "tool search" has none
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
    """Anything else: to be ranked, unless the whole of it names a tool."""

    text: str


QueryForm: TypeAlias = Select | Pattern | Words


def require_text(given: object, role: str) -> str:
    """Return *given*. Raises BadQueryError, which calls it *role*, if it is not a text."""
    if not isinstance(given, str):
        raise BadQueryError(f"{role} must be a text, not {_shown(given)}")
    return given


def require_limit(limit: object) -> int:
    """Return *limit*. Raises BadQueryError if it is not a whole number of 1 or more."""
    if type(limit) is int:  # asking for the protocol takes longer than some searches
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
    """The names in a ``select:`` query that mean no tool; none for a query of another form.

    *search* is asked for each name alone, so that reach, server and the readings of a name count as in the search.
    Raises BadQueryError as `read_form` does.
    """
    form = read_form(query)
    return [name for name in form.names if not len(search(f"{_SELECT}{name}"))] if isinstance(form, Select) else []


def name_candidates(name: str) -> list[str]:
    """The names that *name* may mean, in lower case, the most literal first.

    That is *name* as it is; without quotes, brackets, a call's arguments or punctuation around it; and then without
    what clients and models write in front: ``functions.``, ``tools.``, ``mcp__``, ``mcp__server__``, ``server__``.
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
    """What all spellings of *name* share: ``updateRole``, ``UPDATE_ROLE``, ``update role`` and ``update-role``.

    Case and the separators ``_ - . / :`` and space are put aside; a name of nothing else is its own key.
    """
    folded = name.casefold()
    letters = folded.encode("utf-8", "surrogatepass").translate(None, _SEPARATORS)  # on bytes it is 4 times as fast
    return letters.decode("utf-8", "surrogatepass") or folded
