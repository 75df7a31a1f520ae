"""Which values can be kept: the same in each database, so that none takes what another would refuse."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

_INTEGERS: Final = range(-(1 << 63), 1 << 63)
_REPLACEMENT: Final = "\ufffd"


class BadValueError(ValueError):
    """No database can keep the value; the message says why, without the value itself."""


def checked(values: Sequence[Any]) -> Sequence[Any]:
    """Return *values*, which are to be sent to a database. Raises BadValueError."""
    for value in values:
        if isinstance(value, str):
            if not value.isascii() or "\0" in value:
                _check_text(value)
        elif isinstance(value, int):
            if value not in _INTEGERS:
                raise BadValueError("a number has more than 64 bits")
        elif isinstance(value, float) and math.isnan(value):
            raise BadValueError("a number is not a number (NaN)")
    return values


def storable(text: str) -> str:
    """Return *text* with U+FFFD for each character that no database takes, for what is only to be read by people."""
    if text.isascii() and "\0" not in text:
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\0", _REPLACEMENT)


def _check_text(text: str) -> None:
    if "\0" in text:
        raise BadValueError("a text has a NUL character in it; leave it out")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BadValueError("a text has half of a surrogate pair in it; leave it out") from None
