"""Holds back entries that the settings want a person to look at: definitions that are new, changed or suspicious.

The pin store keeps which definitions have been approved and which await approval.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self, TypeAlias

from toolsearch.documents.json_values import is_list, is_object
from toolsearch.errors import BadSettingError, StorageError
from toolsearch.gateway.settings import GatewayConfig
from toolsearch.gateway.trust.scan import ScanCache, Scanner
from toolsearch.gateway.trust.verdicts import Entry, Kind, OpenGate, ReviewItem, ReviewReason, ToolGate, Verdict
from toolsearch.scanning.texts import Finding, printable
from toolsearch.storage.decisions import APPROVALS_FILE
from toolsearch.storage.pins import FIRST_SIGHT, Pin, PinPersistence, SeenEntry
from toolsearch.storage.sqlite.stores import SqlitePins
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.upstreams.config import McpServer, server_identity


class PinStore:
    """The pins of the servers of one configuration, under the configuration's names.

    *identities* gives each server's identity. If a name is pointed at another server, nothing of it is approved any
    more. Safe to share between threads. Raises StorageError if the approvals cannot be read, and BadSettingError for a
    server that the configuration does not have.
    """

    def __init__(
        self, kept: PinPersistence, identities: Mapping[str, str], *, clock: Callable[[], float] = time.time
    ) -> None:
        self._kept = kept
        self._identities = identities
        self._clock = clock
        self._owns_persistence = False

    @classmethod
    def of(cls, config: GatewayConfig, kept: PinPersistence | None = None) -> Self:
        """The store of the servers of *config*, in *kept*, or else in the state folder."""
        store = cls(kept or SqlitePins(config.settings.state_folder / APPROVALS_FILE), {})
        store._owns_persistence = kept is None
        for each in config.upstreams:
            store.know(each.server)
        return store

    def know(self, server: McpServer) -> None:
        """Add *server* to the configuration from now on, in place of any other server of its name."""
        self._identities = {**self._identities, server.name: server_identity(server)}

    def version(self) -> int:
        """A number that changes when a person has decided something, in any process.

        What gateways note by themselves does not change it; otherwise two gateways would make each other judge again
        forever.
        """
        return self._kept.version()

    def approved(self, server: str, kind: Kind = Kind.TOOL) -> dict[str, Pin]:
        """The approved definitions of *server*, by the entries' own names."""
        return self._kept.approved(self._owner(server, kind))

    def waiting(self, server: str, kind: Kind = Kind.TOOL) -> dict[str, Pin]:
        """The entries of *server* that await approval, each with its latest definition."""
        return self._kept.waiting(self._owner(server, kind))

    def entry(self, server: str, name: str, kind: Kind = Kind.TOOL, *, is_approved: bool) -> JsonObject | None:
        """The definition that is approved, or that waits; None if there is none."""
        return self._kept.entry(self._owner(server, kind), name, is_approved=is_approved)

    def keep(
        self,
        server: str,
        *,
        approve: Sequence[Entry] = (),
        hold: Sequence[Entry] = (),
        forget: Sequence[Entry] = (),
    ) -> None:
        """Record *approve* as approved on first sight, *hold* as waiting, and *forget* as no longer waiting."""
        approve_, hold_, forget_ = ([self._seen(server, entry) for entry in each] for each in (approve, hold, forget))
        self._kept.keep(approve=approve_, hold=hold_, forget=forget_)

    def approve(self, server: str, tool: str, pin: str, by: str, kind: Kind = Kind.TOOL) -> bool:
        """Approve the definition *pin* of *tool*, by the server's own name for it; *by* says who approves.

        Returns False if that definition neither awaits approval nor is in use, because it has changed since the review.
        """
        return self._kept.approve(self._owner(server, kind), tool, pin, by=by, at_s=self._clock())

    def refuse(self, server: str, tool: str, pin: str, by: str, kind: Kind = Kind.TOOL) -> bool:
        """Refuse the definition *pin*, which waits, until somebody approves it or the server changes it.

        Returns False if another definition waits by now.
        """
        return self._kept.refuse(self._owner(server, kind), tool, pin, by=by, at_s=self._clock())

    def revoke(self, server: str, tool: str, by: str, kind: Kind = Kind.TOOL) -> bool:
        """Withdraw the approval of *tool*, whatever its definition, until it is approved again. Returns False if it is
        not approved.
        """
        return self._kept.revoke(self._owner(server, kind), tool, by=by, at_s=self._clock())

    def close(self) -> None:
        """Close the file of `of`. May be called twice."""
        if self._owns_persistence:
            self._kept.close()

    def _seen(self, server: str, entry: Entry) -> SeenEntry:
        owner = self._owner(server, entry.kind)
        return SeenEntry(owner, entry.remote_name, entry.pin(), entry.raw, self._clock())

    def _owner(self, server: str, kind: Kind) -> str:
        if server not in self._identities:
            known = ", ".join(sorted(self._identities)) or "none"
            raise BadSettingError(f"there is no server {server!r} in the configuration; there are: {known}")
        # An identity ends with a hash, so the suffix cannot make it equal to another server's.
        identity = self._identities[server]
        return identity if kind is Kind.TOOL else f"{identity} {kind.value}"


