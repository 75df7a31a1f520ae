"""Finds the client that a server means when it asks or tells something, and never a wrong one."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from mcp.client.session import MessageHandlerFnT

from toolsearch.catalog.sources.mcp_session import SessionPeer
from toolsearch.gateway.upstream.protocol import Downstream


class Talkback:
    """Of one server, over all its sessions. Relays nothing yet: whatever the server asks is refused."""

    def peer(self, on_message: MessageHandlerFnT) -> SessionPeer:
        """What a session is opened with; *on_message* hears what is not answered here."""
        return SessionPeer(on_message=on_message)

    @asynccontextmanager
    async def turn(self, downstream: Downstream | None) -> AsyncGenerator[None]:  # noqa: ARG002
        """To be held while a request for *downstream* runs at the server; may wait until that can be told apart."""
        yield
