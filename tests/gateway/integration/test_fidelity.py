"""The same client at a server directly and through the gateway: it sees the same, to the byte."""

import asyncio
import itertools
import json
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError, types

from tests.kit.gateway import ERAS, SERVERS, raw_server, served, text
from tests.mcp_servers.rich_http import rich_over_http
from tests.mcp_servers.rich_server import Rich
from toolsearch.upstreams.config import read_mcp_config
from toolsearch.upstreams.session import McpSession, SessionLifetime

EVERYTHING = SERVERS / "node_modules" / "@modelcontextprotocol" / "server-everything" / "dist" / "index.js"
OWN = ("toolSearchTool", "callToolRead", "callToolWrite", "callToolDestructive")
MODES = ("legacy", "auto")
STAMP = "io.modelcontextprotocol/serverInfo"  # says who answers, which is the gateway

both_eras = pytest.mark.parametrize(("era", "upstream_era"), list(itertools.product(ERAS, MODES)))


@pytest.fixture
def behind(tmp_path: Path) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """The configuration of a gateway to one server, ``rich``, whose tools are all in the list."""
    shown = {"maxTools": 100, "maxTokens": 100_000}
    section = {"stateDir": str(tmp_path), "passThrough": shown}
    return lambda entry: {"mcpServers": {"rich": entry}, "toolsearch": section}


@asynccontextmanager
async def raw_client(entry: dict[str, Any]) -> AsyncIterator[McpSession]:
    """A client that gives results as they were sent."""
    (server,) = read_mcp_config({"mcpServers": {"it": entry}}, {}).servers
    lifetime = SessionLifetime(server, server.mode, connect_timeout_s=30, parameter_headers={})
    try:
        yield await lifetime.opened
    finally:
        lifetime.end()
        await lifetime.task


def by_name(entries: list[dict[str, Any]], without: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    return sorted((each for each in entries if each["name"] not in without), key=lambda each: each["name"])


def comparable(result: dict[str, Any]) -> dict[str, Any]:
    meta = {key: value for key, value in result.get("_meta", {}).items() if key != STAMP}
    envelope = ("_meta", "resultType", "ttlMs", "cacheScope")  # which differ with the era
    return {**{key: value for key, value in result.items() if key not in envelope}, **({"_meta": meta} if meta else {})}


def _as_sent(entry):
    """A model's API takes no schema of an object without properties."""
    schema = entry.get("inputSchema")
    return entry if schema is None else {**entry, "inputSchema": {**schema, "properties": schema.get("properties", {})}}


@both_eras
async def test_results_are_what_the_server_sent(behind, era, upstream_era):
    async with (
        rich_over_http(Rich()) as upstream,
        served(behind({"url": upstream, "mode": upstream_era})) as (_, url),
        raw_client({"url": upstream, "mode": era}) as directly,
        raw_client({"url": url, "mode": era}) as through,
    ):
        for method, params, named in [
            ("tools/call", {"name": "contents"}, {"name": "rich__contents"}),
            ("prompts/get", {"name": "greet", "arguments": {"whom": "Ann"}}, {"name": "rich__greet"}),
            ("resources/read", {"uri": "rich:///one"}, {}),
            (
                "completion/complete",
                {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "whom", "value": "A"}},
                {"ref": {"type": "ref/prompt", "name": "rich__greet"}},
            ),
        ]:
            expected = comparable(await directly.request(method, params))
            assert comparable(await through.request(method, {**params, **named})) == expected
        for method, key in [
            ("tools/list", "tools"),
            ("prompts/list", "prompts"),
            ("resources/list", "resources"),
            ("resources/templates/list", "resourceTemplates"),
        ]:
            expected = [
                {**_as_sent(each), "name": f"rich__{each['name']}"} if key in ("tools", "prompts") else each
                for each in (await directly.request(method, {}))[key]
            ]
            listed = (await through.request(method, {}))[key]
            assert by_name(listed, without=OWN) == by_name(expected)


@both_eras
async def test_refusals_are_what_the_server_said(behind, era, upstream_era):
    async with (
        rich_over_http(Rich()) as upstream,
        served(behind({"url": upstream, "mode": upstream_era})) as (_, url),
        Client(url, mode=era) as client,
    ):
        with pytest.raises(MCPError) as refused:
            await client.call_tool("rich__refuse")
    assert refused.value.error == types.ErrorData(code=-32099, message="not today", data={"because": ["rain", 7, None]})


@pytest.mark.parametrize("era", ERAS)
async def test_a_server_that_repeats_its_key_does_not_give_it_away(tmp_path, era):
    entry = {**raw_server(), "env": {"API_KEY": "s3cr3t-t0ken", "PLACE": "Vienna"}}
    config = {"mcpServers": {"raw": entry}, "toolsearch": {"stateDir": str(tmp_path)}}
    async with served(config) as (_, url), Client(url, mode=era) as client:
        with pytest.raises(MCPError) as refused:
            await client.call_tool("raw__refuse")
        told = json.loads((await client.call_tool("raw__env")).content[0].text)
    assert refused.value.error.message == "key *** is not accepted"
    assert (told["API_KEY"], told["PLACE"]) == ("***", "Vienna")


