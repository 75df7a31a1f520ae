"""A record of decisions: who did what, to what, when, and with which outcome. Entries are only added."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """*action* is a verb, such as ``approve``, *outcome* ``done`` or why not. *at_s* is in seconds since 1970.

    *tenant* is whose it is in a service for many, "" elsewhere.
    """

    at_s: float
    who: str
    action: str
    subject: str
    outcome: str
    tenant: str = ""


class AuditLog(Protocol):
    """Safe to share between threads. Each method may raise AuditStoreError."""

    def append(self, record: AuditRecord) -> None: ...

    def records(self, *, limit: int, tenant: str | None = None) -> list[AuditRecord]:
        """The newest *limit*, of *tenant* if that is given, in the order in which they were appended."""
        ...
