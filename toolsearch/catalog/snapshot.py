"""An immutable view of a catalog at one version, with a hash of its content."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from toolsearch.tools.definition import Tool, ToolDefinition


class FingerprintCache:
    """Fingerprints of definitions, computed when asked for and kept while the definition is the same object.

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

    version   grows with each change of its tools; it says nothing across catalogs or processes
    purposes  see `Catalog.server_purpose`
    known    fingerprints of definitions that are stored, and need not be read for them
    read_once  gives a tool as *tools* does, and keeps none in memory for that; None: all are in memory
    """

    tools: Mapping[str, Tool]
    version: int
    _fingerprints: FingerprintCache = field(default_factory=FingerprintCache, repr=False)
    purposes: Mapping[str, str] = field(default_factory=dict[str, str])
    known: Callable[[], Mapping[str, str]] = field(default=dict[str, str], repr=False)
    read_once: Callable[[str], Tool] | None = field(default=None, repr=False)

    def definitions_once(self, names: Iterable[str]) -> Iterator[ToolDefinition]:
        """The definitions of *names*, one after another; those that are read for this are not kept in memory."""
        read = self.read_once or self.tools.__getitem__
        return (read(name).definition for name in names)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 (hex) over the content of all definitions; the order of insertion does not matter."""
        each = sorted(self.tool_fingerprints().values())
        return hashlib.sha256("\n".join(each).encode()).hexdigest()

    def tool_fingerprints(self) -> dict[str, str]:
        """The fingerprint of each definition, by tool name."""
        known = self.known()
        return {name: known.get(name) or self._fingerprints.of(self.tools[name].definition) for name in self.tools}
