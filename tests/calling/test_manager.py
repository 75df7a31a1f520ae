"""Running calls: order, parallelism, failures as results, timeouts, cancellation, limits."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from toolsearch.calling.hooks import DefaultToolExecutionErrorProcessor
from toolsearch.calling.limits import CallLimits, TurnCounter
from toolsearch.calling.manager import ToolCallingManager
from toolsearch.errors import (
    BadSettingError,
    ServerUnavailableError,
    UndiscoveredToolError,
    UnknownToolError,
)
from toolsearch.tools.calls import ToolCall, returns_directly
from toolsearch.tools.definition import Tool, ToolContext, ToolDefinition, ToolMetadata
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.results import ToolOutput

Run = Callable[[JsonObject, ToolContext], Awaitable[object]]


class Callback:
    def __init__(self, run: Run) -> None:
        self.call = run


class Scope:
    """All of some tools, and a record of what was begun and ended."""

    def __init__(self, *tools: Tool) -> None:
        self.tools = {tool.name: tool for tool in tools}
        self.events: list[str] = []

    def resolve(self, name: str) -> Tool:
        if name not in self.tools:
            raise UnknownToolError(name, near=sorted(self.tools)[:1])
        return self.tools[name]

    def begin_call(self, name: str) -> None:
        self.events.append(f"begin {name}")

    def end_call(self, name: str) -> None:
        self.events.append(f"end {name}")


def make_tool(name: str, run: Run, schema: JsonObject | None = None, **metadata: Any) -> Tool:
    definition = ToolDefinition(name, input_schema=schema or {"type": "object"})
    return Tool(definition, Callback(run), ToolMetadata(**metadata))


async def echo(arguments: JsonObject, context: ToolContext) -> object:
    return arguments.get("text", "nothing")


async def fail(arguments: JsonObject, context: ToolContext) -> object:
    raise RuntimeError("the disk is full")


async def wait_forever(arguments: JsonObject, context: ToolContext) -> object:
    await asyncio.Event().wait()


def calls(*names: str) -> list[ToolCall]:
    return [ToolCall(f"id-{position}", name) for position, name in enumerate(names)]


async def test_calls_of_a_batch_run_at_the_same_time_and_answer_in_call_order():
    barrier = asyncio.Barrier(3)

    async def meet(arguments: JsonObject, context: ToolContext) -> object:
        await barrier.wait()  # passes only if all three are here at once
        return arguments["n"]

    batch = [ToolCall(f"id-{n}", "meet", {"n": n}) for n in (3, 1, 2)]
    results = await ToolCallingManager().execute(batch, Scope(make_tool("meet", meet)))

    assert [(result.call_id, result.text) for result in results] == [("id-3", "3"), ("id-1", "1"), ("id-2", "2")]


async def test_no_more_than_max_parallel_calls_run_at_once():
    running, most = 0, 0

    async def observe(arguments: JsonObject, context: ToolContext) -> object:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1

    await ToolCallingManager(max_parallel=2).execute(calls(*["observe"] * 6), Scope(make_tool("observe", observe)))

    assert most == 2


async def test_a_failing_call_leaves_its_siblings_their_results():
    results = await ToolCallingManager().execute(
        calls("echo", "fail", "missing", "echo"), Scope(make_tool("echo", echo), make_tool("fail", fail))
    )

    assert [(result.is_error, result.text) for result in results] == [
        (False, "nothing"),
        (True, "the disk is full"),
        (True, "no tool named 'missing'; did you mean echo?"),
        (False, "nothing"),
    ]
    assert [result.error_code for result in results] == [None, "tool_failed", "unknown_tool", None]


async def test_an_exception_without_a_message_is_told_by_its_type():
    async def run(arguments: JsonObject, context: ToolContext) -> object:
        raise ZeroDivisionError

    [result] = await ToolCallingManager().execute(calls("divide"), Scope(make_tool("divide", run)))

    assert result.text == "Exception occurred in tool: divide (ZeroDivisionError)"


async def test_an_error_of_ours_from_a_tool_keeps_its_code():
    async def run(arguments: JsonObject, context: ToolContext) -> object:
        raise ServerUnavailableError("the server 'git' died during the call, which may have run")

    [result] = await ToolCallingManager().execute(calls("git"), Scope(make_tool("git", run)))

    assert result.error_code == "server_unavailable"
    assert "'git' died" in result.text
    assert result.text.endswith("may have run")


async def test_a_refusal_to_run_an_undiscovered_tool_says_how_to_load_it():
    class Strict(Scope):
        def resolve(self, name: str) -> Tool:
            raise UndiscoveredToolError(name)

    [result] = await ToolCallingManager().execute(calls("echo"), Strict())

    assert result.error_code == "undiscovered_tool"
    assert "select:echo" in result.text


async def test_a_tool_without_a_callback_is_an_error_result():
    [result] = await ToolCallingManager().execute(calls("listed"), Scope(Tool(ToolDefinition("listed"))))

    assert result.is_error
    assert result.text.startswith("the tool 'listed' can be found, but")


async def test_arguments_that_do_not_fit_never_reach_the_tool():
    seen: list[JsonObject] = []

    async def record(arguments: JsonObject, context: ToolContext) -> object:
        seen.append(arguments)

    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    batch = [ToolCall("a", "record", '{"n": "x"}'), ToolCall("b", "record", '{"n": 1}'), ToolCall("c", "record", "{")]
    results = await ToolCallingManager().execute(batch, Scope(make_tool("record", record, schema)))

    assert seen == [{"n": 1}]
    assert [result.error_code for result in results] == ["bad_arguments", None, "bad_arguments"]


async def test_a_call_that_takes_too_long_is_an_error_result_and_the_others_go_on():
    scope = Scope(make_tool("slow", wait_forever), make_tool("echo", echo))

    slow, quick = await ToolCallingManager(timeout_s=0.01).execute(calls("slow", "echo"), scope)

    assert slow.error_code == "tool_timeout"
    assert "'slow' did not answer within 0.01 s" in slow.text
    assert slow.text.endswith("it may have had its effect")
    assert not quick.is_error


async def test_a_tools_own_timeout_goes_before_the_managers():
    scope = Scope(make_tool("slow", wait_forever, timeout_s=0.01))

    [result] = await ToolCallingManager(timeout_s=3_600).execute(calls("slow"), scope)

    assert result.error_code == "tool_timeout"


async def test_a_timeout_error_that_the_tool_itself_raises_is_not_taken_for_that_of_its_call():
    async def run(arguments: JsonObject, context: ToolContext) -> object:
        raise TimeoutError("the database is slow")

    manager = ToolCallingManager(error_processor=DefaultToolExecutionErrorProcessor(reraise=()))
    [result] = await manager.execute(calls("query"), Scope(make_tool("query", run)))

    assert (result.error_code, result.text) == ("tool_failed", "the database is slow")


async def test_cancelling_the_batch_cancels_every_call_and_is_let_through():
    started = asyncio.Barrier(3)
    cancelled: list[object] = []

    async def run(arguments: JsonObject, context: ToolContext) -> object:
        await started.wait()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(arguments["n"])
            raise

    scope = Scope(make_tool("run", run))
    batch = [ToolCall(str(n), "run", {"n": n}) for n in range(2)]
    task = asyncio.create_task(ToolCallingManager().execute(batch, scope))
    await started.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert sorted(cancelled) == [0, 1]
    assert sorted(scope.events) == ["begin run", "begin run", "end run", "end run"]


async def test_a_tool_that_is_cancelled_from_within_fails_alone():
    async def run(arguments: JsonObject, context: ToolContext) -> object:
        raise asyncio.CancelledError

    scope = Scope(make_tool("inner", run), make_tool("echo", echo))
    inner, other = await ToolCallingManager().execute(calls("inner", "echo"), scope)

    assert inner.error_code == "tool_failed"
    assert inner.text.endswith("cancelled from within")
    assert not other.is_error


def test_a_keyboard_interrupt_in_a_tool_is_not_made_a_result():
    async def run(arguments: JsonObject, context: ToolContext) -> object:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(ToolCallingManager().execute(calls("run"), Scope(make_tool("run", run))))


async def test_every_tool_gets_the_context_as_a_copy_of_its_own():
    async def run(arguments: JsonObject, context: ToolContext) -> object:
        context["seen"] = context.get("seen", 0) + 1
        return f"{context['user']} {context['seen']}"

    context = {"user": "ada"}
    results = await ToolCallingManager().execute(calls("run", "run"), Scope(make_tool("run", run)), context=context)

    assert [result.text for result in results] == ["ada 1", "ada 1"]
    assert context == {"user": "ada"}


async def test_a_running_tool_is_in_flight_until_it_ends_however_it_ends():
    scope = Scope(make_tool("fail", fail))

    await ToolCallingManager().execute(calls("fail", "missing"), scope)

    assert scope.events == ["begin fail", "end fail"]


async def test_a_batch_returns_directly_only_if_every_call_of_it_does():
    scope = Scope(
        make_tool("direct", echo, return_direct=True),
        make_tool("echo", echo),
        make_tool("broken", fail, return_direct=True),
    )
    manager = ToolCallingManager()

    assert returns_directly(await manager.execute(calls("direct", "direct"), scope))
    assert not returns_directly(await manager.execute(calls("direct", "echo"), scope))
    assert not returns_directly(await manager.execute(calls("direct", "broken"), scope))  # the model must read why
    assert not returns_directly([])


async def test_what_a_remote_tool_calls_a_failure_is_a_failure():
    async def run(arguments: JsonObject, context: ToolContext) -> object:
        return ToolOutput(({"type": "text", "text": "no such branch"},), is_error=True)

    [result] = await ToolCallingManager().execute(calls("git"), Scope(make_tool("git", run, return_direct=True)))

    assert (result.is_error, result.error_code, result.return_direct) == (True, "tool_failed", False)


async def test_a_result_that_is_too_long_is_cut_and_says_so():
    async def run(arguments: JsonObject, context: ToolContext) -> object:
        return "x" * 1_000

    manager = ToolCallingManager(max_result_characters=10)
    [result] = await manager.execute(calls("run"), Scope(make_tool("run", run)))

    assert result.text.startswith("x" * 10 + "\n[cut: ")
    assert "10 of 1,000" in result.text


async def test_a_value_that_cannot_be_converted_is_an_error_result_and_its_type_is_logged(caplog):
    async def run(arguments: JsonObject, context: ToolContext) -> object:
        return asyncio.Lock()

    [result] = await ToolCallingManager().execute(calls("run"), Scope(make_tool("run", run)))

    assert (result.is_error, result.error_code) == (True, "tool_failed")
    assert result.text.startswith("the tool ran, but its result")
    assert "returned a asyncio.locks.Lock, which has" in caplog.text


async def test_a_call_over_the_limit_is_an_error_result_and_its_siblings_go_on():
    scope = Scope(make_tool("echo", echo), make_tool("other", echo))
    manager = ToolCallingManager(limits=CallLimits(per_tool=2))

    results = await manager.execute(calls("echo", "echo", "echo", "other"), scope)

    assert [result.error_code for result in results] == [None, None, "call_limit", None]


async def test_calls_of_earlier_batches_count_within_a_turn_and_not_beyond_it():
    scope = Scope(make_tool("echo", echo))
    manager = ToolCallingManager(limits=CallLimits(total=1))
    turn = TurnCounter()

    await manager.execute(calls("echo"), scope, turn=turn)
    [same_turn] = await manager.execute(calls("echo"), scope, turn=turn)
    [next_turn] = await manager.execute(calls("echo"), scope, turn=TurnCounter())

    assert same_turn.error_code == "call_limit"
    assert not next_turn.is_error


async def test_a_call_repeated_in_a_row_is_an_error_result_that_tells_the_model_to_go_on():
    scope = Scope(make_tool("echo", echo))
    manager = ToolCallingManager(limits=CallLimits(repeats=2, on_breach="raise"))
    turn = TurnCounter()

    await manager.execute(calls("echo", "echo"), scope, turn=turn)  # in one reply they count as one
    await manager.execute(calls("echo"), scope, turn=turn)
    [repeated] = await manager.execute(calls("echo"), scope, turn=turn)

    assert repeated.error_code == "repeated_call"
    assert "2 times in a row" in repeated.text


async def test_a_call_is_not_repeated_while_its_results_differ():
    seen: list[JsonObject] = []

    async def progress(arguments: JsonObject, context: ToolContext) -> object:
        seen.append(arguments)
        return len(seen)

    manager, turn = ToolCallingManager(), TurnCounter()
    for _ in range(10):
        [result] = await manager.execute(calls("progress"), Scope(make_tool("progress", progress)), turn=turn)
        assert not result.is_error


@pytest.mark.parametrize("blank", ["", "  ", "{}", {}])
async def test_blank_arguments_are_an_empty_object(blank: Any):
    seen: list[JsonObject] = []

    async def record(arguments: JsonObject, context: ToolContext) -> object:
        seen.append(arguments)

    await ToolCallingManager().execute([ToolCall("c", "record", blank)], Scope(make_tool("record", record)))

    assert seen == [{}]


async def test_complex_arguments_reach_the_tool_unchanged():
    seen: list[JsonObject] = []

    async def record(arguments: JsonObject, context: ToolContext) -> object:
        seen.append(arguments)

    given = {"a": [1, 2.5, None, {"ü": "\n\"'"}], "b": {"c": {"d": [True]}}}
    await ToolCallingManager().execute([ToolCall("c", "record", json.dumps(given))], Scope(make_tool("record", record)))

    assert seen == [given]


async def test_the_context_of_a_request_goes_before_that_of_the_application():
    async def run(arguments: JsonObject, context: ToolContext) -> object:
        return dict(context)

    manager = ToolCallingManager(context={"user": "nobody", "region": "eu"})
    [merged] = await manager.execute(calls("run"), Scope(make_tool("run", run)), context={"user": "ada"})
    [alone] = await manager.execute(calls("run"), Scope(make_tool("run", run)))

    assert merged.structured == {"user": "ada", "region": "eu"}
    assert alone.structured == {"user": "nobody", "region": "eu"}


async def test_a_tools_own_converter_makes_the_result():
    scope = Scope(
        make_tool("loud", echo, result_converter=lambda value: f"{value}!"),
        make_tool("blocks", echo, result_converter=lambda _: ToolOutput(({"type": "text", "text": "a block"},))),
        make_tool("json", echo, result_converter=lambda value: {"value": value}),
    )

    loud, blocks, as_json = await ToolCallingManager().execute(calls("loud", "blocks", "json"), scope)

    assert (loud.text, blocks.text, as_json.structured) == ("nothing!", "a block", {"value": "nothing"})


async def test_a_converter_that_fails_is_a_failed_call():
    def broken(value: object) -> str:
        raise ValueError("cannot draw this")

    [result] = await ToolCallingManager().execute(
        calls("draw"), Scope(make_tool("draw", echo, result_converter=broken))
    )

    assert (result.is_error, result.error_code, result.text) == (True, "tool_failed", "cannot draw this")


async def test_no_converter_makes_a_success_of_what_a_remote_tool_calls_a_failure():
    async def run(arguments: JsonObject, context: ToolContext) -> object:
        return ToolOutput(({"type": "text", "text": "no such branch"},), is_error=True)

    scope = Scope(make_tool("git", run, result_converter=lambda _: "fine"))
    [result] = await ToolCallingManager().execute(calls("git"), scope)

    assert (result.is_error, result.text) == (True, "no such branch")


async def test_a_batch_without_calls_has_no_results():
    assert await ToolCallingManager().execute([], Scope()) == []


async def test_each_call_is_logged_with_its_outcome_and_how_long_it_took(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG, logger="toolsearch.calling.pipeline")
    times = iter([1.0, 1.25, 2.0, 2.5])
    manager = ToolCallingManager(clock=lambda: next(times), max_parallel=1)

    await manager.execute(calls("echo", "fail"), Scope(make_tool("echo", echo), make_tool("fail", fail)))

    logged = [record.message for record in caplog.records if record.levelno == logging.DEBUG]
    assert logged == ["tool echo: answered after 250.0 ms", "tool fail: tool_failed after 500.0 ms"]


async def test_neither_arguments_nor_results_are_logged(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    batch = [ToolCall("1", "echo", {"text": "secret"}), ToolCall("2", "echo", '["secret"]'), ToolCall("3", "no")]

    await ToolCallingManager().execute(batch, Scope(make_tool("echo", echo)))

    assert "secret" not in caplog.text
    assert "call of 'no' refused: unknown_tool" in caplog.text


@pytest.mark.parametrize("setting", ["timeout_s", "max_parallel", "max_result_characters"])
def test_settings_that_would_run_nothing_are_refused(setting: str):
    with pytest.raises(BadSettingError, match=f"{setting} must be more than 0"):
        ToolCallingManager(**{setting: 0})
