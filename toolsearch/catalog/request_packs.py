"""Packs of requests, ours and those of users: requests of users who need a tool, found by its name and definition.

Users name their servers freely, and names and descriptions change from version to version. So a tool is recognised by
the letters of its name, with or without the name of its service, and by its description: the same one that its requests
were written for, or one that shares enough words with it. Few words are enough if the service is the same.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from io import BytesIO
from typing import Any, Final, NamedTuple, Protocol

from toolsearch.tools.definition import ToolDefinition, legal_name
from toolsearch.tools.naming import in_words, own_name

PACKS_FILE: Final = "requests.jsonl.xz"

_RULES = 3  # version of the matching rules; after a new one, stored indexes are brought up to date
MAX_REQUESTS: Final = 8  # requests for one tool
MAX_CHARACTERS: Final = 200  # characters of one request

DESCRIPTION_CHARACTERS: Final = 320  # the authors of the requests were shown this much
_SKETCH_WORDS = 16
_CONTENT_WORD = re.compile(r"[^\W_]{4,}")  # shorter words are mostly the same in any description

# Words in the names of servers that do not say which service it is.
_TELLING_NOTHING = frozenset(
    """
    ai api apis app assistant client cloud com community connector data dev extension http https integration io js local
    mcp modelcontextprotocol my node npm official org plugin py python remote sdk search server servers service stdio
    the tool tools
    """.split()  # noqa: SIM905 - a list of forty strings does not read
)
_LONGEST_PREFIX = 3  # words before a tool's name that may name its service, as in aws_secrets_manager_get_...

# The likeness of descriptions that a tool needs. 130 pairs of packed tools have the same name and different services.
# In 111 pairs the descriptions share less than half of their words; most of the others do the same thing (math and
# cmath).
_NEAR_OF_PART = 0.2
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
    name: str
    definition: str
    words: bytes
    requests: bytes

    @classmethod
    def of(cls, tool: PackedTool) -> _Kept:
        words, requests = " ".join(sorted(tool.words)), "\n".join(tool.requests)
        return cls(sys.intern(tool.server), tool.name, tool.definition, words.encode(), requests.encode())

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
        candidates = list(self._called(name, _service(definition.server)))
        found = _nearest(candidates, definition.description) if candidates else []  # nearly all tools have no candidate
        return found[0].unpacked() if len(found) == 1 else ()

    def _called(self, name: str, server: _Service) -> Iterator[_Candidate]:
        """The packed tools of that name, of that name after its server's, and of that name without its service's."""
        letters, by_name = _letters(name), self._by_name
        for front in ("", *server.names):
            for tool in by_name.get(front + letters, ()):
                is_named = bool(front) and front == server.names[0]  # jira's create_issue is jira_create_issue
                kinship = _Kinship.SAME if is_named else _kinship(_service(tool.server), server)
                if kinship is not None:
                    yield _Candidate(tool, kinship)
        words = in_words(name).split() if letters.startswith(self._services) else []
        for count in range(1, min(len(words), _LONGEST_PREFIX + 1)):
            prefix = "".join(words[:count])
            if prefix in self._services:
                for tool in by_name.get("".join(words[count:]), ()):
                    service = _service(tool.server)
                    if prefix in service.names:
                        yield _Candidate(tool, _Kinship.SAME if prefix == service.names[0] else _Kinship.PART)

    @cached_property
    def _by_name(self) -> dict[str, list[_Kept]]:
        by_name: dict[str, list[_Kept]] = {}
        for tool in self._read():
            by_name.setdefault(_letters(legal_name(tool.name)), []).append(_Kept.of(tool))
        return by_name

    @cached_property
    def _services(self) -> tuple[str, ...]:
        servers = {tool.server for tools in self._by_name.values() for tool in tools}
        return tuple(sorted({name for server in servers for name in _service(server).names}))


class _Service(NamedTuple):
    """The *words* of a server's name, as far as they tell which service it is, and the *names* that it goes by before
    the name of a tool, the whole one first. There are no such names if no word tells anything.
    """

    words: frozenset[str]
    names: tuple[str, ...]


@lru_cache(maxsize=1024)  # many tools share one server
def _service(server: str) -> _Service:
    said = [_spoken(server.rpartition("/")[2]), _spoken(server)]  # a scope such as @vendor/ seldom names the service
    telling = [[word for word in each if word not in _TELLING_NOTHING] for each in said]
    words = telling[0] or telling[1]
    return _Service(frozenset(words or said[1]), tuple(dict.fromkeys(("".join(words), *words))) if words else ())


def _spoken(server: str) -> list[str]:
    return list(filter(None, legal_name(server).replace("-", "_").casefold().split("_")))


class _Kinship(IntEnum):
    """How far the services of two tools are known to be the same one."""

    OTHER = 0
    PART = 1  # the name has all words of the other: github-enterprise and github
    SAME = 2


def _kinship(packed: _Service, server: _Service) -> _Kinship | None:
    """How near *server* is to the service *packed*; None if it is another one of the same vendor."""
    whole = packed.names[:1]
    if packed.words == server.words != frozenset() or whole == server.names[:1] != ():
        return _Kinship.SAME
    shared = packed.words & server.words
    if (shared and shared == packed.words) or not server.words.isdisjoint(whole):
        return _Kinship.PART
    return None if shared and shared != server.words else _Kinship.OTHER


class _Candidate(NamedTuple):
    """A packed tool with the name of a definition, and how near their services are."""

    tool: _Kept
    kinship: _Kinship

    def likeness(self, description: str, words: frozenset[str], all_words: frozenset[str]) -> float | None:
        """How like the descriptions are, above 1 if they are the same one; None if it is no description of this tool.

        words      the sketch of *description*; *all_words* are the hashes of all its words
        """
        tool, sketch = self.tool, self.tool.sketch
        is_described = bool(description.strip()) or self.kinship is not _Kinship.OTHER
        if is_described and tool.definition == definition_hash(tool.name, description):
            return 2.0
        like = near(words, sketch)
        match self.kinship:
            case _Kinship.SAME:
                is_meant = bool(words & sketch) or min(len(words), len(sketch)) < _TELLING_WORDS
            case _Kinship.PART:
                is_meant = like >= _NEAR_OF_PART
            case _Kinship.OTHER:
                of_service = _hashes(_service(tool.server).words) & sketch  # the service's words in its description
                is_meant = len(words) >= _TELLING_WORDS and like >= _NEAR_OF_ANOTHER and of_service <= all_words
        return like if is_meant else None


def _nearest(candidates: Iterable[_Candidate], description: str) -> list[_Kept]:
    """The tool that a definition with this *description* is: of the nearest service, and of those with the nearest
    description. Empty if no candidate is near enough, several if some are equally near.
    """
    all_words = _hashes(_words(description))
    words = _sketch(all_words)
    found: dict[tuple[int, float], dict[tuple[str, str], _Kept]] = {}
    for candidate in candidates:
        like = candidate.likeness(description, words, all_words)
        if like is not None:
            tool = candidate.tool
            found.setdefault((candidate.kinship, like), {})[tool.server, tool.name] = tool
    return list(found[max(found)].values()) if found else []


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
    return _sketch(_hashes(_words(description)))


def _words(description: str) -> set[str]:
    return set(_CONTENT_WORD.findall(_one_line(description)[:DESCRIPTION_CHARACTERS].casefold()))


def _hashes(words: Iterable[str]) -> frozenset[str]:
    return frozenset(f"{zlib.crc32(word.encode()) & 0xFFFF:04x}" for word in words)


def _sketch(hashes: frozenset[str]) -> frozenset[str]:
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


def _letters(name: str) -> str:
    """The legal *name* without differences of spelling: those of ``runInstances`` and ``run-instances`` are equal."""
    return name.replace("_", "").replace("-", "").casefold()
