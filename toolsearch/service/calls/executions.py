"""The callbacks of a tenant's stored tools: an operation over HTTP, a function of this process, or the caller."""

from __future__ import annotations

import json
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urljoin

import httpx2

from toolsearch.catalog.sources.openapi_requests import (
    Argument,
    Credentials,
    HttpRequest,
    OpenApiCallback,
    Operation,
    SentRequest,
    sent_request,
)
from toolsearch.documents.json_values import as_object, is_list, is_object
from toolsearch.errors import ToolExecutionError
from toolsearch.service.catalogs.imports.importing import OpenClient, origin_of
from toolsearch.service.catalogs.imports.sources import CatalogSource, Sources, SourceSecrets
from toolsearch.service.catalogs.python_tools import PythonTools
from toolsearch.service.corpora.stored_tools import MakeCallback
from toolsearch.storage.contents import StoredTool
from toolsearch.tools.definition import ToolCallback
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.results import ToolOutput, text_block
from toolsearch.upstreams.secrets import redacted, redacted_json

MAX_ANSWER_BYTES: Final = 8 * 1024 * 1024
_MOST_REDIRECTS: Final = 3
_FOLLOWED: Final = ("GET", "HEAD")  # only these, since a redirected POST may have had its effect


@dataclass(frozen=True, slots=True)
class HttpTools:
    """Runs operations. The runner of tools bounds the time of a call.

    *open_client* opens a client that reaches only addresses that tenants may name.
    """

    sources: Sources
    open_client: OpenClient
    max_answer_bytes: int = MAX_ANSWER_BYTES

    def callback(self, tenant: str, execution: JsonObject) -> ToolCallback:
        """The callback for the operation of a row, as `execution_of` wrote it."""

        async def send(request: HttpRequest) -> object:
            source = await self.sources.get(tenant, str(execution["catalog"]), str(execution["source"]))
            return await self._send(request, source)

        return OpenApiCallback(operation_of(execution), send)

    async def _send(self, request: HttpRequest, source: CatalogSource) -> object:
        credentials = credentials_of(source, self.sources.secrets_of(source))
        made, hidden = authorised(request, source, credentials), credentials.secrets
        try:
            async with self.open_client() as client:
                status, media_type, body = await self._answer(client, made)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise ToolExecutionError(redacted(f"the API cannot be called: {error}", hidden)) from None
        return read_answer(status, media_type, body, hidden)

    async def _answer(self, client: httpx2.AsyncClient, request: SentRequest) -> tuple[int, str, bytes]:
        """Follow redirects within the same origin, and only where that repeats no effect."""
        url = request.url
        for _ in range(_MOST_REDIRECTS + 1):
            async with client.stream(
                request.method,
                url,
                headers=request.headers,
                content=request.content,
                timeout=None,
                follow_redirects=False,
            ) as response:
                if not response.has_redirect_location:
                    return response.status_code, response.headers.get("content-type", ""), await self._body(response)
                place = urljoin(url, response.headers["location"])
            if request.method not in _FOLLOWED or origin_of(place) != origin_of(url):
                raise ToolExecutionError(
                    f"the API redirects to {origin_of(place)}, where no call may go; import its document anew"
                )
            url = place
        raise ToolExecutionError(
            f"the API redirects more than {_MOST_REDIRECTS} times, and the call was given up; tell who runs the API"
        )

    async def _body(self, response: httpx2.Response) -> bytes:
        body = bytearray()
        async for part in response.aiter_bytes():
            body += part
            if len(body) > self.max_answer_bytes:
                raise ToolExecutionError(
                    f"the API's answer has more than {self.max_answer_bytes:,} bytes; ask for less"
                )
        return bytes(body)


def operation_of(execution: JsonObject) -> Operation:
    """The operation of a row, from the time when the row was written."""
    values: dict[str, Any] = dict(as_object(execution["operation"]) or {})
    values["arguments"] = tuple(Argument(**each) for each in values["arguments"])
    values["security"] = tuple(tuple(way) for way in values["security"])
    return Operation(**values)


def credentials_of(source: CatalogSource, secrets: SourceSecrets) -> Credentials:
    keys = {name: ":".join(key) if is_list(key) else str(key) for name, key in secrets.credentials.items()}
    return Credentials(source.schemes, keys, secrets.headers)


def authorised(request: HttpRequest, source: CatalogSource, credentials: Credentials) -> SentRequest:
    """Add *credentials*, if the request goes to the address for which they were given."""
    if origin_of(request.base_url) == source.origin:
        return sent_request(request, credentials)
    hint = f"; those of the source are for {source.origin} alone" if credentials.keys or credentials.headers else ""
    return sent_request(request, Credentials(source.schemes), hint=hint)


def read_answer(status: int, media_type: str, body: bytes, hidden: frozenset[str]) -> object:
    """The value of JSON, text, or bytes. An answer that is no success is an error that shows it."""
    kind = media_type.partition(";")[0].strip().lower()
    is_text = kind.startswith("text/") or kind.endswith(("json", "xml")) or not kind
    if not is_text and status < HTTPStatus.BAD_REQUEST:
        return body or _said(status, "")
    plain = body.decode("utf-8", "replace")
    text = redacted(plain, hidden)
    if status >= HTTPStatus.MULTIPLE_CHOICES:
        return ToolOutput((text_block(_said(status, text)),), is_error=True)
    structured = redacted_json(_json(plain), hidden) if kind.endswith("json") else None
    if structured is not None and status == HTTPStatus.OK:
        return structured
    return ToolOutput((text_block(text if status == HTTPStatus.OK and text else _said(status, text)),), structured)


def _json(text: str) -> Json | None:
    try:
        value: Json = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if is_object(value) or is_list(value) else None


def _said(status: int, text: str) -> str:
    try:
        phrase = f" {HTTPStatus(status).phrase}"
    except ValueError:
        phrase = ""
    return f"HTTP {status}{phrase}" + (f"\n\n{text}" if text.strip() else "")


@dataclass(frozen=True, slots=True)
class Executions:
    http_tools: HttpTools
    python_tools: PythonTools

    def of_tenant(self, tenant: str) -> MakeCallback:
        def make_callback(row: StoredTool, execution: JsonObject) -> ToolCallback | None:
            match execution.get("kind"):
                case "http":
                    return self.http_tools.callback(tenant, execution)
                case "python":
                    return self.python_tools.callback(tenant, row, execution)
                case _:
                    return None

        return make_callback
