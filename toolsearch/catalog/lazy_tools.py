"""Tools that are read when they are first asked for, so that opening many costs reading their names."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from copy import copy
from typing import Protocol, Self, runtime_checkable

from toolsearch.tools.definition import Tool


@runtime_checkable
class KnowsFingerprints(Protocol):
    """A mapping of tools that knows the fingerprints of definitions without reading them."""

    def known_fingerprints(self) -> Mapping[str, str]:
        """By name, of some of the tools."""
        ...


@runtime_checkable
class ReadsOnce(Protocol):
    """A mapping of tools that can give a tool without keeping it in memory."""

    def read_once(self, name: str) -> Tool:
        """As ``self[name]``, for who asks for all tools, and for each of them only once."""
        ...


class LazyTools(MutableMapping[str, Tool]):
    """Tools by name, each read once for all copies; changes are to memory only. Safe to share between threads."""

    def __init__(self, names: Iterable[str]) -> None:
        self._tools: dict[str, Tool | None] = dict.fromkeys(names)  # None: as it is stored
        self._as_stored: dict[str, Tool] = {}  # what was read so far, by this object or a copy of it

    @abstractmethod
    def _read(self, name: str) -> Tool:
        """Read one that is stored. Raises KeyError if it is not there any more."""

    def __getitem__(self, name: str) -> Tool:
        return self._in_memory(name) or self._keep(name, self._read(name))

    def read_once(self, name: str) -> Tool:
        return self._in_memory(name) or self._read(name)

    def _in_memory(self, name: str) -> Tool | None:
        return self._tools[name] or self._as_stored.get(name)

    def _keep(self, name: str, tool: Tool) -> Tool:
        """Keep what was read; return what is kept, which another thread may have read before."""
        return self._as_stored.setdefault(name, tool)

    def __setitem__(self, name: str, tool: Tool) -> None:
        self._tools[name] = tool

    def __delitem__(self, name: str) -> None:
        del self._tools[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def copy(self) -> Self:
        """Another view of what is stored, with the changes made so far."""
        other = copy(self)
        other._tools = dict(self._tools)
        return other

    def as_stored(self) -> list[str]:
        """The names of the tools that were not written over."""
        return [name for name, tool in self._tools.items() if tool is None]