_MAX_PLACES = 20


def changed_places(before: Json, after: Json) -> tuple[str, ...]:
    """The changed places, such as ``inputSchema.properties.path``, sorted, with a sign: ``+`` new, ``-`` gone, ``~``
    changed.

    At most 20 places; if there are more, the last entry gives their number.
    """
    places = sorted(_differences(before, after), key=lambda sign_and_place: sign_and_place[1])
    shown = tuple(f"{sign} {printable(place)}" for sign, place in places[:_MAX_PLACES])
    more = len(places) - len(shown)
    return (*shown, f"... and {more} more") if more else shown


def _differences(before: Json, after: Json) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    stack: list[tuple[str, Json, Json]] = [("", before, after)]
    while stack:
        place, one, other = stack.pop()
        if is_object(one) and is_object(other):
            for key in one.keys() | other.keys():
                inner = f"{place}.{key}" if place else key
                if key not in other:
                    found.append(("-", inner))
                elif key not in one:
                    found.append(("+", inner))
                else:
                    stack.append((inner, one[key], other[key]))
        elif is_list(one) and is_list(other) and len(one) == len(other):
            stack += [(f"{place}[{index}]", *pair) for index, pair in enumerate(zip(one, other, strict=True))]
        elif one != other or isinstance(one, bool) != isinstance(other, bool):  # in Python, 1 == True
            found.append(("~", place))
    return found


logger = logging.getLogger(__name__)
_UNREADABLE_VERSION = -1  # no store has this version or a lower one: see `PinGate.version`
_Key: TypeAlias = tuple[Kind, str]


def make_gate(config: GatewayConfig, pins: PinPersistence | None = None) -> ToolGate:
    """The gate of *config*, with its pins in *pins*, or else in the state folder.

    Raises StorageError if they cannot be kept.
    """
    trust = config.settings.trust
    if trust.first_seen == trust.changed == trust.suspicious == "allow":
        return OpenGate()
    return PinGate(config, pins)


