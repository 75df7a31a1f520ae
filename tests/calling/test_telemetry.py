"""What of running calls is recorded: each call once, failures as such, content only when asked for."""

import asyncio
from dataclasses import replace

import pytest
from opentelemetry.trace import StatusCode

from tests.kit.telemetry_recorder import Recorder
from toolsearch.calling.hooks import Decision, Deny, Edit
from toolsearch.calling.limits import CallLimits
from toolsearch.calling.manager import ToolCallingManager
from toolsearch.calling.resolvers import AttachedTools
from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.definition import Tool, ToolContext, ToolDefinition
from toolsearch.tools.json_types import JsonObject


class Echo:
    async def call(self, arguments: JsonObject, *_: object) -> object:
        if "text" not in arguments:
            raise ValueError("nothing to say")
        return arguments["text"]


ATTACHED = AttachedTools([Tool(ToolDefinition("echo", "Say it.", {"type": "object"}), Echo())])
ECHO = ToolCall("c1", "echo", {"text": "hello"})


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


async def test_each_call_that_runs_is_a_span_with_its_id(recorder: Recorder):
    await ToolCallingManager(telemetry=recorder.telemetry).execute([ECHO], ATTACHED)

    attributes = recorder.span("execute_tool echo").attributes
    assert (attributes["gen_ai.tool.call.id"], attributes["gen_ai.tool.name"]) == ("c1", "echo")
    assert not [key for key in attributes if key.startswith("gen_ai.tool.call.") and key != "gen_ai.tool.call.id"]


async def test_a_failure_that_the_model_is_told_of_marks_the_span(recorder: Recorder):
    await ToolCallingManager(telemetry=recorder.telemetry).execute([ToolCall("c1", "echo")], ATTACHED)

    span = recorder.span("execute_tool echo")
    assert span.status.status_code is StatusCode.ERROR
    assert span.attributes["error.type"] == "tool_failed"


async def test_refused_calls_are_recorded_and_made_up_names_stay_out_of_the_metrics(recorder: Recorder):
    def deny(call: ToolCall, tool: Tool, context: ToolContext) -> Decision:
        return Deny("no")

    manager = ToolCallingManager(telemetry=recorder.telemetry, before=[deny], limits=CallLimits(total=2))
    await manager.execute([ECHO, ToolCall("c2", "made_up"), ToolCall("c3", "made_up_2")], ATTACHED)

    assert {span.name: span.attributes["error.type"] for span in recorder.spans} == {
        "execute_tool echo": "call_denied",
        "execute_tool made_up": "unknown_tool",
        "execute_tool made_up_2": "call_limit",
    }
    counted = {attributes["gen_ai.tool.name"]: count for attributes, count in recorder.points("toolsearch.tool.calls")}
    assert counted == {"echo": 1, "_OTHER": 2}


async def test_waiting_for_approval_is_no_time_of_the_tool(recorder: Recorder):
    async def ask(call: ToolCall, tool: Tool, context: ToolContext) -> Decision:
        await asyncio.sleep(0)
        assert not recorder.spans
        for _ in range(10):
            recorder.telemetry.clock()  # five seconds go by
        return Edit({"text": "hello"})

    await ToolCallingManager(telemetry=recorder.telemetry, before=[ask]).execute([ECHO], ATTACHED)

    [(_, (count, seconds))] = recorder.points("gen_ai.execute_tool.duration")
    assert (count, seconds) == (1, 0.5)


@pytest.mark.parametrize("captured", [True, False])
async def test_what_a_tool_says_of_itself_is_recorded_only_where_that_was_asked_for(captured: bool):
    """And by that setting alone: the arguments are left out."""
    recorder = Recorder(capture_definitions=captured, capture_content=not captured)
    await ToolCallingManager(telemetry=recorder.telemetry).execute([ECHO], ATTACHED)

    attributes = recorder.span("execute_tool echo").attributes
    assert ("gen_ai.tool.call.arguments" in attributes) is not captured
    expected = {"gen_ai.tool.description": "Say it.", "toolsearch.tool.input_schema": '{"type": "object"}'}
    assert {key: attributes[key] for key in expected if key in attributes} == (expected if captured else {})


async def test_captured_content_is_what_the_hooks_have_made_of_it():
    def shorten(call: ToolCall, tool: Tool, context: ToolContext) -> Decision:
        return Edit({"text": "card 4711"})

    def redact(call: ToolCall, tool: Tool, result: ToolResult) -> ToolResult:
        return replace(result, content=({"type": "text", "text": "card ***"},))

    recorder = Recorder(capture_content=True)
    manager = ToolCallingManager(telemetry=recorder.telemetry, before=[shorten], after=[redact])
    await manager.execute([ECHO], ATTACHED)

    attributes = recorder.span("execute_tool echo").attributes
    assert attributes["gen_ai.tool.call.arguments"] == '{"text": "card 4711"}'
    assert attributes["gen_ai.tool.call.result"] == "card ***"
