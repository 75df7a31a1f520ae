"""What a failed tool comes to: a message to the model, or an error that ends the turn once its siblings are done."""

import asyncio
import sys
import types
from collections.abc import Generator
from typing import Any

import pytest

from toolsearch.calling.hooks import DefaultToolExecutionErrorProcessor, partial_results
from toolsearch.calling.limits import CallLimits
from toolsearch.calling.manager import ToolCallingManager
from toolsearch.calling.resolvers import AttachedTools
from toolsearch.errors import CallLimitError, ServerUnavailableError, ToolExecutionError, ToolTimeoutError
from toolsearch.tools.callbacks import contained
from toolsearch.tools.calls import ToolCall
from toolsearch.tools.definition import Tool, ToolDefinition, ToolMetadata
from toolsearch.tools.function_tools import tool_from_function

CALL = ToolCall("c1", "save")
SAVE = Tool(ToolDefinition("save"))
HANDED_ON = "the tool failed; only its application can mend that"


class Raising:
    def __init__(self, error: BaseException) -> None:
        self.error = error

    async def call(self, *_: object) -> object:
        raise self.error


class Slow:
    """Answers only after everything else of its batch has had its chance."""

    async def call(self, *_: object) -> object:
        for _ in range(5):
            await asyncio.sleep(0)
        return "late"


class UnreadableError(PermissionError):
    pass


def save_that_raises(error: BaseException) -> Tool:
    return Tool(ToolDefinition("save"), Raising(error))


SLOW = Tool(ToolDefinition("slow"), Slow())


def batch(*names: str) -> list[ToolCall]:
    return [ToolCall(name, name) for name in names]


# The default processor


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ValueError("no such file"), "no such file"),
        (KeyError("city"), "'city'"),
        (ServerUnavailableError("the server 'git' is down"), "the server 'git' is down"),
    ],
)
def test_the_model_is_told_the_message_of_an_error_alone(error, told):
    assert DefaultToolExecutionErrorProcessor().process(error, CALL, SAVE) == told


@pytest.mark.parametrize("blank", [RuntimeError(), RuntimeError(""), RuntimeError("  ")])
def test_an_error_without_a_message_is_told_by_the_tool_and_its_type(blank: Exception):
    message = DefaultToolExecutionErrorProcessor().process(blank, CALL, SAVE)

    assert message.endswith(" save (RuntimeError)")


async def test_a_failure_that_a_tool_expects_is_told_to_the_model_and_leaves_no_traceback_in_the_log(caplog):
    expected, unexpected = (
        Tool(ToolDefinition(type(error).__name__), Raising(error))
        for error in (ToolExecutionError("no order B7"), KeyError("B7"))
    )
    calls = [ToolCall(tool.name, tool.name) for tool in (expected, unexpected)]

    results = await ToolCallingManager().execute(calls, AttachedTools([expected, unexpected]))

    assert (results[0].text, results[0].error_code) == ("no order B7", "tool_failed")
    assert [record.args[0] for record in caplog.records if record.exc_info] == ["KeyError"]


def test_always_raise_wraps_the_error_and_keeps_it_as_the_cause():
    error = ValueError("no such file")

    with pytest.raises(ToolExecutionError, match="no such file") as raised:
        DefaultToolExecutionErrorProcessor(always_raise=True).process(error, CALL, SAVE)

    assert raised.value.__cause__ is error


def test_always_raise_leaves_an_error_of_ours_what_it_is():
    error = ServerUnavailableError("the server 'git' is down")

    with pytest.raises(ServerUnavailableError) as raised:
        DefaultToolExecutionErrorProcessor(always_raise=True).process(error, CALL, SAVE)

    assert raised.value is error


@pytest.mark.parametrize("error", [PermissionError("no"), UnreadableError("no")])
def test_a_listed_error_and_its_subclasses_are_raised_unwrapped(error: Exception):
    processor = DefaultToolExecutionErrorProcessor(always_raise=True, reraise=[PermissionError])

    with pytest.raises(PermissionError) as raised:
        processor.process(error, CALL, SAVE)

    assert raised.value is error