class PinGate:
    """A `ToolGate` that compares definitions with the pins of the servers of *config*.

    An entry that a person approved is admitted whatever the scan says. An entry that was approved on first sight is
    scanned at every judgement, because it may imitate names of servers that were added later. While the pins cannot be
    read or written, everything is held, because a known entry without its pin would look new.
    """

    def __init__(self, config: GatewayConfig, pins: PinPersistence | None = None) -> None:
        """*pins* stays open: its creator closes it. None: the pins are in the state folder, like the scan's cache."""
        self.store = PinStore.of(config, pins)
        self._settings = config.settings.trust
        self._scanner = Scanner(ScanCache(config.settings.state_folder / "scans"))
        self._unreadable_servers: set[str] = set()  # servers whose approvals could not be read at the last judgement
        self._failures = 0

    def version(self) -> int:
        """A number that also changes after each judgement without readable approvals, so that the judgement is
        repeated.
        """
        try:
            version = self.store.version()
        except StorageError:
            return _UNREADABLE_VERSION
        return _UNREADABLE_VERSION - self._failures if self._unreadable_servers else version

    def know(self, server: McpServer) -> None:
        self.store.know(server)

    def close(self) -> None:
        self.store.close()

    def judge(self, server: str, entries: Sequence[Entry], *, others: Sequence[Entry]) -> Verdict:
        try:
            verdict = self._judged_by_pins(server, entries, others)
        except StorageError as error:
            if error.retry_after_s is None or server not in self._unreadable_servers:
                logger.error("everything of %s is held: %s", server, error)  # noqa: TRY400
            self._unreadable_servers.add(server)
            self._failures += 1
            return Verdict((), tuple(ReviewItem.of(entry, ReviewReason.UNREADABLE) for entry in entries))
        self._unreadable_servers.discard(server)
        return verdict

    def _judged_by_pins(self, server: str, entries: Sequence[Entry], others: Sequence[Entry]) -> Verdict:
        kinds = {entry.kind for entry in entries}
        approved = {(kind, name): pin for kind in kinds for name, pin in self.store.approved(server, kind).items()}
        waiting = {(kind, name): pin for kind in kinds for name, pin in self.store.waiting(server, kind).items()}
        findings = self._findings(server, entries, others)
        taken = [
            self._judged(entry, approved.get(_key(entry)), waiting.get(_key(entry)), found)
            for entry, found in zip(entries, findings, strict=True)
        ]
        self.store.keep(
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
        refused_by = waiting.refused_by if waiting is not None and waiting.pin == current else ""
        if refused_by:
            doubts.append(ReviewReason.REFUSED)
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
        held = ReviewItem.of(entry, why, findings=found, changes=changes, refused_by=refused_by)
        return _Judged(entry, current, held, not self._holds(why))

    def _findings(self, server: str, entries: Sequence[Entry], others: Sequence[Entry]) -> list[list[Finding]]:
        if self._settings.suspicious == "allow":
            return [[] for _ in entries]
        return self._scanner.scan(server, entries, others)

    def _changes(self, entry: Entry) -> tuple[str, ...]:
        before = self.store.entry(entry.server, entry.remote_name, entry.kind, is_approved=True)
        return changed_places(entry.by_file(before or {}), entry.by_file(entry.raw))

    def _holds(self, why: ReviewReason) -> bool:
        treatments: Mapping[ReviewReason, str] = {
            ReviewReason.REFUSED: "quarantine",
            ReviewReason.WITHDRAWN: "quarantine",
            ReviewReason.SUSPICIOUS: self._settings.suspicious,
            ReviewReason.CHANGED: self._settings.changed,
            ReviewReason.NEW: self._settings.first_seen,
        }
        return treatments[why] == "quarantine"

    def _is_news(self, judged: _Judged, approved: Mapping[_Key, Pin]) -> bool:
        """Whether to pin an admitted entry. If changes only cause a warning, the first definition stays pinned."""
        known = _key(judged.entry) in approved
        return not known or (self._settings.changed == "allow" and not judged.is_at(approved))


@dataclass(frozen=True, slots=True)
class _Judged:
    entry: Entry
    pin: str
    doubt: ReviewItem | None = None
    is_admitted: bool = True

    def is_at(self, pins: Mapping[_Key, Pin]) -> bool:
        """Whether *pins* hold this very definition."""
        pin = pins.get(_key(self.entry))
        return pin is not None and pin.pin == self.pin


def _key(entry: Entry) -> _Key:
    return entry.kind, entry.remote_name
