"""All rules that look at one text by itself. Offline and deterministic; a finding is a reason to look."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from toolsearch.scanning.findings import Finding
from toolsearch.scanning.rules_characters import hidden_characters, out_of_sight, terminal_escapes
from toolsearch.scanning.rules_payloads import packed_text, too_long
from toolsearch.scanning.rules_words import steering_words
from toolsearch.scanning.texts import Text

_SHORTEST_PHRASE = len("sidenote")

_RULES: Sequence[Callable[[Text], Iterator[Finding]]] = (
    hidden_characters,
    terminal_escapes,
    out_of_sight,
    steering_words,
    packed_text,
    too_long,
)


def findings_in(text: Text) -> Iterator[Finding]:
    """What *text* says to a model or hides from a reader beyond what its tool does."""
    if not _is_plain_word(text.value):
        for rule in _RULES:
            yield from rule(text)


def _is_plain_word(value: str) -> bool:
    """Whether it is too short to say anything and hides nothing, as most of a schema: ``type``, ``string``."""
    return len(value) < _SHORTEST_PHRASE and value.isascii() and value.isprintable()
