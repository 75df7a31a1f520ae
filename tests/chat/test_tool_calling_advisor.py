"""The tool loop, whole and streamed: rounds, history, limits, direct returns, usage, and the steps of a subclass."""

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.kit.scripted_model import ScriptedModel, calls, says
from toolsearch.calling.hooks import DefaultToolExecutionErrorProcessor, partial_results
from toolsearch.calling.limits import CallLimits
from toolsearch.calling.manager import ToolCallingManager
from toolsearch.calling.resolvers import StaticToolCallbackResolver
from toolsearch.chat.advisor import ChatRequest, chain_of
from toolsearch.chat.model import ChatOptions, Prompt
from toolsearch.chat.tool_calling import ToolCallingAdvisor
from toolsearch.errors import BadSettingError, ChatModelError
from toolsearch.tools.calls import ToolCall
from toolsearch.tools.definition import ToolContext
from toolsearch.tools.function_tools import tool, tool_from_function
from toolsearch.wire.answers import ChatChunk, ChatResponse, ToolCallDelta, Usage
from toolsearch.wire.messages import AssistantMessage, SystemMessage, ToolMessage, UserMessage

QUESTION = UserMessage("What is 2 + 3?")
SYSTEM = SystemMessage("Be brief.")
REMINDER = UserMessage("Check it.")
ASKED = calls(("add", '{"a": 2, "b": 3}'))


def add(a: int, b: int) -> int:
    return a + b


def fail() -> str:
    raise RuntimeError("the disk is full")


@tool(return_direct=True)
def ticket(number: int) -> str:
    return f"Ticket {number}"


def request(*functions: Any, messages: Sequence[Any] = (SYSTEM, QUESTION), **options: Any) -> ChatRequest:
    tools = tuple(tool_from_function(function) for function in functions or (add,))
    return ChatRequest(Prompt(tuple(messages), ChatOptions(tools=tools, **options)))


def result_texts(message: object) -> list[str]:
    assert isinstance(message, ToolMessage)
    return [result.text for result in message.results]


# Rounds


async def test_an_answer_without_calls_ends_the_loop_at_once(run: Any) -> None:
    model = ScriptedModel(says("5"))

    response = await run(ToolCallingAdvisor(), model, request())

    assert (response.text, response.finish_reason, response.steps) == ("5", "stop", ())
    assert len(model.prompts) == 1


async def test_calls_are_run_and_their_results_sent_until_the_model_answers(run: Any) -> None:
    again = calls(("add", '{"a": 5, "b": 1}'))
    model = ScriptedModel(ASKED, again, says("6"))

    response = await run(ToolCallingAdvisor(), model, request())

    first, second = model.sent[1][2:], model.sent[2][4:]
    assert response.text == "6"
    assert [first[0], second[0]] == [ASKED.message, again.message]
    assert [result_texts(first[1]), result_texts(second[1])] == [["5"], ["6"]]
    assert list(response.steps) == [*first, *second]


async def test_parallel_calls_are_answered_in_one_message_in_their_order(run: Any) -> None:
    model = ScriptedModel(calls(("add", '{"a": 1, "b": 1}'), ("add", '{"a": 2, "b": 2}')), says("2 and 4"))

    await run(ToolCallingAdvisor(), model, request())

    message = model.sent[1][-1]
    assert [result.call_id for result in message.results] == ["c1", "c2"]
    assert result_texts(message) == ["2", "4"]


async def test_a_tool_that_fails_does_not_discard_what_the_others_found(run: Any) -> None:
    model = ScriptedModel(calls(("add", '{"a": 1, "b": 1}'), ("fail", "{}")), says("2, but the disk is full"))

    response = await run(ToolCallingAdvisor(), model, request(add, fail))

    good, bad = model.sent[1][-1].results
    assert (good.text, good.is_error) == ("2", False)
    assert bad.is_error
    assert "the disk is full" in bad.text
    assert response.finish_reason == "stop"


