"""One import: a document is fetched, read, checked, written in one transaction, and indexed.

Each bad tool is refused with its reason, the rest is taken.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from http import HTTPStatus
from typing import Any, Final, TypeAlias
from urllib.parse import urljoin, urlsplit

import httpx2

from toolsearch.catalog.source import LoadReport, sift
from toolsearch.catalog.sources.json_listing import JsonListingSource
from toolsearch.catalog.sources.openapi import OpenApiSource
from toolsearch.catalog.sources.openapi_requests import HttpRequest, OpenApiCallback, Operation
from toolsearch.documents.json_values import as_object, is_list
from toolsearch.documents.reading import DocumentFormat, parse_document
from toolsearch.errors import SourceError
from toolsearch.service.catalogs.imports.servers import Noting
from toolsearch.service.catalogs.imports.sources import (
    CatalogSource,
    Exchanger,
    LastImport,
    ToolExchange,
    distinct_rows,
)
from toolsearch.service.corpora.corpus import CorpusRef
from toolsearch.service.corpora.stored_tools import to_row, to_tool
from toolsearch.service.jobs import JobProgress
from toolsearch.storage.contents import StoredTool
from toolsearch.tokens import TokenCounter, definition_tokens
from toolsearch.tools.definition import Refusal, Tool
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.upstreams.secrets import redacted, secrets_of_headers, secrets_of_url

HTTP: Final = "http"  # the kind of execution that sends an operation's request


@dataclass(frozen=True, slots=True)
class ReadDocument:
    """The contents of a document. *origin* is the address of its operations, *schemes* are their security schemes."""

    rows: tuple[StoredTool, ...]
    refused: tuple[Refusal, ...]
    origin: str = ""
    schemes: JsonObject = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class DocumentText:
    """An unparsed document. Without a *format* it is recognised from the text."""

    text: str
    format: DocumentFormat | None = None

    def parsed(self, source: CatalogSource) -> Json:
        """Raises SourceError."""
        return parse_document(self.text, self.format, _description(source))


def read_source_document(source: CatalogSource, document: Json, url: str = "") -> ReadDocument:
    """*url* is the address of the document, to which relative addresses in it are relative.

    Raises SourceError if no part of it can be read. This may take seconds.
    """
    return _READERS[source.kind](source, document, url)


def origin_of(url: str) -> str:
    """Scheme, host and port."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}".lower()


def _read_listing(source: CatalogSource, document: Json, _url: str) -> ReadDocument:
    server = source.prefix or ""
    report = JsonListingSource(_listing(document), server=server, description=_description(source)).load()
    return _read_report(source, report, lambda tool: to_row(tool, source=source.name))


def _read_openapi(source: CatalogSource, document: Json, url: str) -> ReadDocument:
    fields = as_object(document)
    if fields is None:
        raise SourceError(f"{_description(source)} is no OpenAPI document: it is not an object")
    report = OpenApiSource(fields, server=source.server, caller=_never_sent, description=_description(source)).load()
    operations = {tool.name: _addressed(tool, source, url) for tool in report.tools}
    components = as_object(fields.get("components")) or {}
    read = _read_report(source, report, lambda tool: _http_row(tool, source, operations[tool.name]))
    return replace(
        read,
        origin=origin_of(next(iter(operations.values())).base_url) if operations else "",
        schemes=as_object(components.get("securitySchemes")) or {},
    )


