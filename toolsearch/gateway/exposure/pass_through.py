"""Whether a caller is shown all its tools whole, without a search: decided once, and not undone by one tool more."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

from toolsearch.access.reach import Reach
from toolsearch.discovery.exposure import PassThrough
from toolsearch.discovery.view import View

_SLACK = 0.25  # of the bounds, either way: a list that flips costs every client its prompt cache
_MAX_REACHES = 256


@dataclass(frozen=True, slots=True)
class _Decision:
    is_on: bool
    version: int


class PassThroughSwitch:
    """Safe to share between threads. What was decided for a reach stands until `review` is called, and then gives way
    only to a count that is a quarter beyond the bound: above it to switch off, below it to switch on.
    """

    def __init__(self, rule: PassThrough) -> None:
        self._rule = rule
        self._to_stay = _scaled(rule, 1 + _SLACK)
        self._to_begin = _scaled(rule, 1 - _SLACK)
        self._version = 0
        self._decisions: OrderedDict[Reach, _Decision] = OrderedDict()
        self._lock = threading.Lock()

    def is_on(self, reach: Reach, view: View) -> bool:
        """Whether all of *view*, which is that of *reach*, is shown. Nothing is decided before there are tools."""
        with self._lock:
            last = self._decisions.get(reach)
            if last is not None and last.version == self._version:
                return last.is_on
            if not view.names:
                return False
            rule = self._rule if last is None else self._to_stay if last.is_on else self._to_begin
            decided = _Decision(_covers(rule, view), self._version)
            self._decisions[reach] = decided
            self._decisions.move_to_end(reach)
            while len(self._decisions) > _MAX_REACHES:
                self._decisions.popitem(last=False)
            return decided.is_on

    def review(self) -> None:
        """Say that the tools have changed, and that clients are told of it where their list does too."""
        with self._lock:
            self._version += 1


def _scaled(rule: PassThrough, factor: float) -> PassThrough:
    return PassThrough(int(rule.max_tools * factor), int(rule.max_tokens * factor))


def _covers(rule: PassThrough, view: View) -> bool:
    count = len(view.names)
    return rule.covers(tools=count, tokens=0) and rule.covers(tools=count, tokens=view.tokens)  # counting takes a while