async def test_a_tool_name_that_the_model_made_up_is_an_error_for_it_to_read(run: Any) -> None:
    model = ScriptedModel(calls(("addd", "{}"), ("add", '{"a": 1, "b": 1}')), says("2"))

    response = await run(ToolCallingAdvisor(), model, request())

    made_up, real = model.sent[1][-1].results
    assert (made_up.error_code, real.text) == ("unknown_tool", "2")
    assert "did you mean add?" in made_up.text
    assert response.text == "2"


async def test_only_attached_tools_run_unless_a_resolver_is_given(run: Any) -> None:
    resolver = StaticToolCallbackResolver([tool_from_function(fail), tool_from_function(ticket)])
    shut, opened = (ScriptedModel(calls(("ticket", '{"number": 7}')), says("done")) for _ in range(2))

    await run(ToolCallingAdvisor(), shut, request())
    response = await run(ToolCallingAdvisor(resolver=resolver), opened, request())

    assert shut.sent[1][-1].results[0].error_code == "unknown_tool"
    assert response.text == "Ticket 7"


async def test_tools_get_the_context_and_the_model_never_sees_it(run: Any) -> None:
    def whoami(context: ToolContext) -> str:
        return context["user"]

    model = ScriptedModel(calls(("whoami", "{}")), says("You are ada."))

    await run(ToolCallingAdvisor(), model, request(whoami, tool_context={"user": "ada"}))

    assert result_texts(model.sent[1][-1]) == ["ada"]
    assert model.prompts[0].options.tools[0].definition.input_schema["properties"] == {}


@pytest.mark.parametrize(
    ("choice", "then"), [("required", None), ("add", None), ("auto", "auto"), ("none", "none"), (None, None)]
)
async def test_a_choice_that_forces_calls_holds_for_the_first_round_only(run: Any, choice: str, then: str) -> None:
    model = ScriptedModel(ASKED, says("5"))

    await run(ToolCallingAdvisor(), model, request(tool_choice=choice))

    assert [prompt.options.tool_choice for prompt in model.prompts] == [choice, then]


# Eligibility


async def test_calls_that_are_not_eligible_are_left_to_the_caller(run: Any) -> None:
    ran: list[int] = []

    def note(number: int) -> None:
        ran.append(number)

    model = ScriptedModel(calls(("note", '{"number": 1}')))

    response = await run(ToolCallingAdvisor(eligibility=lambda _: False), model, request(note))

    assert response.message.tool_calls == (ToolCall("c1", "note", '{"number": 1}'),)
    assert (response.finish_reason, ran, len(model.prompts)) == ("tool_calls", [], 1)


async def test_eligibility_can_go_by_the_reason_to_finish(run: Any) -> None:
    cut = replace(ASKED, finish_reason="length")
    advisor = ToolCallingAdvisor(eligibility=lambda response: response.finish_reason == "tool_calls")

    response = await run(advisor, ScriptedModel(ASKED, cut), request())

    assert response.finish_reason == "length"
    assert len(response.steps) == 2


async def test_a_response_without_calls_ends_the_loop_whatever_the_eligibility_says(run: Any) -> None:
    response = await run(ToolCallingAdvisor(eligibility=lambda _: True), ScriptedModel(says("5")), request())

    assert response.text == "5"


# Direct return


async def test_a_batch_that_returns_directly_is_the_answer(run: Any) -> None:
    model = ScriptedModel(calls(("ticket", '{"number": 1}'), ("ticket", '{"number": 2}')))

    response = await run(ToolCallingAdvisor(), model, request(ticket))

    assert (response.text, response.finish_reason) == ("Ticket 1\nTicket 2", "return_direct")
    assert [result.text for result in response.metadata["results"]] == ["Ticket 1", "Ticket 2"]
    assert len(response.steps) == 2
    assert len(model.prompts) == 1


async def test_a_mixed_batch_goes_back_to_the_model(run: Any) -> None:
    model = ScriptedModel(calls(("ticket", '{"number": 1}'), ("add", '{"a": 1, "b": 1}')), says("both"))

    response = await run(ToolCallingAdvisor(), model, request(ticket, add))

    assert (response.text, response.finish_reason) == ("both", "stop")


