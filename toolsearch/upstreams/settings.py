"""What holds for one server, whoever uses it."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, Protocol, Self, TypeAlias
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationInfo, model_validator

from toolsearch.access.principals import Grant
from toolsearch.documents.references import References
from toolsearch.errors import BadSettingError
from toolsearch.setting_sections import SettingsSection
from toolsearch.setting_types import Count, Seconds
from toolsearch.storage.files import ListingPersistence
from toolsearch.upstreams.config import LOOPBACK_PAGE, HttpServer, McpServer
from toolsearch.upstreams.interface import CALL_TIMEOUT_S, CONNECT_TIMEOUT_S

if TYPE_CHECKING:
    import httpx2

OpenTransport: TypeAlias = "Callable[[], httpx2.AsyncBaseTransport]"


class ServerSettings(SettingsSection):
    """Settings of each MCP server."""

    connect_timeout_s: Seconds = Field(
        default=CONNECT_TIMEOUT_S, description="Time limit for the server to start and answer its first request."
    )
    call_timeout_s: Seconds = Field(
        default=CALL_TIMEOUT_S, description="Time limit for one call, including the wait for the server."
    )
    max_running: Count = Field(
        default=16, description="Requests that a server gets at once. Four times as many may wait."
    )
    listing_ttl_s: Seconds | None = Field(
        default=300.0,  # finds changes that were not announced; listing this often costs little
        description="How long a server's list of tools is used if the server announces no change; none: no limit.",
    )


def _secret(given: object, info: ValidationInfo) -> object:
    """Read the secret that *given* refers to. The context of the validation are the `References`."""
    if given is None or isinstance(given, SecretStr):
        return given
    references: References = info.context or References({})
    try:
        return SecretStr(references.secret(given))
    except BadSettingError as error:
        raise ValueError(str(error)) from error


_LOOPBACK: Final = r"^http://(127\.0\.0\.1|localhost|\[::1\])(:[1-9][0-9]{0,4})?(/[!-\"$->@-~]*)?$"
_DOCUMENT_URL: Final = re.compile(r"https://[^/?#@\[\]\s]+/[^#\s]+")
_SCOPE: Final = r"^[!#-\[\]-~]+$"  # RFC 6749, 3.3


def _with_usable_port(address: str) -> str:
    try:
        _ = urlsplit(address).port
    except ValueError as error:
        raise ValueError("its port is above 65535") from error
    return address


class OAuthClient(SettingsSection):
    """How the gateway logs in to a server."""

    client_id: str = Field(
        default="",
        description="The gateway's registered client id, or the https URL of a client id metadata document; empty: the "
        "gateway registers itself.",
    )
    client_secret: Annotated[SecretStr | None, BeforeValidator(_secret)] = Field(
        default=None,
        description="The place of the secret: `${NAME}`, `${file:PATH}` or `${keyring:SERVICE/NAME}`. A secret needs "
        "`clientId` and `issuer`.",
    )
    issuer: str | None = Field(
        default=None, description="The issuer identifier of the only authorization server that logins may use."
    )
    redirect_uri: Annotated[str, Field(pattern=_LOOPBACK), AfterValidator(_with_usable_port)] = Field(
        default=LOOPBACK_PAGE,
        description="The registered address on this computer to which the browser returns. If it has no port, the "
        "gateway uses a free one.",
    )
    scopes: tuple[Annotated[str, Field(pattern=_SCOPE)], ...] = Field(
        default=(), description="The only scopes that a first login asks for; empty: the scopes that the server names."
    )

    @model_validator(mode="after")
    def _has_issuer(self) -> Self:
        if self.client_secret is not None and not (self.issuer and self.client_id):
            raise ValueError("clientSecret wants a clientId and an issuer: the authorization server that may get it")
        return self

    @property
    def secret(self) -> str | None:
        return self.client_secret.get_secret_value() if self.client_secret is not None else None

    @property
    def is_registered(self) -> bool:
        return bool(self.client_id) and self.document_url is None

    @property
    def document_url(self) -> str | None:
        """The address of the client id metadata document, which is the id itself; None if the id is no address."""
        is_address = self.client_secret is None and _DOCUMENT_URL.fullmatch(self.client_id) is not None
        return self.client_id if is_address else None


Credentials: TypeAlias = Literal["shared", "per-user", "exchange", "none"]


class LoginPersistence(Protocol):
    """Keeps one login as a text that is a secret."""

    def stamp(self) -> float:
        """A number that differs after each change of what `read` returns; 0 if there is no login."""
        ...

    def read(self) -> str:
        """The text as it was when it was last looked at; "" if there is none, or if it cannot be decrypted."""
        ...

    async def look(self) -> None:
        """Have `read` and `stamp` tell of what other processes have written. Raises StorageError."""
        ...

    async def write(self, text: str) -> None:
        """Raises ToolSearchError: ConflictError if another text is there by now than `read` has returned last."""
        ...

    async def forget(self) -> None:
        """Raises StorageError, and ConflictError as `write` does."""
        ...

    def alone(self) -> AbstractAsyncContextManager[Callable[[], Awaitable[bool]]]:
        """While the block runs, nobody else refreshes the login, unless this process stands still for so long that
        others believe it gone. To be sure, await what the block is given: it returns False if others may have refreshed
        the login since, and not before they are done.

        Both raise StorageError, and TimeoutError if somebody refreshes the login for too long.
        """
        ...


class UserLogins(Protocol):
    """Where users log in. *advice* is a sentence for them beside the link, or ""."""

    @property
    def advice(self) -> str: ...

    async def link(
        self, grant: Grant, settings: UpstreamSettings, reached_at: str, *, on_success: Callable[[], object]
    ) -> str:
        """Where the user of *grant* logs in to the server. *reached_at* is the address by which the user reaches the
        gateway, or "" without HTTP. *on_success* is called after the login if this process has made it.

        Raises LoginRequiredError if there is nowhere to log in.
        """
        ...

    async def finished(self, grant: Grant, settings: UpstreamSettings, since: float, within_s: float) -> bool:
        """Whether the login of the user succeeds *within_s*. *since* is the stamp of the tokens before."""
        ...


class KeptLogins(UserLogins, Protocol):
    """Where users log in, and where these logins are kept."""

    def kept(self, owner: str) -> LoginPersistence:
        """Where the login of *owner* is, which tells server and user."""
        ...


class Tokens(Protocol):
    """The tokens that one connection is authorized by."""

    def auth(self) -> httpx2.Auth:
        """What puts them on requests."""
        ...

    def stamp(self) -> float:
        """A number that differs after each change that may let a refused connection in."""
        ...

    async def look(self) -> None:
        """Have `stamp` tell of what other processes have changed. Raises StorageError."""
        ...

    async def settled(self) -> None:
        """To be awaited before requests are cut off, since a token may just be renewed."""
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
    user_logins     where users log in and their logins are kept; None: in the gateway and the state folder
    open_transport  makes the transport for requests to a URL; None: the network, to any address
    """

    server: McpServer
    policy: ServerSettings
    state_folder: Path | None = None
    relays: bool = True
    lazy: bool = True
    listings: ListingPersistence | None = field(default=None, compare=False)
    open_transport: OpenTransport | None = field(default=None, compare=False)
    oauth: OAuthClient = field(default_factory=OAuthClient)
    credentials: Credentials = "shared"
    tokens: Tokens | None = field(default=None, compare=False, repr=False)
    user_logins: KeptLogins | None = field(default=None, compare=False, repr=False)

    @property
    def name(self) -> str:
        return self.server.name

    @property
    def is_per_user(self) -> bool:
        """Whether each user has a connection of their own to the server."""
        is_claimed = isinstance(self.server, HttpServer) and bool(self.server.claimed)
        return self.credentials in ("per-user", "exchange") or is_claimed
