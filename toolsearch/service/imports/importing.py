"""One import: a document is fetched, read, checked, written in one transaction, and indexed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from toolsearch.documents.texts import parse_document
from toolsearch.errors import SourceError, ToolSearchError
from toolsearch.service.imports.exchange import Exchanger
from toolsearch.service.imports.fetching import Fetcher
from toolsearch.service.imports.reading import ReadDocument, read_source_document
from toolsearch.service.imports.sources import CatalogSource, LastImport, Sources
from toolsearch.service.jobs import Progress
from toolsearch.service.refused_tools import RefusedTools
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
    sources: Sources
    refused: RefusedTools
    fetcher: Fetcher
    counter: TokenCounter
    may_write: Callable[[str, str, int], Awaitable[None]]
    clock: Callable[[], float]

    async def run(self, source: CatalogSource, document: Json, progress: Progress) -> JsonObject:
        """Import *document*, or what the URL of *source* gives if that is None, and note the outcome."""
        try:
            return await self._run(source, document, progress)
        except ToolSearchError as error:
            last = replace(source.last or LastImport(0), at_s=self.clock(), code=error.code, error=str(error))
            await self.sources.save(replace(source, is_settled=True, last=last))
            raise

    async def remove_tools(self, source: CatalogSource) -> int:
        """Return how many there were."""
        done = await self.exchanger.exchange(source.tenant, source.catalog, source.name, ())
        return len(done.remove)

    async def _run(self, source: CatalogSource, document: Json, progress: Progress) -> JsonObject:
        read = await self._read(source, document, progress)
        source = _with_origin(source, read)
        tokens = await self._tokens(read, progress)
        progress.at("checking", total=len(read.rows), refused=len(read.refused))
        plan = await self.exchanger.plan(source.tenant, source.catalog, source.name, read.rows)
        await self.may_write(source.tenant, source.catalog, plan.growth)
        progress.is_final()
        progress.at("writing", total=len(plan.put), refused=len(read.refused) + len(plan.refused))
        written = await self.exchanger.exchange(source.tenant, source.catalog, source.name, read.rows, planned=plan)
        refused = (*read.refused, *written.refused)
        await self.refused.save(source, refused)
        last = LastImport(self.clock(), len(written.put) + written.kept, tokens, len(refused))
        await self.sources.save(replace(source, is_settled=True, schemes=read.schemes, last=last))
        outcome: dict[str, Any] = {"written": len(written.put), "unchanged": written.kept}
        return {**outcome, "removed": len(written.remove), "refused": len(refused)}

    async def _read(self, source: CatalogSource, document: Json, progress: Progress) -> ReadDocument:
        url = ""
        if document is None:
            progress.at("fetching")
            secrets = self.sources.secrets_of(source)
            fetched = await self.fetcher.fetch(secrets.url, secrets.document_headers)
            document, url = fetched.text, fetched.url
        progress.at("reading")
        return await asyncio.to_thread(_read, source, document, url)

    async def _tokens(self, read: ReadDocument, progress: Progress) -> int:
        """What the definitions cost a model. Thousands of them take seconds."""
        total = 0
        for place in range(0, len(read.rows), _COUNTED_AT_ONCE):
            progress.at("counting", done=place, total=len(read.rows), refused=len(read.refused))
            total += await asyncio.to_thread(self._tokens_of, read.rows[place : place + _COUNTED_AT_ONCE])
        return total

    def _tokens_of(self, rows: Sequence[StoredTool]) -> int:
        return sum(definition_tokens(to_tool(row, _nothing).definition, self.counter) for row in rows)


def _read(source: CatalogSource, document: Json, url: str) -> ReadDocument:
    if isinstance(document, str):
        document = parse_document(document, None, f"the document of the source {source.name!r}")
    return read_source_document(source, document, url)


def _with_origin(source: CatalogSource, read: ReadDocument) -> CatalogSource:
    """Raises SourceError if the operations are sent elsewhere now: the credentials were given for the first place."""
    if source.origin and read.origin and source.origin != read.origin:
        raise SourceError(
            f"the operations of the source {source.name!r} are sent to {read.origin} by now, and its credentials were "
            f"given for {source.origin}; delete the source and add it again if that is right"
        )
    return replace(source, origin=source.origin or read.origin)


def _nothing(_row: StoredTool, _execution: JsonObject) -> None:
    """Runs no tool: only its definition is wanted."""
