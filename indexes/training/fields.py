"""The parts of a tool that are learnt as vectors of their own; a tool is the mean of the three."""

from __future__ import annotations

import re

from toolsearch_indexes.encoders.wordpiece import parts

FIELDS = 3  # name, first sentence, name with the whole description
_SEPARATORS = re.compile(r"[_\W]+")
_FIRST_SENTENCE = re.compile(r".+?[.!?\u3002\uff01\uff1f](?=\s|$)|.+", re.DOTALL)


def spaced(name: str) -> str:
    """Return the words of an identifier: ``createIssue_v2`` gives ``create Issue v2``."""
    return _SEPARATORS.sub(" ", parts(name)).strip()


def first_sentence(text: str) -> str:
    found = _FIRST_SENTENCE.match(text.strip())
    return found.group() if found else ""
