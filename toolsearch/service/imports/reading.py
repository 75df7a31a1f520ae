"""A document that was imported, as rows of the store: each bad tool is refused with its reason, the rest is taken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

from toolsearch.catalog.source import LoadReport
from toolsearch.catalog.sources.json_listing import JsonListingSource
from toolsearch.catalog.sources.openapi import OpenApiSource
from toolsearch.catalog.sources.openapi_request import HttpRequest, OpenApiCallback, Operation
from toolsearch.catalog.taking import sift
from toolsearch.documents.json_values import as_object, is_list
from toolsearch.documents.texts import DocumentFormat, parse_document
from toolsearch.errors import SourceError
from toolsearch.service.imports.exchange import distinct_rows
from toolsearch.service.imports.sources import CatalogSource
from toolsearch.service.stored_tools import to_row
from toolsearch.storage.contents import StoredTool
from toolsearch.tools.definition import Tool
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.refusal import Refusal

HTTP: Final = "http"  # the kind of execution of an operation


@dataclass(frozen=True, slots=True)
class ReadDocument:
    """What a document has. *origin* is where its operations are sent, *schemes* how they want to be authorised."""

    rows: tuple[StoredTool, ...]
    refused: tuple[Refusal, ...]
    origin: str = ""
    schemes: JsonObject = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class DocumentText:
    """A document that is not parsed yet. Without a *format* the text itself tells it."""

    text: str
    format: DocumentFormat | None = None

    def parsed(self, source: CatalogSource) -> Json:
        """Raises SourceError."""
        return parse_document(self.text, self.format, _description(source))


def read_source_document(source: CatalogSource, document: Json, url: str = "") -> ReadDocument:
    """*url* is where the document came from; relative addresses in it are relative to that.

    Raises SourceError if nothing of it can be read. May take seconds.
    """
    return _READERS[source.kind](source, document, url)


def origin_of(url: str) -> str:
    """Scheme, host and port."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}".lower()


def _read_listing(source: CatalogSource, document: Json, _url: str) -> ReadDocument:
    server = source.prefix or ""
    report = JsonListingSource(_listing(document), server=server, description=_description(source)).load()
    return _read(source, report, lambda tool: to_row(tool, source=source.name))


def _read_openapi(source: CatalogSource, document: Json, url: str) -> ReadDocument:
    fields = as_object(document)
    if fields is None:
        raise SourceError(f"{_description(source)} is no OpenAPI document, which is an object")
    report = OpenApiSource(fields, server=source.server, caller=_never_sent, description=_description(source)).load()
    operations = {tool.name: _addressed(tool, source, url) for tool in report.tools}
    components = as_object(fields.get("components")) or {}
    read = _read(source, report, lambda tool: _http_row(tool, source, operations[tool.name]))
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
            f"{_description(source)} does not say at which address its operations are; give the source a base_url"
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


def _read(source: CatalogSource, report: LoadReport, row: Callable[[Tool], StoredTool]) -> ReadDocument:
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
    raise AssertionError  # the operation is only read


_READERS: Final = {"openapi": _read_openapi, "listing": _read_listing}
