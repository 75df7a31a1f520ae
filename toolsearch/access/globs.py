"""Shell globs over whole texts, many at once, in linear time: they are translated to one RE2 expression."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import re2 as untyped_re2  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs]

from toolsearch.errors import BadSettingError

_re2: Any = untyped_re2


class GlobSet:
    """Any of some globs; none of them matches nothing.

    ``*`` stands for any characters, ``?`` for one, ``[abc]``, ``[a-z]`` and ``[!abc]`` for one of a set.
    Raises BadSettingError for a glob that cannot be read.
    """

    __slots__ = ("_beginnings", "_ends", "_expression", "_parts")

    def __init__(self, globs: Collection[str]) -> None:
        others: list[str] = []
        beginnings: list[str] = []
        ends: list[str] = []
        self._parts: list[str] = []
        for (
            glob
        ) in globs:  # most globs are of three kinds, for which no expression is needed, nor a call of the binding
            literal = glob.strip("*")
            kinds = {f"{literal}*": beginnings, f"*{literal}": ends, f"*{literal}*": self._parts}
            if glob in kinds and not is_glob(literal):
                kinds[glob].append(literal)
            else:
                others.append(glob)
        self._beginnings, self._ends = tuple(beginnings), tuple(ends)
        self._expression = _compile(others) if others else None

    def match(self, text: str) -> bool:
        if text.startswith(self._beginnings) or text.endswith(self._ends) or any(part in text for part in self._parts):
            return True
        if self._expression is None:
            return False
        # As bytes: the binding is several times slower on str, and fails on a lone surrogate.
        return self._expression.fullmatch(text.encode(errors="replace")) is not None


def is_glob(text: str) -> bool:
    """Whether *text* holds a character that a glob gives a meaning to."""
    return any(special in text for special in "*?[")


def _compile(globs: Collection[str]) -> Any:
    options = _re2.Options()
    options.log_errors = False
    options.never_capture = True
    try:
        return _re2.compile("|".join(map(_translate, globs)), options)
    except _re2.error as error:
        reason = str(error.args[0], "utf-8", "replace")  # the binding gives bytes
        raise BadSettingError(f"cannot use the globs {', '.join(globs)}: {reason}") from error


def _translate(glob: str) -> str:
    parts: list[str] = []
    at = 0
    while at < len(glob):
        character = glob[at]
        if character == "[":
            members, at = _translate_set(glob, at)
            parts.append(members)
            continue
        parts.append({"*": "(?s:.*)", "?": "(?s:.)"}.get(character) or _re2.escape(character))
        at += 1
    return "".join(parts)


def _translate_set(glob: str, opening: int) -> tuple[str, int]:
    """Return the expression for the set that opens at *opening*, and where the glob goes on after it."""
    negated = glob[opening + 1 : opening + 2] == "!"
    start = opening + 1 + negated
    closing = glob.find("]", start + 1)  # not from start: a "]" that comes first belongs to the set, as in a shell
    if closing < 0:
        raise BadSettingError(f"the glob {glob!r} has a '[' without its ']'; write '[[]' for a literal '['")
    members = "".join(c if c == "-" else _re2.escape(c) for c in glob[start:closing])
    return f"[{'^' if negated else ''}{members}]", closing + 1
