"""Names that a model or a client makes up are repeated to nobody at full length: not in results, logs or spans."""

import logging

import pytest

from tests.kit.telemetry_recorder import Recorder
from toolsearch import Catalog, ToolSearch
from toolsearch.calling.limits import CallLimits
from toolsearch.calling.manager import ToolCallingManager
from toolsearch.calling.resolvers import AttachedTools
from toolsearch.discovery.search_tool import SearchArguments
from toolsearch.errors import BadQueryError, UnknownToolError, shown_name
from toolsearch.tools.calls import ToolCall
from toolsearch.tools.definition import Tool, ToolDefinition
from toolsearch.tools.naming import near_names

LONG = "made_up_" * 10_000
SHOWN = LONG[:80] + "... (80,000 characters)"
ADD = Tool(ToolDefinition("add_nums"))


def test_a_name_as_tools_have_it_is_shown_whole() -> None:
    assert shown_name("x" * 80) == "x" * 80
    assert shown_name("x" * 81) == "x" * 80 + "... (81 characters)"


async def test_a_made_up_name_is_bounded_in_results_logs_and_spans(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    recorder = Recorder()
    manager = ToolCallingManager(telemetry=recorder.telemetry, limits=CallLimits(per_tool=1))

    unknown, limited = await manager.execute([ToolCall(LONG, LONG)] * 2, AttachedTools([ADD]))

    assert unknown.text == f"no tool named '{SHOWN}'"
    assert limited.text.startswith(f"the tool '{SHOWN}' may be called 1 times")
    assert (unknown.call_id, unknown.name) == (LONG, LONG)  # whose result it is stays certain
    assert [len(message) < 200 for message in caplog.messages] == [True, True]
    for span in recorder.spans:
        assert span.name == f"execute_tool {SHOWN}"
        assert (span.attributes["gen_ai.tool.name"], span.attributes["gen_ai.tool.call.id"]) == (SHOWN, SHOWN)


async def test_a_session_answers_with_a_bounded_name() -> None:
    session = ToolSearch(Catalog([ADD]), encoder=None).session("s")

    assert len((await session.call(LONG)).text) < 200


def test_servers_and_arguments_that_are_made_up_are_bounded_too() -> None:
    session = ToolSearch(Catalog([ADD]), encoder=None).session("s")

    with pytest.raises(BadQueryError, match="there is no server 'made_up") as server:
        session.search("add", server=LONG)
    with pytest.raises(BadQueryError, match="unknown argument 'made_up") as argument:
        SearchArguments.parse({"query": "add", LONG: 1})

    assert max(len(str(server.value)), len(str(argument.value))) < 250


def test_the_error_keeps_the_name_for_programs() -> None:
    assert UnknownToolError(LONG).name == LONG


def test_only_the_beginning_of_a_long_name_is_compared() -> None:
    """Of the whole one, the name of a tool would be too small a part to be near."""
    assert near_names("add_num" + " " * 200 + LONG, ["add_nums"]) == ["add_nums"]
    assert near_names(LONG, ["add_nums"]) == []
