"""A record of decisions: who did what, to what, when, and with which outcome. Entries are only added."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """*action* is a verb, such as ``approve``, *outcome* ``done`` or why not. *at_s* is in seconds since 1970.

    *tenant* is whose it is in a service for many, "" elsewhere. *position* grows with each record; the log gives it.
    """

    at_s: float
    who: str
    action: str
    subject: str
    outcome: str
    tenant: str = ""
    position: int = field(default=0, compare=False)


class AuditLog(Protocol):
    """Safe to share between threads. Each method may raise AuditStoreError."""

    def append(self, record: AuditRecord) -> None: ...

    def records(
        self,
        *,
        limit: int,
        tenant: str | None = None,
        before: int | None = None,
        who: str | None = None,
        holding: str = "",
    ) -> list[AuditRecord]:
        """The newest *limit* in the order in which they were appended.

        Of *tenant* alone, of positions less than *before* alone, of *who* alone, where these are given, and with
        *holding* in the action, the subject or the outcome, in whatever case.
        """
        ...

    def prune(self, *, before_s: float, limit: int) -> int:
        """Delete at most *limit* records of an earlier time, the first ones first; return how many."""
        ...
