"""How long to wait before something is tried again: longer each time, and by chance, so that not all come at once."""

from __future__ import annotations

from collections.abc import Callable

_FIRST_S = 0.5
_LONGEST_S = 60.0
_LONGEST_ASKED_S = 600.0  # a server may ask for patience, but not to be forgotten


def delay_s(failures: int, random: Callable[[], float], *, asked_s: float = 0.0) -> float:
    """Seconds to wait after that many failures in a row: anything up to 0.5 s after the first, then twice that, and at
    most 60 s; not less than the server has *asked_s* for. *random* gives numbers in [0, 1).

    Source: "full jitter" in M. Brooker, Exponential Backoff and Jitter, 2015.
    """
    ceiling = min(_LONGEST_S, _FIRST_S * 2.0 ** min(max(failures - 1, 0), 30))
    return max(random() * ceiling, min(asked_s, _LONGEST_ASKED_S))
