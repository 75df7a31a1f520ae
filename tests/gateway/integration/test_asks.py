"""What a server asks of a client: through the gateway it is asked of the client that the server means, or of nobody."""

import asyncio
import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError, types
from mcp.server.lowlevel import Server
from mcp.shared.message import ServerMessageMetadata

from tests.kit.gateway import SERVERS, connected, served, text, time_server
from tests.kit.person import Person
from tests.mcp_servers.rich_http import over_http, rich_over_http
from tests.mcp_servers.rich_server import Rich

CLIENTS = ("legacy", "auto")
UPSTREAMS = ("legacy", "auto")

four_cells = pytest.mark.parametrize(("client_era", "server_era"), list(itertools.product(CLIENTS, UPSTREAMS)))


@pytest.fixture
def behind(tmp_path: Path) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """The configuration of a gateway to one server, ``rich``."""
    return lambda entry: {"mcpServers": {"rich": entry}, "toolsearch": {"stateDir": str(tmp_path)}}


def rich_over_stdio(mode: str) -> dict[str, Any]:
    return {"command": sys.executable, "args": [str(SERVERS / "rich_server.py")], "mode": mode}


async def call(client: Client, name: str, **arguments: Any) -> types.CallToolResult:
    return await client.call_tool("callToolDestructive", {"name": f"rich__{name}", "arguments": arguments})


@four_cells
async def test_a_question_reaches_the_person_at_the_client_and_the_answer_the_server(client_era, server_era, behind):
    ann = Person("Ann")
    async with (
        rich_over_http(Rich()) as upstream,
        served(behind({"url": upstream, "mode": server_era})) as (gateway, url),
        Client(url, mode=client_era, **ann.callbacks) as client,
    ):
        assert text(await call(client, "ask_twice")).endswith("What is your name? Ann Ann")
        assert text(await call(client, "sample")) == "four"
        assert text(await call(client, "roots")) == "file:///home/ann"
        assert gateway.upstreams["rich"].is_modern == (server_era == "auto")
    assert ann.asked == ["What is your name?", "What is your name?", "2+2?"]


async def test_over_http_each_of_two_clients_is_asked_what_its_own_request_made_the_server_ask(behind):
    ann, bob = Person("Ann"), Person("Bob")
    async with (
        rich_over_http(Rich()) as upstream,
        served(behind({"url": upstream, "mode": "legacy"})) as (_, url),
        Client(url, mode="legacy", **ann.callbacks) as first,
        Client(url, mode="auto", **bob.callbacks) as second,
    ):
        rounds = [
            call(client, "ask_twice", message=f"{name}?")
            for client, name in [(first, "Ann"), (second, "Bob")]
            for _ in range(4)
        ]
        answers = [text(result) for result in await asyncio.gather(*rounds)]
    assert answers == ["rich: Ann? Ann Ann"] * 4 + ["rich: Bob? Bob Bob"] * 4
    assert set(ann.asked) == {"Ann?"}
    assert set(bob.asked) == {"Bob?"}


async def test_over_stdio_a_question_that_may_be_anybodys_is_refused_and_from_then_on_sessions_take_turns(behind):
    asked = asyncio.Event()
    answer = asyncio.Event()
    ann, bob = Person("Ann"), Person("Bob")

    async def hesitate(context: Any, params: Any) -> types.ElicitResult:
        asked.set()
        await answer.wait()
        return await ann.elicit(context, params)

    async with (
        served(behind(rich_over_stdio("legacy"))) as (_, url),
        Client(url, mode="legacy", elicitation_callback=hesitate) as first,
        Client(url, mode="legacy", **bob.callbacks) as second,
    ):
        alone = asyncio.create_task(call(first, "ask", message="Ann?"))
        await asked.wait()
        with pytest.raises(MCPError, match="several calls run"):
            await call(second, "ask", message="Bob?")
        answer.set()
        assert text(await alone) == "rich: Ann? Ann"

        rounds = [
            call(client, "ask_twice", message=f"{name}?")
            for _ in range(4)
            for client, name in [(first, "Ann"), (second, "Bob")]
        ]
        answers = [text(result) for result in await asyncio.gather(*rounds)]
    assert answers == ["rich: Ann? Ann Ann", "rich: Bob? Bob Bob"] * 4
    assert set(ann.asked) == {"Ann?"}
    assert set(bob.asked) == {"Bob?"}


@four_cells
async def test_a_client_that_cannot_be_asked_is_not_and_the_server_is_told_so(client_era, server_era, behind):
    async with (
        rich_over_http(rich := Rich()) as upstream,
        served(behind({"url": upstream, "mode": server_era})) as (_, url),
        Client(url, mode=client_era) as client,
    ):
        if (client_era, server_era) == ("auto", "auto"):  # the question comes through, as it would directly
            with pytest.raises(MCPError, match="not supported"):
                await call(client, "ask")
        else:
            with pytest.raises(MCPError, match="cannot be asked: no elicitation"):
                await call(client, "ask")
    assert rich.answers == []


