"""The benchmark of answers asks as it says."""

import pytest

from benchmarks import answers
from benchmarks.agent_queries import AgentQuery, AgentSet
from toolsearch import ToolDefinition

_TEXTS = {"send_mail": "send an email", "pay_bill": "pay a bill", "move_file": "move a file", "add": "add two numbers"}


@pytest.fixture
def agent_set() -> AgentSet:
    tools = [ToolDefinition(name, f"{text.capitalize()}.") for name, text in _TEXTS.items()]
    queries = [AgentQuery(name, text, frozenset([name]), "words") for name, text in _TEXTS.items()]
    return AgentSet("small", tools, queries, 0)


def test_tasks_are_three_queries_for_different_tools_and_always_the_same(agent_set: AgentSet) -> None:
    tasks = [[query.id for query in task.queries] for task in answers.tasks_of(agent_set, 5)]

    assert all(len(set(task)) == 3 for task in tasks)
    assert tasks == [[query.id for query in task.queries] for task in answers.tasks_of(agent_set, 5)]


def test_a_task_is_asked_in_three_ways(agent_set: AgentSet) -> None:
    task = answers.Task(agent_set.queries[:3])

    assert list(answers.calls_of(task).values()) == [
        [["send an email", "pay a bill", "move a file"]],
        [["send an email, pay a bill and move a file"]],
        [["send an email"], ["pay a bill"], ["move a file"]],
    ]


def test_a_task_is_served_if_each_of_its_queries_is() -> None:
    queries = [AgentQuery("1", "", frozenset({"a", "b"}), "words"), AgentQuery("2", "", frozenset({"c"}), "words")]

    def served(loaded: set[str], listed: set[str]) -> tuple[bool, bool]:
        return answers.Asked(frozenset(loaded), frozenset(listed), 0, 0).serves(queries)

    assert served({"b", "c"}, set()) == (True, True)
    assert served({"b"}, {"c"}) == (False, True)
    assert served({"a", "b"}, {"d"}) == (False, False)


def test_every_way_and_every_format_is_measured(agent_set: AgentSet) -> None:
    figures = answers.measure([agent_set], tasks=2)

    assert list(figures["tasks"]) == list(answers.WAYS)
    assert figures["tasks"]["one call with three queries"]["right_loaded"] == 1
    assert figures["searches"]["small"]["asked"] == 4
    assert {of["asked"] for of in figures["exposures"].values()} == {4}
    assert figures["exposures"]["append"]["mean"] == figures["searches"]["small"]["answer_tokens"]
    assert figures["exposures"]["fixed"]["largest"] > figures["exposures"]["append"]["largest"]
    assert list(figures["search_tool"]) == ["openai", "openai-responses", "anthropic", "mcp"]
