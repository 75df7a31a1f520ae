"""What replicas of a service tell each other by way of the database, and which of them may do something alone.

Only what replicas hold in memory is announced. What is written with every request (sessions, receipts, figures, the
progress of jobs) is not: in PostgreSQL a notification takes a lock of the whole database while its transaction commits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

RECORD_KINDS: Final = frozenset({"catalog", "source", "tenant", "toolset", "toolset_names"})  # of `RecordStore`
CONTENTS: Final = "contents"  # the tools of the catalog that the id names
KEY: Final = "key"  # one that was revoked
PINS: Final = "pins"  # a person's decision about what servers list; without an id
DROPPED: Final = "dropped"  # everything that the tenant had; without an id


@dataclass(frozen=True, slots=True)
class Change:
    """Something of *tenant* that was written, or deleted.

    kind     one of the above; a replica of another version may announce others
    id       of what; "" for what has none, and if its own cannot be told
    version  the record's, the catalog's revision, or that of all approvals; 0 where there is none
    """

    tenant: str
    kind: str
    id: str = ""
    version: int = 0


OnChange: TypeAlias = Callable[[Change | None], None]


class Subscription(Protocol):
    @property
    def hears_all(self) -> bool:
        """Whether every change is told as it happens now. Otherwise only a look at the store tells of some."""
        ...

    def close(self) -> None:
        """Nothing is told any more once this returns. May be called twice."""
        ...


class NothingToHear:
    """The `Subscription` to a database that no other replica writes to."""

    hears_all = True

    def close(self) -> None:
        """There is nothing to end."""


class Leases(Protocol):
    """A lease has a name, a holder, and an end that the holder moves on by renewing it.

    The time is that of the one clock that all who share the store have, so their own clocks may differ by minutes.
    Safe to share between threads. Each method may raise StorageError.
    """

    def take(self, name: str, holder: str, *, for_s: float) -> bool:
        """Hold it for *for_s* seconds from now. Return False while another one holds it."""
        ...

    def renew(self, name: str, holder: str, *, for_s: float) -> bool:
        """Hold it for *for_s* seconds from now. Return False once it has run out, also if nobody has taken it since."""
        ...

    def release(self, name: str, holder: str) -> None:
        """Let it go, if *holder* has it."""
        ...

    def held(self, names: Collection[str]) -> frozenset[str]:
        """Those of *names* that somebody holds at this moment."""
        ...


class ProcessLeases:
    """The `Leases` of a store that one process alone uses: none runs out, and all are gone when the process ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders: dict[str, str] = {}

    def take(self, name: str, holder: str, *, for_s: float) -> bool:  # noqa: ARG002  as the protocol has it
        with self._lock:
            return self._holders.setdefault(name, holder) == holder

    def renew(self, name: str, holder: str, *, for_s: float) -> bool:  # noqa: ARG002  as the protocol has it
        return self._holders.get(name) == holder

    def release(self, name: str, holder: str) -> None:
        with self._lock:
            if self._holders.get(name) == holder:
                del self._holders[name]

    def held(self, names: Collection[str]) -> frozenset[str]:
        return frozenset(names) & self._holders.keys()
