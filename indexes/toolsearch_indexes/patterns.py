"""A regular expression from outside, made safe to run over a whole catalogue: RE2, bounded, errors that help.

RE2 guarantees linear time. This module bounds the constant factor: a pattern with too many states makes RE2 simulate
every step of its program, so the program's size is capped. Without the cap, ``(?:.{0,30}(t|e).{0,30}[aeiou]){10}``
takes 10 s of CPU over the 5 MB of 36,900 descriptions.
"""

from __future__ import annotations

import mmap
import string
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import re2 as _untyped_re2  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs]

from toolsearch_indexes.errors import BadPatternError

__all__ = ["MAX_PATTERN_LENGTH", "CompiledPattern", "compile_pattern"]

re2: Any = _untyped_re2

MAX_PATTERN_LENGTH = 512  # characters; people and models write far shorter patterns
# Steps of RE2's program: `\pL+` has 1,202, `.{0,200}` 1,805; the worst case seen takes 6 s of CPU for 12 MB.
_MAX_STEPS = 2_000
_MAX_MEMORY_BYTES = 8 << 20  # per pattern, for RE2's automata
_GLOB_CHARACTERS = frozenset(string.ascii_letters + string.digits + "_-*")
_ANY_OF_A_NAME = r"\S*"
_FIELD_ANCHORS = {r"\A": "(?m:^)", r"\z": "(?m:$)"}  # a user sees each field of a tool as the whole text

_LACKING: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        ("(?=", "(?!", "(?<=", "(?<!"),
        "RE2 has no lookahead or lookbehind; match the surrounding text itself, or search for each part on its own",
    ),
    (
        (*(rf"\{digit}" for digit in range(1, 10)), r"\k", r"\g", "(?P", "(?&"),
        "RE2 has no backreferences or recursion; write the repeated part out",
    ),
    ((r"\Z",), r"RE2 has no \Z; write $ or \z"),
    (("(?>", "++", "*+", "?+"), "RE2 has no atomic groups or possessive repeats and needs none; leave them out"),
    (("repetition size",), "RE2 repeats at most 1000 times, nested repeats multiplied; lower the counts or use * or +"),
    (("too large",), "lower its repeat counts"),
    (("(?x", "(?a", "(?u", "(?L"), "RE2's flags are i (ignore case), m, s and U"),
)


@dataclass(frozen=True, slots=True)
class CompiledPattern:
    """A pattern ready to run, in any number of threads at once. It never matches nothing, nor across lines."""

    source: str
    _match: Callable[..., list[tuple[int, int]]]

    def line_matches(self, text: bytes | mmap.mmap, begin: int, size: int) -> tuple[list[int], list[int]]:
        """Return where the first match of each line of *text* starts and ends, in bytes, in ascending order.

        The lines are those between *begin* and *size*, each UTF-8 and ended by a newline.
        """
        match, find = self._match, text.find
        anchor = _UNANCHORED
        starts: list[int] = []
        ends: list[int] = []
        at = begin
        while True:
            start, end = match(anchor, text, at, size)[0]
            if start < 0:
                return starts, ends
            starts.append(start)
            ends.append(end)
            at = find(b"\n", end)


