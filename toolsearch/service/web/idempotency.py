"""Answers to requests with an ``Idempotency-Key``, kept for a day, so that a request that is repeated is done once."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from typing import Any, Final
from weakref import WeakValueDictionary

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolsearch.errors import ConflictError, SealError, StorageError
from toolsearch.service.replicas import ReplicaPresence, RetriedWrites
from toolsearch.service.web.bodies import read_body, replay
from toolsearch.service.web.callers import ServiceCaller
from toolsearch.service.web.paths import API, is_mcp, is_under, model_api
from toolsearch.service.web.problems import bad_request, other_request, outcome_lost, same_time
from toolsearch.storage.records import Record, RecordStore
from toolsearch.storage.seal import Seal

logger = logging.getLogger(__name__)
REPEAT: Final = "idempotency"  # the kind of the records of repeatable requests
_KEPT_S: Final = 86_400.0
_MAX_CHARACTERS: Final = 255
_MAX_ANSWER_BYTES: Final = 1_048_576
_PAUSES_S: Final = (*(0.05,) * 10, *(0.25,) * 38, *(1.0,) * 20)  # seconds between looks; half a minute in all


class _Running(Enum):
    """The first request has not ended."""

    RUNNING = auto()


_RUNNING: Final = _Running.RUNNING


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """The answer of HTTP to a request."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


class Idempotency:
    """Use it within one event loop.

    pauses_s  how long to wait between looks for the answer of a request that another replica runs
    """

    def __init__(
        self,
        records: RecordStore,
        presence: ReplicaPresence,
        seal: Seal,
        clock: Callable[[], float],
        *,
        pauses_s: Sequence[float] = _PAUSES_S,
    ) -> None:
        self._records = records
        self._presence = presence
        self._seal = seal
        self._clock = clock
        self._pauses_s = pauses_s
        self._owed = RetriedWrites("what a repetition would be answered from")
        self._running: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def first(
        self, caller: ServiceCaller, key: str, request: bytes, *, may_run_twice: bool = False
    ) -> AsyncGenerator[Attempt]:
        """Wait for an earlier request with *key* that still runs, and then return this one's attempt.

        request        everything that makes two requests the same
        may_run_twice  run it again if the outcome of the first one is unknown

        Raises HttpRefusal if *key* is not well formed, or was used for another request, or its outcome is unknown.
        """
        if not (0 < len(key) <= _MAX_CHARACTERS and key.isascii() and key.isprintable()):
            raise bad_request(
                f"this Idempotency-Key cannot be used; send 1 to {_MAX_CHARACTERS} printable ASCII characters"
            )
        place = (caller.tenant, _hashed(f"{caller.key_id}\n{key}".encode()))
        async with self._running.setdefault(place, asyncio.Lock()):
            await self._owed.pay(place)
            attempt = Attempt(*place, _hashed(request), may_run_twice)
            attempt.answer = await self._begun(attempt)
            yield attempt

    async def keep(self, attempt: Attempt, answer: HttpAnswer) -> None:
        """Keep the answer. If that fails for good, a repetition gets the error that the outcome is unknown, and is not
        run.
        """
        await self._now_or_later(attempt, partial(self._put, attempt, {"answer": self._sealed(answer)}, None))

    async def forget(self, attempt: Attempt) -> None:
        """The request was refused before it did anything: it may be repeated."""
        await self._now_or_later(attempt, partial(self._records.delete, attempt.tenant, REPEAT, attempt.id))

    async def aclose(self) -> None:
        await self._owed.aclose()

    async def _now_or_later(self, attempt: Attempt, write: Callable[[], object]) -> None:
        try:
            await asyncio.to_thread(write)
        except StorageError as error:
            self._owed.owe(attempt.place, write, error)

    async def _begun(self, attempt: Attempt) -> HttpAnswer | None:
        """If this request is a repetition, wait for the answer of the first one and return it. Otherwise record that
        this one has begun.
        """
        look = self._begin
        for pause_s in self._pauses_s:
            try:
                begun = await asyncio.to_thread(look, attempt)
            except StorageError as error:
                if error.outcome_is_unknown:  # a record may say that this request has begun, but it does not run
                    self._owed.owe(attempt.place, partial(self._forget_begun, attempt), error)
                raise
            if begun is not _RUNNING:
                return begun
            await asyncio.sleep(pause_s)
            look = self._look
        raise same_time()

    def _begin(self, attempt: Attempt) -> HttpAnswer | _Running | None:
        return None if self._is_first(attempt) else self._look(attempt)

    def _forget_begun(self, attempt: Attempt) -> None:
        found = self._found(attempt)
        if found is not None and "answer" not in found.document and self._is_own(found):
            self._records.delete(attempt.tenant, REPEAT, attempt.id, over=found.version)

    def _is_own(self, begun: Record) -> bool:
        return begun.document.get("replica") == self._presence.replica

    def _is_first(self, attempt: Attempt, over: int = 0) -> bool:
        try:
            self._put(attempt, {}, over)
        except ConflictError:
            return False
        return True

    def _look(self, attempt: Attempt) -> HttpAnswer | _Running | None:
        """The state of the first request. None if this one has begun, because the first was refused before it did
        anything, or because its outcome is unknown and it may run twice.
        """
        found = self._found(attempt)
        if found is not None and "answer" not in found.document:
            if not self._is_own(found) and self._presence.is_there(str(found.document.get("replica", ""))):
                return _RUNNING
            found = self._found(attempt)  # the request may have ended between the two looks
        if found is not None and not (attempt.may_run_twice and "answer" not in found.document):
            return self._answer(found)
        return None if self._is_first(attempt, over=found.version if found else 0) else _RUNNING

    def _found(self, attempt: Attempt) -> Record | None:
        found = self._records.get(attempt.tenant, REPEAT, attempt.id, at_s=self._clock())
        if found is not None and found.document.get("request") != attempt.request:
            raise other_request()
        return found

    def _answer(self, found: Record) -> HttpAnswer:
        sealed: Any = found.document.get("answer")
        if sealed is None:  # the answer was never given, or was too long to be kept
            raise outcome_lost()
        try:
            headers = tuple((name, value) for name, value in sealed["headers"])
            return HttpAnswer(sealed["status"], headers, self._seal.open(sealed["body"]).encode("latin-1"))
        except (SealError, KeyError, TypeError, ValueError):
            raise outcome_lost() from None

    def _sealed(self, answer: HttpAnswer) -> dict[str, Any] | None:
        if len(answer.body) > _MAX_ANSWER_BYTES:
            return None
        body = self._seal.seal(answer.body.decode("latin-1"))
        return {"status": answer.status, "headers": [list(pair) for pair in answer.headers], "body": body}

    def _put(self, attempt: Attempt, document: dict[str, Any], over: int | None) -> None:
        now_s = self._clock()
        whole = {"request": attempt.request, "replica": self._presence.replica, **document}
        self._records.put(attempt.tenant, REPEAT, attempt.id, whole, over=over, at_s=now_s, expires_s=now_s + _KEPT_S)


