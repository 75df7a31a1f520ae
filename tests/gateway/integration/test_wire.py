"""What the gateway says on the wire, read without any SDK: lines over stdio, and plain requests over HTTP."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from tests.kit.gateway import raw_server, served, time_server

LEGACY = "2025-11-25"
MODERN = "2026-07-28"
ACCEPT = {"accept": "application/json, text/event-stream"}
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "wire", "version": "1"},
}
INITIALIZE = {
    "protocolVersion": LEGACY,
    "capabilities": {},
    "clientInfo": {"name": "wire", "version": "1"},
}
SELECT_PID = {"name": "toolSearchTool", "arguments": {"query": "select:raw__pid"}}


def request(request_id: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def modern(request_id: int, method: str, **params: Any) -> dict[str, Any]:
    return request(request_id, method, {**params, "_meta": META})


def modern_headers(method: str, name: str | None = None) -> dict[str, str]:
    headers = {**ACCEPT, "mcp-protocol-version": MODERN, "mcp-method": method}
    return headers if name is None else {**headers, "mcp-name": name}


@pytest.fixture
def config(tmp_path) -> dict[str, Any]:
    return {
        "mcpServers": {"raw": raw_server(), "time": time_server()},
        "toolsearch": {
            "passThrough": {"maxTools": 0},
            "exposure": {"clients": {"wire": "expand"}},
            "stateDir": str(tmp_path / "state"),
        },
    }


@pytest.fixture
async def http(config) -> AsyncIterator[httpx2.AsyncClient]:
    async with served(config) as (_, url), httpx2.AsyncClient(base_url=url.removesuffix("/mcp"), timeout=30) as client:
        yield client


def result_of(response: httpx2.Response) -> dict[str, Any]:
    """The message in a response, be it JSON or a stream of events with one."""
    if response.headers["content-type"].startswith("text/event-stream"):
        (data,) = (line.removeprefix("data: ") for line in response.text.splitlines() if line.startswith("data: {"))
        return json.loads(data)
    return response.json()


async def opened(http: httpx2.AsyncClient) -> dict[str, str]:
    """The headers of a session past its handshake."""
    response = await http.post("/mcp", json=request(1, "initialize", INITIALIZE), headers=ACCEPT)
    capabilities = result_of(response)["result"]["capabilities"]
    assert capabilities["tools"] == capabilities["prompts"] == {"listChanged": True}
    session = {**ACCEPT, "mcp-session-id": response.headers["mcp-session-id"], "mcp-protocol-version": LEGACY}
    await http.post("/mcp", json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=session)
    return session


async def test_over_http_an_older_client_is_told_that_its_list_may_change_and_on_its_stream_that_it_has(http):
    session = await opened(http)
    async with http.stream("GET", "/mcp", headers=session) as stream, asyncio.timeout(20):
        lines = stream.aiter_lines()
        await http.post("/mcp", json=request(2, "tools/call", SELECT_PID), headers=session)
        data = await anext(line async for line in lines if line.startswith("data: {"))

    assert json.loads(data.removeprefix("data: "))["method"] == "notifications/tools/list_changed"


async def test_over_stdio_an_older_client_is_told_both_too(config, tmp_path):
    (tmp_path / "mcp.json").write_text(json.dumps(config))
    process = await asyncio.create_subprocess_exec(
        *[sys.executable, "-m", "toolsearch", "gateway", "--config", str(tmp_path / "mcp.json")],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    said = [
        request(1, "initialize", INITIALIZE),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        request(2, "tools/list", {}),
        request(3, "tools/call", SELECT_PID),
    ]
    heard: list[dict[str, Any]] = []
    async with asyncio.timeout(30):
        for message in said:
            process.stdin.write(json.dumps(message).encode() + b"\n")
            while "id" in message and message["id"] not in [each.get("id") for each in heard]:
                heard.append(json.loads(await process.stdout.readline()))
        process.stdin.close()
        rest = [json.loads(line) for line in (await process.stdout.read()).splitlines()]
        await process.wait()

    assert heard[0]["result"]["capabilities"]["tools"] == {"listChanged": True}
    told = [message["method"] for message in [*heard, *rest] if "method" in message]
    assert told == ["notifications/tools/list_changed"]


async def test_a_client_of_2026_discovers_that_tools_may_change(http):
    response = await http.post("/mcp", json=modern(1, "server/discover"), headers=modern_headers("server/discover"))

    discovered = result_of(response)["result"]
    assert MODERN in discovered["supportedVersions"]
    assert discovered["capabilities"]["tools"] == {"listChanged": True}
    assert discovered["capabilities"]["prompts"] == {"listChanged": True}
    assert discovered["capabilities"]["resources"] == {"subscribe": True, "listChanged": True}
    assert discovered["instructions"].startswith("The tools of raw (")


async def test_a_list_of_the_older_era_is_byte_for_byte_the_same_until_it_changes(http):
    session = await opened(http)
    lists = [(await http.post("/mcp", json=request(2, "tools/list", {}), headers=session)).content for _ in range(2)]
    await http.post("/mcp", json=request(3, "tools/call", SELECT_PID), headers=session)
    changed = (await http.post("/mcp", json=request(2, "tools/list", {}), headers=session)).content

    assert without_event_ids(lists[0]) == without_event_ids(lists[1])
    assert without_event_ids(lists[0]) != without_event_ids(changed)


async def test_a_list_of_2026_is_byte_for_byte_the_same_after_a_search_and_says_how_long_it_holds(http):
    async def listed() -> httpx2.Response:
        return await http.post("/mcp", json=modern(1, "tools/list"), headers=modern_headers("tools/list"))

    before = await listed()
    search = modern(2, "tools/call", **SELECT_PID)
    await http.post("/mcp", json=search, headers=modern_headers("tools/call", "toolSearchTool"))
    after = await listed()

    assert before.content == after.content
    result = result_of(before)["result"]
    assert (result["ttlMs"], result["cacheScope"], result["resultType"]) == (60_000, "private", "complete")


async def test_headers_that_say_something_else_than_the_body_are_refused(http):
    call = modern(1, "tools/call", **SELECT_PID)
    other_tool = await http.post("/mcp", json=call, headers=modern_headers("tools/call", "callToolRead"))
    no_tool = await http.post("/mcp", json=call, headers=modern_headers("tools/call"))

    assert (other_tool.status_code, result_of(other_tool)["error"]["code"]) == (400, -32020)
    assert (no_tool.status_code, result_of(no_tool)["error"]["code"]) == (400, -32020)


async def test_a_tool_that_is_not_there_is_an_error_in_both_eras(http):
    session = await opened(http)
    call = {"name": "raw__pit", "arguments": {}}
    of_old = result_of(await http.post("/mcp", json=request(2, "tools/call", call), headers=session))
    headers = modern_headers("tools/call", "raw__pit")
    of_2026 = result_of(await http.post("/mcp", json=modern(2, "tools/call", **call), headers=headers))

    assert of_old["error"]["code"] == of_2026["error"]["code"] == -32602
    assert of_old["error"]["message"] == of_2026["error"]["message"]
    assert "did you mean raw__pid" in of_old["error"]["message"]


async def test_a_list_has_one_page(http):
    session = await opened(http)
    answer = result_of(await http.post("/mcp", json=request(2, "tools/list", {"cursor": "2"}), headers=session))

    assert answer["error"]["code"] == -32602


def without_event_ids(stream: bytes) -> list[bytes]:
    return [line for line in stream.splitlines() if not line.startswith(b"id: ")]
