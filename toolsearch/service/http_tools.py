"""Runs operations of OpenAPI documents: builds the request, authorises it, sends it, and reads the answer."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote, quote_plus, urlencode, urljoin

import httpx2

from toolsearch.catalog.sources.openapi_request import Argument, HttpRequest, OpenApiCallback, Operation
from toolsearch.documents.json_values import as_object, is_list, is_object
from toolsearch.errors import ToolExecutionError
from toolsearch.service.imports.fetching import OpenClient
from toolsearch.service.imports.reading import origin_of
from toolsearch.service.imports.sources import CatalogSource, Sources, SourceSecrets
from toolsearch.service.settings import HttpToolSettings
from toolsearch.tools.blocks import text_block
from toolsearch.tools.definition import ToolCallback
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.output import ToolOutput
from toolsearch.upstreams.secrets import as_secrets, redacted, secrets_of_headers

_MOST_REDIRECTS: Final = 3
_OURS: Final = frozenset(  # headers that no argument of a model may set, whatever the document says
    {"host", "cookie", "connection", "content-length", "proxy-authorization", "te", "transfer-encoding", "upgrade"}
)
_FOLLOWED: Final = ("GET", "HEAD")  # a redirected POST may have had its effect


@dataclass(frozen=True, slots=True)
class HttpTools:
    """*open_client* gives a client that reaches only what tenants may name."""

    sources: Sources
    open_client: OpenClient
    settings: HttpToolSettings

    def callback(self, tenant: str, execution: JsonObject) -> ToolCallback:
        """What runs the operation of a row, as `execution_of` wrote it."""

        async def send(request: HttpRequest) -> object:
            source = await self.sources.get(tenant, str(execution["catalog"]), str(execution["source"]))
            return await self._send(request, source)

        return OpenApiCallback(operation_of(execution), send)

    async def _send(self, request: HttpRequest, source: CatalogSource) -> object:
        secrets = self.sources.secrets_of(source)
        authorised = authorise(request, source, secrets)
        hidden = _hidden(authorised, secrets)
        try:
            async with asyncio.timeout(self.settings.timeout_s), self.open_client() as client:
                status, media_type, body = await self._answer(client, request, authorised)
        except TimeoutError:
            raise ToolExecutionError(
                f"the API did not answer within {self.settings.timeout_s:g} s; the call may have had its effect"
            ) from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise ToolExecutionError(redacted(f"the API cannot be called: {error}", hidden)) from None
        return read_answer(status, media_type, body, hidden)

    async def _answer(
        self, client: httpx2.AsyncClient, request: HttpRequest, authorised: Authorised
    ) -> tuple[int, str, bytes]:
        """Follow redirects within the same origin, and only where that repeats no effect."""
        url = authorised.url
        content, content_type = encoded(request.body, request.content_type)
        headers = authorised.headers.copy()
        if content_type:
            headers["content-type"] = content_type
        for _ in range(_MOST_REDIRECTS + 1):
            async with client.stream(
                request.method, url, headers=headers, content=content, follow_redirects=False
            ) as response:
                if not response.has_redirect_location:
                    return response.status_code, response.headers.get("content-type", ""), await self._body(response)
                place = urljoin(url, response.headers["location"])
            if request.method not in _FOLLOWED or origin_of(place) != origin_of(url):
                raise ToolExecutionError(f"the API redirects to {origin_of(place)}, and that is not followed")
            url = place
        raise ToolExecutionError(f"the API redirects more than {_MOST_REDIRECTS} times")

    async def _body(self, response: httpx2.Response) -> bytes:
        body = bytearray()
        async for part in response.aiter_bytes():
            body += part
            if len(body) > self.settings.max_answer_bytes:
                raise ToolExecutionError(
                    f"the API's answer has more than {self.settings.max_answer_bytes:,} bytes; ask for less"
                )
        return bytes(body)


def operation_of(execution: JsonObject) -> Operation:
    """The operation of a row, as it was when the row was written."""
    values: dict[str, Any] = dict(as_object(execution["operation"]) or {})
    values["arguments"] = tuple(Argument(**each) for each in values["arguments"])
    values["security"] = tuple(tuple(way) for way in values["security"])
    return Operation(**values)


@dataclass(frozen=True, slots=True)
class Authorised:
    """Where a request goes, with what lets it in."""

    url: str
    headers: httpx2.Headers


def authorise(request: HttpRequest, source: CatalogSource, secrets: SourceSecrets) -> Authorised:
    """Add the credentials of *source*, if the request goes where they were given for."""
    cookies = {name: quote(value, safe="") for name, value in request.cookies.items()}
    headers = httpx2.Headers({name: value for name, value in request.headers.items() if name.lower() not in _OURS})
    if origin_of(request.base_url) != source.origin:
        return Authorised(request.url, _with_cookies(headers, cookies))
    headers.update(secrets.headers)
    query: list[tuple[str, str]] = []
    for name in _way_in(request, secrets):
        scheme = as_object(source.schemes.get(name)) or {}
        _add(scheme, secrets.credentials[name], headers=headers, query=query, cookies=cookies)
    url = request.url
    if query:
        url += ("&" if "?" in url else "?") + urlencode(query)
    return Authorised(url, _with_cookies(headers, cookies))


def _way_in(request: HttpRequest, secrets: SourceSecrets) -> tuple[str, ...]:
    """The first of the ways in for which all credentials are there."""
    return next((way for way in request.security if all(name in secrets.credentials for name in way)), ())


def _add(
    scheme: JsonObject,
    credential: str | list[str],
    *,
    headers: httpx2.Headers,
    query: list[tuple[str, str]],
    cookies: dict[str, str],
) -> None:
    user_and_password = ":".join(credential) if is_list(credential) else str(credential)
    name = str(scheme.get("name", ""))
    if scheme.get("type") == "apiKey":
        match scheme.get("in"):
            case "header":
                headers[name] = user_and_password
            case "query":
                query.append((name, user_and_password))
            case "cookie":
                cookies[name] = user_and_password
            case _:
                pass
    elif str(scheme.get("scheme", "")).lower() == "basic":
        headers["authorization"] = f"Basic {base64.b64encode(user_and_password.encode()).decode()}"
    else:  # http bearer, oauth2, openIdConnect
        headers["authorization"] = f"Bearer {user_and_password}"


def _with_cookies(headers: httpx2.Headers, cookies: Mapping[str, str]) -> httpx2.Headers:
    if cookies:
        headers["cookie"] = "; ".join(f"{name}={value}" for name, value in cookies.items())
    return headers


def _hidden(authorised: Authorised, secrets: SourceSecrets) -> frozenset[str]:
    """What no answer and no error may show."""
    credentials = [part for each in secrets.credentials.values() for part in (each if is_list(each) else [each])]
    texts = [*secrets_of_headers(secrets.headers), *map(str, credentials), *_authorization(authorised)]
    return as_secrets(texts, map(quote, texts), map(quote_plus, texts))


def _authorization(authorised: Authorised) -> list[str]:
    value = authorised.headers.get("authorization", "")
    return [value, *value.split()[1:]]


def encoded(body: Json, content_type: str) -> tuple[bytes | None, str]:
    """The bytes of *body*, and the content type to send with them. Raises ToolExecutionError for a type not known."""
    kind = content_type.partition(";")[0].strip().lower()
    if not content_type:
        return None, ""
    if kind == "application/json" or kind.endswith("+json"):
        return json.dumps(body, ensure_ascii=False).encode(), content_type
    if kind == "application/x-www-form-urlencoded" and is_object(body):
        return urlencode({name: _text(value) for name, value in body.items()}).encode(), content_type
    if kind == "multipart/form-data" and is_object(body):
        parts = {name: (None, _text(value)) for name, value in body.items()}
        request = httpx2.Request("POST", "http://nowhere", files=parts)
        return request.read(), request.headers["content-type"]
    return _text(body).encode(), content_type


def _text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def read_answer(status: int, media_type: str, body: bytes, hidden: frozenset[str]) -> object:
    """The value of JSON, text, or bytes. An answer that is no success is an error that shows it."""
    kind = media_type.partition(";")[0].strip().lower()
    is_text = kind.startswith("text/") or kind.endswith(("json", "xml")) or not kind
    if not is_text and status < HTTPStatus.BAD_REQUEST:
        return body or _said(status, "")
    text = redacted(body.decode("utf-8", "replace"), hidden)
    if status >= HTTPStatus.MULTIPLE_CHOICES:
        return ToolOutput((text_block(_said(status, text)),), is_error=True)
    structured = _json(text) if kind.endswith("json") else None
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
