"""What API documents say about themselves, cut down to what a tool definition would say."""

from __future__ import annotations

import html
import re

_MARKUP = re.compile(r"<[^>]*>")
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)")


def prose(text: str, limit: int) -> str:
    """Return *text* without HTML on one line, cut to whole sentences of together at most *limit* characters.

    A first sentence that is longer is kept up to a word's end.
    """
    plain = " ".join(html.unescape(_MARKUP.sub(" ", text)).split())
    if len(plain) <= limit:
        return plain
    ends = [match.end() for match in _SENTENCE_END.finditer(plain, 0, limit)]
    return plain[: ends[-1]] if ends else plain[: limit - 1].rpartition(" ")[0] + "…"
