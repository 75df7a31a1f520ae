"""Sends requests and waits: the two drivers of `toolsearch.client.exchange`, one plain, one async."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from types import TracebackType
from typing import Any, Final, Self, TypeVar

import httpx2

from toolsearch.client.exchange import (
    EventStream,
    Listing,
    Outcome,
    Patience,
    Pause,
    Request,
    exchange,
    require_success,
)
from toolsearch.errors import ServiceError

_T = TypeVar("_T")

_TIMEOUT_S: Final = 70.0  # longer than the service takes by its default settings, so that it says what was wrong
_PATIENCE: Final = Patience(repeats=6, max_wait_s=30.0)


class SyncTransport:
    """Close it, or use it as a context manager.

    url, key    where the service is, and what says who you are
    timeout_s   for one answer
    max_wait_s  how long one method waits, all in all, before it repeats a request that the service put off
    """

    def __init__(
        self,
        url: str,
        key: str,
        *,
        timeout_s: float = _TIMEOUT_S,
        max_wait_s: float = _PATIENCE.max_wait_s,
        transport: httpx2.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._http = httpx2.Client(base_url=url, headers=_headers(key), timeout=timeout_s, transport=transport)
        self._patience = Patience(_PATIENCE.repeats, max_wait_s)
        self._sleep = sleep

    def send(self, request: Request[_T]) -> _T:
        """Raises ServiceError."""
        steps = exchange(request, self._patience)
        outcome: Outcome = None
        try:
            while True:
                step = steps.send(outcome)
                outcome = self._pause(step) if isinstance(step, Pause) else self._attempt(step)
        except StopIteration as end:
            answer: _T = end.value
            return answer

    def pages(self, listing: Listing[_T]) -> Generator[_T]:
        """Every entry of a list, page by page as they are needed. Raises ServiceError."""
        after: str | None = None
        while True:
            page = self.send(listing.page(after))
            yield from page.items
            if page.next is None:
                return
            after = page.next

    def events(self, stream: EventStream[_T]) -> Generator[_T]:
        """Raises ServiceError."""
        try:
            with self._http.sse(stream.path, timeout=None) as source:
                if not source.response.is_success:
                    source.response.read()
                    require_success(source.response)
                for event in source:
                    if (read := stream.read(event)) is not None:
                        yield read
        except httpx2.TransportError as error:
            raise _broken(error) from error

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _attempt(self, request: Request[Any]) -> Outcome:
        try:
            return self._http.request(request.method, request.path, **_sent(request))
        except httpx2.TransportError as error:
            return error

    def _pause(self, pause: Pause) -> Outcome:
        self._sleep(pause.seconds)
        return None


class AsyncTransport:
    """As `SyncTransport`, to be awaited: close it by `aclose`, or use it as an async context manager."""

    def __init__(
        self,
        url: str,
        key: str,
        *,
        timeout_s: float = _TIMEOUT_S,
        max_wait_s: float = _PATIENCE.max_wait_s,
        transport: httpx2.AsyncBaseTransport | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._http = httpx2.AsyncClient(base_url=url, headers=_headers(key), timeout=timeout_s, transport=transport)
        self._patience = Patience(_PATIENCE.repeats, max_wait_s)
        self._sleep = sleep

    async def send(self, request: Request[_T]) -> _T:
        """Raises ServiceError."""
        steps = exchange(request, self._patience)
        outcome: Outcome = None
        try:
            while True:
                step = steps.send(outcome)
                outcome = await (self._pause(step) if isinstance(step, Pause) else self._attempt(step))
        except StopIteration as end:
            answer: _T = end.value
            return answer

    async def pages(self, listing: Listing[_T]) -> AsyncGenerator[_T]:
        """Every entry of a list, page by page as they are needed. Raises ServiceError."""
        after: str | None = None
        while True:
            page = await self.send(listing.page(after))
            for item in page.items:
                yield item
            if page.next is None:
                return
            after = page.next

    async def events(self, stream: EventStream[_T]) -> AsyncGenerator[_T]:
        """Raises ServiceError."""
        try:
            async with self._http.sse(stream.path, timeout=None) as source:
                if not source.response.is_success:
                    await source.response.aread()
                    require_success(source.response)
                async for event in source:
                    if (read := stream.read(event)) is not None:
                        yield read
        except httpx2.TransportError as error:
            raise _broken(error) from error

    async def aclose(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _attempt(self, request: Request[Any]) -> Outcome:
        try:
            return await self._http.request(request.method, request.path, **_sent(request))
        except httpx2.TransportError as error:
            return error

    async def _pause(self, pause: Pause) -> Outcome:
        await self._sleep(pause.seconds)
        return None


def _headers(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}", "user-agent": "toolsearch-client"}


def _sent(request: Request[Any]) -> dict[str, Any]:
    sent: dict[str, Any] = {"params": request.params, "headers": request.headers}
    if request.content is not None:
        return {**sent, "content": request.content}
    return sent if request.json is None else {**sent, "json": request.json}


def _broken(error: httpx2.TransportError) -> ServiceError:
    return ServiceError(f"the stream of events broke off: {error}", code="service_unreachable", status=503)
