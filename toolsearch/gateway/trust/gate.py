"""Holds back what the settings want a person to look at: what is new, has changed, or looks wrong to the scan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from toolsearch.gateway.settings import GatewayConfig, TrustSettings
from toolsearch.gateway.tools import GatewayTool
from toolsearch.gateway.trust.differences import changed_places
from toolsearch.gateway.trust.pins import FIRST_SIGHT, Pin, PinStore
from toolsearch.gateway.trust.protocol import Finding, Held, Hold, OpenGate, ToolGate, Verdict
from toolsearch.gateway.trust.scan import Scanner


def make_gate(config: GatewayConfig) -> ToolGate:
    """The gate of *config*, with its pins in the state folder. Raises SessionStoreError if they cannot be kept."""
    trust = config.settings.trust
    if trust.first_seen == trust.changed == trust.suspicious == "allow":
        return OpenGate()
    return PinGate(PinStore.of(config), trust)


class PinGate:
    """A `ToolGate` by the pins in *store*.

    What a person has approved is admitted whatever the scan says of it. What was approved on first sight is scanned at
    every judgement: other servers have come since, and their names may be what it is after.
    """

    def __init__(self, store: PinStore, settings: TrustSettings) -> None:
        self._store = store
        self._settings = settings
        self._scanner = Scanner()

    def version(self) -> int:
        return self._store.version()

    def judge(self, server: str, tools: Sequence[GatewayTool], *, others: Sequence[GatewayTool]) -> Verdict:
        approved, waiting = self._store.approved(server), self._store.waiting(server)
        findings = self._findings(server, tools, others)
        taken = [
            self._judged(server, tool, approved.get(tool.remote_name), waiting.get(tool.remote_name), found)
            for tool, found in zip(tools, findings, strict=True)
        ]
        self._store.keep(
            server,
            approve=[each.tool for each in taken if each.is_admitted and self._is_news(each.tool, approved)],
            hold=[each.tool for each in taken if not each.is_admitted and not _is_same(each.tool, waiting)],
            forget=[each.tool.remote_name for each in taken if each.is_admitted and each.tool.remote_name in waiting],
        )
        return Verdict(
            admitted=tuple(each.tool for each in taken if each.is_admitted),
            held=tuple(each.doubt for each in taken if each.doubt is not None and not each.is_admitted),
            warnings=tuple(each.doubt for each in taken if each.doubt is not None and each.is_admitted),
        )

    def _judged(
        self, server: str, tool: GatewayTool, pin: Pin | None, waiting: Pin | None, found: Sequence[Finding]
    ) -> _Judged:
        current = tool.pin()
        if pin is not None and pin.pin == current and pin.by != FIRST_SIGHT:
            return _Judged(tool)
        doubts: list[Hold] = []
        if pin is None and waiting is not None and waiting.by:
            doubts.append(Hold.WITHDRAWN)
        if found:
            doubts.append(Hold.SUSPICIOUS)
        if pin is not None and pin.pin != current and self._settings.changed != "allow":
            doubts.append(Hold.CHANGED)
        if pin is None and self._settings.first_seen == "quarantine":
            doubts.append(Hold.NEW)
        if not doubts:
            return _Judged(tool)
        why = next(filter(self._holds, doubts), doubts[0])
        changes = self._changes(server, tool) if Hold.CHANGED in doubts else ()
        return _Judged(tool, Held(tool.name, server, current, why, tuple(found), changes), not self._holds(why))

    def _findings(
        self, server: str, tools: Sequence[GatewayTool], others: Sequence[GatewayTool]
    ) -> list[list[Finding]]:
        if self._settings.suspicious == "allow":
            return [[] for _ in tools]
        return self._scanner.scan(server, tools, others)

    def _changes(self, server: str, tool: GatewayTool) -> tuple[str, ...]:
        return changed_places(self._store.entry(server, tool.remote_name, is_approved=True), tool.raw)

    def _holds(self, why: Hold) -> bool:
        treatments: Mapping[Hold, str] = {
            Hold.WITHDRAWN: "quarantine",
            Hold.SUSPICIOUS: self._settings.suspicious,
            Hold.CHANGED: self._settings.changed,
            Hold.NEW: self._settings.first_seen,
        }
        return treatments[why] == "quarantine"

    def _is_news(self, tool: GatewayTool, approved: Mapping[str, Pin]) -> bool:
        """Whether an admitted tool is to be pinned: where changes are warned of, the first definition stays."""
        known = tool.remote_name in approved
        return not known or (self._settings.changed == "allow" and not _is_same(tool, approved))


@dataclass(frozen=True, slots=True)
class _Judged:
    tool: GatewayTool
    doubt: Held | None = None
    is_admitted: bool = True


def _is_same(tool: GatewayTool, pins: Mapping[str, Pin]) -> bool:
    pin = pins.get(tool.remote_name)
    return pin is not None and pin.pin == tool.pin()
