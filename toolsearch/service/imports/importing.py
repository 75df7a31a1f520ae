"""One import: a document is fetched, read, checked, written in one transaction, and indexed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from toolsearch.errors import SourceError
from toolsearch.service.corpora.corpus import CorpusRef
from toolsearch.service.imports.exchange import Exchange, Exchanger
from toolsearch.service.imports.fetching import Fetcher
from toolsearch.service.imports.noting import Noting
from toolsearch.service.imports.reading import DocumentText, ReadDocument, read_source_document
from toolsearch.service.imports.sources import CatalogSource, LastImport
from toolsearch.service.jobs import Progress
from toolsearch.service.stored_tools import to_tool
from toolsearch.storage.contents import StoredTool
from toolsearch.tokens import TokenCounter, definition_tokens
from toolsearch.tools.json_types import Json, JsonObject

_COUNTED_AT_ONCE: Final = 500  # tools between two steps of the progress


@dataclass(frozen=True, slots=True)
class Importing:
    """What imports are made of.

    may_write  asked before a catalog of a tenant grows by so many tools; raises ToolSearchError if it may not
    """

    exchanger: Exchanger
    noting: Noting
    fetcher: Fetcher
    counter: TokenCounter
    may_write: Callable[[str, str, int], Awaitable[None]]

    async def run(self, source: CatalogSource, document: Json | DocumentText, progress: Progress) -> JsonObject:
        """Import *document*, or what the URL of *source* gives if that is None, and note the outcome."""
        url = ""
        if document is None:
            progress.at("fetching")
            secrets = self.noting.sources.secrets_of(source)
            fetched = await self.fetcher.fetch(secrets.url, secrets.document_headers)
            document, url = fetched.text, fetched.url
        async with progress.computing():
            outcome = await self._import(source, document, url, progress)
            del document  # nothing that was read need be in memory while the index is built
            progress.at("indexing", total=outcome["written"], refused=outcome["refused"])
            await self.exchanger.corpora.prepare(CorpusRef(source.tenant, "catalog", source.catalog))
        return outcome

    async def delete(self, source: CatalogSource) -> int:
        """Delete it with its tools, all or nothing; return how many these were.

        Raises RecordConflictError if it has another version by now, as when an import of it has begun.
        """
        done = await self.exchanger.exchange(
            *(source.tenant, source.catalog, source.name), (), also=lambda _: self.noting.forget(source)
        )
        return len(done.remove)

    async def _import(
        self, source: CatalogSource, document: Json | DocumentText, url: str, progress: Progress
    ) -> JsonObject:
        progress.at("reading")
        read = await asyncio.to_thread(_read, source, document, url)
        source = _with_origin(source, read)
        tokens = await self._tokens(read, progress)
        progress.at("checking", total=len(read.rows), refused=len(read.refused))
        plan = await self.exchanger.plan(source.tenant, source.catalog, source.name, read.rows)
        await self.may_write(source.tenant, source.catalog, plan.growth)
        progress.is_final()
        progress.at("writing", total=len(plan.put), refused=len(read.refused) + len(plan.refused))

        def settle(done: Exchange) -> None:
            refused = (*read.refused, *done.refused)
            last = LastImport(self.noting.clock(), len(done.put) + done.kept, tokens, len(refused))
            outcome = _outcome(done, len(refused))
            self.noting.done(replace(source, schemes=read.schemes), last, refused, outcome, progress)

        written = await self.exchanger.exchange(
            *(source.tenant, source.catalog, source.name), read.rows, planned=plan, also=settle
        )
        return _outcome(written, len(read.refused) + len(written.refused))

    async def _tokens(self, read: ReadDocument, progress: Progress) -> int:
        """What the definitions cost a model. Thousands of them take seconds."""
        total = 0
        for place in range(0, len(read.rows), _COUNTED_AT_ONCE):
            progress.at("counting", done=place, total=len(read.rows), refused=len(read.refused))
            total += await asyncio.to_thread(self._tokens_of, read.rows[place : place + _COUNTED_AT_ONCE])
        return total

    def _tokens_of(self, rows: Sequence[StoredTool]) -> int:
        return sum(definition_tokens(to_tool(row, _nothing).definition, self.counter) for row in rows)


def _read(source: CatalogSource, document: Json | DocumentText, url: str) -> ReadDocument:
    if isinstance(document, str):
        document = DocumentText(document)
    if isinstance(document, DocumentText):
        document = document.parsed(source)
    return read_source_document(source, document, url)


def _with_origin(source: CatalogSource, read: ReadDocument) -> CatalogSource:
    """Raises SourceError if the operations are sent elsewhere now: the credentials were given for the first place."""
    if source.origin and read.origin and source.origin != read.origin:
        raise SourceError(
            f"the operations of the source {source.name!r} are sent to {read.origin} by now, and its credentials were "
            f"given for {source.origin}; delete the source and add it again if that is right"
        )
    return replace(source, origin=source.origin or read.origin)


def _outcome(done: Exchange, refused: int) -> JsonObject:
    return {"written": len(done.put), "unchanged": done.kept, "removed": len(done.remove), "refused": refused}


def _nothing(_row: StoredTool, _execution: JsonObject) -> None:
    """Runs no tool: only its definition is wanted."""
