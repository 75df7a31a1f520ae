"""Skills in a chat: beside the request's own tools, and in an engine's catalog."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.kit.scripted_model import ScriptedModel, calls, says
from tests.kit.skills import skill_text, write_skill
from tests.kit.tool_search import OPTIONS, SEARCH, TOOLS, ask, asked, names, results, search, searcher
from toolsearch import Budget, Catalog, Tool, ToolDefinition, ToolSearch
from toolsearch.catalog.sources.skills import SkillsSource
from toolsearch.chat.tool_search import ToolSearchAdvisor
from toolsearch.documents.skills import SKILL_FILE
from toolsearch.errors import DuplicateToolError

READ = "readSkill"
BILLS = "office__bills"


@pytest.fixture
def skill(tmp_path: Path) -> Tool:
    text = skill_text("bills", "How to pay a bill with money", more="allowed-tools: send_mail\n", body="Ask Ann first.")
    write_skill(tmp_path / "office", "bills", files={SKILL_FILE: text})
    (entry,) = SkillsSource(tmp_path / "office").load().tools
    return entry


def read(name: str = BILLS, **more: Any) -> Any:
    return calls((READ, json.dumps({"name": name, **more})))


async def test_a_skill_beside_the_requests_own_tools_is_found_and_read(skill: Tool) -> None:
    model = ScriptedModel(search("pay a bill with money"), read(), says("Done."))
    await ask(searcher(), model, asked(tools=(*TOOLS, skill)))

    assert names(model) == [
        [SEARCH, READ],
        [SEARCH, READ, "pay_bill"],
        [SEARCH, READ, "pay_bill", "send_mail"],
    ]
    assert f"{BILLS} [skill, likely]" in results(model, 1)[0].text
    assert "Ask Ann first." in results(model, 2)[0].text


async def test_the_skill_of_the_next_request_is_the_one_that_is_read(skill: Tool) -> None:
    class Other:
        async def call(self, arguments: Any, context: Any) -> str:  # noqa: ARG002
            return "Ask Bob first."

    model = ScriptedModel(read(), says("Done."), read(), says("Done."))
    advisor = searcher()
    await ask(advisor, model, asked(tools=(*TOOLS, skill)))
    await ask(advisor, model, asked(tools=(*TOOLS, replace(skill, callback=Other()))))
    assert ["Ann" in results(model, 1)[0].text, results(model, 3)[0].text] == [True, "Ask Bob first."]


async def test_the_budget_holds_in_a_chat(skill: Tool) -> None:
    model = ScriptedModel(read(), says("Done."))
    budget = Budget(max_skill_tokens=10)
    await ask(searcher(budget=budget), model, asked(tools=(*TOOLS, skill)))
    assert results(model, 1)[0].error_code == "call_denied"


async def test_an_engine_of_skills_alone_is_searched(skill: Tool) -> None:
    catalog = Catalog()
    catalog.add(skill)
    model = ScriptedModel(search("pay a bill"), read(), says("Done."))
    await ask(ToolSearchAdvisor(ToolSearch(catalog, encoder=None, options=OPTIONS)), model, asked(tools=()))
    assert names(model)[0] == [SEARCH, READ]
    assert "Ask Ann first." in results(model, 2)[0].text


async def test_reading_runs_no_tool_of_the_request(skill: Tool) -> None:
    model = ScriptedModel(read("send_mail"), says("Done."))
    await ask(searcher(), model, asked(tools=(*TOOLS, skill)))
    assert results(model, 1)[0].is_error


async def test_a_tool_of_the_request_cannot_take_the_place_of_a_skill(skill: Tool) -> None:
    catalog = Catalog(TOOLS)
    catalog.add(skill)
    advisor = ToolSearchAdvisor(ToolSearch(catalog, encoder=None, options=OPTIONS))
    for name in (BILLS, READ):
        own = Tool(ToolDefinition(name, "Does something else."), TOOLS[0].callback)
        with pytest.raises(DuplicateToolError):
            await ask(advisor, ScriptedModel(says("Hi.")), asked(tools=(own,)))
