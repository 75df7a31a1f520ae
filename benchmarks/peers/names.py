"""Names for tools whose ids are not legal as names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import count

_LEGAL = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_ILLEGAL = re.compile(r"[^A-Za-z0-9_.-]+")
_LONGEST_STEM = 128 - len("_9999")


def legal_names(ids: Sequence[str]) -> Iterator[str]:
    """Yield a name for each id, in order, as the MCP allows it; no two are equal.

    A legal id is kept. In others ``_`` takes the place of what is forbidden; if the name is taken it ends in ``_2`` or
    more.
    """
    taken = {given for given in ids if _LEGAL.fullmatch(given)}
    for given in ids:
        if given in taken:
            yield given
            continue
        stem = _ILLEGAL.sub("_", given)[:_LONGEST_STEM]
        name = next(name for name in _numbered(stem) if name not in taken)
        taken.add(name)
        yield name


def _numbered(stem: str) -> Iterator[str]:
    yield stem
    yield from (f"{stem}_{number}" for number in count(2))
