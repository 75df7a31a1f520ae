"""Stores which definitions have been approved and which await approval, for the servers of one configuration."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Self

from toolsearch.errors import BadSettingError
from toolsearch.gateway.settings import GatewayConfig
from toolsearch.storage.pins import APPROVALS_FILE, Pin, PinPersistence, SeenEntry
from toolsearch.storage.sqlite.pins import SqlitePins
from toolsearch.tools.json_types import JsonObject
from toolsearch.upstreams.config import McpServer
from toolsearch.upstreams.identity import server_identity
from toolsearch.upstreams.pinned import Entry, Kind


class PinStore:
    """The pins of the servers of one configuration, which are named here as they are there.

    *identities* gives each server's identity; where a name is pointed elsewhere, nothing of it is approved any more.
    Safe to share between threads. Raises PinStoreError if it cannot be told what is approved, and BadSettingError for
    a server that the configuration does not have.
    """

    def __init__(
        self, kept: PinPersistence, identities: Mapping[str, str], *, clock: Callable[[], float] = time.time
    ) -> None:
        self._kept = kept
        self._identities = identities
        self._clock = clock
        self._owns_kept = False

    @classmethod
    def of(cls, config: GatewayConfig, kept: PinPersistence | None = None) -> Self:
        """The store of the servers of *config*, in *kept*, or else in the state folder."""
        store = cls(kept or SqlitePins(config.settings.state_folder / APPROVALS_FILE), {})
        store._owns_kept = kept is None
        for each in config.upstreams:
            store.know(each.server)
        return store

    def know(self, server: McpServer) -> None:
        """Take *server* for one of the configuration from now on, in place of another one of its name."""
        self._identities = {**self._identities, server.name: server_identity(server)}

    def version(self) -> int:
        """A number that changes when a person has decided something, in any process.

        What gateways note by themselves does not change it; otherwise two gateways would make each other judge again
        forever.
        """
        return self._kept.version()

    def approved(self, server: str, kind: Kind = Kind.TOOL) -> dict[str, Pin]:
        """What is approved of *server*, by the entries' own names."""
        return self._kept.approved(self._owner(server, kind))

    def waiting(self, server: str, kind: Kind = Kind.TOOL) -> dict[str, Pin]:
        """What awaits approval of *server*: for each entry the latest definition."""
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
        """Note *approve* as approved on first sight, *hold* as waiting, and *forget* as waiting no more."""
        approve_, hold_, forget_ = ([self._seen(server, entry) for entry in each] for each in (approve, hold, forget))
        self._kept.keep(approve=approve_, hold=hold_, forget=forget_)

    def approve(self, server: str, tool: str, pin: str, by: str, kind: Kind = Kind.TOOL) -> bool:
        """Approve the definition *pin* of *tool*, by the server's own name for it; *by* says who approves.

        False if that definition neither awaits approval nor is in use: it has changed since somebody looked at it.
        """
        return self._kept.approve(self._owner(server, kind), tool, pin, by=by, at_s=self._clock())

    def revoke(self, server: str, tool: str, by: str, kind: Kind = Kind.TOOL) -> bool:
        """Withdraw the approval of *tool*, whatever its definition, until it is approved again. False if it is not
        approved.
        """
        return self._kept.revoke(self._owner(server, kind), tool, by=by, at_s=self._clock())

    def close(self) -> None:
        """Close the file of `of`. May be called twice."""
        if self._owns_kept:
            self._kept.close()

    def _seen(self, server: str, entry: Entry) -> SeenEntry:
        owner = self._owner(server, entry.kind)
        return SeenEntry(owner, entry.remote_name, entry.pin(), entry.raw, self._clock())

    def _owner(self, server: str, kind: Kind) -> str:
        if server not in self._identities:
            known = ", ".join(sorted(self._identities)) or "none"
            raise BadSettingError(f"there is no server {server!r} in the configuration; there are: {known}")
        identity = self._identities[
            server
        ]  # it ends with a hash, so the suffix cannot make it equal to another server's
        return identity if kind is Kind.TOOL else f"{identity} {kind.value}"
