"""What the gateway asks of one server, and what it is told of it. How it is kept up is the actor's own affair."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

from toolsearch.tools.definition import Tool
from toolsearch.tools.refusal import Refusal


class UpstreamState(Enum):
    """How a server fares, which the search's answers and the status go by; module `health` says what leads where."""

    IDLE = "idle"  # known from last time and not started, until a call wants it
    STARTING = "starting"  # the first time, or after it was idle
    READY = "ready"  # connected
    DEGRADED = "degraded"  # connected, and requests or listings of late have failed
    DOWN = "down"  # not connected; tried again after a while, or at once when used
    NEEDS_LOGIN = "needs_login"  # not tried again by itself until somebody has logged in; use tries it


@dataclass(frozen=True, slots=True)
class Listing:
    """What a server lists, whole; the same from its last start where *is_cached*. All tools have their origin.

    ttl_s  how long it may be relied on by the server's own word; None where it gave none
    cut    why some of it could not be read, or ""; what was known from before and was not read again is kept
    """

    server: str
    tools: tuple[Tool, ...]
    refused: tuple[Refusal, ...] = ()
    prompts: tuple[Mapping[str, Any], ...] = ()
    resources: tuple[Mapping[str, Any], ...] = ()
    resource_templates: tuple[Mapping[str, Any], ...] = ()
    instructions: str = ""
    ttl_s: float | None = None
    is_cached: bool = False
    cut: str = ""


@dataclass(frozen=True, slots=True)
class UpstreamStatus:
    """One server for people. Times are in seconds of the gateway's clock; a message holds no secret.

    last_error    a sentence, or ""
    retry_at_s    when it is tried again by itself, or None
    running, waiting   requests now; shed, failed, calls  since the start
    """

    name: str
    transport: str
    state: UpstreamState
    last_error: str = ""
    since_s: float = 0.0
    retry_at_s: float | None = None
    connect_s: float = 0.0
    starts: int = 0
    calls: int = 0
    failed: int = 0
    shed: int = 0
    running: int = 0
    waiting: int = 0
    junk_lines: int = 0
    protocol_version: str = ""


class Downstream(Protocol):
    """The client that a request is made for, as far as the server may talk to it while the request runs.

    Every method may raise MCPError, which the server is answered with.
    """

    @property
    def session_key(self) -> str:
        """The same for all requests of one client session; two sessions never have the same."""
        ...

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """What the client said it can do, as MCP writes it."""
        ...

    @property
    def log_level(self) -> str | None:
        """The least severe log messages that the client wants, as MCP names them; None if it has not said."""
        ...

    async def progress(self, progress: float, total: float | None, message: str | None) -> None: ...

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Pass on a request of the server: ``elicitation/create``, ``sampling/createMessage`` or ``roots/list``."""
        ...

    async def tell(self, method: str, params: Mapping[str, Any]) -> None:
        """Pass on a notification that belongs to this request, such as ``notifications/message``."""
        ...


def _admitted() -> None:
    """For what no definition stands for."""


@dataclass(frozen=True, slots=True)
class UpstreamRequest:
    """One request to a server: *params* as MCP has them, with the server's own names in them.

    timeout_s   for the answer; None: the server's own setting. Waiting to be sent counts too
    downstream  for whom; None: the gateway itself, and nobody can be asked
    admit       called right before it is sent, once what the server lists on this connection was judged; raises
                ToolSearchError or MCPError if it may not be sent any more
    """

    method: str
    params: Mapping[str, Any]
    timeout_s: float | None = None
    downstream: Downstream | None = field(default=None, compare=False)
    admit: Callable[[], object] = field(default=_admitted, compare=False)


class Upstream(Protocol):
    """One server. All methods belong to the gateway's event loop; none of them blocks it."""

    @property
    def name(self) -> str: ...

    @property
    def state(self) -> UpstreamState: ...

    @property
    def is_modern(self) -> bool:
        """Whether it speaks the protocol of 2026; False as long as it was never connected."""
        ...

    def status(self) -> UpstreamStatus: ...

    def start(self) -> None:
        """Begin to connect, and to keep connected; returns at once. What it lists goes to the sink."""
        ...

    def wake(self) -> None:
        """Have it started if it is IDLE, since somebody may be about to use it; returns at once."""
        ...

    async def request(self, request: UpstreamRequest) -> dict[str, Any]:
        """Send it and return the raw result, connecting first where need be. Cancelling this cancels it there.

        A request that may have run is never sent twice. Raises

        MCPError                what the server itself refused it with, to be passed on as it is
        LoginRequiredError      it was not sent
        ServerBusyError         it was not sent: too many wait
        ServerUnavailableError  it was not sent, or may have run: the message says which
        ToolTimeoutError        it may have run
        """
        ...

    async def relist(self) -> None:
        """List it anew and tell the sink; raises as `request` does."""
        ...

    async def aclose(self) -> None:
        """End the connection and the process behind it. May be called twice."""
        ...


@dataclass(frozen=True, slots=True)
class UpstreamSinks:
    """Whom a server's actor tells what it finds out.

    listing  told of every listing, in order; raises ToolSearchError if that could not be judged
    state    told of every change of state, at once; must not raise
    updated  told which resource has changed, of those that the server was asked to tell of; must not raise
    """

    listing: Callable[[Listing], Awaitable[None]]
    state: Callable[[str, UpstreamState], None]
    updated: Callable[[str, str], None] = lambda _server, _uri: None
