"""Stops asking a server that fails every time, and lets one request through now and then to see if it recovered."""

from __future__ import annotations

import random as _random
from collections.abc import Callable

from toolsearch.upstreams.backoff import delay_s

_MOST_FAULTS = 5


class Breaker:
    """Counts faults in a row; the fifth opens it, and so does one that asks for patience. Reads time only when asked.

    closed ──5 faults──> open ──after the backoff──> half-open ──answered──> closed
                           ^                            │
                           └───────────fault────────────┘
    """

    def __init__(self, *, clock: Callable[[], float], random: Callable[[], float] = _random.random) -> None:
        self._clock = clock
        self._random = random
        self._retry_at_s: float | None = None
        self._is_open = False
        self.probe: Passage | None = None
        self.faults = 0  # in a row

    @property
    def retry_at_s(self) -> float | None:
        """When it is worth another try, on the clock; None where nothing speaks against one now."""
        return self._retry_at_s

    @property
    def is_open(self) -> bool:
        """Whether `admit` would refuse."""
        if not self._is_open:
            return False
        is_too_early = self._retry_at_s is not None and self._clock() < self._retry_at_s
        return is_too_early or self.probe is not None

    def admit(self) -> Passage | None:
        """A way through, on which the outcome is to be told; None while it is open."""
        if self.is_open:
            return None
        passage = Passage(self)
        if self._is_open:
            self.probe = passage
        return passage

    def answered(self) -> None:
        self.faults = 0
        self._is_open = False
        self._retry_at_s = None
        self.probe = None

    def failed(self, passage: Passage | None = None, *, asked_s: float = 0.0) -> None:
        """One more fault; *asked_s* is for how long the server itself wants to be left alone."""
        if self._is_open and self.probe is not passage:
            return  # sent before it opened; counting it too would only prolong the wait
        self.probe = None
        self.faults += 1
        self._retry_at_s = self._clock() + delay_s(self.faults, self._random, asked_s=asked_s)
        self._is_open = self.faults >= _MOST_FAULTS or asked_s > 0

    def left(self, passage: Passage) -> None:
        """Nothing was learned on *passage*: whoever took it gave up."""
        if self.probe is passage:
            self.probe = None


class Passage:
    """One request's way through a breaker."""

    def __init__(self, breaker: Breaker) -> None:
        self._breaker = breaker

    @property
    def is_probe(self) -> bool:
        return self._breaker.probe is self

    def answered(self) -> None:
        self._breaker.answered()

    def failed(self, *, asked_s: float = 0.0) -> None:
        self._breaker.failed(self, asked_s=asked_s)

    def left(self) -> None:
        self._breaker.left(self)
