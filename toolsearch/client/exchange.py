"""Sends requests, repeats them, waits, and reads the answers: one exchange, with a plain and an async driver."""

from __future__ import annotations

import asyncio
import email.utils
import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeAlias, TypeVar

import httpx2
from pydantic import TypeAdapter, ValidationError

from toolsearch.api.base import Page, Problem
from toolsearch.errors import ServiceError

_T = TypeVar("_T")
_POSTPONED_STATUSES: Final = frozenset({429, 503})


# Sent by a balancer, unless the body is a problem of the service.
_BALANCER_STATUSES: Final = frozenset({502, 503, 504})
_REPEATABLE_METHODS: Final = frozenset({"GET", "PUT", "DELETE"})  # methods whose repetition changes nothing
_CHANGING_METHODS: Final = frozenset({"POST", "PATCH"})
_UNREACHABLE: Final = "service_unreachable"
_BACKOFF_S: Final = 0.5  # seconds before the first repetition; the wait doubles each time


@dataclass(frozen=True, slots=True)
class ClientRequest(Generic[_T]):
    """One request, and the type of its answer.

    has_effects  whether it must not be repeated, even with a key for repetitions
    """

    method: str
    path: str
    answer: TypeAdapter[_T]
    params: Mapping[str, str | int | bool | Sequence[str]] = field(default_factory=dict[str, Any])
    json: Any = None
    content: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    has_effects: bool = False

    @property
    def is_repeatable(self) -> bool:
        return not self.has_effects and (self.method in _REPEATABLE_METHODS or "idempotency-key" in self.headers)

    def with_idempotency_key(self) -> ClientRequest[_T]:
        """Add a key, so that the service gives a repetition the answer of the first request."""
        if self.method not in _CHANGING_METHODS:
            return self
        return replace(self, headers={"idempotency-key": secrets.token_hex(16), **self.headers})


@dataclass(frozen=True, slots=True)
class PagedList(Generic[_T]):
    """A list in pages; *request* gives the first one."""

    request: ClientRequest[Page[_T]]

    def page(self, after: str | None) -> ClientRequest[Page[_T]]:
        if after is None:
            return self.request
        return replace(self.request, params={**self.request.params, "after": after})


@dataclass(frozen=True, slots=True)
class EventStream(Generic[_T]):
    """Events, each read by its name."""

    path: str
    kinds: Mapping[str, TypeAdapter[_T]]

    def read(self, event: httpx2.ServerSentEvent) -> _T | None:
        """Read an event; None for an event that this version does not know."""
        adapter = self.kinds.get(event.event)
        return None if adapter is None else adapter.validate_json(event.data)


@dataclass(frozen=True, slots=True)
class Pause:
    """How long to wait before going on."""

    seconds: float


HttpOutcome: TypeAlias = httpx2.Response | httpx2.TransportError | None
HttpStep: TypeAlias = ClientRequest[Any] | Pause


@dataclass(frozen=True, slots=True)
class Patience:
    """How often a request is repeated, and how long all waiting for one may take."""

    repeats: int
    max_wait_s: float


def exchange(
    request: ClientRequest[_T], patience: Patience, *, clock: Callable[[], float] = time.time
) -> Generator[HttpStep, HttpOutcome, _T]:
    """Yield the next step: a request to send, whose outcome is sent back, or a pause. Return the answer.

    Raises ServiceError. *clock* gives seconds since 1970, to read dates by.
    """
    request = request.with_idempotency_key()
    waited_s = 0.0
    for repeats in range(patience.repeats + 1):
        outcome = yield request
        wait_s = _wait(request, outcome, repeats, clock())
        if wait_s is None or repeats == patience.repeats or waited_s + wait_s > patience.max_wait_s:
            return _read(request, outcome)
        waited_s += wait_s
        yield Pause(wait_s)
    raise AssertionError  # the last round has returned


def _wait(request: ClientRequest[Any], outcome: HttpOutcome, repeats: int, now_s: float) -> float | None:
    """Seconds until a repetition may succeed; None if it must not be repeated."""
    may_be_sent_again = request.is_repeatable
    if isinstance(outcome, httpx2.Response):
        if outcome.status_code in _POSTPONED_STATUSES and "retry-after" in outcome.headers:
            return _retry_after(outcome.headers["retry-after"], now_s)
        if outcome.status_code not in _BALANCER_STATUSES or _is_problem(outcome):
            return None
    elif isinstance(outcome, httpx2.ConnectError | httpx2.ConnectTimeout):
        may_be_sent_again = True  # the request never arrived
    return _BACKOFF_S * 2**repeats if may_be_sent_again else None


