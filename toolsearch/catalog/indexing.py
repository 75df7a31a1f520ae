"""Indexes that follow a catalog. All sessions share them, and a change updates them instead of rebuilding them.

Skills, prompts and resources have an index beside that of the tools, so that their words and their number change
nothing in the ranking of tools. Scores are probabilities, so the hits of both are merged by their scores.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from toolsearch.catalog.catalog import Catalog
from toolsearch.catalog.changes import CatalogChange
from toolsearch.catalog.request_packs import NO_REQUESTS, RequestSource, cleaned_requests
from toolsearch.catalog.snapshot import CatalogSnapshot
from toolsearch.tools.definition import EntryKind, Tool, ToolDefinition
from toolsearch.tools.naming import given_name
from toolsearch_indexes.documents import Hit, ToolDocument, document_from_schema
from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.queries import Selection, Strategy
from toolsearch_indexes.tool_index import ToolIndex

logger = logging.getLogger(__name__)
_TOOLS: Final[tuple[EntryKind, ...]] = ("tool",)


def document_of(definition: ToolDefinition, requests: RequestSource = NO_REQUESTS) -> ToolDocument:
    """The indexed document of a tool. The author's requests precede those of *requests*."""
    document = document_from_schema(
        name=definition.name,
        description=definition.description,
        input_schema=definition.input_schema,
        title=definition.title,
        server=definition.server,
        tags=definition.tags,
        local_name=given_name(definition) or definition.local_name,
    )
    asked = cleaned_requests([*definition.requests, *requests.requests_for(definition)])
    return replace(document, requests=asked) if asked else document


def bring_up_to_date(
    index: ToolSearchIndex, snapshot: CatalogSnapshot, indexed: Mapping[str, str], requests: RequestSource = NO_REQUESTS
) -> bool:
    """Update *index* to *snapshot*; it holds the definitions with the fingerprints *indexed*.

    They must have been indexed with the same *requests*. Returns whether anything differed. Raises EncoderError.
    """
    prints, names = snapshot.tool_fingerprints(), list(index.names())
    current = {name for name in names if indexed.get(name, "") == prints.get(name)}
    others = (name for name in prints if name not in current)
    changed = [document_of(definition, requests) for definition in snapshot.definitions_once(others)]
    gone = [name for name in names if name not in prints]
    if changed or gone:
        index.update(changed, gone)
    return bool(changed or gone)


class CatalogIndex:
    """Keeps *index* up to date with the tools of *catalog*, and an index of its own with all else, until it is closed.

    When a call that changes the catalog returns, searches see the change, even if several threads change the catalog at
    once. If the encoder fails, the failure is logged, and the change is indexed with the next one.
    """

    def __init__(
        self,
        catalog: Catalog,
        index: ToolIndex,
        *,
        indexed: CatalogSnapshot | None = None,
        requests: RequestSource = NO_REQUESTS,
    ) -> None:
        """*indexed* is the snapshot that *index* already holds, if it was read from a store.

        *requests* gives the requests of users who need a tool. Raises EncoderError if the tools cannot be embedded.
        """
        self.catalog = catalog
        self.index = index
        self.contents = _like(index)
        self._requests = requests
        self._outdated: dict[str, None] = {}  # names of tools whose changes are not indexed yet, in order
        self._lock = threading.Lock()
        with self._lock:  # changes that arrive meanwhile wait until the index is complete
            self._unsubscribe = catalog.subscribe(self._follow)
            self._version = -1 if indexed is None else indexed.version  # version of the catalog that is indexed
            try:
                snapshot = catalog.snapshot()
                self._catch_up(snapshot)
                if indexed is not None:
                    self._update_contents(snapshot)
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
        kinds: Collection[EntryKind] = _TOOLS,
        contents: Selection | None = None,
    ) -> list[Hit]:
        """See `ToolIndex.search`; *within* selects among the tools, and *contents* among all else of these *kinds*."""
        hits = list[Hit]()
        if "tool" in kinds:
            hits = self.index.search(query, limit=limit, strategy=strategy, within=within, favour=favour)
        if kinds == _TOOLS or not len(self.contents):
            return hits
        by: Strategy = strategy if strategy in self.contents.rankings else "auto"
        others = self.contents.search(query, limit=limit, strategy=by, within=contents, favour=favour)
        return sorted([*hits, *others], key=lambda hit: (-hit.score, hit.name))[:limit]

    def close(self) -> None:
        self._unsubscribe()

    @contextmanager
    def settled(self) -> Generator[CatalogSnapshot]:
        """Bring the index up to date, and hold back changes within the block. Raises EncoderError.

        Yields the snapshot that the index holds.
        """
        with self._lock:
            snapshot = self.catalog.snapshot()
            self._catch_up(snapshot)
            yield snapshot

    def _document(self, tool: Tool) -> ToolDocument:
        return document_of(tool.definition, self._requests)

    def _catch_up(self, snapshot: CatalogSnapshot) -> None:
        if snapshot.version != self._version or self._outdated:
            gone = [name for name in self.index.names() if name not in snapshot.tools]
            definitions = snapshot.definitions_once(snapshot.tools)
            self.index.update((document_of(each, self._requests) for each in definitions), gone)
            self._update_contents(snapshot)
            self._outdated.clear()
            self._version = snapshot.version

    def _update_contents(self, snapshot: CatalogSnapshot) -> None:
        gone = [name for name in self.contents.names() if name not in snapshot.contents]
        added = [document_of(each.definition, self._requests) for each in snapshot.contents.values()]
        if gone or added:
            self.contents.update(added, gone)

    def _follow(self, change: CatalogChange) -> None:
        """Index the changed tools in their present form, including earlier changes that the encoder failed on."""
        with self._lock:
            self._outdated |= dict.fromkeys((*(tool.name for tool in change.added), *change.removed))
            found = {name: self.catalog.find(name) for name in self._outdated}
            documents = [self._document(tool) for tool in found.values() if tool is not None]
            self.index.update(documents, [name for name, tool in found.items() if tool is None])
            if change.contents:
                self._update_contents(self.catalog.snapshot())
            self._outdated.clear()
            self._version = max(self._version, change.version)


def _like(index: ToolIndex) -> ToolSearchIndex:
    """An empty index with the encoder of *index*, if it has one. Its vectors are cached like those of *index*."""
    arm = index.arm if isinstance(index, ToolSearchIndex) else None
    return ToolSearchIndex(encoder=arm.encoder, cache=arm.cache) if arm else ToolSearchIndex()