def compile_pattern(
    pattern: str, *, case_sensitive: bool = False, max_length: int = MAX_PATTERN_LENGTH
) -> CompiledPattern:
    r"""Compile *pattern* in RE2's syntax. ``^``, ``$``, ``\A`` and ``\z`` match the ends of a tool's field.

    A pattern of nothing but name characters and ``*`` may be meant as a glob, so it is read as both: ``get_*_data``
    finds ``get_user_data`` and, as the regular expression that it is, ``get_data``.

    As in RE2, ``\w``, ``\d`` and ``\b`` know ASCII only (``\pL`` is any letter), while case is ignored in any alphabet.

    A pattern that can match no characters at all (``x*``, ``^``, ``a|``) would match every tool, which nobody means:
    it is refused, and the message says how to ask for every tool in earnest.

    Raises BadPatternError, whose message says what is wrong and what to write instead.
    """
    if not pattern:
        raise BadPatternError("the pattern is empty; write what to look for, such as 'get_.*_status'")
    if len(pattern) > max_length:
        raise BadPatternError(f"the pattern has {len(pattern)} characters; at most {max_length} are allowed")
    regexp = _compile(_with_glob(pattern), case_sensitive=case_sensitive)
    if regexp.programsize > _MAX_STEPS:
        raise BadPatternError(
            f"the pattern {pattern!r} unfolds into {regexp.programsize} steps, of which {_MAX_STEPS} are allowed; "
            r"lower its repeat counts, and write \w for \pL if ASCII will do"
        )
    if _can_match_nothing(regexp):
        raise BadPatternError(
            f"the pattern {pattern!r} can match no characters at all, and so would match every tool; say what must be "
            "there, as in 'x+' for 'x*', or write '.+' to get every tool"
        )
    # The public search() makes a generator and a match object for each call. That doubles the time of a broad pattern.
    return CompiledPattern(pattern, regexp._regexp.Match)


def _with_glob(pattern: str) -> str:
    """Return *pattern* as an alternative to its meaning as a glob, if it may be one.

    The glob comes first, so that a name that it matches counts as matched whole. A pattern that begins with ``*`` or
    has two in a row is no regular expression.
    """
    if "*" not in pattern or not _GLOB_CHARACTERS.issuperset(pattern):
        return pattern
    glob = f"^{pattern.replace('*', _ANY_OF_A_NAME)}$"
    is_regular = not pattern.startswith("*") and "**" not in pattern
    return f"{glob}|{pattern}" if is_regular else glob


def _compile(pattern: str, *, case_sensitive: bool) -> Any:
    options = re2.Options()
    options.case_sensitive = case_sensitive
    options.log_errors = False  # without this RE2 writes to stderr
    options.max_mem = _MAX_MEMORY_BYTES
    options.never_capture = True
    # A match never leaves its line, which is one field of a tool; this holds for [^x] and \s too.
    options.never_nl = True
    try:
        return re2.compile(f"(?m){_ESCAPES.sub(_field_anchor, pattern)}", options)
    except UnicodeEncodeError:
        raise BadPatternError(f"the pattern {pattern!r} is not valid Unicode: it has half a surrogate pair") from None
    except re2.error as error:
        complaint = error.args[0].decode(errors="replace").replace("(?m)", "", 1)
        raise BadPatternError(f"the pattern {pattern!r} cannot be used: {complaint}{_advice(complaint)}") from None


def _field_anchor(escape: Any) -> str:
    r"""Return the replacement of an escape sequence: the sequence itself, unless it would match outside of a field."""
    text: str = escape.group()
    if text == r"\C":
        raise BadPatternError(r"\C (any byte) is not supported, since it could split a character; write . instead")
    return _FIELD_ANCHORS.get(text, text)


def _advice(complaint: str) -> str:
    found = (advice for marks, advice in _LACKING if any(mark in complaint for mark in marks))
    return next((f". {advice}" for advice in found), "")


def _can_match_nothing(regexp: Any) -> bool:
    """Whether *regexp* matches the empty string in some place.

    For RE2 two places differ only in their neighbours: the end of a line, a word character, or another character. The
    line ``aa  a`` and similar ones contain all nine combinations.
    """
    return any(
        regexp.fullmatch(line, place, place) is not None
        for line in (b"\n\n", b"\naa  a\n", b"\n  a  \n")
        for place in range(1, len(line))
    )


_UNANCHORED = re2._re2.RE2.Anchor.UNANCHORED
_ESCAPES = re2.compile(r"(?s)\\Q.*?(?:\\E|\z)|\\.")  # matches one escape sequence or one quoted stretch
