"""Leases: who of several processes may do something alone, for as long as it says that it goes on."""

from __future__ import annotations

import threading
from collections.abc import Collection
from typing import Protocol


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