async def test_a_direct_tool_that_fails_goes_back_to_the_model(run: Any) -> None:
    model = ScriptedModel(calls(("ticket", '{"number": "x"}')), says("sorry"))

    response = await run(ToolCallingAdvisor(), model, request(ticket))

    assert response.text == "sorry"


# Usage


async def test_usage_is_summed_over_rounds_with_the_cache_and_nothing_is_counted_twice(run: Any) -> None:
    first = replace(ASKED, usage=Usage(100, 7, 60, 40))
    model = ScriptedModel(first, says("5", usage=Usage(130, 3, 100, 0)))

    response = await run(ToolCallingAdvisor(), model, request())

    assert response.usage == Usage(230, 10, 160, 40)


async def test_one_advisor_serves_requests_at_the_same_time_without_mixing_them() -> None:
    async def slow(number: int) -> int:
        await asyncio.sleep(0)
        return number

    def reply(prompt: Prompt) -> ChatResponse:
        last = prompt.messages[-1]
        if isinstance(last, UserMessage):
            return calls(("slow", f'{{"number": {last.text}}}'))
        return says(result_texts(last)[0])

    chain = chain_of([ToolCallingAdvisor()], ScriptedModel(reply))
    asked = [request(slow, messages=[UserMessage(str(number))]) for number in range(20)]

    whole = await asyncio.gather(*(chain.call(each) for each in asked))

    assert [response.text for response in whole] == [str(number) for number in range(20)]
    assert {response.usage for response in whole} == {Usage(20, 2)}
    assert {len(response.steps) for response in whole} == {2}


# History


async def test_with_history_each_request_holds_the_whole_turn(run: Any) -> None:
    model = ScriptedModel(ASKED, ASKED, says("5"))

    await run(ToolCallingAdvisor(), model, request())

    assert model.sent[0] == [SYSTEM, QUESTION]
    assert model.sent[1][:3] == [SYSTEM, QUESTION, ASKED.message]
    assert model.sent[2][: len(model.sent[1])] == model.sent[1]
    assert len(model.sent[2]) == 6


async def test_without_history_only_the_system_message_and_the_newest_results_are_sent(run: Any) -> None:
    model = ScriptedModel(ASKED, calls(("add", '{"a": 5, "b": 1}')), says("6"))

    response = await run(ToolCallingAdvisor(conversation_history=False), model, request())

    assert model.sent[0] == [SYSTEM, QUESTION]
    assert [len(messages) for messages in model.sent[1:]] == [2, 2]
    assert model.sent[2][0] == SYSTEM
    assert result_texts(model.sent[2][1]) == ["6"]
    assert len(response.steps) == 4


async def test_without_history_what_a_step_adds_to_the_newest_results_is_sent_too(run: Any) -> None:
    class Reminding(ToolCallingAdvisor):
        async def before_round(self, request: ChatRequest) -> ChatRequest:
            return replace(request, prompt=replace(request.prompt, messages=(*request.prompt.messages, REMINDER)))

    model = ScriptedModel(ASKED, says("5"))

    await run(Reminding(conversation_history=False), model, request())

    assert [type(message) for message in model.sent[1]] == [SystemMessage, ToolMessage, UserMessage]


async def test_limits_hold_for_the_whole_turn_also_without_history(run: Any) -> None:
    manager = ToolCallingManager(limits=CallLimits(per_tool=1))
    model = ScriptedModel(ASKED, calls(("add", '{"a": 5, "b": 1}')), says("5"))

    await run(ToolCallingAdvisor(manager, conversation_history=False), model, request())

    assert [sent[-1].results[0].error_code for sent in model.sent[1:]] == [None, "call_limit"]


async def test_each_request_is_a_turn_of_its_own(run: Any) -> None:
    advisor = ToolCallingAdvisor(ToolCallingManager(limits=CallLimits(per_tool=1)))

    for _ in range(2):
        model = ScriptedModel(ASKED, says("5"))
        await run(advisor, model, request())
        assert model.sent[1][-1].results[0].error_code is None


