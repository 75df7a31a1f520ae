"""Durations as people write them: ``30m``, ``1h30m``, ``500ms``; a plain number is seconds."""

from __future__ import annotations

import re

_UNITS_S = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_DURATION = re.compile("".join(rf"(?:(\d+(?:\.\d+)?){unit})?" for unit in _UNITS_S))


def parse_duration_s(text: str) -> float:
    """Return the seconds in *text*; units go from days to milliseconds, each at most once.

    Raises ValueError for anything else.
    """
    written = text.strip().lower()
    match = _DURATION.fullmatch(written)
    if written and match:
        return sum(
            float(number) * unit_s for number, unit_s in zip(match.groups(), _UNITS_S.values(), strict=True) if number
        )
    try:
        return float(written)
    except ValueError:
        raise ValueError(f"{text!r} is no duration; write 30m, 1h30m, 500ms, or a number of seconds") from None
