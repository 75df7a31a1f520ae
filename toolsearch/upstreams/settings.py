"""What holds for one server, whoever uses it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias

from pydantic import Field

from toolsearch.setting_sections import SettingsSection
from toolsearch.setting_types import Count, Seconds
from toolsearch.storage.files import ListingPersistence
from toolsearch.upstreams.config import HttpServer, McpServer
from toolsearch.upstreams.interface import CALL_TIMEOUT_S, CONNECT_TIMEOUT_S

if TYPE_CHECKING:
    import httpx2

OpenTransport: TypeAlias = "Callable[[], httpx2.AsyncBaseTransport]"


class ServerSettings(SettingsSection):
    """Settings of each server."""

    connect_timeout_s: Seconds = Field(
        default=CONNECT_TIMEOUT_S, description="Time to start and to answer the first request."
    )
    call_timeout_s: Seconds = Field(
        default=CALL_TIMEOUT_S, description="Time for one call, with the wait for the server."
    )
    max_running: Count = Field(default=16, description="Requests sent to it at once. Four times as many may wait.")
    listing_ttl_s: Seconds | None = Field(
        default=300.0,  # finds changes that were not announced; listing this often costs little
        description="List its tools anew after that long, or sooner if it says so; none: only when it says so.",
    )


LOOPBACK_PAGE: Final = "http://127.0.0.1/callback"


@dataclass(frozen=True, slots=True)
class OAuthClient:
    """How the gateway logs in.

    client_id     its registration, or the address of a document that describes it; "": it registers itself
    issuer        the only authorization server that gets *secret*, and that logins are made at; None: any
    redirect_uri  the loopback address to which the browser returns; one without a port stands for any free port
    scopes        the scopes that a login asks for; (): those that the server names
    """

    client_id: str = ""
    secret: str | None = field(default=None, repr=False)
    issuer: str | None = None
    redirect_uri: str = LOOPBACK_PAGE
    scopes: tuple[str, ...] = ()

    @property
    def is_registered(self) -> bool:
        return bool(self.client_id) and self.document_url is None

    @property
    def document_url(self) -> str | None:
        """The address of the client id metadata document, which is the id itself; None if the id is no address."""
        is_address = self.secret is None and _DOCUMENT_URL.fullmatch(self.client_id) is not None
        return self.client_id if is_address else None


_DOCUMENT_URL: Final = re.compile(r"https://[^/?#@\[\]\s]+/[^#\s]+")


Credentials: TypeAlias = Literal["shared", "per-user", "exchange", "none"]


class Tokens(Protocol):
    """The tokens that one connection is authorized by."""

    def auth(self) -> httpx2.Auth:
        """What puts them on requests."""
        ...

    def stamp(self) -> float:
        """A number that differs after each change that may let a refused connection in."""
        ...


@dataclass(frozen=True, slots=True)
class UpstreamSettings:
    """One server: its address, its policy, and the folder for its data; None: nothing is kept.

    relays          whether requests come from MCP clients, which can be asked
    listings        where its last listing is kept, if not in the state folder
    lazy            whether it is started only when it is needed, if its tools are known from before
    oauth           how to log in
    credentials     whose credentials requests are sent with: the same for everybody, each user's own login, or what the
                    caller's own token is exchanged for; or no login, even if the server asks for one
    tokens          the tokens to use; None: those of a login that is kept in the state folder, if there is one
    open_transport  makes the transport for requests to a URL; None: the network, to any address
    """

    server: McpServer
    policy: ServerSettings
    state_folder: Path | None = None
    relays: bool = True
    lazy: bool = True
    listings: ListingPersistence | None = field(default=None, compare=False)
    open_transport: OpenTransport | None = field(default=None, compare=False)
    oauth: OAuthClient = OAuthClient()
    credentials: Credentials = "shared"
    tokens: Tokens | None = field(default=None, compare=False, repr=False)

    @property
    def name(self) -> str:
        return self.server.name

    @property
    def is_per_user(self) -> bool:
        """Whether each user has a connection of their own to the server."""
        is_claimed = isinstance(self.server, HttpServer) and bool(self.server.claimed)
        return self.credentials in ("per-user", "exchange") or is_claimed