@both_eras
async def test_progress_comes_all_and_in_order_by_a_call_tool_too(behind, era, upstream_era):
    seen: list[Any] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))

    async with (
        rich_over_http(Rich()) as upstream,
        served(behind({"url": upstream, "mode": upstream_era})) as (_, url),
        Client(url, mode=era) as client,
    ):
        await client.call_tool("rich__progress", progress_callback=note)
        await client.call_tool("callToolDestructive", {"name": "rich__progress"}, progress_callback=note)
    assert seen == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")] * 2


@both_eras
@pytest.mark.parametrize("tool", ["rich__wait", "callToolDestructive"])
async def test_a_client_that_cancels_a_call_cancels_it_at_the_server(behind, era, upstream_era, tool):
    arguments = {} if tool == "rich__wait" else {"name": "rich__wait"}
    async with (
        rich_over_http(rich := Rich()) as upstream,
        served(behind({"url": upstream, "mode": upstream_era})) as (_, url),
        Client(url, mode=era) as client,
    ):
        neighbour = asyncio.create_task(client.call_tool("rich__gate"))
        call = asyncio.create_task(client.call_tool(tool, arguments))
        await rich.waiting.wait()
        await rich.at_gate.wait()
        call.cancel()
        await asyncio.wait([call])
        async with asyncio.timeout(10):
            await rich.cancelled.wait()
        rich.go_on.set()
        assert text(await neighbour) == "through the gate"


@both_eras
async def test_each_client_is_logged_to_about_its_own_calls_from_the_level_it_wants(behind, era, upstream_era):
    heard: dict[str, list[tuple[str, Any]]] = {"ann": [], "bob": []}

    def ear(name: str) -> Any:
        async def hear(params: types.LoggingMessageNotificationParams) -> None:
            heard[name].append((params.level, params.data["for"]))

        return hear

    async with (
        rich_over_http(Rich()) as upstream,
        served(behind({"url": upstream, "mode": upstream_era})) as (_, url),
        Client(url, mode=era, logging_callback=ear("ann"), **log_level(era, "debug")) as ann,
        Client(url, mode=era, logging_callback=ear("bob"), **log_level(era, "warning")) as bob,
    ):
        if era == "legacy":
            await set_level(ann, "debug")
            await set_level(bob, "warning")
        await asyncio.gather(
            *(client.call_tool("rich__log", {"who": who}) for client, who in [(ann, "ann"), (bob, "bob")] * 3)
        )
    assert {who: sorted(lines) for who, lines in heard.items()} == {  # calls at the same time may speak by turns
        "ann": [("debug", "ann")] * 3 + [("warning", "ann")] * 3,
        "bob": [("warning", "bob")] * 3,
    }


def log_level(era: str, level: str) -> dict[str, Any]:
    return {} if era == "legacy" else {"log_level": level}


async def set_level(client: Client, level: Any) -> None:
    request = types.SetLevelRequest(params=types.SetLevelRequestParams(level=level))
    await client.session.send_request(request, types.EmptyResult)


@pytest.mark.skipif(not EVERYTHING.exists() or shutil.which("node") is None, reason="needs the npm test servers")
@pytest.mark.parametrize("era", ERAS)
async def test_the_reference_server_of_the_protocol_gives_the_same_through_the_gateway(behind, era):
    entry = {"command": "node", "args": [str(EVERYTHING), "stdio"]}
    calls = [
        ("echo", {"message": "hello ü"}),
        ("get-sum", {"a": 1, "b": 2}),
        ("get-tiny-image", {}),
        ("get-structured-content", {"location": "New York"}),
        ("get-annotated-message", {"messageType": "error", "includeImage": True}),
        ("get-resource-links", {"count": 3}),
        ("get-resource-reference", {"resourceType": "Text", "resourceId": 1}),
        ("get-resource-reference", {"resourceType": "Text", "resourceId": -1}),  # fits its schema, and fails
    ]
    async with (
        raw_client(entry) as directly,
        served(behind(entry)) as (_, url),
        raw_client({"url": url, "mode": era}) as through,
    ):
        for name, arguments in calls:
            expected = comparable(await directly.request("tools/call", {"name": name, "arguments": arguments}))
            sent = {"name": f"rich__{name}", "arguments": arguments}
            assert without_times(comparable(await through.request("tools/call", sent))) == without_times(expected)


def without_times(result: dict[str, Any]) -> dict[str, Any]:
    """Some of that server's texts say what time it is."""
    for block in result["content"]:
        if block.get("type") == "resource":
            block["resource"].pop("text", None)
    return result
