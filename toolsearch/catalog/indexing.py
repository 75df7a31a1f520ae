"""Indexes that follow a catalog. All sessions share them, and a change updates them instead of rebuilding them.

Skills, prompts and resources have an index beside that of the tools, so that their words and their number change
nothing in the ranking of tools. Scores are probabilities, so the hits of both are merged by their scores, and a tool
comes before all else with the same score.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from heapq import merge
from typing import Any, Final

from toolsearch.catalog.catalog import Catalog
from toolsearch.catalog.changes import CatalogChange
from toolsearch.catalog.request_packs import NO_REQUESTS, RequestSource, cleaned_requests
from toolsearch.catalog.snapshot import CatalogSnapshot
from toolsearch.tools.definition import NO_PARAMETERS, TOOLS, EntryKind, Tool, ToolDefinition
from toolsearch.tools.naming import given_name
from toolsearch_indexes.confidence import RIVALS, compared
from toolsearch_indexes.documents import Hit, ToolDocument, document_from_schema
from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.queries import Selection, Strategy, Words, read_form
from toolsearch_indexes.scores import LEAST, score_of
from toolsearch_indexes.search import lowered
from toolsearch_indexes.tool_index import ToolIndex

logger = logging.getLogger(__name__)

# Log odds that a skill, a prompt or a resource loses beside tools. A score tells how well an entry fits if one of its
# kind is meant, and most requests mean a tool. Fitted on train parts of the labelled sets and on requests for skills:
# less costs recall of tools, more costs recall of skills (see `benchmarks.skills`).
BESIDE_TOOLS: Final = 0.8


def document_of(definition: ToolDefinition, requests: RequestSource = NO_REQUESTS) -> ToolDocument:
    """The indexed document of a tool. The author's requests precede those of *requests*.

    All skills have the same parameter, which says nothing of any. In its place stands what else a skill says.
    """
    is_skill = definition.kind == "skill"
    document = document_from_schema(
        name=definition.name,
        description=definition.description,
        input_schema=NO_PARAMETERS if is_skill else definition.input_schema,
        title=definition.title,
        server=definition.server,
        tags=definition.tags,
        local_name=given_name(definition) or definition.local_name,
    )
    asked = cleaned_requests([*definition.requests, *requests.requests_for(definition)])
    if is_skill:
        document = replace(document, parameter_text=definition.text)
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


class SharedIndex:
    """An index that somebody else keeps, with the tools *names* of a catalog, so that nobody indexes them again."""

    def __init__(self, index: ToolIndex, names: Collection[str]) -> None:
        self.names = frozenset(names)
        self._index = index
        self._selection = Selection(self.names.__contains__)

    def search(
        self,
        query: str,
        *,
        limit: int,
        strategy: Strategy,
        within: Selection | None,
        favour: Mapping[str, float] | None,
    ) -> list[Hit]:
        """See `ToolIndex.search`. No other tool of the index is found."""
        selection = self._selection if within is None else within
        hits = _searched(self._index, query, limit=limit, strategy=strategy, within=selection, favour=favour)
        return [hit for hit in hits if hit.name in self.names]


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
        shared: SharedIndex | None = None,
    ) -> None:
        """*indexed* is the snapshot that *index* already holds, if it was read from a store. *index* never gets the
        tools of *shared*, which is searched beside it.

        *requests* gives the requests of users who need a tool. Raises EncoderError if the tools cannot be embedded.
        """
        self.catalog = catalog
        self.index = index
        self.contents = _like(index)
        self._requests = requests
        self._shared = shared
        self._outdated: dict[str, None] = {}  # names of tools whose changes are not indexed yet, in order
        self._indexed_contents: Mapping[str, Tool] = {}
        self._lock = threading.Lock()
        with self._lock:  # changes that arrive meanwhile wait until the index is complete
            self._unsubscribe = catalog.subscribe(self._follow)
            self._version = -1 if indexed is None else indexed.version  # version of the catalog that is indexed
            try:
                snapshot = catalog.snapshot()
                self._catch_up(snapshot)
                self._update_contents(snapshot.contents)
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
        kinds: Collection[EntryKind] = TOOLS,
        contents: Selection | None = None,
    ) -> list[Hit]:
        """See `ToolIndex.search`; *within* selects among the tools, and *contents* among all else of these *kinds*."""
        hits = list[Hit]()
        if "tool" in kinds:
            hits = self._tools_found(query, limit=limit, strategy=strategy, within=within, favour=favour)
        if kinds == TOOLS or not len(self.contents):
            return hits
        others = _searched(self.contents, query, limit=limit, strategy=strategy, within=contents, favour=favour)
        if "tool" in kinds and len(self.catalog) and self._is_ranked(query, strategy):
            others = _beside_tools(others)
        return _merged(hits, others)[:limit]

    def _tools_found(self, query: str, *, limit: int, strategy: Strategy, **asked: Any) -> list[Hit]:
        """The tools of both indexes in one answer, which share the chance to be the one meant."""
        if self._shared is None:
            return self.index.search(query, limit=limit, strategy=strategy, **asked)
        most = max(limit, RIVALS)  # confidence goes by so many, also in a shorter answer
        own = self.index.search(query, limit=most, strategy=strategy, **asked)
        found = _merged(own, self._shared.search(query, limit=most, strategy=strategy, **asked))
        return (compared(found) if self._is_ranked(query, strategy) else found)[:limit]

    def _is_ranked(self, query: str, strategy: Strategy) -> bool:
        """Whether scores are probabilities. Those of patterns are not."""
        by = _known(strategy, self.contents)
        return isinstance(read_form(query), Words) and self.contents.resolve_strategy(by) != "regex"

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

    def _indexed(self, names: Iterable[str]) -> Iterator[str]:
        """The *names* that `index` holds."""
        shared = self._shared.names if self._shared is not None else ()
        return (name for name in names if name not in shared)

    def _document(self, tool: Tool) -> ToolDocument:
        return document_of(tool.definition, self._requests)

    def _catch_up(self, snapshot: CatalogSnapshot) -> None:
        if snapshot.version != self._version or self._outdated:
            gone = [name for name in self.index.names() if name not in snapshot.tools]
            definitions = snapshot.definitions_once(self._indexed(snapshot.tools))
            self.index.update((document_of(each, self._requests) for each in definitions), gone)
            self._update_contents(snapshot.contents)
            self._outdated.clear()
            self._version = snapshot.version

    def _update_contents(self, now: Mapping[str, Tool]) -> None:
        """Index what differs from the indexed contents, which is also what the encoder has failed on before."""
        before = self._indexed_contents
        gone = [name for name in before if name not in now]
        added = [self._document(each) for name, each in now.items() if not _is_same(before.get(name), each)]
        if gone or added:
            self.contents.update(added, gone)
        self._indexed_contents = now

    def _follow(self, change: CatalogChange) -> None:
        """Index the changed tools in their present form, including earlier changes that the encoder failed on."""
        with self._lock:
            changed = (*(tool.name for tool in change.added), *change.removed)
            self._outdated |= dict.fromkeys(self._indexed(changed))
            found = {name: self.catalog.find(name) for name in self._outdated}
            documents = [self._document(tool) for tool in found.values() if tool is not None]
            self.index.update(documents, [name for name, tool in found.items() if tool is None])
            self._update_contents(self.catalog.contents)
            self._outdated.clear()
            self._version = max(self._version, change.version)


def _is_same(before: Tool | None, now: Tool) -> bool:
    return before is not None and before.definition is now.definition


def _beside_tools(hits: Sequence[Hit]) -> list[Hit]:
    """The hits that would make an answer by themselves after what they lose beside tools. One found by name stays."""
    least = score_of(LEAST)
    beside = (hit if hit.score == 1 else lowered(hit, BESIDE_TOOLS) for hit in hits)
    return [hit for hit in beside if hit.score >= least]


def _merged(first: Sequence[Hit], second: Sequence[Hit]) -> list[Hit]:
    """Both by score. Each keeps its order; those of *first* come first on ties."""
    return list(merge(first, second, key=lambda hit: -hit.score))


def _known(strategy: Strategy, index: ToolIndex) -> Strategy:
    """*strategy*, or what means the first ranking of *index* if it does not know that."""
    return strategy if strategy in index.rankings else "auto"


def _searched(
    index: ToolIndex,
    query: str,
    *,
    limit: int,
    strategy: Strategy,
    within: Selection | None,
    favour: Mapping[str, float] | None,
) -> list[Hit]:
    by = _known(strategy, index)
    return index.search(query, limit=limit, strategy=by, within=within, favour=favour)


def _like(index: ToolIndex) -> ToolSearchIndex:
    """An empty index with the encoder of *index*, if it has one. Its vectors are cached like those of *index*."""
    arm = index.arm if isinstance(index, ToolSearchIndex) else None
    return ToolSearchIndex(encoder=arm.encoder, cache=arm.cache) if arm else ToolSearchIndex()