def _is_problem(response: httpx2.Response) -> bool:
    """Whether the answer is the service's own, rather than that of a proxy before it."""
    return response.headers.get("content-type", "").startswith("application/problem+json")


def _retry_after(text: str, now_s: float) -> float | None:
    if text.isdecimal():
        return float(text)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - now_s)
    except ValueError:
        return None


def _read(request: ClientRequest[_T], outcome: HttpOutcome) -> _T:
    if not isinstance(outcome, httpx2.Response):
        raise ServiceError(f"the service cannot be reached: {outcome}", code=_UNREACHABLE, status=503) from outcome
    require_success(outcome)
    try:
        if outcome.status_code == 204:
            return request.answer.validate_python(None)
        return request.answer.validate_json(outcome.content)
    except ValidationError as error:
        raise ServiceError(
            f"the answer to {request.method} {request.path} is unknown to this version of the client",
            code="unknown_answer",
            status=502,
        ) from error


def require_success(response: httpx2.Response) -> None:
    """Raise ServiceError with the content of the problem document, unless *response* is a success. It must be read."""
    if response.is_success:
        return
    request_id = response.headers.get("x-request-id", "")
    try:
        problem = Problem.model_validate_json(response.content)
    except ValidationError:  # a proxy on the way has answered
        raise ServiceError(
            f"the service answered {response.status_code} {response.reason_phrase}",
            code="unknown_answer",
            status=response.status_code,
            request_id=request_id,
        ) from None
    wrong = "".join(f"; {each.get('field', '')}: {each.get('message', '')}" for each in problem.errors)
    raise ServiceError(problem.detail + wrong, code=problem.code, status=problem.status, request_id=request_id)


_TIMEOUT_S: Final = 70.0  # longer than the service's default limits, so that the service can report the error
_PATIENCE: Final = Patience(repeats=6, max_wait_s=30.0)


class SyncTransport:
    """Close it, or use it as a context manager.

    url, key    the address of the service, and your key
    timeout_s   seconds to wait for one answer
    max_wait_s  seconds that one method waits in all before repetitions of a postponed request
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

    def send(self, request: ClientRequest[_T]) -> _T:
        """Raises ServiceError."""
        steps = exchange(request, self._patience)
        outcome: HttpOutcome = None
        try:
            while True:
                step = steps.send(outcome)
                outcome = self._pause(step) if isinstance(step, Pause) else self._attempt(step)
        except StopIteration as end:
            answer: _T = end.value
            return answer

    def pages(self, listing: PagedList[_T]) -> Generator[_T]:
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

    def _attempt(self, request: ClientRequest[Any]) -> HttpOutcome:
        try:
            return self._http.request(request.method, request.path, **_sent(request))
        except httpx2.TransportError as error:
            return error

    def _pause(self, pause: Pause) -> HttpOutcome:
        self._sleep(pause.seconds)
        return None


class AsyncTransport:
    """As `SyncTransport`, but async: close it with `aclose`, or use it as an async context manager."""

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

    async def send(self, request: ClientRequest[_T]) -> _T:
        """Raises ServiceError."""
        steps = exchange(request, self._patience)
        outcome: HttpOutcome = None
        try:
            while True:
                step = steps.send(outcome)
                outcome = await (self._pause(step) if isinstance(step, Pause) else self._attempt(step))
        except StopIteration as end:
            answer: _T = end.value
            return answer

    async def pages(self, listing: PagedList[_T]) -> AsyncGenerator[_T]:
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

    async def _attempt(self, request: ClientRequest[Any]) -> HttpOutcome:
        try:
            return await self._http.request(request.method, request.path, **_sent(request))
        except httpx2.TransportError as error:
            return error

    async def _pause(self, pause: Pause) -> HttpOutcome:
        await self._sleep(pause.seconds)
        return None


def _headers(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}", "user-agent": "toolsearch-client"}


def _sent(request: ClientRequest[Any]) -> dict[str, Any]:
    sent: dict[str, Any] = {"params": request.params, "headers": request.headers}
    if request.content is not None:
        return {**sent, "content": request.content}
    return sent if request.json is None else {**sent, "json": request.json}


def _broken(error: httpx2.TransportError) -> ServiceError:
    return ServiceError(f"the stream of events broke off: {error}", code="service_unreachable", status=503)
