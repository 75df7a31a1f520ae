"""Clients that others wrote: each searches and calls at the address of a session, and HTTP shows the same."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import fastmcp
import pytest
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from tests.kit.gateway import text
from tests.kit.inspector import calling, inspecting, needs_inspector
from tests.kit.mcp_sessions import OWN, Served, mcp_service
from toolsearch.service.corpora.corpus import CorpusRef
from toolsearch.tools.definition import Tool, ToolContext, ToolDefinition
from toolsearch.tools.function_tools import tool
from toolsearch.tools.naming import TOOL_NAME

LISTED = [
    {"name": "send_mail", "description": "Send an email message."},
    {"name": "pay_bill", "description": "Pay a bill with money."},
]
QUERY = {"query": "add two numbers", "limit": 1}
CALL = {"name": "add_numbers", "arguments": {"a": 40, "b": 2}}

Use: TypeAlias = Callable[[str, dict[str, str]], Awaitable["Used"]]


@tool
def add_numbers(a: int, b: int) -> dict[str, int]:
    """Add two numbers.

    Args:
        a: the first
        b: the second
    """
    return {"sum": a + b}


@dataclass
class Used:
    """What a client has seen: its first list, what it found, and what the call gave."""

    listed: list[str]
    found: list[str]
    answer: Any


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    """A service whose catalog has a tool, beside listed ones, that the service runs."""
    async with mcp_service(tmp_path, LISTED) as running, AsyncExitStack() as held:
        corpus = await held.enter_async_context(
            running.kit.service.corpora.using(CorpusRef("acme", "catalog", "default"))
        )
        corpus.engine.catalog.put(add_numbers)
        yield running


def _found(structured: Any) -> list[str]:
    return [each["name"] for each in structured["tools"]]


def official(era: str) -> Any:
    async def use(served: Served, url: str, key: str | None) -> Used:
        async with served.mcp(url, era, key) as client:
            listed = [each.name for each in (await client.list_tools()).tools]
            found = await client.call_tool(TOOL_NAME, QUERY)
            called = await client.call_tool("callToolDestructive", CALL)
            return Used(listed, _found(found.structured_content), called.structured_content)

    return use


def fast_mcp(mode: str) -> Any:
    async def use(_: Served, url: str, key: str | None) -> Used:
        async with fastmcp.Client(url, auth=key, mode=mode) as client:  # type: ignore[arg-type]
            listed = [each.name for each in await client.list_tools()]
            found = await client.call_tool(TOOL_NAME, QUERY)
            called = await client.call_tool("callToolDestructive", CALL)
            return Used(listed, _found(found.structured_content), called.structured_content)

    return use


async def pydantic_ai(_: Served, url: str, key: str | None) -> Used:
    """An agent whose model searches, calls what the answer names, and says what came of it."""
    seen: list[list[str]] = []

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        seen.append([each.name for each in info.function_tools])
        returned = [part for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
        if not returned:
            return ModelResponse(parts=[ToolCallPart(TOOL_NAME, QUERY)])
        if returned[0].tool_name == TOOL_NAME:
            (found,) = returned[0].content["tools"]  # type: ignore[index]
            return ModelResponse(parts=[ToolCallPart(found["callWith"], {**CALL, "name": found["name"]})])
        return ModelResponse(parts=[TextPart(json.dumps(returned[0].content))])

    toolset = MCPToolset(url, headers={"authorization": f"Bearer {key}"} if key else None)
    result = await Agent(FunctionModel(model), toolsets=[toolset]).run("What is 40 and 2?")
    return Used(seen[0], ["add_numbers"], json.loads(result.output))


@pytest.mark.parametrize("in_url", [True, False], ids=["token in the URL", "key as bearer"])
@pytest.mark.parametrize(
    "use",
    [
        pytest.param(official("legacy"), id="official, 2025"),
        pytest.param(official("auto"), id="official, 2026"),
        pytest.param(fast_mcp("legacy"), id="FastMCP, 2025"),
        pytest.param(fast_mcp("auto"), id="FastMCP, 2026"),
        pytest.param(pydantic_ai, id="pydantic-ai"),
    ],
)
async def test_a_client_searches_and_calls_and_http_shows_the_same(
    served: Served,
    use: Any,
    in_url: bool,
) -> None:
    session = await served.session(url_token=in_url)
    used = await use(served, session["mcp_url"], None if in_url else served.key)

    assert used == Used(OWN, ["add_numbers"], {"sum": 42})
    assert await served.discovered(session["id"]) == ["add_numbers"]


@needs_inspector
@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_the_inspector_searches_and_calls_and_http_shows_the_same(
    served: Served, tmp_path: Path, era: str
) -> None:
    session = await served.session(url_token=True)
    inspect = inspecting(["--server-url", session["mcp_url"], "--transport", "http", "--protocol-era", era], tmp_path)
    listed = await inspect("--method", "tools/list", "--strict")
    found = await inspect(*calling(TOOL_NAME, QUERY))
    called = await inspect(*calling("callToolDestructive", CALL))

    names = [entry["name"] for entry in listed["tools"]]
    assert Used(names, _found(found["structuredContent"]), called["structuredContent"]) == Used(
        OWN, ["add_numbers"], {"sum": 42}
    )
    assert await served.discovered(session["id"]) == ["add_numbers"]


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_a_found_tool_is_called_by_its_name_where_the_list_has_it(served: Served, era: str) -> None:
    """Pinned, it is in the list of either era."""
    session = await served.session(pins=["add_numbers"])
    async with served.mcp(session["mcp_url"], era) as client:
        listed = await client.list_tools()
        called = await client.call_tool("add_numbers", {"a": 1, "b": 2})

    assert [each.name for each in listed.tools] == [*OWN, "add_numbers"]
    assert called.structured_content == {"sum": 3}


class Nothing:
    async def call(self, arguments: object, context: ToolContext) -> object:  # noqa: ARG002
        return None


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_a_tool_that_gives_no_data_though_its_schema_says_so_still_answers(served: Served, era: str) -> None:
    """Clients refuse the answer to a tool whose output schema they know if it has no data: OpenAPI's 204, or a result
    that was cut.
    """
    schema = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
    async with served.kit.service.corpora.using(CorpusRef("acme", "catalog", "default")) as corpus:
        corpus.engine.catalog.put(Tool(ToolDefinition("delete_it", "Deletes.", output_schema=schema), Nothing()))
    session = await served.session(pins=["delete_it"])
    async with served.mcp(session["mcp_url"], era) as client:
        await client.list_tools()
        called = await client.call_tool("delete_it", {})

    assert not called.is_error


class Waiting:
    """Answers when it may."""

    def __init__(self) -> None:
        self.begun, self.may_go = asyncio.Event(), asyncio.Event()

    async def call(self, arguments: object, context: ToolContext) -> object:  # noqa: ARG002
        self.begun.set()
        await self.may_go.wait()
        return "done"


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_a_call_may_take_longer_than_a_client_may_be_idle(served: Served, era: str) -> None:
    waiting, mcp = Waiting(), served.kit.service.mcp
    async with served.kit.service.corpora.using(CorpusRef("acme", "catalog", "default")) as corpus:
        corpus.engine.catalog.put(Tool(ToolDefinition("wait_long", "Waits."), waiting))
    session = await served.session()
    async with served.mcp(session["mcp_url"], era) as client:
        calling = asyncio.create_task(client.call_tool("callToolDestructive", {"name": "wait_long", "arguments": {}}))
        await waiting.begun.wait()
        served.clock.now_s += 10_000
        await mcp.look()
        waiting.may_go.set()
        assert text(await calling) == "done"
        await mcp.look()
        assert (await client.list_tools()).tools
