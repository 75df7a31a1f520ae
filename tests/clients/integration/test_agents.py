"""Real coding agents behind an imported gateway: the search tool is there at once, and what it finds runs at once."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from benchmarks.clients.drivers import AGENTS, Agent
from benchmarks.clients.installing import Programs
from benchmarks.clients.measuring import TIME, TIME_SERVERS
from benchmarks.clients.running import OURS, Run, agent_home
from benchmarks.clients.script import CALL_TOOLS, SEARCH, Model, found_in

_CLAUDE_SEARCHES = "ENABLE_TOOL_SEARCH"  # with its own search, Claude Code keeps the tools of servers back
_VARIANTS: Mapping[str, list[dict[str, str]]] = {
    "claude-code": [{_CLAUDE_SEARCHES: "true"}, {_CLAUDE_SEARCHES: "false"}],
}
_CASES = [
    pytest.param((agent, variant), id="-".join([agent.name, *(f"{name}={value}" for name, value in variant.items())]))
    for agent in AGENTS
    for variant in _VARIANTS.get(agent.name, [{}])
]


@dataclass(frozen=True)
class Conversation:
    """What an agent has done for the question what time it is, and the calls of its model."""

    agent: Agent
    model: Model
    run: Run

    def called(self, tool: str) -> str:
        return self.agent.called_name(OURS, tool)


@pytest.fixture(scope="session", params=_CASES)
def conversation(
    request: pytest.FixtureRequest, programs: Programs, tmp_path_factory: pytest.TempPathFactory
) -> Conversation:
    """Each agent is run once, for all tests."""
    agent, variant = request.param
    with agent_home(agent, programs, tmp_path_factory.mktemp(agent.name)) as home:
        home.write(TIME_SERVERS)
        assert home.import_servers(), f"the import does not know {agent.name}"
        model = Model(agent, TIME, is_behind=True)
        return Conversation(agent, model, home.ask(TIME.prompt, model, environment=variant))


def test_our_four_tools_are_in_the_first_list_with_their_schemas(conversation: Conversation) -> None:
    assert conversation.run.requests, conversation.run.output
    listed = {tool.name: tool for tool in conversation.run.seen[0].tools if not tool.is_deferred}
    parameters = {name: set(tool.schema.get("properties", {})) for name, tool in listed.items()}

    assert parameters.get(conversation.called(SEARCH), set()) >= {"queries"}, [*listed]
    for name in CALL_TOOLS:
        assert parameters.get(conversation.called(name), set()) >= {"name", "arguments"}, [*listed]


def test_the_found_tool_runs_at_the_first_call(conversation: Conversation) -> None:
    made = conversation.model.made

    assert [each.way for each in made] == ["search", "call as answered"], made
    assert conversation.model.failed == []
    assert "Europe/Oslo" in made[-1].result
    assert len(conversation.run.requests) == len(made) + 1


def test_the_answer_gives_once_all_that_a_call_needs(conversation: Conversation) -> None:
    answer = conversation.model.answer
    found: list[dict[str, Any]] = [each for each in found_in(answer) if each["name"] == TIME.name]

    assert [list(each["inputSchema"]["properties"]) for each in found] == [["timezone"]], answer
    assert [each["callWith"] for each in found] == [conversation.called("callToolRead").rpartition(".")[2]]
    assert answer.count("IANA timezone name") == 1  # which is in the definition alone


def test_the_list_of_tools_stays_as_it_was(conversation: Conversation) -> None:
    first, *others = [seen.listing for seen in conversation.run.seen]

    assert others
    assert all(listing == first for listing in others)
