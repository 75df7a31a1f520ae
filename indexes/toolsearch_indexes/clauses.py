"""The parts of a request that asks for several things: sentences and lines, and within them what is joined by "and",
"then" and commas.
"""

from __future__ import annotations

import re

_MOST = 6  # parts of one request that are looked at by themselves
_LEAST_WORDS = 2
_SENTENCE_BREAK = re.compile(r"(?<=[.!?;])\s+|(?<=[\u3002\uff01\uff1f\uff1b])|\n+")
_BREAK = re.compile(
    r"(?<=[.!?;\u3002\uff01\uff1f\uff1b])\s+"
    r"|\n+"
    r"|[;\uff1b]"
    r"|,?\s+(?:and\s+then|then|after\s+that|afterwards|finally|and\s+also|as\s+well\s+as|also|next|plus)\s+"
    r"|,\s+(?:and\s+)?"
    r"|\s+(?:and|&)\s+",
    re.IGNORECASE,
)
_SIGNS = frozenset(".!?;,\n")  # every break in ASCII has one of these, or one of the joiners as a word
_JOINERS = frozenset({"and", "&", "then", "after", "afterwards", "finally", "as", "also", "next", "plus"})


def clauses(request: str) -> list[str]:
    """Return the parts of *request* that can be asked for by themselves, in order; ``[]`` if it is one thing.

    A part of one word is none: ``search and replace`` is one thing.
    """
    if request.isascii() and _SIGNS.isdisjoint(request) and _JOINERS.isdisjoint(request.lower().split()):
        return []  # most requests ask for one thing, and this tells so in a third of the pattern's time
    return _parts(_BREAK, request)


def sentences(request: str) -> list[str]:
    """Return the sentences and lines of *request*, as `clauses` does its parts."""
    return _parts(_SENTENCE_BREAK, request)


def _parts(breaks: re.Pattern[str], request: str) -> list[str]:
    found = [part.strip(" ,.") for part in breaks.split(request)]
    found = [part for part in found if len(part.split()) >= _LEAST_WORDS]
    return found[:_MOST] if len(found) > 1 else []
