"""Which definitions are approved, and which wait for approval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from toolsearch.storage.audit import AuditRecord
from toolsearch.tools.json_types import JsonObject

APPROVALS_FILE: Final = "trust.db"  # in the state folder of a gateway
FIRST_SIGHT: Final = "first sight"  # stands for who approved a definition that nobody looked at


@dataclass(frozen=True, slots=True)
class Pin:
    """One definition of one entry. *by* is who approved it; of one that waits, who withdrew the approval, or ""."""

    name: str  # the name that its owner gives it
    pin: str
    seen_s: float
    by: str = ""


@dataclass(frozen=True, slots=True)
class SeenEntry:
    """A definition as it was seen: whose it is, by which name its owner knows it, and its pin."""

    owner: str
    name: str
    pin: str
    raw: JsonObject
    seen_s: float


class PinPersistence(Protocol):
    """Keeps the approved definition of each entry, and the last definition that waits for approval.

    Safe to share between threads. Each method raises PinStoreError if the approvals cannot be read; no definition may
    count as new then. A person's decision and its record in the audit are written together.
    """

    def version(self) -> int:
        """Return a number that changes with each decision of a person, in any process. `keep` does not change it.

        Takes microseconds.
        """
        ...

    def approved(self, owner: str) -> dict[str, Pin]:
        """What is approved of *owner*, by name, sorted."""
        ...

    def waiting(self, owner: str) -> dict[str, Pin]:
        """The same of what waits."""
        ...

    def entry(self, owner: str, name: str, *, is_approved: bool) -> JsonObject | None:
        """The definition that is approved, or that waits; None if there is none."""
        ...

    def keep(
        self, *, approve: Sequence[SeenEntry] = (), hold: Sequence[SeenEntry] = (), forget: Sequence[SeenEntry] = ()
    ) -> None:
        """Note *approve* as approved on first sight, *hold* as waiting, and *forget* as waiting no more: all or none.

        Whoever has withdrawn an approval has withdrawn it from the definitions that wait later, too. What is withdrawn
        by now is neither approved nor forgotten by this: whoever calls this may have judged it before that.
        """
        ...

    def approve(self, owner: str, name: str, pin: str, *, by: str, at_s: float) -> bool:
        """Approve the definition *pin*. Returns False if the entry has another definition by now."""
        ...

    def revoke(self, owner: str, name: str, *, by: str, at_s: float) -> bool:
        """Withdraw the approval of the entry, whatever its definition is. Returns False if it was not approved."""
        ...

    def close(self) -> None:
        """May be called twice."""
        ...


def approval(owner: str, name: str, *, by: str, at_s: float, is_done: bool) -> AuditRecord:
    """How `PinPersistence.approve` is recorded."""
    return AuditRecord(at_s, by, "approve", _subject(owner, name), "done" if is_done else "changed meanwhile")


def withdrawal(owner: str, name: str, *, by: str, at_s: float, is_done: bool) -> AuditRecord:
    """How `PinPersistence.revoke` is recorded."""
    return AuditRecord(at_s, by, "revoke", _subject(owner, name), "done" if is_done else "was not approved")


def _subject(owner: str, name: str) -> str:
    return f"{owner}: {name}" if name else owner
