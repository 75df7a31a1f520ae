"""The interface of one connected MCP server: the requests to it, its listing, and its reports."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, Protocol

from toolsearch.access.principals import Grant
from toolsearch.errors import BadToolError
from toolsearch.tools.definition import Refusal, Tool, ToolOrigin
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.naming import all_namespaced, namespaced
from toolsearch.wire.mcp.definitions import read_tool, tool_name


class UpstreamState(Enum):
    """The state of a server, as answers to searches and the status show it. The transitions are in `connection`."""

    IDLE = "idle"  # known from an earlier run; started when a call needs it
    STARTING = "starting"  # connecting for the first time or after it was idle
    READY = "ready"  # connected
    DEGRADED = "degraded"  # connected, but recent requests or listings have failed
    DOWN = "down"  # not connected; tried again after a while, or at once when somebody uses it
    NEEDS_LOGIN = "needs_login"  # tried again once somebody has logged in or uses it


@dataclass(frozen=True, slots=True)
class ServerHealth:
    """The part of a server's status that models are told. *is_listed* says that its tools are known.

    Its last error is not: it may quote what the server printed, which is for operators.
    """

    state: UpstreamState
    is_listed: bool


@dataclass(frozen=True, slots=True)
class Listing:
    """Everything that a server lists. All tools have an origin.

    skills     entries of ``skills/list``, and of skills that only the instructions name
    reads_directories  whether it answers ``resources/directory/read``
    about      the server's description of itself, or its title
    ttl_s      seconds for which the server calls it valid, or None
    cut        why the end of a list could not be read, or ""; known entries that were not read again are kept
    """

    server: str
    tools: tuple[Tool, ...]
    refused: tuple[Refusal, ...] = ()
    prompts: tuple[Mapping[str, Any], ...] = ()
    resources: tuple[Mapping[str, Any], ...] = ()
    resource_templates: tuple[Mapping[str, Any], ...] = ()
    skills: tuple[Mapping[str, Any], ...] = ()
    reads_directories: bool = False
    instructions: str = ""
    about: str = ""
    ttl_s: float | None = None
    cut: str = ""


@dataclass(frozen=True, slots=True)
class UpstreamStatus:
    """One server, for people. Times are in seconds of the gateway's clock; messages hold no secret.

    last_error               a sentence, or ""
    retry_at_s               when it is tried again without a request, or None
    running, waiting         requests at present
    calls, failed, shed      requests since the start: all, those that failed, those refused because too many waited
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
    """The client that a request is made for. While the request runs, the server may send it messages and questions.

    Every method may raise MCPError, which is passed on to the server.
    """

    @property
    def session_key(self) -> str:
        """Identifies the client session: equal for all its requests, and different for every other session."""
        ...

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """The capabilities that the client declared, as MCP writes them."""
        ...

    @property
    def log_level(self) -> str | None:
        """The lowest level, as MCP names it, of the log messages that the client wants; None if it has not said."""
        ...

    async def progress(self, progress: float, total: float | None, message: str | None) -> None: ...

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Pass on a request of the server: ``elicitation/create``, ``sampling/createMessage`` or ``roots/list``."""
        ...

    async def tell(self, method: str, params: Mapping[str, Any]) -> None:
        """Pass on a notification that belongs to this request, such as ``notifications/message``."""
        ...

    def as_task(self) -> Downstream | None:
        """The client as it can be asked from now on, since the server has made a task of the request: it follows the
        task, and waits no more for the result of the request. None if it goes on waiting.
        """
        ...


def _admitted() -> None:
    """Admits a request that depends on no definition."""


@dataclass(frozen=True, slots=True)
class UpstreamRequest:
    """One request to a server: *params* as in MCP, with the server's own names.

    timeout_s   seconds for the answer, including the wait to be sent; None: the server's own setting
    downstream  the client that it is made for; None: the gateway itself, so that the server can ask nobody
    admit       called right before it is sent, after the server's present listing has been judged; raises
                ToolSearchError or MCPError if the request may not be sent any more
    takes_tasks  a server of 2026 is told that a task may be made of it, whatever the client has declared
    reached_at  the address at which the client reaches the gateway over HTTP, for links to its pages; "": no such
    """

    method: str
    params: Mapping[str, Any]
    timeout_s: float | None = None
    downstream: Downstream | None = field(default=None, compare=False)
    admit: Callable[[], object] = field(default=_admitted, compare=False)
    takes_tasks: bool = False
    reached_at: str = ""


class UpstreamConnection(Protocol):
    """What requests go to: a server that all users share, or the connection of one user with a server."""

    @property
    def name(self) -> str: ...

    @property
    def owner(self) -> str:
        """Tells apart the connections of a per-user server; "" for a connection that all users share."""
        ...

    @property
    def state(self) -> UpstreamState: ...

    @property
    def is_modern(self) -> bool:
        """Whether it speaks the protocol of 2026; False before the first connection."""
        ...

    @property
    def call_timeout_s(self) -> float:
        """Seconds for a request that sets no time of its own."""
        ...

    def status(self) -> UpstreamStatus: ...

    def wake(self) -> None:
        """Start it if it is IDLE, because somebody may be about to use it; returns at once."""
        ...

    async def request(self, request: UpstreamRequest) -> dict[str, Any]:
        """Send *request* and return the raw result, after connecting if need be. Cancelling this cancels the request.

        A request that may have run is never sent twice. Raises

        MCPError                the server's own refusal, to be passed on as it is
        LoginRequiredError      the request was not sent
        ServerUnavailableError  the request was not sent (always so if *is_busy*), or may have run
        ToolTimeoutError        the request may have run
        """
        ...

    async def relist(self) -> None:
        """List the server again, and give the listing to the sink; raises as `request` does."""
        ...


class Upstream(Protocol):
    """One server. All methods belong to the gateway's event loop; none of them blocks it."""

    @property
    def name(self) -> str: ...

    @property
    def state(self) -> UpstreamState: ...

    def of(self, grant: Grant) -> UpstreamConnection:
        """The connection for the requests of *grant*; this one if all share it. Raises nothing."""
        ...

    def status(self) -> UpstreamStatus: ...

    def start(self) -> None:
        """Begin to connect and to stay connected; returns at once. Its listings go to the sink."""
        ...

    async def relist(self) -> None:
        """List the server again for everybody who is connected; raises as `UpstreamConnection.request`."""
        ...

    async def aclose(self) -> None:
        """End the connections and the process behind them. May be called twice."""
        ...