@dataclass(slots=True)
class Attempt:
    """One run of a request. *answer* is the first one's answer, if this is a repetition."""

    tenant: str
    id: str
    request: str
    may_run_twice: bool = False
    answer: HttpAnswer | None = None

    @property
    def place(self) -> tuple[str, str]:
        return self.tenant, self.id


def _hashed(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()


_WRITING: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_KEPT_HEADERS: Final = ("content-type", "etag", "location")
_PART_OF_REQUEST: Final = ("content-type", "if-match", "if-none-match")
_KEPT_BY_NAME: Final = frozenset({"catalogs", "toolsets", "tenants", "sessions", "search", "providers"})
_ONCE: Final = frozenset({"calls", "execute", "keys"})
_NOTHING_WAS_DONE: Final = frozenset({401, 403, 429, 503})  # statuses after which a repeated request runs anew


class IdempotentRequests:
    """It stands behind `Bodies`, so that a body is there at once."""

    def __init__(self, app: ASGIApp, *, idempotency: Idempotency) -> None:
        self._app = app
        self._idempotency = idempotency

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        key = _key(scope)
        caller: ServiceCaller | None = scope["state"].get("caller") if key is not None else None
        if key is None or caller is None:
            await self._app(scope, receive, send)
            return
        body = await read_body(receive)
        if body is None:
            return
        again = _may_run_twice(scope["path"])
        async with self._idempotency.first(caller, key, _identity(scope, body), may_run_twice=again) as attempt:
            if attempt.answer is not None:
                await _replayed(attempt.answer)(scope, receive, send)
            else:
                await self._run(attempt, scope, replay(body, receive), send)

    async def _run(self, attempt: Attempt, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the request. Its answer is kept before it is sent, so that a repetition gets the same one."""
        held: list[Message] = []

        async def hold(message: Message) -> None:
            held.append(message)

        await self._app(scope, receive, hold)
        if held[0]["status"] in _NOTHING_WAS_DONE:
            await self._idempotency.forget(attempt)
        else:
            await self._idempotency.keep(attempt, _answer(held))
        for message in held:
            await send(message)


def _key(scope: Scope) -> str | None:
    is_write = scope["type"] == "http" and scope["method"] in _WRITING
    is_write = is_write and is_under(API, scope["path"]) and not is_mcp(scope["path"]) and model_api(scope) is None
    return Headers(scope=scope).get("idempotency-key") if is_write else None


def _may_run_twice(path: str) -> bool:
    """Whether a request there only changes stored data, under a name or with an expiry. Calls of tools, new keys, and
    feedback, which is counted, may not run twice.
    """
    kind, *more = path.removeprefix(f"{API}/").split("/")
    return kind in _KEPT_BY_NAME and not _ONCE.intersection(more[-1:])


def _identity(scope: Scope, body: bytes) -> bytes:
    headers = Headers(scope=scope)
    lines = (scope["method"], scope["path"], scope["query_string"].decode("latin-1"))
    told = (f"{name}: {headers.get(name, '')}" for name in _PART_OF_REQUEST)
    return "\n".join((*lines, *told)).encode("utf-8", "surrogatepass") + b"\n\n" + body


def _answer(held: list[Message]) -> HttpAnswer:
    headers = Headers(raw=held[0]["headers"])
    kept = tuple((name, headers[name]) for name in _KEPT_HEADERS if name in headers)
    return HttpAnswer(held[0]["status"], kept, b"".join(message.get("body", b"") for message in held[1:]))


def _replayed(answer: HttpAnswer) -> Response:
    return Response(answer.body, answer.status, {**dict(answer.headers), "idempotency-replayed": "true"})
