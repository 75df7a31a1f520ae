"""What kind of query this is: names to fetch, a pattern, or words. Understood before anything is ranked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from toolsearch_indexes.errors import BadQueryError

_LONGEST_QUERY = 4_000  # characters; what lies behind is not read
_SELECT = "select:"


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


def read_form(query: str) -> QueryForm:
    """Raises BadQueryError if *query* is empty, or selects nothing."""
    text = query.strip()[:_LONGEST_QUERY]
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


def name_candidates(name: str) -> list[str]:
    """The names that *name* may mean, folded, the most literal first: as it is, and without ``mcp__`` or
    ``mcp__server__`` or ``server__`` in front, as clients and models write it.
    """
    folded = name.casefold()
    candidates = [folded]
    while "__" in folded:
        folded = folded.partition("__")[2]
        if folded:
            candidates.append(folded)
    return list(dict.fromkeys(candidates))