class SharedUpstream(Upstream, UpstreamConnection, Protocol):
    """A server with one connection, which all share."""


@dataclass(frozen=True, slots=True)
class UpstreamSinks:
    """The callbacks that a server reports to.

    listing  given every listing, in order; raises ToolSearchError if that could not be judged
    state    called at each change of state; must not raise
    updated  called with the URI of a subscribed resource that has changed, and the owner of the connection; must not
             raise
    """

    listing: Callable[[Listing], Awaitable[None]]
    state: Callable[[str, UpstreamState], None]
    updated: Callable[[str, str, str], None] = lambda _server, _uri, _owner: None


def read_listing(server: str, entries: Iterable[Json], source: str) -> tuple[list[Tool], list[Refusal]]:
    """Return the tools among *entries* in their order, and a refusal for each other entry.

    If different names of the server would become one for a model, each gets a tail that does not depend on the order. A
    second tool of the very same name is refused, since a call could not say which one is meant.
    """
    listed = [(entry, tool_name(entry) or "") for entry in entries]
    names = all_namespaced(server, (name for _, name in listed if name))
    tools: dict[str, Tool] = {}  # the server's name of a tool -> the tool
    refused: list[Refusal] = []
    for place, (entry, name) in enumerate(listed, start=1):
        try:
            definition = read_tool(entry, name=names.get(name, ""), server=server)
            if name in tools:
                raise BadToolError(f"the server lists {name!r} earlier, under the same name")  # noqa: TRY301
        except BadToolError as reason:
            label = namespaced(server, name) if name else f"{server}: entry {place}"
            refused.append(Refusal(label, source, str(reason)))
            continue
        raw: JsonObject = entry
        tools[name] = Tool(definition, source=source, origin=ToolOrigin(server, name, raw))
    return list(tools.values()), refused


CONNECT_TIMEOUT_S: Final = 30.0  # seconds to start and to answer the first request
CALL_TIMEOUT_S: Final = 60.0
