"""Looks through a definition for what is not about its tool. Offline, deterministic; a finding is a reason to look."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice

from toolsearch.gateway.entries import Entry, Kind, pin_of
from toolsearch.gateway.tools import GatewayTool
from toolsearch.gateway.trust.protocol import Finding
from toolsearch.gateway.trust.rules_characters import hidden_characters, out_of_sight, terminal_escapes
from toolsearch.gateway.trust.rules_names import Neighbours, borrowed_name, speaks_of_others
from toolsearch.gateway.trust.rules_payloads import packed_text, too_long
from toolsearch.gateway.trust.rules_words import steering_words
from toolsearch.gateway.trust.texts import printable, texts_of
from toolsearch.tools.definition import JsonObject

_MAX_FINDINGS = 8  # of one definition; one is enough to hold it

_SHORTEST_PHRASE = len("sidenote")

_TEXT_RULES: Sequence[Callable[..., Iterator[Finding]]] = (
    hidden_characters,
    terminal_escapes,
    out_of_sight,
    steering_words,
    packed_text,
    too_long,
)


class Scanner:
    """Remembers what a definition says by itself, by its hash; what depends on its neighbours is looked up anew."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, tuple[Finding, ...]]] = {}

    def scan(self, server: str, entries: Sequence[Entry], others: Sequence[GatewayTool]) -> list[list[Finding]]:
        """The findings of each of *entries*, which are all that *server* lists; the order is that of its texts."""
        neighbours = Neighbours.of(entries, others)
        before = self._known.get(server, {})
        now: dict[str, tuple[Finding, ...]] = {}
        findings: list[list[Finding]] = []
        for entry in entries:
            said = pin_of(entry.raw)
            alone = now[said] = before[said] if said in before else tuple(scan_entry(entry.raw))
            beside = scan_names(entry, neighbours)
            findings.append([*alone, *beside][:_MAX_FINDINGS])
        self._known[server] = now
        return findings


def scan_entry(entry: JsonObject) -> list[Finding]:
    """What the definition says by itself."""
    texts = (text for text in texts_of(entry) if not _is_plain_word(text.value))
    return _told(finding for text in texts for rule in _TEXT_RULES for finding in rule(text))


def scan_names(entry: Entry, neighbours: Neighbours) -> list[Finding]:
    """What it does with the names of others."""
    borrowed = borrowed_name(entry.remote_name, neighbours) if entry.kind is Kind.TOOL else ()
    return _told(
        chain(borrowed, (found for text in texts_of(entry.raw) for found in speaks_of_others(text, neighbours)))
    )


def _told(findings: Iterable[Finding]) -> list[Finding]:
    """The first of them, with places that can be printed: the names of properties are the server's too."""
    return [replace(finding, place=printable(finding.place)) for finding in islice(findings, _MAX_FINDINGS)]


def _is_plain_word(value: str) -> bool:
    """Whether it is too short to say anything and hides nothing, as most of a schema: ``type``, ``string``."""
    return len(value) < _SHORTEST_PHRASE and value.isascii() and value.isprintable()
