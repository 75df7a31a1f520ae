"""What the tools of servers are about, in words of the tools' names alone: descriptions are anybody's prose."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from toolsearch.gateway.exposure.own_tools import MOST_TOPICS, Topics
from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.naming import SEPARATOR, in_words

_SHORTEST = 3  # letters
_OF_EVERY_SERVER = frozenset(
    """
    add all and append apply batch by call cancel change check clear close complete configure convert copy count
    create current delete disable do download edit enable end execute export fetch file find for from get import
    info insert into invoke item items list load lookup make many mcp merge modify move new not off open patch ping
    post put query read refresh remove rename replace request reset resolve restore resume retrieve run save search
    select send set show start status stop submit sync test the tool tools update upload upsert use validate view
    with write
    """.split()  # noqa: SIM905  a list of words is easier to read so
)


def topics_of(definitions: Iterable[ToolDefinition]) -> Topics:
    """Up to `MOST_TOPICS` words for each server of *definitions*: the most frequent first, ties by name."""
    words: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for definition in definitions:
        if definition.server:
            words[definition.server].update(set(_words(definition)))
    return {server: _best(counted, server) for server, counted in sorted(words.items())}


def _words(definition: ToolDefinition) -> list[str]:
    return in_words(definition.name.partition(SEPARATOR)[2] or definition.name).split()


def _best(counted: Counter[str], server: str) -> list[str]:
    own = set(in_words(server).split())
    telling = [word for word in counted if word.isalpha() and len(word) >= _SHORTEST]
    telling = [word for word in telling if word not in _OF_EVERY_SERVER and word not in own]
    return sorted(telling, key=lambda word: (-counted[word], word))[:MOST_TOPICS]
