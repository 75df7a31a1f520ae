"""Receipts of tool calls: who called which definition, what was decided, how it ended. Never what was said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

Decision: TypeAlias = Literal["allowed", "refused", "handed_back"]
Outcome: TypeAlias = Literal["ok", "tool_error", "refused", "handed_back"]


@dataclass(frozen=True, slots=True)
class Receipt:
    """One call. *at_s* is in seconds since 1970, *fingerprint* of the definition that was called, "" if none was.

    *code* is the stable code of the error, if there was one. Ids grow with time, so that they are also the order.
    """

    id: str
    at_s: float
    key: str
    session: str
    corpus: str
    tool: str
    fingerprint: str
    decision: Decision
    outcome: Outcome
    code: str
    latency_ms: float
    request_id: str = ""


class ReceiptLog(Protocol):
    """Safe to share between threads. Each method may raise ReceiptStoreError."""

    def append(self, tenant: str, receipts: Sequence[Receipt]) -> None: ...

    def page(
        self,
        tenant: str,
        *,
        before: str = "",
        limit: int,
        session: str | None = None,
        key: str | None = None,
        tool: str | None = None,
    ) -> list[Receipt]:
        """The newest *limit* whose id is less than *before* (all, if that is empty), newest first."""
        ...

    def prune(self, *, before_s: float, limit: int) -> int:
        """Delete at most *limit* receipts of an earlier time, the first ones first; return how many."""
        ...
