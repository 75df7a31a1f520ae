"""Stops asking a server that fails every time, and lets one request through now and then to see if it recovered."""

from __future__ import annotations

import random as _random
from collections.abc import Callable

from toolsearch.upstreams.backoff import delay_s

_MOST_FAULTS = 5


class Breaker:
    """A circuit breaker. Five faults in a row open it, and so does one where the server asks us to wait.

    closed ──5 faults──> open ──after the backoff──> half-open ──answered──> closed
                           ^                            │
                           └───────────fault────────────┘
    """

    def __init__(self, *, clock: Callable[[], float], random: Callable[[], float] = _random.random) -> None:
        self._clock = clock
        self._random = random
        self._retry_at_s: float | None = None
        self._is_open = False
        self.probe: Permit | None = None
        self.faults = 0  # in a row

    @property
    def retry_at_s(self) -> float | None:
        """When to try again, by the clock; None if that is possible now."""
        return self._retry_at_s

    @property
    def is_open(self) -> bool:
        """Whether `admit` would refuse."""
        if not self._is_open:
            return False
        is_too_early = self._retry_at_s is not None and self._clock() < self._retry_at_s
        return is_too_early or self.probe is not None

    def admit(self) -> Permit | None:
        """A permit for one request, which is to be told the outcome; None while the breaker is open."""
        if self.is_open:
            return None
        permit = Permit(self)
        if self._is_open:
            self.probe = permit
        return permit

    def answered(self) -> None:
        self.faults = 0
        self._is_open = False
        self._retry_at_s = None
        self.probe = None

    def failed(self, permit: Permit | None = None, *, asked_s: float = 0.0) -> None:
        """Count one more fault; *asked_s* is how long the server itself asks us to wait."""
        if self._is_open and self.probe is not permit:
            return  # it was sent before the breaker opened; counting it would only prolong the wait
        self.probe = None
        self.faults += 1
        self._retry_at_s = self._clock() + delay_s(self.faults, self._random, asked_s=asked_s)
        self._is_open = self.faults >= _MOST_FAULTS or asked_s > 0

    def given_up(self, permit: Permit) -> None:
        """The holder of *permit* gave up before there was an outcome. Does nothing after one."""
        if self.probe is permit:
            self.probe = None


class Permit:
    """Lets one request through a breaker, and is told what became of it."""

    def __init__(self, breaker: Breaker) -> None:
        self._breaker = breaker

    @property
    def is_probe(self) -> bool:
        return self._breaker.probe is self

    def answered(self) -> None:
        self._breaker.answered()

    def failed(self, *, asked_s: float = 0.0) -> None:
        self._breaker.failed(self, asked_s=asked_s)

    def given_up(self) -> None:
        self._breaker.given_up(self)
