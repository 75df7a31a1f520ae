"""Tells objects when this process is forked: the child has its memory, but only the thread that forked."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Protocol
from weakref import WeakSet

_lock = threading.Lock()  # held from before a fork until after it


class ForkFollower(Protocol):
    """Has something that a child must not use: threads, locks that these may hold, or connections."""

    def before_fork(self) -> None:
        """Prepare for the fork: wait for unfinished work, and close what two processes cannot share."""
        ...

    def after_fork(self, *, in_child: bool) -> None:
        """Undo `before_fork`; a child also forgets what only the parent has. It runs in the thread that forked."""
        ...


_followers: WeakSet[ForkFollower] = WeakSet()
_notified: list[ForkFollower] = []  # the followers that were told of the fork under way
_first_process = os.getpid()


def follow_forks(follower: ForkFollower) -> None:
    """Tell *follower* of each fork as long as it lives. On platforms without fork nothing happens."""
    with _lock:
        _followers.add(follower)


def was_forked() -> bool:
    """Whether this process is the forked child of one that had loaded this module."""
    return os.getpid() != _first_process


def _before() -> None:
    _lock.acquire()
    _notified.extend(_followers)
    _do_all([follower.before_fork for follower in _notified])


def _after(*, in_child: bool) -> None:
    followers = _notified.copy()
    _notified.clear()
    _lock.release()
    _do_all([partial(follower.after_fork, in_child=in_child) for follower in followers])


def _do_all(steps: list[Callable[[], None]]) -> None:
    """Do each of *steps*, also after one that fails."""
    with ExitStack() as stack:
        for step in reversed(steps):
            stack.callback(step)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before, after_in_parent=partial(_after, in_child=False), after_in_child=partial(_after, in_child=True)
    )
