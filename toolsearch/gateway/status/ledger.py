"""Counts what the gateway does, in bounded memory: for the status, never for a decision."""

from __future__ import annotations

from toolsearch.gateway.principals.protocol import Caller


class Ledger:
    """Totals since the start. To be used from the gateway's event loop."""

    def __init__(self) -> None:
        self.lists = self.searches = self.calls = self.failed_calls = 0

    def listed(self, caller: Caller) -> None:  # noqa: ARG002
        self.lists += 1

    def searched(self, caller: Caller) -> None:  # noqa: ARG002
        self.searches += 1

    def called(self, caller: Caller, *, failed: bool) -> None:  # noqa: ARG002
        self.calls += 1
        self.failed_calls += failed
