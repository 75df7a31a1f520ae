"""Requests that ship with the package: what users of widely used tools ask for, found by a tool's name and definition.

Users name their servers freely, and descriptions change from version to version. So a tool is known by its own name
and by the very description that its requests were written for, or by one that shares enough of its words. How many are
enough depends on whether the server has the name that the requests were written under.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final, Protocol

from toolsearch.tools.definition import ToolDefinition, legal_name

PACKS_FILE: Final = "requests.jsonl.xz"

_RULES = 1  # count it up when another tool may be found by the same packs: stored indexes are brought up to date by it
_MAX_REQUESTS = 8
_MAX_CHARACTERS = 200

_DESCRIPTION_CHARACTERS = 320  # whoever wrote the requests was shown as much
_SKETCH_WORDS = 16
_CONTENT_WORD = re.compile(r"[^\W_]{4,}")  # shorter ones are mostly the same in any description

_NEAR_OF_SERVER = 0.2
_NEAR_OF_ANOTHER = 0.5
_TELLING_WORDS = 4  # fewer, as in "List issues", are the same in the tools of many servers


class RequestSource(Protocol):
    """Says what users ask for when they need a tool. Deterministic, and safe to share between threads."""

    @property
    def id(self) -> str:
        """Differs where a definition may get other requests: stored indexes are kept by it. Empty: there are none."""
        ...

    def requests_for(self, definition: ToolDefinition) -> tuple[str, ...]: ...


class NoRequests:
    id = ""

    def requests_for(self, definition: ToolDefinition) -> tuple[str, ...]:  # noqa: ARG002
        return ()


NO_REQUESTS: Final[RequestSource] = NoRequests()


@dataclass(frozen=True, slots=True)
class PackedTool:
    """A tool that requests were written for.

    server      as its users mostly call it
    name        the tool's name without its server's
    definition  the hash of its definition, see `definition_hash`
    words       a sketch of its description, see `sketch_of`
    """

    server: str
    name: str
    definition: str
    words: frozenset[str]
    requests: tuple[str, ...]


class RequestPacks:
    """Finds the requests of *tools*. *version* is any text that differs where they do."""

    def __init__(self, tools: Iterable[PackedTool], *, version: str) -> None:
        self.id = f"{_RULES}:{version}"
        self._by_name: dict[str, list[PackedTool]] = {}
        for tool in tools:
            self._by_name.setdefault(_plain(tool.name), []).append(tool)

    def requests_for(self, definition: ToolDefinition) -> tuple[str, ...]:
        candidates = self._by_name.get(_plain(definition.local_name))
        if not candidates:  # so it is for nearly all tools, at the cost of one look into a dictionary
            return ()
        words, server = sketch_of(definition.description), _plain(definition.server)
        for tool in candidates:
            if _plain(tool.server) == server:
                return tool.requests if near(words, tool.words) >= _NEAR_OF_SERVER else ()
        return _of_another_server(definition, words, candidates)


def _of_another_server(
    definition: ToolDefinition, words: frozenset[str], candidates: Sequence[PackedTool]
) -> tuple[str, ...]:
    """The requests of the one candidate that has the same definition, or else of the one that is nearest."""
    own = definition_hash(definition.local_name, definition.description)
    same = [tool for tool in candidates if tool.definition == own]
    if same:
        return same[0].requests if len(same) == 1 else ()
    if len(words) < _TELLING_WORDS:
        return ()
    best = max(near(words, tool.words) for tool in candidates)
    nearest = [tool for tool in candidates if near(words, tool.words) == best]
    return nearest[0].requests if best >= _NEAR_OF_ANOTHER and len(nearest) == 1 else ()


@cache
def shipped_requests() -> RequestSource:
    """The packs that ship with the package, read when they are first asked for."""
    packed = (files("toolsearch") / "data" / PACKS_FILE).read_bytes()
    lines = lzma.decompress(packed).decode().splitlines()
    return RequestPacks(map(read_tool, lines), version=hashlib.sha256(packed).hexdigest()[:16])


def read_tool(line: str) -> PackedTool:
    """Read one line of a pack."""
    given: dict[str, Any] = json.loads(line)
    return PackedTool(
        given["server"],
        given["name"],
        given["definition"],
        frozenset(given["words"].split()),
        cleaned_requests(given["requests"]),
    )


def definition_hash(local_name: str, description: str) -> str:
    return hashlib.sha256(f"{local_name}\n{_one_line(description)}".encode()).hexdigest()[:16]


def sketch_of(description: str) -> frozenset[str]:
    """Return a few short hashes that stand for the words of *description*: always the same few of the same words."""
    words = set(_CONTENT_WORD.findall(_one_line(description)[:_DESCRIPTION_CHARACTERS].casefold()))
    hashes = {f"{zlib.crc32(word.encode()) & 0xFFFF:04x}" for word in words}
    return frozenset(sorted(hashes)[:_SKETCH_WORDS])


def near(one: frozenset[str], other: frozenset[str]) -> float:
    """How alike the descriptions of two sketches are: the share of their words that both have, estimated, 0 to 1.

    Source: Broder, On the resemblance and containment of documents, 1997 (the least hashes of both sets together).
    """
    if not one and not other:
        return 1.0
    least = sorted(one | other)[:_SKETCH_WORDS]
    return sum(each in one and each in other for each in least) / len(least)


def cleaned_requests(texts: Iterable[str]) -> tuple[str, ...]:
    """Return *texts* each as one printable line, without doubles; too long ones and those beyond the eighth are left
    out, since half a request asks for something else.
    """
    lines = (_one_line("".join(c if c.isprintable() else " " for c in text)) for text in texts)
    kept = dict.fromkeys(line for line in lines if 0 < len(line) <= _MAX_CHARACTERS)
    return tuple(kept)[:_MAX_REQUESTS]


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _plain(name: str) -> str:
    """*name* as far as spelling does not matter: ``brave-search``, ``Brave Search`` and ``brave_search`` are one."""
    return legal_name(name).replace("-", "_").casefold()
