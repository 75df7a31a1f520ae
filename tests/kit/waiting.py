"""Waits for what happens elsewhere: in another thread, process or server."""

import time
from collections.abc import Callable

_GIVE_UP_S = 20.0


def until(condition: Callable[[], bool]) -> None:
    """Wait until *condition* holds. Fails if it never does."""
    give_up_s = time.monotonic() + _GIVE_UP_S
    while not condition():
        assert time.monotonic() < give_up_s, "it never came to that"
        time.sleep(0.005)