def _addressed(tool: Tool, source: CatalogSource, url: str) -> Operation:
    """The operation of *tool* with an address that it can be sent to."""
    callback = tool.callback
    assert isinstance(callback, OpenApiCallback)  # noqa: S101
    operation = callback.operation
    base_url = source.base_url or urljoin(url, operation.base_url)
    parts = urlsplit(base_url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SourceError(
            f"{_description(source)} does not name the address of its operations; give the source a base_url"
        )
    return replace(operation, base_url=base_url)


def _http_row(tool: Tool, source: CatalogSource, operation: Operation) -> StoredTool:
    execution: JsonObject = {
        "kind": HTTP,
        "catalog": source.catalog,
        "source": source.name,
        "operation": asdict(operation),
    }
    return to_row(tool, source=source.name, execution=execution)


def _read_report(source: CatalogSource, report: LoadReport, row: Callable[[Tool], StoredTool]) -> ReadDocument:
    good, unfit = sift(report.tools, source.name)
    rows, clashes = distinct_rows(map(row, good))
    refused: Sequence[Refusal] = (*report.refused, *unfit, *clashes)
    return ReadDocument(tuple(rows), tuple(replace(each, source=source.name) for each in refused))


def _listing(document: Json) -> list[Json] | JsonObject:
    fields = as_object(document)
    if fields is not None:
        return fields
    if is_list(document):
        return document
    raise SourceError("a listing is a list of definitions, or an object with 'tools'")


def _description(source: CatalogSource) -> str:
    return f"the document of the source {source.name!r}"


async def _never_sent(_: HttpRequest) -> object:
    raise AssertionError  # the operation is read but never sent


_READERS: Final = {"openapi": _read_openapi, "listing": _read_listing}
OpenClient: TypeAlias = Callable[[], httpx2.AsyncClient]  # a client that reaches only what tenants may name
MAX_DOCUMENT_BYTES: Final = 64 * 1024 * 1024
MAX_SILENCE_S: Final = 60.0  # of the server of a document
_MOST_REDIRECTS = 5


@dataclass(frozen=True, slots=True)
class Fetched:
    """*url* is where it came from in the end."""

    text: str
    url: str


@dataclass(frozen=True, slots=True)
class Fetcher:
    open_client: OpenClient
    max_bytes: int = MAX_DOCUMENT_BYTES
    timeout_s: float = MAX_SILENCE_S

    async def fetch(self, url: str, headers: Mapping[str, str]) -> Fetched:
        """Follow redirects; *headers* are sent to the origin of *url* alone. Raises SourceError, without secrets."""
        secrets = [*secrets_of_headers(headers), *secrets_of_url(url)]
        try:
            async with self.open_client() as client:
                return await self._fetched(client, url, headers)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            reason = redacted(f"{type(error).__name__}: {error}", [each for each in secrets if each])
            raise SourceError(f"the document cannot be fetched: {reason}") from None

    async def _fetched(self, client: httpx2.AsyncClient, url: str, headers: Mapping[str, str]) -> Fetched:
        place = url
        for _ in range(_MOST_REDIRECTS + 1):
            own: Mapping[str, str] = headers if origin_of(place) == origin_of(url) else {}
            async with client.stream(
                "GET", place, headers=own, timeout=self.timeout_s, follow_redirects=False
            ) as response:
                if not response.has_redirect_location:
                    return Fetched(await self._text(response), place)
                place = urljoin(place, response.headers["location"])
        raise SourceError(f"the document cannot be fetched: more than {_MOST_REDIRECTS} redirects")

    async def _text(self, response: httpx2.Response) -> str:
        if response.status_code != HTTPStatus.OK:
            raise SourceError(f"the document cannot be fetched: the server answers HTTP {response.status_code}")
        body = bytearray()
        async for part in response.aiter_bytes():
            body += part
            if len(body) > self.max_bytes:
                raise SourceError(f"the document has more bytes than the limit of {self.max_bytes:,}")
        try:
            return body.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise SourceError(f"the document is not UTF-8: {error.reason} at byte {error.start}") from None


_COUNTED_AT_ONCE: Final = 500  # tools between two steps of the progress


@dataclass(frozen=True, slots=True)
class Importing:
    """Runs imports.

    may_write  called before a catalog grows by a number of tools; raises ToolSearchError if it may not
    """

    exchanger: Exchanger
    noting: Noting
    fetcher: Fetcher
    counter: TokenCounter
    may_write: Callable[[str, str, int], Awaitable[None]]

    async def run(self, source: CatalogSource, document: Json | DocumentText, progress: JobProgress) -> JsonObject:
        """Import *document*, or if it is None the document at the URL of *source*, and note the outcome."""
        url = ""
        if document is None:
            progress.at("fetching")
            secrets = self.noting.sources.secrets_of(source)
            fetched = await self.fetcher.fetch(secrets.url, secrets.document_headers)
            document, url = fetched.text, fetched.url
        async with progress.computing():
            outcome = await self._import(source, document, url, progress)
            del document  # the document need not stay in memory while the index is built
            progress.at("indexing", total=outcome["written"], refused=outcome["refused"])
            await self.exchanger.corpora.prepare(CorpusRef(source.tenant, "catalog", source.catalog))
        return outcome

    async def delete(self, source: CatalogSource) -> int:
        """Delete the source with its tools, all or nothing. Return the number of deleted tools.

        Raises ConflictError if the source was changed meanwhile, for example by a new import.
        """
        done = await self.exchanger.exchange(
            *(source.tenant, source.catalog, source.name), (), also=lambda _: self.noting.forget(source)
        )
        return len(done.remove)

    async def _import(
        self, source: CatalogSource, document: Json | DocumentText, url: str, progress: JobProgress
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

        def settle(done: ToolExchange) -> None:
            refused = (*read.refused, *done.refused)
            last = LastImport(self.noting.clock(), len(done.put) + done.kept, tokens, len(refused))
            outcome = _outcome(done, len(refused))
            self.noting.done(replace(source, schemes=read.schemes), last, refused, outcome, progress)

        written = await self.exchanger.exchange(
            *(source.tenant, source.catalog, source.name), read.rows, planned=plan, also=settle
        )
        return _outcome(written, len(read.refused) + len(written.refused))

    async def _tokens(self, read: ReadDocument, progress: JobProgress) -> int:
        """The tokens of the definitions. Thousands of definitions take seconds."""
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
            f"the operations of the source {source.name!r} are at {read.origin} now, but its credentials are for "
            f"{source.origin}; if the change is right, delete the source and add it again"
        )
    return replace(source, origin=source.origin or read.origin)


def _outcome(done: ToolExchange, refused: int) -> JsonObject:
    return {"written": len(done.put), "unchanged": done.kept, "removed": len(done.remove), "refused": refused}


def _nothing(_row: StoredTool, _execution: JsonObject) -> None:
    """Runs no tool: only its definition is wanted."""