# Stopping


async def test_a_model_that_never_stops_calling_is_stopped(run: Any) -> None:
    model = ScriptedModel(lambda _: ASKED)

    response = await run(ToolCallingAdvisor(max_rounds=3), model, request())

    assert len(model.prompts) == 3
    assert response.finish_reason == "call_limit"
    assert "3 times without" in response.text
    assert response.usage == Usage(30, 3)
    assert isinstance(response.steps[-1], ToolMessage)


async def test_a_limit_that_ends_the_turn_keeps_what_was_done_and_leaves_no_call_unanswered(run: Any) -> None:
    manager = ToolCallingManager(limits=CallLimits(per_tool=2, on_breach="raise"))
    batch = calls(("add", '{"a": 1, "b": 1}'), ("add", '{"a": 2, "b": 2}'), ("add", '{"a": 3, "b": 3}'))
    model = ScriptedModel(batch)

    response = await run(ToolCallingAdvisor(manager), model, request())

    asked, answered = response.steps
    assert response.finish_reason == "call_limit"
    assert "2 times a turn" in response.text
    assert asked == batch.message
    assert [(result.call_id, result.error_code) for result in answered.results] == [
        ("c1", None),
        ("c2", None),
        ("c3", "call_limit"),
    ]
    assert len(model.prompts) == 1


async def test_an_error_that_is_the_applications_to_handle_reaches_it_and_ends_the_turn(run: Any) -> None:
    def forbidden() -> None:
        raise PermissionError("log in first")

    manager = ToolCallingManager(error_processor=DefaultToolExecutionErrorProcessor(reraise=[PermissionError]))
    model = ScriptedModel(calls(("forbidden", "{}"), ("add", '{"a": 1, "b": 1}')))

    with pytest.raises(PermissionError, match="log in first") as raised:
        await run(ToolCallingAdvisor(manager), model, request(forbidden, add))

    assert partial_results(raised.value)[1].text == "2"


def test_a_turn_has_at_least_one_round() -> None:
    with pytest.raises(BadSettingError, match="max_rounds"):
        ToolCallingAdvisor(max_rounds=0)


# Streaming


async def test_text_is_streamed_from_every_round_and_calls_are_not() -> None:
    asked = calls(("add", '{"a": 2, "b": 3}'), text="Let me see.")
    chain = chain_of([ToolCallingAdvisor()], ScriptedModel(asked, says("It is 5.")))

    chunks = [chunk async for chunk in chain.stream(request())]

    assert [chunk.text for chunk in chunks] == ["Let m", "e see.", "It i", "s 5.", ""]
    assert [chunk for chunk in chunks if chunk.tool_calls] == []
    assert [chunk.finish_reason for chunk in chunks] == [None, None, None, None, "stop"]
    assert chunks[-1].usage == Usage(20, 2)
    assert chunks[-1].message == AssistantMessage("It is 5.")


async def test_a_stream_runs_again_for_each_subscriber() -> None:
    chain = chain_of([ToolCallingAdvisor()], ScriptedModel(ASKED, says("5"), ASKED, says("5")))

    ends = [[chunk async for chunk in chain.stream(request())][-1] for _ in range(2)]

    assert [end.usage for end in ends] == [Usage(20, 2)] * 2


async def test_text_comes_before_the_round_is_over() -> None:
    ran: list[int] = []

    def note(number: int) -> None:
        ran.append(number)

    chain = chain_of([ToolCallingAdvisor()], ScriptedModel(calls(("note", '{"number": 1}'), text="On it."), says("ok")))
    stream = chain.stream(request(note))

    assert (await anext(stream)).text == "On "
    assert ran == []
    assert [chunk.text async for chunk in stream] == ["it.", "o", "k", ""]
    assert ran == [1]


async def test_what_a_tool_returns_directly_is_streamed() -> None:
    chain = chain_of([ToolCallingAdvisor()], ScriptedModel(calls(("ticket", '{"number": 1}'))))

    assert [chunk.text async for chunk in chain.stream(request(ticket))] == ["Ticket 1"]


