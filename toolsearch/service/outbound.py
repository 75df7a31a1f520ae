"""Clients for the addresses that tenants name."""

from __future__ import annotations

from dataclasses import dataclass

import httpx2

from toolsearch.access.guarded_transport import GuardedTransport
from toolsearch.access.url_guard import UrlGuard


@dataclass(frozen=True, slots=True)
class Outbound:
    """Gives each client a transport of its own, so that nobody waits for the connections of others."""

    guard: UrlGuard

    def open_client(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(transport=self.transport(), trust_env=False)

    def transport(self) -> httpx2.AsyncBaseTransport:
        return GuardedTransport(self.guard)
