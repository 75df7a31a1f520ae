"""Scans a definition for text that is not about its tool. Offline and deterministic; a finding is a reason to look."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain, islice

from toolsearch.gateway.trust.rules_names import Neighbours, borrowed_name, coined_words, speaks_of_others
from toolsearch.gateway.trust.scan_cache import Said, ScanCache, Scanned
from toolsearch.scanning.findings import Finding
from toolsearch.scanning.rules import findings_in
from toolsearch.scanning.texts import printable, texts_of
from toolsearch.tools.json_types import JsonObject
from toolsearch.upstreams.pinned import Entry, Kind

_MAX_FINDINGS = 8  # reported for one definition; one is enough to hold it


class Scanner:
    """Scans definitions. Findings in a definition itself are remembered by its pin; those about names of others are
    not.
    """

    def __init__(self, cache: ScanCache | None = None) -> None:
        self._cache = cache
        self._known: dict[str, Scanned] = {}

    def scan(self, server: str, entries: Sequence[Entry], others: Sequence[Entry]) -> list[list[Finding]]:
        """The findings of each of *entries*, which are all that *server* lists; the order is that of its texts."""
        neighbours = Neighbours.of(entries, others)
        before = self._before(server)
        now: Scanned = {}
        findings: list[list[Finding]] = []
        for entry in entries:
            pin = entry.pin()
            said = now[pin] = before[pin] if pin in before else _said(entry.raw)
            beside = scan_names(entry, said.coined, neighbours)
            findings.append([*said.findings, *beside][:_MAX_FINDINGS])
        if self._cache is not None and now.keys() != before.keys():
            self._cache.save(server, now)
        self._known[server] = now
        return findings

    def _before(self, server: str) -> Scanned:
        if server not in self._known and self._cache is not None:
            return self._cache.load(server)
        return self._known.get(server, {})


def scan_entry(entry: JsonObject) -> list[Finding]:
    """What the definition says by itself."""
    return _told(findings_in(texts_of(entry)))


def scan_names(entry: Entry, coined: frozenset[str], neighbours: Neighbours) -> list[Finding]:
    """What it does with the names of others; *coined* are the words of it that could be such names."""
    borrowed = borrowed_name(entry.remote_name, neighbours) if entry.kind is Kind.TOOL else ()
    texts = texts_of(entry.raw) if any(word in neighbours.others for word in coined) else ()
    return _told(chain(borrowed, (finding for text in texts for finding in speaks_of_others(text, neighbours))))


def _said(entry: JsonObject) -> Said:
    coined = frozenset(word for text in texts_of(entry) for word in coined_words(text))
    return Said(tuple(scan_entry(entry)), coined)


def _told(findings: Iterable[Finding]) -> list[Finding]:
    """The first of them, with places that can be printed: the names of properties are the server's too."""
    return [replace(finding, place=printable(finding.place)) for finding in islice(findings, _MAX_FINDINGS)]
