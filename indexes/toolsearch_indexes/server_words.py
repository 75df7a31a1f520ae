"""What the name of a tool's server tells of the tool: the words that neither say nothing nor are said already."""

from __future__ import annotations

from collections.abc import Callable

from toolsearch_indexes.analysis import STOP_WORDS, stem

# What servers are called for being servers, by stem.
_SAID_OF_ALL = frozenset(stem(word) for word in ("api", "mcp", "server", "service", "tool"))


def telling_words(server: str, tool: str, knows: Callable[[str], bool]) -> str:
    """Return the words of the name *server* that tell something of *tool*, each once and in lower case.

    Both names are words apart by spaces. A word that the encoder does not know, mostly a vendor's, would be a direction
    without meaning; one that the tool's own name has would count twice.
    """
    passed_over = _SAID_OF_ALL.union(map(stem, tool.lower().split()))
    found: dict[str, str] = {}
    for word in server.lower().split():
        term = stem(word)
        if word not in STOP_WORDS and term not in passed_over and knows(word):
            found.setdefault(term, word)
    return " ".join(found.values())
