"""The id of a request, by which its lines in the log, its errors and its records in the audit are found."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_now: ContextVar[str] = ContextVar("request_id", default="")
_MAX_CHARACTERS: Final = 64
_SOUND: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def new_request_id() -> str:
    return f"req_{os.urandom(8).hex()}"


def is_sound(given: str) -> bool:
    """Whether *given* may be put into logs and headers unchanged."""
    return 0 < len(given) <= _MAX_CHARACTERS and _SOUND.issuperset(given)


def request_id_now() -> str:
    """The id of the request that is being answered; "" outside of one."""
    return _now.get()


@contextmanager
def answering(request_id: str) -> Generator[None]:
    """The request of that id is answered within the block."""
    token = _now.set(request_id)
    try:
        yield
    finally:
        _now.reset(token)
