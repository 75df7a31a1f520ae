"""Who did what to what, and with which outcome: writes and calls, without their contents."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from toolsearch.service.callers import ServiceCaller
from toolsearch.storage.audit import AuditLog, AuditRecord

DONE: Final = "done"
_MAX_CHARACTERS: Final = 300


@dataclass(frozen=True, slots=True)
class Audit:
    log: AuditLog
    clock: Callable[[], float]

    async def note(self, caller: ServiceCaller, action: str, subject: str, outcome: str = DONE) -> None:
        """Raises AuditStoreError: what cannot be recorded is not acknowledged.

        action   a verb and a kind, such as ``create catalog``
        subject  what it was done to, by its name, never what is in it
        outcome  ``done``, or the code of the error
        """
        record = AuditRecord(self.clock(), caller.key_id, action, subject[:_MAX_CHARACTERS], outcome, caller.tenant)
        await asyncio.to_thread(self.log.append, record)
