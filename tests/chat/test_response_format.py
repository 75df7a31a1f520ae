"""Answers of a type: how a model is asked for one, and what is made of what it says."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, field_validator
from typing_extensions import TypedDict

from tests.kit.scripted_model import ScriptedModel, calls, says
from toolsearch.chat.client import ChatClient
from toolsearch.chat.memory import MemoryAdvisor, MessageWindowMemory
from toolsearch.chat.model import ChatModel, ChatOptions, ResponseFormat
from toolsearch.chat.telemetry_model import TelemetryModel
from toolsearch.errors import BadAnswerError, BadSettingError, BadToolError, ChatModelError
from toolsearch.telemetry import Telemetry
from toolsearch.tools.json_schema import ToolParam
from toolsearch.wire.answers import ChatResponse, FinishReason, Usage, aggregate
from toolsearch.wire.messages import AssistantMessage, SystemMessage, UserMessage


class Forecast(BaseModel):
    """The weather of a day."""

    day: date
    degrees: Annotated[float, ToolParam("In Celsius.")]
    rain: bool = False


SCHEMA = {
    "type": "object",
    "description": "The weather of a day.",
    "properties": {
        "day": {"type": "string", "format": "date"},
        "degrees": {"type": "number", "description": "In Celsius."},
        "rain": {"type": "boolean", "default": False},
    },
    "required": ["day", "degrees"],
    "additionalProperties": False,
}
ANSWER = '{"day": "2026-03-01", "degrees": 7.5}'
MEANT = Forecast(day=date(2026, 3, 1), degrees=7.5)


class NativeModel(ScriptedModel):
    native_response_format = True


def answer(text: str, finish_reason: FinishReason = "stop") -> ChatResponse:
    return ChatResponse(AssistantMessage(text), finish_reason)


async def test_an_answer_is_given_as_a_pydantic_model_a_dataclass_a_typed_dict_or_a_dict() -> None:
    @dataclass
    class Data:
        day: date
        degrees: float

    class Typed(TypedDict):
        day: str
        degrees: float

    request = ChatClient(ScriptedModel(*[says(ANSWER)] * 4)).prompt("Tomorrow?")

    assert await request.entity(Forecast) == MEANT
    assert await request.entity(Data) == Data(date(2026, 3, 1), 7.5)
    assert await request.entity(Typed) == {"day": "2026-03-01", "degrees": 7.5}
    assert await request.entity(SCHEMA) == {"day": "2026-03-01", "degrees": 7.5}


def test_code_without_an_event_loop_just_waits_for_the_value() -> None:
    assert ChatClient(ScriptedModel(says(ANSWER))).prompt("Tomorrow?").entity_sync(Forecast) == MEANT


async def test_a_model_that_cannot_be_held_to_a_schema_is_told_of_it_in_each_round() -> None:
    """Behind all advisors, so that no memory keeps it; and a tool of the request is called all the same."""

    def look() -> str:
        return "7.5 degrees"

    memory = MessageWindowMemory()
    model = ScriptedModel(calls(("look", "{}")), says(ANSWER))
    client = ChatClient(model, tools=[look], system="Be brief.", advisors=[MemoryAdvisor(memory)])
    assert await client.prompt("Tomorrow?").context(conversation_id="a").entity(Forecast) == MEANT

    for prompt in model.prompts:
        (system,) = [message.text for message in prompt.messages if isinstance(message, SystemMessage)]
        assert system.startswith("Be brief.\n\nYour final answer")
        assert json.loads(system[system.index("{") :]) == SCHEMA
        assert prompt.options.response_format is None
    assert "JSON Schema" not in str(memory.get("a"))


@pytest.mark.parametrize("wrap", [lambda model: model, lambda model: TelemetryModel(model, Telemetry())])
async def test_a_model_that_can_be_held_to_a_schema_is_given_it_and_nothing_is_said(wrap: Any) -> None:
    model = NativeModel(says(ANSWER))
    wrapped: ChatModel = wrap(model)
    assert await ChatClient(wrapped).prompt("Tomorrow?").entity(Forecast) == MEANT

    (prompt,) = model.prompts
    assert not [message for message in prompt.messages if isinstance(message, SystemMessage)]
    wanted = prompt.options.response_format
    assert wanted is not None
    assert (wanted.name, wanted.schema) == ("Forecast", SCHEMA)
    assert wanted.strict_schema is not None
    assert wanted.strict_schema["required"] == ["day", "degrees", "rain"]


async def test_a_schema_that_no_provider_could_hold_a_model_to_is_told_in_words() -> None:
    class Counts(BaseModel):
        by_word: dict[str, int]

    model = NativeModel(says('{"by_word": {"a": 1}}'))
    assert (await ChatClient(model).prompt("Count.").entity(Counts)).by_word == {"a": 1}
    assert isinstance(model.prompts[0].messages[0], SystemMessage)


async def test_a_streamed_answer_is_read_by_its_format() -> None:
    wanted = ResponseFormat.of(Forecast)
    client = ChatClient(ScriptedModel(says(ANSWER)), options=ChatOptions(response_format=wanted))
    response = aggregate([chunk async for chunk in client.prompt("Tomorrow?").stream()])
    assert wanted.read(response) == MEANT


@pytest.mark.parametrize("text", [f"```json\n{ANSWER}\n```", f"\n```\n{ANSWER}\n``` ", f" {ANSWER}\n"])
def test_a_fence_around_an_answer_is_taken_off(text: str) -> None:
    assert ResponseFormat.of(Forecast).read(answer(text)) == MEANT


def test_a_null_for_what_may_be_left_out_counts_as_left_out() -> None:
    """As strict schemas have models write it."""
    text = '{"day": "2026-03-01", "degrees": 7.5, "rain": null}'
    assert ResponseFormat.of(Forecast).read(answer(text)) == MEANT
    assert ResponseFormat.of(SCHEMA).read(answer(text)) == {"day": "2026-03-01", "degrees": 7.5}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("It will rain.", "it is not JSON: Expecting value at line 1, column 1"),
        ("", "it is not JSON"),
        ("[1]", "not an object"),
        ('{"degrees": NaN}', "JSON does not have"),
        ("[" * 100_000, "nested too deeply"),
        ('{"degrees": "hunter2"}', "answer: missing day"),
        ('{"day": "hunter2", "degrees": 1}', "day: Input should be a valid date"),
    ],
)
def test_an_answer_that_does_not_fit_is_an_error_that_says_where_and_quotes_nothing(text: str, reason: str) -> None:
    response = answer(text)
    with pytest.raises(BadAnswerError, match=r"^the answer is no Forecast: ") as raised:
        ResponseFormat.of(Forecast).read(response)
    assert reason in str(raised.value)
    assert "hunter2" not in str(raised.value)
    assert raised.value.response is response
    assert (raised.value.code, raised.value.status) == ("bad_answer", 502)
    assert isinstance(raised.value, ChatModelError)


def test_an_answer_that_was_cut_off_says_so() -> None:
    with pytest.raises(BadAnswerError, match=r"no Forecast \(it ended with 'length'\): it is not JSON"):
        ResponseFormat.of(Forecast).read(answer('{"day": "2026', "length"))


def test_what_the_type_itself_checks_counts_too() -> None:
    class Even(BaseModel):
        number: int

        @field_validator("number")
        @classmethod
        def check(cls, value: int) -> int:
            if value % 2:
                raise ValueError("it is odd")
            return value

    with pytest.raises(BadAnswerError, match="number: Value error, it is odd"):
        ResponseFormat.of(Even).read(answer('{"number": 3}'))


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (list[int], "is not a JSON object"),
        (type("Opaque", (), {}), "JSON cannot carry"),
        ({"type": "array"}, "the schema of an answer must be a JSON Schema whose type is 'object'"),
        ({"type": "object", "required": "x"}, "the schema of an answer is no JSON Schema"),
    ],
)
async def test_what_no_answer_can_be_is_refused_before_the_model_is_asked(kind: Any, reason: str) -> None:
    model = ScriptedModel(says(ANSWER))
    with pytest.raises(BadToolError, match=reason):
        await ChatClient(model).prompt("x").entity(kind)
    assert model.prompts == []


async def test_a_model_whose_answer_does_not_fit_is_told_why_and_asked_again_as_often_as_was_said() -> None:
    """No memory keeps the answers that do not fit; what tools did on the way stays in the steps, and is paid for."""

    def look() -> str:
        return "7.5 degrees"

    memory = MessageWindowMemory()
    bad = says('{"degrees": "7.5"}', usage=Usage(10, 1))
    model = ScriptedModel(calls(("look", "{}"), usage=Usage(5, 1)), bad, says(ANSWER, usage=Usage(20, 1)), bad, bad)
    client = ChatClient(model, tools=[look], advisors=[MemoryAdvisor(memory)])
    request = client.prompt("Tomorrow?").context(conversation_id="a")

    assert await request.entity(Forecast, attempts=3) == MEANT
    *_, refused, complaint = model.prompts[2].messages
    assert isinstance(refused, AssistantMessage)
    assert refused.text == '{"degrees": "7.5"}'
    assert isinstance(complaint, UserMessage)
    assert "degrees: expected number, got string" in complaint.text
    assert "missing day" in complaint.text
    kept = memory.get("a")
    assert [type(message).__name__ for message in kept] == [
        "UserMessage",
        "AssistantMessage",
        "ToolMessage",
        "AssistantMessage",
    ]
    assert getattr(kept[-1], "text", "") == ANSWER

    with pytest.raises(BadAnswerError) as raised:
        await request.entity(Forecast, attempts=2)
    assert raised.value.response.usage == Usage(20, 2)
    assert len(model.prompts) == 5


@pytest.mark.parametrize(
    "response", [answer("I cannot.", "content_filter"), calls(("look", "{}"))], ids=["refused", "calls"]
)
async def test_a_model_is_not_asked_again_where_it_could_not_do_better(response: ChatResponse) -> None:
    model = ScriptedModel(response)
    with pytest.raises(BadAnswerError):
        await ChatClient(model, execute_tools=False).prompt("x").entity(Forecast, attempts=3)
    assert len(model.prompts) == 1


async def test_less_than_one_attempt_is_refused() -> None:
    with pytest.raises(BadSettingError, match="attempts must be 1 or more"):
        await ChatClient(ScriptedModel()).prompt("x").entity(Forecast, attempts=0)
