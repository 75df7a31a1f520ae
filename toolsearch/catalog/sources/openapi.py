"""The operations of an OpenAPI 3.0 or 3.1 document as a source of tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from toolsearch.catalog.source import LoadReport
from toolsearch.catalog.sources.openapi_operation import Endpoint, read_operation
from toolsearch.catalog.sources.openapi_request import OpenApiCallback, SendRequest
from toolsearch.catalog.sources.openapi_server_name import server_name
from toolsearch.catalog.sources.schema_refs import SchemaLibrary
from toolsearch.documents.files import read_document
from toolsearch.documents.json_values import as_list, as_object, as_texts
from toolsearch.errors import BadToolError, SourceError
from toolsearch.tools.definition import Tool, ToolDefinition
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.naming import all_namespaced, title_with_name
from toolsearch.tools.refusal import Refusal
from toolsearch.tools.safety import DESTRUCTIVE, IDEMPOTENT, READ_ONLY

_REQUESTS = "x-toolsearch-requests"  # of an operation: what users ask for when they need it

_HINTS: dict[str, dict[str, bool]] = {  # by HTTP's own words on safe and idempotent methods
    "get": {READ_ONLY: True},
    "head": {READ_ONLY: True},
    "options": {READ_ONLY: True},
    "trace": {READ_ONLY: True},
    "post": {READ_ONLY: False},
    "patch": {READ_ONLY: False},
    "put": {READ_ONLY: False, IDEMPOTENT: True},
    "delete": {READ_ONLY: False, DESTRUCTIVE: True, IDEMPOTENT: True},
}


class OpenApiSource:
    """Each operation is a tool, named by its operationId or by method and path.

    server  prefix of the names; ``""`` leaves it out. None makes one of the document's host, title or file, see
            `server_name`
    caller  sends the requests and returns what the model is to read; without one the tools can only be found and shown
    """

    def __init__(
        self,
        document: str | Path | Mapping[str, Json],
        *,
        server: str | None = None,
        caller: SendRequest | None = None,
        description: str = "an OpenAPI document",
    ) -> None:
        self._document = Path(document) if isinstance(document, str) else document
        self._server = server
        self._caller = caller
        self.description = str(self._document) if isinstance(self._document, Path) else description

    def load(self) -> LoadReport:
        """Raises SourceError if the document cannot be read or is of another version."""
        document = _supported(self._read(), self.description)
        file_name = self._document.stem if isinstance(self._document, Path) else ""
        server = server_name(document, file_name) if self._server is None else self._server
        reader = _Reader(document, server, self._caller, self.description)
        reader.read()
        return LoadReport(tuple(reader.tools), tuple(reader.refused), {server: _purpose(document)})

    def close(self) -> None:
        """Nothing is held; *caller* is its owner's to close."""

    def _read(self) -> Json:
        return read_document(self._document) if isinstance(self._document, Path) else self._document


class _Reader:
    """Goes through one document once."""

    def __init__(self, document: JsonObject, server: str, caller: SendRequest | None, description: str) -> None:
        self.tools: list[Tool] = []
        self.refused: list[Refusal] = []
        self._document = document
        self._library = SchemaLibrary(document)
        self._server = server
        self._caller = caller
        self._description = description

    def read(self) -> None:
        endpoints = list(self._endpoints())
        names = all_namespaced(self._server, (endpoint.own_name for endpoint in endpoints))
        for endpoint in endpoints:
            self._take(names[endpoint.own_name], endpoint)

    def _endpoints(self) -> Iterator[Endpoint]:
        for path, entry in (as_object(self._document.get("paths")) or {}).items():
            try:
                item = as_object(self._library.follow(entry)) or {}
            except BadToolError as error:
                self.refused.append(Refusal(path, self._description, str(error)))
                continue
            for method in _HINTS:
                details = as_object(item.get(method))
                if details is not None:
                    yield Endpoint(method, path, item, details, self._document.get("security"))

    def _take(self, name: str, endpoint: Endpoint) -> None:
        try:
            self.tools.append(self._make_tool(name, endpoint))
        except BadToolError as error:
            self.refused.append(Refusal(name, self._description, str(error)))

    def _make_tool(self, name: str, endpoint: Endpoint) -> Tool:
        base_url = _base_url(endpoint.details, endpoint.item, self._document)
        operation, input_schema = read_operation(self._library, endpoint, base_url)
        definition = ToolDefinition(
            name=name,
            description=_description(endpoint.details),
            input_schema=input_schema,
            title=title_with_name("", endpoint.own_name, self._server),
            annotations=_HINTS[endpoint.method],
            server=self._server,
            tags=tuple(as_texts(endpoint.details.get("tags"))),
            requests=tuple(as_texts(endpoint.details.get(_REQUESTS))),
        )
        callback = OpenApiCallback(operation, self._caller) if self._caller else None
        return Tool(definition, callback, source=f"{self._description}#{endpoint.method.upper()} {endpoint.path}")


def _supported(document: Json, description: str) -> JsonObject:
    fields = as_object(document) or {}
    version = str(fields.get("openapi") or fields.get("swagger") or "none")
    if not version.startswith("3."):
        raise SourceError(f"{description} says OpenAPI version {version}; only 3.x can be read: convert it first")
    return fields


def _purpose(document: JsonObject) -> str:
    """What the document says in its ``info`` that the whole is for."""
    info = as_object(document.get("info")) or {}
    return next(filter(None, (_text(info.get(key)) for key in ("summary", "description", "title"))), "")


def _description(details: JsonObject) -> str:
    summary, description = (_text(details.get(key)) for key in ("summary", "description"))
    parts = [description] if description.startswith(summary) else [summary, description]
    if details.get("deprecated") is True:
        parts.insert(0, "Deprecated.")
    return "\n\n".join(part for part in parts if part)


def _base_url(*holders: JsonObject) -> str:
    """Return the first server's address, with its variables at their defaults; the nearest holder that has one says."""
    for holder in holders:
        for entry in as_list(holder.get("servers")) or ():
            server = as_object(entry) or {}
            url = _text(server.get("url"))
            for name, variable in (as_object(server.get("variables")) or {}).items():
                url = url.replace(f"{{{name}}}", _text((as_object(variable) or {}).get("default")))
            return url
    return ""


def _text(value: Json) -> str:
    return value.strip() if isinstance(value, str) else ""