def test_an_error_that_is_not_listed_is_told_to_the_model():
    processor = DefaultToolExecutionErrorProcessor(reraise=[UnreadableError])

    assert processor.process(PermissionError("not yours"), CALL, SAVE) == "not yours"


@pytest.mark.parametrize(
    "error", [OSError("/srv/key: denied"), FileNotFoundError("/srv/key"), ConnectionError("10.0.0.1")]
)
def test_what_disk_and_network_raise_is_the_applications_by_default(error: Exception):
    with pytest.raises(OSError, match=str(error)) as raised:
        DefaultToolExecutionErrorProcessor().process(error, CALL, SAVE)

    assert raised.value is error
    assert DefaultToolExecutionErrorProcessor(reraise=()).process(error, CALL, SAVE) == str(error)


@pytest.mark.parametrize("error", [ToolTimeoutError("too slow"), ServerUnavailableError("down")])
def test_an_error_of_ours_is_the_models_although_it_is_an_os_error_too(error: Exception):
    assert isinstance(error, OSError)
    assert DefaultToolExecutionErrorProcessor().process(error, CALL, SAVE) == str(error)


async def test_a_tool_that_cannot_read_its_file_ends_the_turn_and_shows_the_model_nothing_of_it():
    attached = AttachedTools([save_that_raises(FileNotFoundError("/srv/key")), SLOW])

    with pytest.raises(FileNotFoundError) as raised:
        await ToolCallingManager().execute(batch("slow", "save"), attached)

    assert [result.text for result in partial_results(raised.value)] == [
        "late",
        HANDED_ON,
    ]


# In a batch


async def test_an_error_that_ends_the_turn_is_raised_once_its_siblings_are_done_and_carries_their_results():
    error = PermissionError("log in again")
    manager = ToolCallingManager(error_processor=DefaultToolExecutionErrorProcessor(reraise=[PermissionError]))
    attached = AttachedTools([save_that_raises(error), SLOW])

    with pytest.raises(PermissionError) as raised:
        await manager.execute(batch("slow", "save", "gone"), attached)

    assert raised.value is error
    assert [(result.call_id, result.text, result.error_code) for result in partial_results(raised.value)] == [
        ("slow", "late", None),
        ("save", HANDED_ON, "tool_failed"),
        ("gone", "no tool named 'gone'", "unknown_tool"),
    ]


async def test_of_several_errors_that_end_the_turn_the_first_in_call_order_is_raised():
    first, second = ValueError("first"), ValueError("second")
    tools = [Tool(ToolDefinition("first"), Raising(first)), Tool(ToolDefinition("second"), Raising(second))]
    manager = ToolCallingManager(error_processor=DefaultToolExecutionErrorProcessor(reraise=[ValueError]))

    with pytest.raises(ValueError, match="first"):
        await manager.execute(batch("first", "second"), AttachedTools(tools))


async def test_a_processor_of_ones_own_is_given_the_error_the_call_and_the_tool():
    seen: list[Any] = []

    class Polite:
        def process(self, error: Exception, call: ToolCall, tool: Tool) -> str:
            seen.extend([error, call, tool])
            return "Sorry."

    error = RuntimeError("secret")
    tool = save_that_raises(error)
    [result] = await ToolCallingManager(error_processor=Polite()).execute([CALL], AttachedTools([tool]))

    assert seen == [error, CALL, tool]
    assert (result.is_error, result.error_code, result.text) == (True, "tool_failed", "Sorry.")


async def test_a_timeout_is_a_failure_that_the_processor_judges():
    class Never:
        async def call(self, *_: object) -> object:
            await asyncio.Event().wait()

    manager = ToolCallingManager(
        timeout_s=0.01, error_processor=DefaultToolExecutionErrorProcessor(reraise=[TimeoutError])
    )

    with pytest.raises(TimeoutError, match="did not answer within"):
        await manager.execute([CALL], AttachedTools([Tool(ToolDefinition("save"), Never())]))


