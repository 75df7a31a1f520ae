"""An immutable view of a catalog at one version, with a hash of its content.

Its tools may be read when they are first needed, so that opening a catalog only reads their names.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol, Self, runtime_checkable

from toolsearch.tools.definition import Tool, ToolDefinition


class FingerprintCache:
    """Fingerprints of definitions, computed when needed and kept while the definition is the same object.

    Snapshots of one catalog share it, so that a change of one tool costs one hash. Two threads may compute one twice.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[ToolDefinition, str]] = {}

    def of(self, definition: ToolDefinition) -> str:
        known = self._known.get(definition.name)
        if known is not None and known[0] is definition:
            return known[1]
        fingerprint = definition.fingerprint()
        self._known[definition.name] = (definition, fingerprint)
        return fingerprint

    def forget(self, name: str) -> None:
        self._known.pop(name, None)


@dataclass(frozen=True, eq=False)
class CatalogSnapshot:
    """The tools of a catalog at one moment, by name, in insertion order.

    version   grows with each change; it cannot be compared across catalogs or processes
    purposes  see `Catalog.server_purpose`
    known     fingerprints of stored definitions, which need not be read for them
    read_once  returns a tool like *tools*, but does not keep it in memory; None: all are in memory
    contents  the skills, prompts and resources by name, sorted
    """

    tools: Mapping[str, Tool]
    version: int
    _fingerprints: FingerprintCache = field(default_factory=FingerprintCache, repr=False)
    purposes: Mapping[str, str] = field(default_factory=dict[str, str])
    known: Callable[[], Mapping[str, str]] = field(default=dict[str, str], repr=False)
    read_once: Callable[[str], Tool] | None = field(default=None, repr=False)
    contents: Mapping[str, Tool] = field(default_factory=dict[str, Tool])

    def definitions_once(self, names: Iterable[str]) -> Iterator[ToolDefinition]:
        """The definitions of *names*, one after another; definitions that are read for this are not kept in memory."""
        read = self.read_once or self.tools.__getitem__
        return (read(name).definition for name in names)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 (hex) over the content of all definitions; the order of insertion does not matter."""
        contents = (self._fingerprints.of(each.definition) for each in self.contents.values())
        each = sorted([*self.tool_fingerprints().values(), *contents])
        return hashlib.sha256("\n".join(each).encode()).hexdigest()

    def tool_fingerprints(self) -> dict[str, str]:
        """The fingerprint of each definition, by tool name."""
        known = self.known()
        return {name: known.get(name) or self._fingerprints.of(self.tools[name].definition) for name in self.tools}


@runtime_checkable
class KnowsFingerprints(Protocol):
    """A mapping of tools that knows the fingerprints of definitions without reading them."""

    def known_fingerprints(self) -> Mapping[str, str]:
        """The fingerprints of some of the tools, by name."""
        ...


@runtime_checkable
class ReadsOnce(Protocol):
    """A mapping of tools that can give a tool without keeping it in memory."""

    def read_once(self, name: str) -> Tool:
        """Like ``self[name]``, for callers that need all tools, each only once."""
        ...


class LazyTools(MutableMapping[str, Tool]):
    """Tools by name, each read once for all copies; changes are to memory only. Safe to share between threads."""

    def __init__(self, names: Iterable[str]) -> None:
        self._tools: dict[str, Tool | None] = dict.fromkeys(names)  # None: unchanged since it was stored
        self._as_stored: dict[str, Tool] = {}  # tools read so far by this object or a copy of it

    @abstractmethod
    def _read(self, name: str) -> Tool:
        """Read a stored tool. Raises KeyError if it no longer exists."""

    def __getitem__(self, name: str) -> Tool:
        return self._in_memory(name) or self._keep(name, self._read(name))

    def read_once(self, name: str) -> Tool:
        return self._in_memory(name) or self._read(name)

    def _in_memory(self, name: str) -> Tool | None:
        return self._tools[name] or self._as_stored.get(name)

    def _keep(self, name: str, tool: Tool) -> Tool:
        """Keep a tool that was read; return the kept one, which another thread may have read before."""
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
        """Another view of the stored tools, with the changes made so far."""
        other = copy(self)
        other._tools = dict(self._tools)
        return other

    def as_stored(self) -> list[str]:
        """The names of the tools that were not replaced."""
        return [name for name, tool in self._tools.items() if tool is None]
