"""Findings about names: a name that looks like another tool's, and texts that say how to use the tools of others."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import re2 as untyped_re2  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs]

from toolsearch.scanning.findings import Finding
from toolsearch.scanning.texts import Text, evidence, fold, printable
from toolsearch.tools.naming import TOOL_NAME
from toolsearch.tools.safety import SafetyClass
from toolsearch.upstreams.pinned import Entry

_re2: Any = untyped_re2

_WORDS = _re2.compile(rb"[A-Za-z][A-Za-z0-9_-]{4,127}")
_OURS = frozenset(  # the call tools are made further up, with these names
    fold(name) for name in (TOOL_NAME, "callTool", *(f"callTool{each.value}" for each in SafetyClass))
)


@dataclass(frozen=True)
class Neighbours:
    """The names in use around one server: *own* are its own tools, *others* the tools of other servers, each with its
    server.
    """

    own: frozenset[str]
    others: Mapping[str, str]
    folded: Mapping[str, str]  # name of another's tool by how it looks

    @classmethod
    def of(cls, own: Collection[Entry], others: Collection[Entry]) -> Neighbours:
        names = {name: tool.server for tool in others for name in (tool.remote_name, tool.name)}
        mine = frozenset(name for tool in own for name in (tool.remote_name, tool.name))
        return cls(mine, names, {fold(tool.remote_name): tool.remote_name for tool in others})


def borrowed_name(name: str, neighbours: Neighbours) -> Iterator[Finding]:
    """A name that looks like one of the gateway's own, or like another server's but in other letters.

    The same name in the same letters is allowed: many servers have a ``search``, and the server's name tells them
    apart.
    """
    looks = fold(name)
    if looks in _OURS:
        yield Finding("borrowed-name", "name", f"{printable(name)} is what the gateway's own tools are called")
    elif not name.isascii() and (other := neighbours.folded.get(looks)) not in (None, name):
        yield Finding("borrowed-name", "name", f"{printable(name)} looks like {printable(other or '')}")


def coined_words(text: Text) -> Iterator[str]:
    """The words that could be names of tools, if there are such tools."""
    for match in _WORDS.finditer(text.value.encode(errors="replace")):
        word = match.group().decode()
        if _is_coined(word):
            yield word


def speaks_of_others(text: Text, neighbours: Neighbours) -> Iterator[Finding]:
    """The name of another server's tool in a text, unless it is an ordinary word or this server has a tool of that
    name.
    """
    as_bytes = text.value.encode(errors="replace")
    for match in _WORDS.finditer(as_bytes):
        word = match.group().decode()
        if word in neighbours.others and word not in neighbours.own and _is_coined(word):
            start = len(as_bytes[: match.start()].decode(errors="ignore"))
            words = f"{printable(word)} of {neighbours.others[word]!r}: {evidence(text.value, start, start + 48)}"
            yield Finding("speaks-of-others", text.place, words)
            return


def _is_coined(word: str) -> bool:
    """Whether the word would only be written as the name of a tool, such as ``read_file`` or ``getUser``."""
    return "_" in word.strip("_") or any(character.isupper() for character in word[1:])
