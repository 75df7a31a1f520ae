"""Answers to requests with an Idempotency-Key, kept for a day, so that a request that is repeated is done once.

A key is good for one request of one API key. That a request was begun is kept before it runs: if the process ends
meanwhile, its outcome is unknown, and it is not run again by itself. Answers are sealed, since they may hold results of
calls, or a new key.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final
from weakref import WeakValueDictionary

from toolsearch.errors import RecordConflictError, SealError
from toolsearch.service.callers import ServiceCaller
from toolsearch.service.refusals import bad_request, other_request, outcome_lost, same_time
from toolsearch.service.seal import Seal
from toolsearch.storage.records import Record, RecordStore

REPEAT: Final = "idempotency"  # the kind of their records
_KEPT_S: Final = 86_400.0
_MAX_CHARACTERS: Final = 255
_MAX_ANSWER_BYTES: Final = 1_048_576


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of HTTP to a request."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


class Idempotency:
    """Use it within one event loop."""

    def __init__(self, records: RecordStore, seal: Seal, clock: Callable[[], float]) -> None:
        self._records = records
        self._seal = seal
        self._clock = clock
        self._running: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def first(self, caller: ServiceCaller, key: str, request: bytes) -> AsyncGenerator[Attempt]:
        """Wait for an earlier request with *key* that still runs, and then give this one its attempt.

        request  everything that makes two requests the same

        Raises HttpRefusal if *key* is not well formed, or was used for another request, or its outcome is unknown.
        """
        if not (0 < len(key) <= _MAX_CHARACTERS and key.isascii() and key.isprintable()):
            raise bad_request(f"an Idempotency-Key has 1 to {_MAX_CHARACTERS} printable ASCII characters")
        place = (caller.tenant, _hashed(f"{caller.key_id}\n{key}".encode()))
        async with self._running.setdefault(place, asyncio.Lock()):
            attempt = Attempt(*place, _hashed(request))
            attempt.answer = await asyncio.to_thread(self._begin, attempt)
            yield attempt

    async def keep(self, attempt: Attempt, answer: Answer) -> None:
        await asyncio.to_thread(self._put, attempt, {"answer": self._sealed(answer)}, None)

    async def forget(self, attempt: Attempt) -> None:
        """The request was refused before it did anything: it may be repeated."""
        await asyncio.to_thread(self._records.delete, attempt.tenant, REPEAT, attempt.id)

    def _begin(self, attempt: Attempt) -> Answer | None:
        """Return the answer of the first request, if this one is a repetition; otherwise keep that it has begun."""
        found = self._records.get(attempt.tenant, REPEAT, attempt.id, at_s=self._clock())
        if found is not None:
            return self._answer(found, attempt)
        try:
            self._put(attempt, {}, 0)
        except RecordConflictError:  # another process was faster
            raise same_time() from None
        return None

    def _answer(self, found: Record, attempt: Attempt) -> Answer:
        if found.document.get("request") != attempt.request:
            raise other_request()
        sealed: Any = found.document.get("answer")
        if sealed is None:
            raise outcome_lost()
        try:
            headers = tuple((name, value) for name, value in sealed["headers"])
            return Answer(sealed["status"], headers, self._seal.open(sealed["body"]).encode("latin-1"))
        except (SealError, KeyError, TypeError, ValueError):
            raise outcome_lost() from None

    def _sealed(self, answer: Answer) -> dict[str, Any] | None:
        if len(answer.body) > _MAX_ANSWER_BYTES:
            return None
        body = self._seal.seal(answer.body.decode("latin-1"))
        return {"status": answer.status, "headers": [list(pair) for pair in answer.headers], "body": body}

    def _put(self, attempt: Attempt, document: dict[str, Any], over: int | None) -> None:
        now_s = self._clock()
        whole = {"request": attempt.request, **document}
        self._records.put(attempt.tenant, REPEAT, attempt.id, whole, over=over, at_s=now_s, expires_s=now_s + _KEPT_S)


@dataclass(slots=True)
class Attempt:
    """One run of a request. *answer* is that of the first one, if this is a repetition."""

    tenant: str
    id: str
    request: str
    answer: Answer | None = None


def _hashed(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()
