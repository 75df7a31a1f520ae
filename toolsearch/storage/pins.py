"""Which definitions have been approved, and which wait for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from toolsearch.storage.audit import AuditRecord
from toolsearch.tools.json_types import JsonObject

FIRST_SIGHT: Final = "first sight"  # who approved what nobody has looked at


@dataclass(frozen=True, slots=True)
class Pin:
    """One definition of one entry. *by* is who approved it or, where it waits, who has withdrawn that, or ""."""

    name: str  # that its owner gives it
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
    """Keeps for each entry the definition that is approved, and of those that wait the last that was seen.

    Safe to share between threads. Each method raises PinStoreError if it cannot be told what is approved: then nothing
    may count as seen for the first time. What a person decides is recorded in the audit together with its effect.
    """

    def version(self) -> int:
        """Another number once a person has decided something, in whatever process; what is noted by `keep` is no
        decision. Costs microseconds.
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

        Whoever has withdrawn an approval has withdrawn it from the definitions that wait later, too.
        """
        ...

    def approve(self, owner: str, name: str, pin: str, *, by: str, at_s: float) -> bool:
        """Approve the definition *pin*. False if that is neither what waits nor what is in use: it has changed."""
        ...

    def revoke(self, owner: str, name: str, *, by: str, at_s: float) -> bool:
        """Have the entry wait, whatever its definition, until it is approved anew. False if it is not approved."""
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
