"""What the name of a tool's server tells of the tool: the words that neither say nothing nor are said already."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from toolsearch_indexes.analysis import STOP_WORDS, stem

# What servers are called for being servers, by stem.
_SAID_OF_ALL = frozenset(stem(word) for word in ("api", "mcp", "server", "service", "tool"))


def telling_words(server: str, knows: Callable[[str], bool]) -> dict[str, str]:
    """Return the words of the name *server* that tell something of its tools, in lower case, by their stems.

    The name is words apart by spaces. A word that the encoder does not know, mostly a vendor's, would be a direction
    without meaning.
    """
    found: dict[str, str] = {}
    for word in server.lower().split():
        term = stem(word)
        if word not in STOP_WORDS and term not in _SAID_OF_ALL and knows(word):
            found.setdefault(term, word)
    return found


def told_of(tool: str, by_server: Mapping[str, str]) -> str:
    """Return those of `telling_words` that the name *tool* lacks, words apart by spaces: others would count twice."""
    said = set(map(stem, tool.lower().split())) if by_server else set[str]()
    return " ".join(word for term, word in by_server.items() if term not in said)
