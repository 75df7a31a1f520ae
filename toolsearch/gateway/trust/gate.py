"""Holds back what a person should look at, by the settings: definitions that are new, changed or suspicious."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from toolsearch.errors import PinStoreError
from toolsearch.gateway.settings import GatewayConfig
from toolsearch.gateway.trust.differences import changed_places
from toolsearch.gateway.trust.pins import PinStore
from toolsearch.gateway.trust.scan import Scanner
from toolsearch.gateway.trust.scan_cache import ScanCache
from toolsearch.gateway.trust.verdicts import OpenGate, ReviewItem, ReviewReason, ToolGate, Verdict
from toolsearch.scanning.findings import Finding
from toolsearch.storage.pins import FIRST_SIGHT, Pin, PinPersistence
from toolsearch.upstreams.config import McpServer
from toolsearch.upstreams.pinned import Entry, Kind

logger = logging.getLogger(__name__)

_BLIND = -1  # a version that no store ever has, and those below it: see `PinGate.version`
_Key: TypeAlias = tuple[Kind, str]


def make_gate(config: GatewayConfig, pins: PinPersistence | None = None) -> ToolGate:
    """The gate of *config*, with its pins in *pins*, or else in the state folder.

    Raises PinStoreError if they cannot be kept.
    """
    trust = config.settings.trust
    if trust.first_seen == trust.changed == trust.suspicious == "allow":
        return OpenGate()
    return PinGate(config, pins)


class PinGate:
    """A `ToolGate` that compares definitions with the pins of the servers of *config*.

    What a person has approved is admitted whatever the scan says. What was approved on first sight is scanned at every
    judgement, since servers that came later may have names that it imitates. While the pins cannot be read or written,
    everything is held, because a known entry without its pin would look new.
    """

    def __init__(self, config: GatewayConfig, pins: PinPersistence | None = None) -> None:
        """*pins* is closed by whoever has made it; None: they are in the state folder, as what the scan remembers."""
        self._store = PinStore.of(config, pins)
        self._settings = config.settings.trust
        self._scanner = Scanner(ScanCache(config.settings.state_folder / "scans"))
        self._blind: set[str] = set()  # the servers for whose last judgement the approvals could not be read
        self._failures = 0

    def version(self) -> int:
        """Another one after each judgement for which the approvals could not be read, so that it is tried again."""
        try:
            version = self._store.version()
        except PinStoreError:
            return _BLIND
        return _BLIND - self._failures if self._blind else version

    def know(self, server: McpServer) -> None:
        self._store.know(server)

    def close(self) -> None:
        self._store.close()

    def judge(self, server: str, entries: Sequence[Entry], *, others: Sequence[Entry]) -> Verdict:
        try:
            verdict = self._judged_by_pins(server, entries, others)
        except PinStoreError as error:
            if error.retry_after_s is None or server not in self._blind:
                logger.error("everything of %s is held: %s", server, error)  # noqa: TRY400
            self._blind.add(server)
            self._failures += 1
            return Verdict((), tuple(_unreadable(entry) for entry in entries))
        self._blind.discard(server)
        return verdict

    def _judged_by_pins(self, server: str, entries: Sequence[Entry], others: Sequence[Entry]) -> Verdict:
        kinds = {entry.kind for entry in entries}
        approved = {(kind, name): pin for kind in kinds for name, pin in self._store.approved(server, kind).items()}
        waiting = {(kind, name): pin for kind in kinds for name, pin in self._store.waiting(server, kind).items()}
        findings = self._findings(server, entries, others)
        taken = [
            self._judged(entry, approved.get(_key(entry)), waiting.get(_key(entry)), found)
            for entry, found in zip(entries, findings, strict=True)
        ]
        self._store.keep(
            server,
            approve=[each.entry for each in taken if each.is_admitted and self._is_news(each, approved)],
            hold=[each.entry for each in taken if not each.is_admitted and not each.is_at(waiting)],
            forget=[each.entry for each in taken if each.is_admitted and _key(each.entry) in waiting],
        )
        return Verdict(
            admitted=tuple(each.entry for each in taken if each.is_admitted),
            held=tuple(each.doubt for each in taken if each.doubt is not None and not each.is_admitted),
            warnings=tuple(each.doubt for each in taken if each.doubt is not None and each.is_admitted),
        )

    def _judged(self, entry: Entry, pin: Pin | None, waiting: Pin | None, found: Sequence[Finding]) -> _Judged:
        current = entry.pin()
        if pin is not None and pin.pin == current and pin.by != FIRST_SIGHT:
            return _Judged(entry, current)
        doubts: list[ReviewReason] = []
        if pin is None and waiting is not None and waiting.by:
            doubts.append(ReviewReason.WITHDRAWN)
        if found:
            doubts.append(ReviewReason.SUSPICIOUS)
        if pin is not None and pin.pin != current and self._settings.changed != "allow":
            doubts.append(ReviewReason.CHANGED)
        if pin is None and self._settings.first_seen == "quarantine":
            doubts.append(ReviewReason.NEW)
        if not doubts:
            return _Judged(entry, current)
        why = next(filter(self._holds, doubts), doubts[0])
        changes = self._changes(entry) if ReviewReason.CHANGED in doubts else ()
        held = ReviewItem(entry.name, entry.server, current, why, tuple(found), changes, entry.kind)
        return _Judged(entry, current, held, not self._holds(why))

    def _findings(self, server: str, entries: Sequence[Entry], others: Sequence[Entry]) -> list[list[Finding]]:
        if self._settings.suspicious == "allow":
            return [[] for _ in entries]
        return self._scanner.scan(server, entries, others)

    def _changes(self, entry: Entry) -> tuple[str, ...]:
        before = self._store.entry(entry.server, entry.remote_name, entry.kind, is_approved=True)
        return changed_places(before, entry.raw)

    def _holds(self, why: ReviewReason) -> bool:
        treatments: Mapping[ReviewReason, str] = {
            ReviewReason.WITHDRAWN: "quarantine",
            ReviewReason.SUSPICIOUS: self._settings.suspicious,
            ReviewReason.CHANGED: self._settings.changed,
            ReviewReason.NEW: self._settings.first_seen,
        }
        return treatments[why] == "quarantine"

    def _is_news(self, judged: _Judged, approved: Mapping[_Key, Pin]) -> bool:
        """Whether an admitted entry is to be pinned. Where changes only cause a warning, the first definition stays
        pinned.
        """
        known = _key(judged.entry) in approved
        return not known or (self._settings.changed == "allow" and not judged.is_at(approved))


@dataclass(frozen=True, slots=True)
class _Judged:
    entry: Entry
    pin: str
    doubt: ReviewItem | None = None
    is_admitted: bool = True

    def is_at(self, pins: Mapping[_Key, Pin]) -> bool:
        """Whether *pins* have this very definition of it."""
        pin = pins.get(_key(self.entry))
        return pin is not None and pin.pin == self.pin


def _key(entry: Entry) -> _Key:
    return entry.kind, entry.remote_name


def _unreadable(entry: Entry) -> ReviewItem:
    return ReviewItem(entry.name, entry.server, entry.pin(), ReviewReason.UNREADABLE, kind=entry.kind)