async def test_calls_that_never_ran_are_no_failures_of_a_tool():
    manager = ToolCallingManager(error_processor=DefaultToolExecutionErrorProcessor(always_raise=True))

    [result] = await manager.execute(batch("gone"), AttachedTools([]))

    assert result.error_code == "unknown_tool"


@pytest.mark.parametrize(
    "error",
    [KeyboardInterrupt(), BaseExceptionGroup("both", [KeyboardInterrupt(), SystemExit()])],
)
def test_ctrl_c_passes_every_processor(error: BaseException):
    with pytest.raises(type(error)):
        asyncio.run(ToolCallingManager().execute([CALL], AttachedTools([save_that_raises(error)])))


class OddError(BaseException):
    """As some libraries have them: pytest's outcomes, trio's cancellation."""


NO_EXCEPTIONS = [
    (SystemExit("no licence"), "tried to end the program: no licence"),
    (SystemExit(), "tried to end the program"),
    (GeneratorExit(), "raised GeneratorExit"),
    (asyncio.CancelledError(), "was cancelled from within"),
    (OddError(), "raised OddError"),
    (BaseExceptionGroup("several", [SystemExit(1), ValueError()]), "raised BaseExceptionGroup"),
]


@pytest.mark.parametrize(("error", "deed"), NO_EXCEPTIONS)
async def test_what_would_end_the_program_is_the_failure_of_its_call_alone(error: BaseException, deed: str):
    results = await ToolCallingManager().execute(batch("save", "slow"), AttachedTools([save_that_raises(error), SLOW]))

    assert [(result.error_code, result.text) for result in results] == [
        ("tool_failed", f"the tool {deed}"),
        (None, "late"),
    ]


@pytest.mark.parametrize(("error", "deed"), [*NO_EXCEPTIONS, (KeyboardInterrupt(), "raised KeyboardInterrupt")])
async def test_nothing_that_a_plain_tool_raises_in_its_thread_gets_past_its_call(error: BaseException, deed: str):
    def save() -> None:
        raise error

    [result] = await ToolCallingManager().execute([CALL], AttachedTools([tool_from_function(save)]))

    assert (result.error_code, result.text) == ("tool_failed", f"the tool {deed}")


async def test_a_converter_that_would_end_the_program_fails_its_call():
    def convert(value: object) -> str:
        sys.exit(3)

    tool = Tool(ToolDefinition("slow"), Slow(), ToolMetadata(result_converter=convert))
    [result] = await ToolCallingManager().execute(batch("slow"), AttachedTools([tool]))

    assert result.error_code == "tool_failed"
    assert result.text.endswith(" to end the program: 3")


def test_a_call_that_nobody_runs_any_more_is_closed_like_every_coroutine():
    @types.coroutine
    def suspended() -> Generator[None]:
        yield

    async def wait() -> None:
        with contained("the tool"):
            await suspended()

    waiting = wait()

    async def begin() -> None:
        waiting.send(None)

    asyncio.run(begin())
    waiting.close()  # as the interpreter does at its end; an error if the coroutine does not end


# Limits that raise


async def test_a_limit_that_raises_ends_the_turn_and_carries_what_the_other_calls_came_to():
    manager = ToolCallingManager(limits=CallLimits(per_tool=1, on_breach="raise"))

    with pytest.raises(CallLimitError, match="the tool 'slow' may be called 1 times a turn") as raised:
        await manager.execute(batch("slow", "slow"), AttachedTools([SLOW]))

    assert [result.error_code for result in raised.value.results] == [None, "call_limit"]
    assert raised.value.results == partial_results(raised.value)


def test_an_error_that_ended_no_batch_carries_no_results():
    assert partial_results(ValueError()) == ()
    assert CallLimitError("used up").results == ()
