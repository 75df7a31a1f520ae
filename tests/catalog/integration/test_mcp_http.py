"""MCP servers over HTTP, of both eras: a fault fails one call, and the next one works again."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest
import uvicorn
from mcp import types
from mcp.server.lowlevel import Server

from toolsearch import LoadReport, McpSource, ToolContext, ToolOutput
from toolsearch.errors import ServerUnavailableError

# the newer protocol wants this argument in a header too, for the proxies on the way
TEXT = {"type": "string", "x-mcp-header": "Text"}
TOOL = types.Tool(name="echo", description="Again.", input_schema={"type": "object", "properties": {"text": TEXT}})


class HttpMcpServer:
    """An MCP server in a thread, whose answers and life a test can spoil.

    status  answered with instead, to every request while it is not 0
    seen    the Authorization headers that came, in order
    hold    calls wait for it
    ran     the texts of the calls, in order
    """

    def __init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port: int = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self._port}/mcp"
        self.status = 0
        self.seen: list[str] = []
        self.ran: list[str] = []
        self.arrived = threading.Event()
        self.hold = threading.Event()
        self.hold.set()

    def start(self) -> None:
        server = Server("http", on_list_tools=self._list, on_call_tool=self._call)
        self._app = server.streamable_http_app()
        config = uvicorn.Config(
            self._asgi,
            host="127.0.0.1",
            port=self._port,
            interface="asgi3",
            ws="none",
            log_config=None,
            timeout_graceful_shutdown=0,
        )
        self._uvicorn = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._uvicorn.run)
        self._thread.start()
        while not self._uvicorn.started:
            self._thread.join(0.01)

    def stop(self) -> None:
        self._uvicorn.should_exit = self._uvicorn.force_exit = True
        self._thread.join()

    async def _asgi(self, scope, receive, send) -> None:
        if scope["type"] == "http":
            self.seen += [value.decode() for name, value in scope["headers"] if name == b"authorization"]
            if self.status:
                await send({"type": "http.response.start", "status": self.status, "headers": []})
                await send({"type": "http.response.body", "body": b"no"})
                return
        await self._app(scope, receive, send)

    async def _list(self, *_) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[TOOL])

    async def _call(self, _, params) -> types.CallToolResult:
        self.ran.append(str(params.arguments["text"]))
        self.arrived.set()
        while not self.hold.is_set():  # noqa: ASYNC110  set by another thread
            await asyncio.sleep(0.01)
        return types.CallToolResult(content=[types.TextContent(type="text", text=str(params.arguments["text"]))])


@pytest.fixture
def server() -> Iterator[HttpMcpServer]:
    served = HttpMcpServer()
    served.start()
    yield served
    served.hold.set()
    served.stop()


@pytest.fixture(params=["auto", "legacy"])
def source(server, request) -> Iterator[McpSource]:
    entry = {"url": server.url, "headers": {"Authorization": "Bearer ${TOKEN}"}, "mode": request.param}
    source = McpSource({"mcpServers": {"web": entry}}, environment={"TOKEN": "s3cr3t-token"})
    yield source
    source.close()


async def say(report: LoadReport, text: str) -> str:
    (tool,) = report.tools
    assert tool.callback is not None
    output = await tool.callback.call({"text": text}, ToolContext())
    assert isinstance(output, ToolOutput)
    return str(output.content[0]["text"])


async def test_tools_are_listed_and_called_with_the_headers_of_the_configuration(server, source):
    report = source.load()

    assert [tool.name for tool in report.tools] == ["web__echo"]
    assert await say(report, "hi") == "hi"
    assert set(server.seen) == {"Bearer s3cr3t-token"}
    assert [(status.transport, status.state) for status in source.servers] == [("http", "ready")]


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (401, r"wants a login \(HTTP 401\), and the request did not run; check its 'headers'"),
        (429, r"HTTP 429: the server wants fewer calls; wait before the next one; the call did not run"),
        (500, r"HTTP 500; the call may have run"),
    ],
)
async def test_an_http_error_fails_the_call_with_its_status_and_no_other(server, source, status, message):
    report = source.load()

    server.hold.clear()
    in_flight = asyncio.create_task(say(report, "in flight"))
    assert await asyncio.to_thread(server.arrived.wait, 10.0)
    server.status = status
    with pytest.raises(ServerUnavailableError, match=message):
        await say(report, "spoiled")
    server.status = 0
    server.hold.set()

    assert await in_flight == "in flight"
    assert await say(report, "next") == "next"


async def test_a_server_that_is_gone_fails_the_call_and_works_once_it_is_back(server, source):
    report = source.load()

    server.stop()
    with pytest.raises(ServerUnavailableError, match=r"no answer over HTTP \(ConnectError.*\); the call did not run"):
        await say(report, "to nobody")
    server.start()

    # a new process knows nothing of the old session; asked in the old way, it says so once
    with contextlib.suppress(ServerUnavailableError):
        await say(report, "first")
    assert await say(report, "second") == "second"


@pytest.mark.parametrize("source", ["legacy"], indirect=True)
async def test_a_call_that_did_not_run_for_its_sessions_sake_runs_once_in_a_new_one(server, source):
    report = source.load()
    server.stop()
    server.start()

    assert await say(report, "again") == "again"
    assert server.ran == ["again"]


async def test_a_server_that_dies_during_a_call_may_have_run_it(server, source):
    report = source.load()

    server.hold.clear()
    doomed = asyncio.create_task(say(report, "doomed"))
    assert await asyncio.to_thread(server.arrived.wait, 10.0)
    server.stop()

    with pytest.raises(ServerUnavailableError, match="may have run"):
        await doomed


def test_a_refused_credential_costs_the_server_its_tools_and_is_not_shown(server, source):
    server.status = 401

    (refusal,) = source.load().refused

    assert refusal.reason == (
        "MCP server 'web' wants a login (HTTP 401), and the request did not run; check its 'headers'"
    )


def test_an_address_where_nobody_listens_is_a_reason():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/mcp"
        source = McpSource({"mcpServers": {"web": {"url": url}}})

        (refusal,) = source.load().refused
        source.close()

    assert refusal.reason.startswith("MCP server 'web': no answer over HTTP (ConnectError: ")
