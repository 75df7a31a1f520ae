"""An index that follows a catalog: one for all sessions, updated in place of rebuilt."""

from __future__ import annotations

import logging
import threading
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager

from toolsearch.catalog.catalog import Catalog
from toolsearch.catalog.changes import CatalogChange
from toolsearch.catalog.snapshot import CatalogSnapshot
from toolsearch.tools.definition import ToolDefinition, ToolReference
from toolsearch_indexes.documents import Hit, ToolDocument
from toolsearch_indexes.schema_text import document_from_schema
from toolsearch_indexes.selection import Selection
from toolsearch_indexes.strategies import Strategy
from toolsearch_indexes.tool_index import ToolIndex

logger = logging.getLogger(__name__)

_SUMMARY_CHARACTERS = 300


def document_of(definition: ToolDefinition) -> ToolDocument:
    return document_from_schema(
        name=definition.name,
        description=definition.description,
        input_schema=definition.input_schema,
        title=definition.title,
        server=definition.server,
        tags=definition.tags,
        local_name=definition.local_name,
    )


class CatalogIndex:
    """Keeps *index* to what *catalog* holds, from now until `close`.

    A change of the catalog is searchable once the call that made it has returned, also where several threads change it
    at once. If the encoder fails, that is logged, and the change is indexed along with the next one.
    """

    def __init__(self, catalog: Catalog, index: ToolIndex, *, indexed: CatalogSnapshot | None = None) -> None:
        """*indexed* is what *index* already holds of *catalog*, as a stored one may.

        Raises EncoderError if the tools cannot be embedded.
        """
        self.catalog = catalog
        self.index = index
        self._behind: dict[str, None] = {}  # names that changed and that the index does not have yet, in order
        self._lock = threading.Lock()
        with self._lock:  # a change that comes meanwhile waits, and then is applied to a complete index
            self._unsubscribe = catalog.subscribe(self._follow)
            self._version = -1 if indexed is None else indexed.version  # of the catalog, up to which it is indexed
            try:
                self._catch_up(catalog.snapshot())
            except BaseException:
                self._unsubscribe()
                raise

    def search(
        self,
        query: str,
        *,
        limit: int,
        strategy: Strategy = "auto",
        within: Selection | None = None,
        favour: Mapping[str, float] | None = None,
    ) -> list[Hit]:
        """As `ToolIndex.search`."""
        return self.index.search(query, limit=limit, strategy=strategy, within=within, favour=favour)

    def references(self, hits: Iterable[Hit]) -> list[ToolReference]:
        """Return *hits* with a summary of each tool."""
        references: list[ToolReference] = []
        for hit in hits:
            tool = self.catalog.find(hit.name)
            if tool is not None:  # else it was removed this moment
                references.append(ToolReference(hit.name, hit.score, summary_of(tool.definition), hit.confidence))
        return references

    def close(self) -> None:
        self._unsubscribe()

    @contextmanager
    def settled(self) -> Generator[CatalogSnapshot]:
        """Give the snapshot that the index is of, and keep the index so for that long. Raises EncoderError."""
        with self._lock:
            snapshot = self.catalog.snapshot()
            self._catch_up(snapshot)
            yield snapshot

    def _catch_up(self, snapshot: CatalogSnapshot) -> None:
        if snapshot.version != self._version or self._behind:
            gone = [name for name in self.index.names() if name not in snapshot.tools]
            self.index.update((document_of(tool.definition) for tool in snapshot.tools.values()), gone)
            self._behind.clear()
            self._version = snapshot.version

    def _follow(self, change: CatalogChange) -> None:
        """Take over what changed, as the catalog has it by now, and what an encoder that failed has left undone."""
        with self._lock:
            self._behind |= dict.fromkeys((*(tool.name for tool in change.added), *change.removed))
            found = {name: self.catalog.find(name) for name in self._behind}
            documents = [document_of(tool.definition) for tool in found.values() if tool is not None]
            self.index.update(documents, [name for name, tool in found.items() if tool is None])
            self._behind.clear()
            self._version = max(self._version, change.version)


def summary_of(definition: ToolDefinition) -> str:
    """The first paragraph of the description, or the title, cut at a word to 300 characters."""
    text = definition.description.strip() or definition.title
    line = " ".join(text.partition("\n\n")[0].split())
    if len(line) <= _SUMMARY_CHARACTERS:
        return line
    return line[: _SUMMARY_CHARACTERS - 1].rpartition(" ")[0] + "…"
