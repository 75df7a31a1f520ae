"""A gateway over servers that are not there: they list what a test has them list, and note how they are called."""

import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from types import MappingProxyType
from typing import Any, Self

from toolsearch.access.principals import LOCAL, Grant
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.changes import ListChanges
from toolsearch.gateway.config_file import read_gateway_config
from toolsearch.gateway.gateway import Gateway
from toolsearch.gateway.trust.verdicts import OpenGate, ToolGate
from toolsearch.upstreams.interface import (
    Listing,
    UpstreamRequest,
    UpstreamSinks,
    UpstreamState,
    UpstreamStatus,
    read_listing,
)
from toolsearch.upstreams.settings import UpstreamSettings
from toolsearch.wire.mcp.eras import Era

OWN = ["toolSearchTool", "callToolRead", "callToolWrite", "callToolDestructive"]
GROWING = {"growing": "expand"}  # settings for a client whose list is to grow
EXPANDING = Caller(Grant(LOCAL), Era.LEGACY, session_key="one", client_name="growing")
LEGACY = Caller(Grant(LOCAL), Era.LEGACY, session_key="two", client_name="whoever")
MODERN = Caller(Grant(LOCAL), Era.MODERN)


class FakeServer:
    """A server that lists what a test has it list, and notes how it is called."""

    is_modern = False
    owner = ""

    def __init__(self, settings: UpstreamSettings, sinks: UpstreamSinks) -> None:
        self.name = settings.name
        self.state = UpstreamState.STARTING
        self.last_error = ""
        self._sinks = sinks
        self.called: list[tuple[str, Any]] = []
        self.woken = 0
        self.lists_first: tuple[dict[str, Any], ...] = ()  # once it is connected for the next request
        self.has: dict[str, dict[str, Any]] = {}  # what it answers, by the name or the URI that is asked for
        self.skills: tuple[dict[str, Any], ...] = ()  # what it lists besides, when it is asked to list again

    def start(self) -> None: ...

    def of(self, grant: Grant) -> Self:  # noqa: ARG002
        return self

    def wake(self) -> None:
        self.woken += 1

    async def request(self, request: UpstreamRequest) -> dict[str, Any]:
        if self.lists_first:
            await self.lists(*self.lists_first)
        request.admit()
        asked = str(request.params.get("name", request.params.get("uri")))
        self.called.append((asked, request.params.get("arguments")))
        return self.has.get(asked, {"content": []})

    async def relist(self) -> None:
        await self.lists(skills=self.skills)

    async def aclose(self) -> None: ...

    def status(self) -> UpstreamStatus:
        return UpstreamStatus(self.name, "fake", self.state, self.last_error)

    async def lists(self, *tools: str | dict[str, Any], **content: Any) -> None:
        entries = [tool if isinstance(tool, dict) else entry(tool) for tool in tools]
        found, refused = read_listing(self.name, entries, self.name)
        assert not refused
        self.state = UpstreamState.READY
        await self._sinks.listing(Listing(self.name, tuple(found), **content))

    def is_now(self, state: UpstreamState) -> None:
        self.state = state
        self._sinks.state(self.name, state)


def entry(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "description": f"Does {name}.", "inputSchema": {"type": "object"}, **more}


@asynccontextmanager
async def gateway_of(
    *servers: str,
    clock: Callable[[], float] = time.monotonic,
    gate: ToolGate | None = None,
    section: dict[str, Any] | None = None,
    **exposure: Any,
) -> AsyncIterator[tuple[Gateway, Any]]:
    """A gateway over fake *servers*, and these, by name. *section* has settings beside those of *exposure*."""
    config = read_gateway_config(
        {
            "mcpServers": {name: {"command": "none"} for name in servers},
            "toolsearch": {
                "passThrough": {"maxTools": 0},
                "exposure": {"clients": GROWING, **exposure},
                **(section or {}),
            },
        },
        {},
    )
    async with Gateway(config, upstreams=FakeServer, gate=gate or OpenGate(), clock=clock) as gateway:
        yield gateway, gateway.upstreams


async def names(gateway: Gateway, caller: Caller) -> list[str]:
    return [listed["name"] for listed in await gateway.list_tools(caller)]


async def search(gateway: Gateway, caller: Caller, query: str) -> Any:
    return await gateway.search(caller, {"query": query})


async def call(gateway: Gateway, name: str, arguments: dict[str, Any], caller: Caller = MODERN) -> dict[str, Any]:
    return await gateway.call(caller, {"name": name, "arguments": arguments}, Nobody())


def text(result: dict[str, Any]) -> str:
    (block,) = result["content"]
    assert block["type"] == "text"
    said: str = block["text"]
    return said


class Nobody:
    """A client that cannot be asked or told anything."""

    session_key = "nobody"
    log_level = None
    capabilities: Mapping[str, Any] = MappingProxyType({})

    def as_task(self) -> None: ...


class FakeConnection:
    """A session's own stream, which counts what it is told, or fails."""

    def __init__(self, *, is_dead: bool = False) -> None:
        self.exit_stack = AsyncExitStack()
        self.told = 0
        self.told_of_prompts = 0
        self._is_dead = is_dead

    @property
    def session(self) -> Any:
        return type("Session", (), {"_connection": self})()

    async def send_tool_list_changed(self) -> None:
        if self._is_dead:
            raise ConnectionError
        self.told += 1

    async def send_prompt_list_changed(self) -> None:
        self.told_of_prompts += 1


async def told(changes: ListChanges) -> None:
    """Wait until everybody has been told of all changes so far."""
    while changes._telling is not None:
        await changes._telling
