"""Regular expressions out of schemas, run by RE2: whatever the pattern, its time is linear in the text."""

from __future__ import annotations

import logging
from functools import lru_cache
from typing import Any

import re2 as untyped_re2  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs]

re2: Any = untyped_re2
logger = logging.getLogger(__name__)

_MAX_LENGTH = 2_000
_MAX_MEMORY_BYTES = 1 << 20


def may_match(pattern: str, text: str) -> bool | None:
    """Whether *pattern* is found anywhere in *text*; None if RE2 cannot run it (lookaround, backreferences).

    The first use of such a pattern is logged: what it was to check goes unchecked.
    """
    compiled = _compiled(pattern)
    if compiled is None:
        return None
    return compiled.search(text.encode("utf-8", "replace").decode("utf-8")) is not None


@lru_cache(maxsize=1_024)
def _compiled(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MAX_MEMORY_BYTES
    try:
        if len(pattern) > _MAX_LENGTH:
            raise ValueError(f"longer than {_MAX_LENGTH} characters")  # noqa: TRY301 - one way to be unusable of several
        return re2.compile(pattern, options)
    except (re2.error, ValueError) as error:
        logger.warning("a schema's pattern is not checked, RE2 cannot run it: %.100r (%.100s)", pattern, error)
        return None
