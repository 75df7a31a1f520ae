"""The audit of a gateway: who called which tool of which server, and with which outcome. It holds no contents.

Each call that is sent has two records. The first is kept before anything is sent, so that a call that cannot be
recorded is refused. The second says how it ended, and is kept within a moment. A call that is refused has only that.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from typing import Final, Self

from toolsearch.errors import shown_name
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.settings import AuditSettings
from toolsearch.gateway.status import CallEnd
from toolsearch.repeated_warnings import RepeatedWarning
from toolsearch.request_ids import request_id_now
from toolsearch.storage.audit import AuditRecord
from toolsearch.storage.sqlite.stores import SqliteAuditLog
from toolsearch.tools.definition import ToolDefinition

AUDIT_FILE: Final = "audit.db"  # in the state folder
CALL: Final = "call"
BEGUN: Final = "begun"
DONE: Final = "done"
_WITHIN_S: Final = 0.05  # how long the end of a call waits for others to be kept with it
_DAY_S: Final = 86_400.0
_PRUNED_EVERY_S: Final = 3_600.0
_PRUNED_AT_ONCE: Final = 1_000
_MOST_ENDS: Final = 10_000  # ends that wait while the log cannot be written; the oldest go first
logger = logging.getLogger(__name__)


class GatewayAudit:
    """Use it within one event loop. What is recorded at the same time is written in one transaction.

    log        is closed by `aclose`
    keep_days  records are deleted after so many days
    clock      gives seconds since 1970
    """

    def __init__(self, log: SqliteAuditLog, *, keep_days: int, clock: Callable[[], float] = time.time) -> None:
        self._log = log
        self._keep_s = keep_days * _DAY_S
        self._clock = clock
        self._ends: list[AuditRecord] = []  # to be written within a moment, or once the log can be written again
        self._begins: list[tuple[AuditRecord, asyncio.Future[None]]] = []  # waited for
        self._writing: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._pruned_s = 0.0
        self._pruning: asyncio.Task[None] | None = None
        self._is_closing = False
        self._warning = RepeatedWarning(logger)

    @classmethod
    def of(cls, settings: AuditSettings, state_folder: Path) -> Self:
        """Raises StorageError."""
        return cls(SqliteAuditLog(state_folder / AUDIT_FILE), keep_days=settings.keep_days)

    async def note(self, who: str, action: str, subject: str, *, server: str = "") -> None:
        """Record something other than a call, before it is done. Raises StorageError: it must not be done then."""
        record = AuditRecord(self._clock(), who, action, subject, DONE, server=server, request_id=request_id_now())
        await self._keep(record)

    async def begins(self, caller: Caller, called: ToolDefinition, action: str = CALL) -> None:
        """Record a call that is about to be sent. Raises StorageError: it must not be sent then."""
        await self._keep(self._record(caller, action, called.name, BEGUN, called.server))

    def ended(self, caller: Caller, end: CallEnd, action: str = CALL) -> None:
        """Record the end of a call, or its refusal."""
        name, server = shown_name(end.name), end.definition.server if end.definition is not None else ""
        self._ends.append(self._record(caller, action, name, end.code or DONE, server, end.seconds))
        del self._ends[:-_MOST_ENDS]
        if self._timer is None and self._writing is None:
            self._timer = asyncio.get_running_loop().call_later(_WITHIN_S, self._begin_to_write)

    async def aclose(self) -> None:
        """Write what waits, and close the log."""
        self._is_closing = True
        self._begin_to_write()
        while running := [each for each in (self._writing, self._pruning) if each is not None]:
            await asyncio.wait(running)
        await asyncio.to_thread(self._log.close)

    def _record(
        self, caller: Caller, action: str, name: str, outcome: str, server: str, seconds: float = 0.0
    ) -> AuditRecord:
        return AuditRecord(
            self._clock(),
            caller.principal.id,
            action,
            name,
            outcome,
            server=server,
            session=_digest_of_session(caller.session or caller.session_key or caller.connection),
            seconds=seconds,
            request_id=caller.request_id,
        )

    async def _keep(self, record: AuditRecord) -> None:
        kept = asyncio.get_running_loop().create_future()
        self._begins.append((record, kept))
        self._begin_to_write()
        await kept

    def _begin_to_write(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._writing is None and (self._ends or self._begins):
            self._writing = asyncio.create_task(self._write())

    async def _write(self) -> None:
        """Write what waits. What comes meanwhile is written together, after that."""
        ends, begins = self._ends, self._begins
        self._ends, self._begins = [], []
        fault: Exception | None = None
        try:
            await asyncio.to_thread(self._log.append, *ends, *(record for record, _ in begins))
        except Exception as error:  # noqa: BLE001  whatever it is, nobody may wait for ever
            fault, self._ends = error, [*ends, *self._ends][-_MOST_ENDS:]
            self._warning.warn(f"calls are refused, since the audit cannot be written: {error}")
        else:
            self._warning.is_well()
            self._begin_to_prune()
        for _, kept in begins:
            if not kept.done():  # its call has been cancelled
                kept.set_result(None) if fault is None else kept.set_exception(fault)
        self._writing = None
        if self._begins or (self._ends and fault is None):
            self._begin_to_write()

    def _begin_to_prune(self) -> None:
        now_s = self._clock()
        if self._pruning is None and now_s - self._pruned_s >= _PRUNED_EVERY_S:
            self._pruned_s = now_s
            self._pruning = asyncio.create_task(self._prune(now_s))

    async def _prune(self, now_s: float) -> None:
        """Delete what is too old, some records at a time: calls are recorded between."""
        old = partial(self._log.prune, before_s=now_s - self._keep_s, limit=_PRUNED_AT_ONCE, at_s=now_s)
        try:
            while await asyncio.to_thread(old) and not self._is_closing:
                pass
        except Exception:  # whatever it is, calls go on
            logger.exception("old records of the audit could not be deleted; that is tried again in an hour")
        finally:
            self._pruning = None


@lru_cache(maxsize=1_024)
def _digest_of_session(session: str) -> str:
    """Tells sessions apart without showing their ids, which are secrets of the clients."""
    return hashlib.sha256(session.encode("utf-8", "surrogatepass")).hexdigest()[:16] if session else ""
