"""The model API behind the proxy: requests are sent to it as they came, and its answers are read piece by piece."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Generator, Iterable, Sequence
from contextlib import asynccontextmanager, contextmanager
from http import HTTPStatus
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Final, TypeAlias
from urllib.parse import unquote_to_bytes, urlsplit

import httpx2

from toolsearch.errors import BadSettingError, ChatModelError
from toolsearch.wire.capabilities import Cloud
from toolsearch.wire.events import require_size

Headers: TypeAlias = Sequence[tuple[bytes, bytes]]  # names in lower case

SILENCE_S: Final = 600.0  # as the providers' SDKs wait
_CONNECT_S: Final = 10.0
_HOP_BY_HOP: Final = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding "
    b"upgrade host expect".split()
)
_VISIBLE: Final = frozenset(range(0x21, 0x7F)).difference(b"#")  # what an address may have
_PROVIDERS: Final = ("api.anthropic.com", "api.openai.com")
_AZURE: Final = (".openai.azure.com", ".services.ai.azure.com", ".cognitiveservices.azure.com")


class Upstream:
    """Sends requests to the API at *url*, over connections that are kept. Nothing is sent a second time.

    *silence_s* is how long the API may say nothing. *transport* makes the connections, by default as the environment
    says. No header is added to those of a request.
    """

    def __init__(
        self, url: str, *, silence_s: float = SILENCE_S, transport: httpx2.AsyncBaseTransport | None = None
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise BadSettingError(f"--upstream needs an address such as https://api.anthropic.com, not {url!r:.200}")
        if parts.username is not None:
            raise BadSettingError("--upstream takes no name and password: callers send their own keys")
        self._path = parts.path.removesuffix("/").removesuffix("/v1").encode()  # clients' paths begin with /v1
        self._url = httpx2.URL(url)
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=100)
        self._client = httpx2.AsyncClient(
            timeout=httpx2.Timeout(silence_s, connect=_CONNECT_S),
            limits=limits,
            transport=transport,
            trust_env=transport is None,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),  # a jar that takes none: clients keep theirs
        )
        self.silence_s = silence_s

    @property
    def cloud(self) -> Cloud:
        """Empty if this is a provider's own API."""
        host = self._url.host
        return "" if host in _PROVIDERS else "azure" if host.endswith(_AZURE) else "other"

    @asynccontextmanager
    async def send(
        self, method: str, target: bytes, headers: Headers, content: bytes | AsyncIterable[bytes]
    ) -> AsyncGenerator[Answer]:
        """The answer to a request for *target*, a path with its query. The end of the block closes it.

        A *content* in pieces is sent in chunks unless *headers* tell its length. None of it is kept here once it is
        sent, since answers may take minutes. Raises ChatModelError.
        """
        if isinstance(content, bytes) and content:
            headers = [*headers, (b"content-length", str(len(content)).encode())]
            content = once(content)
        request = httpx2.Request(
            method,
            self._url.copy_with(raw_path=self._path + target),
            headers=[*headers],
            content=content,
            extensions={"timeout": self._client.timeout.as_dict()},
        )
        with _translated(self):
            response = await self._client.send(request, stream=True)
        try:
            yield Answer(self, response)
        finally:
            await response.aclose()

    async def aclose(self) -> None:
        await self._client.aclose()


async def once(content: bytes) -> AsyncIterator[bytes]:
    """Give *content*, which is not kept after that."""
    yield content


class Answer:
    """An answer of the API, whose body is read once."""

    def __init__(self, upstream: Upstream, response: httpx2.Response) -> None:
        self._upstream, self._response = upstream, response
        self.status = response.status_code
        self.headers = end_to_end((name.lower(), value) for name, value in response.headers.raw)

    @property
    def is_ok(self) -> bool:
        return self.status == HTTPStatus.OK

    @property
    def is_stream(self) -> bool:
        return self._response.headers.get("content-type", "").startswith("text/event-stream")

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body as it came, compressed if it is. Raises ChatModelError if it breaks off."""
        with _translated(self._upstream):
            async for piece in self._response.aiter_raw():
                yield piece

    async def content(self) -> bytes:
        """The whole body. Raises ChatModelError if it has more than MOST_EVENT_BYTES, too."""
        content = bytearray()
        async for piece in self.pieces():
            content += piece
            require_size(len(content), "an answer")
        return bytes(content)


def end_to_end(headers: Iterable[tuple[bytes, bytes]], *without: bytes) -> list[tuple[bytes, bytes]]:
    """The *headers* that are not about one connection alone, and none of those in *without*."""
    given = list(headers)
    named = {name.strip().lower() for key, value in given if key == b"connection" for name in value.split(b",")}
    return [(name, value) for name, value in given if name not in _HOP_BY_HOP | named and name not in without]


def is_plain(target: bytes) -> bool:
    """Whether *target*, a path with its query, can stand in a request, and stays below the path it is added to."""
    path = unquote_to_bytes(target.partition(b"?")[0]).replace(b"\\", b"/")
    return _VISIBLE.issuperset(target) and b".." not in path.split(b"/")


@contextmanager
def _translated(upstream: Upstream) -> Generator[None]:
    try:
        yield
    except httpx2.TimeoutException as error:
        is_unreached = isinstance(error, httpx2.ConnectTimeout | httpx2.PoolTimeout)
        what = "cannot be reached in time" if is_unreached else f"said nothing for {upstream.silence_s:g} seconds"
        raise ChatModelError(f"the model API {what}", case=ChatModelError.TIMEOUT) from error
    except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL) as error:
        raise ChatModelError(f"the model API cannot be reached: {type(error).__name__}") from error