async def test_half_a_call_is_never_run() -> None:
    ran: list[int] = []

    def note(number: int) -> None:
        ran.append(number)

    half = [ChatChunk(tool_calls=(ToolCallDelta(0, "c1", "note", '{"number": 1'),))]

    with pytest.raises(ChatModelError):
        [chunk async for chunk in chain_of([ToolCallingAdvisor()], ScriptedModel(half)).stream(request(note))]

    assert ran == []


# The steps of a subclass


class Noting(ToolCallingAdvisor):
    """Notes its steps and adds a tool and a message in each round."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[str] = []

    async def initialize(self, request: ChatRequest, chain: Any) -> ChatRequest:  # noqa: ARG002
        self.steps.append("initialize")
        return replace(request, context={**request.context, "round": 0})

    async def before_round(self, request: ChatRequest) -> ChatRequest:
        number = request.context["round"] + 1
        self.steps.append(f"before {number}")
        prompt = request.prompt
        options = replace(prompt.options, tools=(tool_from_function(add),))
        messages = (*prompt.messages, UserMessage(f"(round {number})"))
        return ChatRequest(Prompt(messages, options), {"round": number})

    async def after_round(self, request: ChatRequest, response: ChatResponse) -> ChatResponse:
        self.steps.append(f"after {request.context['round']}")
        return response

    async def after_calls(self, request: ChatRequest, calls: Any, results: Any) -> None:  # noqa: ARG002
        self.steps.append(f"{calls[0].name} gave {results[0].text}")

    async def finalize(self, request: ChatRequest) -> None:
        self.steps.append(f"finalize with {len(request.prompt.messages)} messages")


async def test_the_steps_are_taken_in_order_and_what_a_round_adds_stays(run: Any) -> None:
    advisor, model = Noting(), ScriptedModel(ASKED, says("5"))

    await run(advisor, model, request(fail))

    assert advisor.steps == [
        "initialize",
        "before 1",
        "after 1",
        "add gave 5",
        "before 2",
        "after 2",
        "finalize with 6 messages",
    ]
    assert model.sent[1][2] == UserMessage("(round 1)")
    assert [definition.name for definition in model.prompts[1].options.tools] == ["add"]


@pytest.mark.parametrize("reply", [ChatModelError("down"), says("5"), calls(("ticket", '{"number": 1}'))])
async def test_the_turn_is_finalized_once_however_it_ends(run: Any, reply: Any) -> None:
    advisor = Noting()

    with contextlib.suppress(ChatModelError):
        await run(advisor, ScriptedModel(reply, ChatModelError("down")), request())

    assert [step for step in advisor.steps if step.startswith("finalize")] == advisor.steps[-1:]


async def test_leaving_a_stream_early_finalizes_the_turn_and_ends_the_models_stream() -> None:
    advisor, model = Noting(), ScriptedModel(says("a long answer"))
    stream = chain_of([advisor], model).stream(request())

    await anext(stream)
    await stream.aclose()

    assert advisor.steps[-1].startswith("finalize")
    assert model.closed_streams == 1


async def test_cancelling_a_call_finalizes_the_turn() -> None:
    started = asyncio.Event()

    async def hang() -> None:
        started.set()
        await asyncio.Event().wait()

    class Hanging(Noting):
        async def before_round(self, request: ChatRequest) -> ChatRequest:
            return request

        async def after_round(self, request: ChatRequest, response: ChatResponse) -> ChatResponse:  # noqa: ARG002
            return response

    advisor = Hanging()
    task = asyncio.create_task(chain_of([advisor], ScriptedModel(calls(("hang", "{}")))).call(request(hang)))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert advisor.steps == ["initialize", "finalize with 2 messages"]


@pytest.mark.parametrize("order", ["300", None])
def test_an_order_that_is_no_number_is_told_with_its_advisor(order: Any) -> None:
    with pytest.raises(BadSettingError, match=f"the order of a ToolCallingAdvisor must be a number, not {order!r}"):
        chain_of([ToolCallingAdvisor(order=order)], ScriptedModel())
