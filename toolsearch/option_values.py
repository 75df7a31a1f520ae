"""Checks values of options: a collection of names, the id of a session, or no value.

A text is an iterable of its letters, and None can be a key, so neither fails by itself if it is wrong: ``deny="mean"``
would deny the tools ``m``, ``e``, ``a`` and ``n``, and all users without an id would share one session.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from enum import Enum
from typing import Final, cast

from toolsearch.errors import BadSettingError, ToolSearchError

_MAX_SHOWN = 80  # characters of a wrong value in a message


class Unset(Enum):
    """The default of an option for which None is a wrong value."""

    UNSET = "unset"


UNSET: Final = Unset.UNSET


def name_list(given: Iterable[str], option: str, *, error: type[ToolSearchError] = BadSettingError) -> tuple[str, ...]:
    """Return the texts in *given*, the value of *option*; an iterator is read here once. A set comes sorted.

    Raises *error* for a plain text, a mapping, and anything else that is not a collection of non-blank texts.
    """
    value = cast("object", given)
    if isinstance(value, str):
        raise error(f"{option} must be a list of names, not one text; write {option}=[{_shown(value)}]")
    if isinstance(value, bytes | bytearray | Mapping) or not isinstance(value, Iterable):
        raise error(f"{option} must be a list of names, not {_shown(given)}")
    read = tuple(cast("Iterable[object]", value))
    texts = [each for each in read if isinstance(each, str) and each.strip()]
    if len(texts) < len(read):
        wrong = next(each for each in read if not (isinstance(each, str) and each.strip()))
        raise error(f"{option} must hold names, but {_shown(wrong)} is no name")
    return tuple(sorted(texts) if isinstance(value, AbstractSet) else texts)


def identity(given: object, option: str) -> str:
    """Return *given*, the id of a user or a conversation. Raises BadSettingError if it cannot identify one."""
    if isinstance(given, str) and given.strip():
        return given
    raise BadSettingError(
        f"{option} must be a text such as 'user-42', not {_shown(given)}: otherwise everybody would share one user's "
        "data"
    )


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 1]}…"
