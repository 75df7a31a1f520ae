"""All rules that look at texts by themselves. Offline and deterministic; a finding is a reason to look."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from toolsearch.scanning.findings import Finding
from toolsearch.scanning.rules_characters import hidden_characters, out_of_sight, terminal_escapes
from toolsearch.scanning.rules_payloads import packed_text, too_long
from toolsearch.scanning.rules_words import known_phrases
from toolsearch.scanning.texts import Text

_SHORTEST_PHRASE = len("sidenote")

_CERTAIN: Sequence[Callable[[Text], Iterator[Finding]]] = (
    hidden_characters,
    terminal_escapes,
    out_of_sight,
    packed_text,
    too_long,
)


def findings_in(texts: Iterable[Text], *, margin: float = 0.0) -> Iterator[Finding]:
    """What *texts* hide from a reader, or would have a model do beyond what a tool does; in the order of the texts.

    *margin* is asked of the classifier, beyond its threshold, for texts that tell somebody what to do by their nature.
    """
    telling = [text for text in texts if not _is_plain_word(text.value)]
    for text, steering in zip(telling, steering_in(telling, margin=margin), strict=True):
        for rule in _CERTAIN:
            yield from rule(text)
        yield from steering


def steering_in(texts: Sequence[Text], *, margin: float = 0.0) -> Iterator[list[Finding]]:
    """For each of *texts* what it would have a model do, by the phrases that everybody knows, or else by all words."""
    from toolsearch.scanning.steering import steering  # which loads numpy

    judged = dict(steering(texts, margin=margin))
    for index, text in enumerate(texts):
        by_words = [judged[index]] if index in judged else []
        yield list(known_phrases(text)) or by_words


def _is_plain_word(value: str) -> bool:
    """Whether it is too short to say anything and hides nothing, as most of a schema: ``type``, ``string``."""
    return len(value) < _SHORTEST_PHRASE and value.isascii() and value.isprintable()
