"""Fetches documents from where a tenant says, through the guard of addresses, and never more than may be read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import TypeAlias
from urllib.parse import urljoin

import httpx2

from toolsearch.errors import SourceError
from toolsearch.service.imports.reading import origin_of
from toolsearch.upstreams.secrets import redacted, secrets_of_headers, secrets_of_url

OpenClient: TypeAlias = Callable[[], httpx2.AsyncClient]  # a client that reaches only what tenants may name

_MOST_REDIRECTS = 5


@dataclass(frozen=True, slots=True)
class Fetched:
    """*url* is where it came from in the end."""

    text: str
    url: str


@dataclass(frozen=True, slots=True)
class Fetcher:
    open_client: OpenClient
    max_bytes: int
    timeout_s: float

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
                raise SourceError(f"the document has more than {self.max_bytes:,} bytes, which may be read at most")
        try:
            return body.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise SourceError(f"the document is not UTF-8: {error.reason} at byte {error.start}") from None
