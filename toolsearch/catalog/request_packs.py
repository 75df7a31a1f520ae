"""Packs of requests, ours and those of users: requests of users who need a tool, found by its name and definition.

Users name their servers freely, and descriptions change from version to version. So a tool is recognised by its own
name and by its description: the same one that its requests were written for, or one that shares enough words with it.
Fewer words are enough if the server has the name that the requests were written under.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from io import BytesIO
from typing import Any, Final, NamedTuple, Protocol

from toolsearch.tools.definition import ToolDefinition, legal_name
from toolsearch.tools.naming import own_name

PACKS_FILE: Final = "requests.jsonl.xz"

_RULES = 2  # version of the matching rules; after a new one, stored indexes are brought up to date
MAX_REQUESTS: Final = 8  # requests for one tool
MAX_CHARACTERS: Final = 200  # characters of one request

DESCRIPTION_CHARACTERS: Final = 320  # the authors of the requests were shown this much
_SKETCH_WORDS = 16
_CONTENT_WORD = re.compile(r"[^\W_]{4,}")  # shorter words are mostly the same in any description

# 130 pairs of packed tools have the same name and different servers. In 111 pairs the descriptions share less than half
# of their words; most of the others do the same thing (math and cmath, github and gitlab). If server and name both
# match, less likeness is enough.
_NEAR_OF_SERVER = 0.2
_NEAR_OF_ANOTHER = 0.5
_TELLING_WORDS = 4  # descriptions with fewer words, such as "List issues", are the same in many servers


@dataclass(frozen=True, slots=True)
class RequestOptions:
    """The packs in use, so that an index can be opened again with the same packs.

    shipped  whether the packs of the package are among them
    files    absolute paths of the users' own packs, which take precedence
    """

    shipped: bool = False
    files: tuple[str, ...] = ()


class RequestSource(Protocol):
    """Gives the requests of users who need a tool. Deterministic, and safe to share between threads."""

    @property
    def id(self) -> str:
        """Changes when a definition may get other requests, so that stored indexes are renewed. Empty: no requests."""
        ...

    @property
    def options(self) -> RequestOptions:
        """The options that the source was made with."""
        ...

    def requests_for(self, definition: ToolDefinition) -> tuple[str, ...]: ...


class NoRequests:
    id = ""
    options = RequestOptions()

    def requests_for(self, definition: ToolDefinition) -> tuple[str, ...]:  # noqa: ARG002
        return ()


NO_REQUESTS: Final[RequestSource] = NoRequests()


@dataclass(frozen=True, slots=True)
class PackedTool:
    """A tool with the requests that were written for it.

    server      its usual name among users
    name        the tool's name without its server's, see `own_name`
    definition  the hash of its definition, see `definition_hash`
    words       a sketch of its description, see `sketch_of`
    model       the model that wrote the requests; "" if unknown
    """

    server: str
    name: str
    definition: str
    words: frozenset[str]
    requests: tuple[str, ...]
    model: str = ""


class _Kept(NamedTuple):
    """A packed tool in a form that takes a third of the memory: its words with spaces between, its requests with line
    breaks.
    """

    server: str
    definition: str
    words: bytes
    requests: bytes

    @classmethod
    def of(cls, tool: PackedTool) -> _Kept:
        words, requests = " ".join(sorted(tool.words)), "\n".join(tool.requests)
        return cls(sys.intern(tool.server), tool.definition, words.encode(), requests.encode())

    @property
    def sketch(self) -> frozenset[str]:
        return frozenset(self.words.decode().split())

    def unpacked(self) -> tuple[str, ...]:
        return tuple(self.requests.decode().split("\n")) if self.requests else ()


class RequestPacks:
    """Finds the requests of the tools that *read* gives when they are first needed.

    *version* is any text that changes with the requests; *options* says where they come from.
    """

    def __init__(
        self,
        read: Callable[[], Iterable[PackedTool]],
        *,
        version: str,
        options: RequestOptions = RequestOptions(shipped=True),
    ) -> None:
        self.id = f"{_RULES}:{version}"
        self.options = options
        self._read = read

    def requests_for(self, definition: ToolDefinition) -> tuple[str, ...]:
        name = own_name(definition)
        candidates = self._by_name.get(_plain(name))
        if not candidates:  # true of nearly all tools; it costs one dictionary lookup
            return ()
        written = definition_hash(name, definition.description)
        server = _plain(definition.server)
        for tool in candidates:
            if _plain(tool.server) == server:
                is_meant = tool.definition == written or _is_near(tool, definition)
                return tool.unpacked() if is_meant else ()
        same = [tool for tool in candidates if tool.definition == written]
        found = same or _nearest(candidates, sketch_of(definition.description))
        return found[0].unpacked() if len(found) == 1 else ()

    @cached_property
    def _by_name(self) -> dict[str, list[_Kept]]:
        by_name: dict[str, list[_Kept]] = {}
        for tool in self._read():
            by_name.setdefault(_plain(tool.name), []).append(_Kept.of(tool))
        return by_name


def _is_near(tool: _Kept, definition: ToolDefinition) -> bool:
    return near(sketch_of(definition.description), tool.sketch) >= _NEAR_OF_SERVER


def _nearest(candidates: Sequence[_Kept], words: frozenset[str]) -> list[_Kept]:
    """The nearest tools of other servers, if they are near enough: none, one, or several that are equally near."""
    if len(words) < _TELLING_WORDS:
        return []
    nearness = [near(words, tool.sketch) for tool in candidates]
    best = max(nearness)
    return [each for each, like in zip(candidates, nearness, strict=True) if like == best >= _NEAR_OF_ANOTHER]


@cache
def shipped_requests() -> RequestSource:
    """The packs that ship with the package, unpacked when a tool is first looked up."""
    packs = files("toolsearch") / "data" / PACKS_FILE
    version = hashlib.sha256(packs.read_bytes()).hexdigest()[:16]
    return RequestPacks(lambda: map(read_tool, BytesIO(lzma.decompress(packs.read_bytes()))), version=version)


def read_tool(line: str | bytes) -> PackedTool:
    """Read one line of a pack."""
    given: dict[str, Any] = json.loads(line)
    return PackedTool(
        given["server"],
        given["name"],
        given["definition"],
        frozenset(given["words"].split()),
        cleaned_requests(given["requests"]),
    )


def definition_hash(name: str, description: str) -> str:
    return hashlib.sha256(f"{name}\n{_one_line(description)}".encode(errors="surrogatepass")).hexdigest()[:16]


def sketch_of(description: str) -> frozenset[str]:
    """Return a few short hashes that represent the words of *description*. Equal words give equal hashes."""
    words = set(_CONTENT_WORD.findall(_one_line(description)[:DESCRIPTION_CHARACTERS].casefold()))
    hashes = {f"{zlib.crc32(word.encode()) & 0xFFFF:04x}" for word in words}
    return frozenset(sorted(hashes)[:_SKETCH_WORDS])


def near(one: frozenset[str], other: frozenset[str]) -> float:
    """The likeness of the descriptions of two sketches, from 0 to 1: an estimate of the share of common words.

    Source: Broder, On the resemblance and containment of documents, 1997 (the least hashes of both sets together).
    """
    if not one and not other:
        return 1.0
    least = sorted(one | other)[:_SKETCH_WORDS]
    return sum(each in one and each in other for each in least) / len(least)


def cleaned_requests(texts: Iterable[str]) -> tuple[str, ...]:
    """Return *texts*, each as one printable line, without repetitions. Texts that are too long and those after the
    eighth are left out, because half a request would ask for something else.
    """
    lines = (_one_line(text if text.isprintable() else _printable(text)) for text in texts)
    kept = dict.fromkeys(line for line in lines if 0 < len(line) <= MAX_CHARACTERS)
    return tuple(kept)[:MAX_REQUESTS]


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)


def _one_line(text: str) -> str:
    return " ".join(text.split())


@lru_cache(maxsize=1024)  # called mostly with servers' names, which many tools share
def _plain(name: str) -> str:
    """*name* without differences of spelling: ``brave-search``, ``Brave Search`` and ``brave_search`` are equal."""
    return legal_name(name).replace("-", "_").casefold()