async def test_two_clients_of_2026_with_requests_of_one_number_are_not_taken_for_one(behind):
    """Each client counts its requests from 1, and has no session to be known by."""
    ann, bob = Person("Ann"), Person("Bob")
    async with (
        served(behind(rich_over_stdio("legacy"))) as (_, url),
        Client(url, **ann.callbacks) as first,
        Client(url, **bob.callbacks) as second,
    ):
        results = await asyncio.gather(
            call(first, "ask", message="Ann?"), call(second, "ask", message="Bob?"), return_exceptions=True
        )
    assert set(ann.asked) <= {"Ann?"}
    assert set(bob.asked) <= {"Bob?"}
    assert any(isinstance(result, MCPError) for result in results)


async def test_the_state_of_a_question_is_good_once_and_for_its_own_tool(behind):
    async with (
        rich_over_http(Rich()) as upstream,
        served(behind({"url": upstream, "mode": "legacy"})) as (_, url),
        Client(url, **Person("Ann").callbacks) as client,
    ):
        asked = await raw_call(client, "ask")
        (key,) = asked.input_requests
        answers = {key: types.ElicitResult(action="accept", content={"name": "Ann"})}

        with pytest.raises(MCPError, match="Invalid or expired requestState"):
            await raw_call(client, "sample", input_responses=answers, request_state=asked.request_state)
        answered = await raw_call(client, "ask", input_responses=answers, request_state=asked.request_state)
        assert text(answered) == "rich: What is your name? Ann"
        with pytest.raises(MCPError, match="Invalid or expired requestState"):
            await raw_call(client, "ask", input_responses=answers, request_state=asked.request_state)


async def test_the_state_of_a_server_of_2026_comes_back_to_it_as_it_was_and_for_its_own_tool(behind):
    async with (
        rich_over_http(Rich()) as upstream,
        served(behind({"url": upstream})) as (_, url),
        Client(url, **Person("Ann").callbacks) as client,
    ):
        asked = await raw_call(client, "ask")
        assert list(asked.input_requests) == ["name"]
        assert asked.request_state != "state"
        answers = {"name": types.ElicitResult(action="accept", content={"name": "Ann"})}

        with pytest.raises(MCPError, match="Invalid or expired requestState"):
            await raw_call(client, "ask", input_responses=answers, request_state="state")
        with pytest.raises(MCPError, match="Invalid or expired requestState"):
            await raw_call(client, "ask_twice", input_responses=answers, request_state=asked.request_state)
        answered = await raw_call(client, "ask", input_responses=answers, request_state=asked.request_state)
    assert text(answered) == "What is your name? Ann"


async def raw_call(client: Client, name: str, **more: Any) -> Any:
    return await client.session.call_tool(
        "callToolDestructive", {"name": f"rich__{name}"}, allow_input_required=True, **more
    )


async def test_a_server_samples_with_tools_where_the_client_can_and_is_told_where_it_cannot(behind):
    look_up = types.Tool(name="look_up", input_schema={"type": "object"})

    async def listed(*_: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool(name="think", input_schema={"type": "object"})])

    async def think(ctx: Any, _: Any) -> types.CallToolResult:
        assert ctx.session.client_capabilities.sampling.tools is not None
        said = types.SamplingMessage(role="user", content=types.TextContent(type="text", text="Look it up."))
        params = types.CreateMessageRequestParams(messages=[said], max_tokens=9, tools=[look_up])
        answer = await ctx.session.send_request(
            types.CreateMessageRequest(params=params),
            types.CreateMessageResultWithTools,
            metadata=ServerMessageMetadata(related_request_id=ctx.request_id),
        )
        return types.CallToolResult(content=[types.TextContent(type="text", text=answer.content.name)])

    async def sample(_: Any, params: Any) -> types.CreateMessageResultWithTools:
        use = types.ToolUseContent(type="tool_use", id="1", name=params.tools[0].name, input={})
        return types.CreateMessageResultWithTools(role="assistant", content=use, model="m", stop_reason="toolUse")

    server: Server[Any] = Server("thinker", on_list_tools=listed, on_call_tool=think)
    with_tools = types.SamplingCapability(tools=types.SamplingToolsCapability())
    async with (
        over_http(server) as upstream,
        served(behind({"url": upstream, "mode": "legacy"})) as (_, url),
        Client(url, mode="legacy", sampling_callback=sample, sampling_capabilities=with_tools) as able,
        Client(url, mode="legacy", sampling_callback=sample) as unable,
    ):
        assert text(await call(able, "think")) == "look_up"
        with pytest.raises(MCPError, match="knows no sampling with tools"):
            await call(unable, "think")


@pytest.mark.parametrize("era", CLIENTS)
async def test_over_stdio_a_held_tool_is_approved_by_the_person_and_over_http_nobody_is_asked(era, tmp_path):
    asked: list[str] = []

    async def approve(_: Any, params: Any) -> types.ElicitResult:
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"decision": "approve"})

    section = {"stateDir": str(tmp_path / "state"), "trust": {"firstSeen": "quarantine"}}
    config = {"mcpServers": {"time": time_server()}, "toolsearch": section}
    arguments = {"name": "time__get_current_time", "arguments": {"timezone": "UTC"}}
    for transport in ("http", "stdio"):
        async with connected(config, transport, era, tmp_path, elicitation_callback=approve) as client:
            await client.call_tool("toolSearchTool", {"query": "the time"})  # waits until the server has listed
            result = await client.call_tool("callToolWrite", arguments)
            assert bool(result.is_error) == (transport == "http")
    (question,) = asked
    assert question.startswith("time__get_current_time of the MCP server time is new")
