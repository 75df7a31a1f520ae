"""Skills of an engine in frameworks: the tool that reads them is listed and run like the search tool."""

from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client, FastMCP
from pydantic_ai import Agent, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from tests.kit.skills import skill_text, write_skill
from toolsearch import PassThrough, SessionOptions, ToolSearch
from toolsearch.adapters.conversation import listed
from toolsearch.adapters.fastmcp import ToolSearchTransform
from toolsearch.adapters.pydantic_ai import ToolSearchToolset
from toolsearch.catalog.sources.skills import SkillsSource
from toolsearch.documents.skills import SKILL_FILE

SEARCH, READ, CALL = "toolSearchTool", "readSkill", "callTool"
BILLS = "office__bills"


def pay_bill(amount: int) -> str:
    """Pay a bill with money."""
    return f"paid {amount}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    text = skill_text("bills", "How to pay a bill with money", body="Ask Ann first.")
    write_skill(tmp_path / "office", "bills", files={SKILL_FILE: text})
    return tmp_path / "office"


def engine_of(folder: Path, *tools: Any, most_shown: int = 0) -> ToolSearch:
    engine = ToolSearch([*tools], encoder=None, options=SessionOptions(pass_through=PassThrough(most_shown)))
    engine.catalog.add(*SkillsSource(folder).load().tools)
    return engine


def test_the_list_for_a_framework_has_the_tool_that_reads_skills(folder: Path) -> None:
    assert [each.name for each in listed(engine_of(folder, pay_bill).session("a"))] == [SEARCH, READ]


@pytest.mark.parametrize(("most_shown", "names"), [(0, [SEARCH, READ, CALL]), (10, [SEARCH, READ, "pay_bill"])])
async def test_clients_of_a_fastmcp_server_find_and_read_skills(
    most_shown: int, names: list[str], folder: Path
) -> None:
    server = FastMCP("shop", transforms=[ToolSearchTransform(engine_of(folder, most_shown=most_shown))])
    server.tool(pay_bill)
    async with Client(server) as client:
        assert [tool.name for tool in await client.list_tools()] == names
        found = await client.call_tool(SEARCH, {"queries": ["pay a bill"]})
        assert f"{BILLS} [skill, likely]" in str(found.content)
        assert "Ask Ann first." in str((await client.call_tool(READ, {"name": BILLS})).content)
        assert (await client.call_tool(READ, {"name": "pay_bill"}, raise_on_error=False)).is_error


async def test_an_agent_of_pydantic_ai_reads_a_skill(folder: Path) -> None:
    seen: list[list[str]] = []
    calls = [ToolCallPart(SEARCH, {"queries": ["pay a bill"]}), ToolCallPart(READ, {"name": BILLS})]

    def model(messages: Any, info: AgentInfo) -> ModelResponse:
        seen.append([tool.name for tool in info.function_tools])
        if calls:
            return ModelResponse([calls.pop(0)])
        return ModelResponse([TextPart(str(messages[-1].parts[0].content))])

    agent = Agent(FunctionModel(model), toolsets=[ToolSearchToolset(engine_of(folder, pay_bill))])
    assert "Ask Ann first." in (await agent.run("Pay the bill.")).output
    assert [names[:2] for names in seen] == [[SEARCH, READ]] * 3
