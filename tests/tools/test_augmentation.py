"""Further arguments on a tool: shown to the model, handed to a consumer, unknown to the tool."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from tests.kit.tools import run
from toolsearch.calling.manager import ToolCallingManager
from toolsearch.calling.resolvers import AttachedTools
from toolsearch.errors import BadArgumentsError, BadToolError
from toolsearch.tools.augmentation import AugmentedArguments, AugmentedToolProvider, augmented
from toolsearch.tools.calls import ToolCall
from toolsearch.tools.definition import Tool, ToolContext
from toolsearch.tools.function_tools import tool, tool_from_function
from toolsearch.tools.json_schema import ToolParam
from toolsearch.tools.json_types import Json, JsonObject


class Thinking(BaseModel):
    thought: Annotated[str, ToolParam(description="Why this tool is called.")]
    confidence: str = "high"


@tool(return_direct=True, tags=["weather"])
def forecast(city: str, days: int = 1) -> str:
    """Forecast the weather."""
    return f"{city}, {days}"


def ignore(event: AugmentedArguments[Any]) -> None: ...


def test_the_fields_join_the_schema_and_are_required_as_the_model_says() -> None:
    schema = augmented(tool_from_function(forecast), Thinking, ignore).definition.input_schema
    assert list(schema["properties"]) == ["city", "days", "thought", "confidence"]
    assert schema["properties"]["thought"] == {"type": "string", "description": "Why this tool is called."}
    assert schema["required"] == ["city", "thought"]
    assert schema["additionalProperties"] is False


async def test_the_consumer_is_handed_the_fields_and_the_tool_runs_without_them() -> None:
    events: list[AugmentedArguments[Thinking]] = []
    made = augmented(tool_from_function(forecast), Thinking, events.append)
    sent = {"city": "Rome", "thought": "asked for"}

    assert await run(made, **sent) == "Rome, 1"
    (event,) = events
    assert event.arguments == Thinking(thought="asked for", confidence="high")
    assert event.raw_arguments == sent
    assert event.definition == made.definition
    assert event.context == {"user": "ada"}


async def test_the_model_may_be_a_dataclass_and_the_consumer_async() -> None:
    @dataclass
    class Note:
        note: str

    notes: list[str] = []

    async def keep(event: AugmentedArguments[Note]) -> None:
        notes.append(event.arguments.note)

    await run(augmented(tool_from_function(forecast), Note, keep), city="Rome", note="n")
    assert notes == ["n"]


def test_all_else_that_is_known_of_the_tool_survives() -> None:
    plain = tool_from_function(forecast)
    made = augmented(replace(plain, spec="app.py"), Thinking, ignore)
    assert made.metadata == plain.metadata
    assert made.metadata.return_direct
    assert (made.definition.description, made.definition.tags) == ("Forecast the weather.", ("weather",))
    assert made.source == plain.source
    assert made.spec == ""  # opened again, its source would give the tool without the fields


def test_a_tool_without_properties_gets_them() -> None:
    class Callback:
        async def call(self, arguments: JsonObject, context: ToolContext) -> Json:
            return dict(arguments), dict(context)

    bare = Tool(replace(tool_from_function(forecast).definition, input_schema={"type": "object"}), Callback())
    schema = augmented(bare, Thinking, ignore).definition.input_schema
    assert list(schema["properties"]) == ["thought", "confidence"]
    assert schema["required"] == ["thought"]


async def test_the_fields_can_be_left_in_for_a_tool_that_takes_any() -> None:
    def echo(**more: Any) -> dict[str, Any]:
        return more

    made = augmented(tool_from_function(echo), Thinking, ignore, remove=False)
    assert await run(made, thought="t", x=1) == {"thought": "t", "x": 1}


async def test_the_fields_can_be_left_in_for_a_function_that_has_parameters_of_their_names() -> None:
    """The model reads what the fields say; what the function needs stays required, and its defaults hold."""

    @tool
    def explain(city: str, thought: str, confidence: str = "low") -> str:
        return f"{city}, {thought}, {confidence}"

    events: list[AugmentedArguments[Thinking]] = []
    made = augmented(tool_from_function(explain), Thinking, events.append, remove=False)
    schema = made.definition.input_schema
    assert schema["properties"]["thought"] == {"type": "string", "description": "Why this tool is called."}
    assert schema["required"] == ["city", "thought"]

    assert await run(made, city="Rome", thought="t") == "Rome, t, low"
    assert [event.arguments for event in events] == [Thinking(thought="t", confidence="high")]


def test_leaving_the_fields_in_for_a_function_that_does_not_take_them_is_an_error_that_says_what_to_do() -> None:
    @tool
    def half(thought: str) -> None: ...

    with pytest.raises(BadToolError, match=r"does not take 'confidence'; give its function a parameter"):
        augmented(tool_from_function(half), Thinking, ignore, remove=False)
    with pytest.raises(BadToolError, match="does not take 'confidence'"):
        augmented(tool_from_function(forecast), Thinking, ignore, remove=False)


def test_a_name_clash_is_an_error() -> None:
    class Clash(BaseModel):
        city: str

    with pytest.raises(BadToolError, match=r"'city' already; rename .* remove=False"):
        augmented(tool_from_function(forecast), Clash, ignore)


def test_a_tool_that_cannot_run_cannot_be_augmented() -> None:
    with pytest.raises(BadToolError, match="no way to run"):
        augmented(Tool(tool_from_function(forecast).definition), Thinking, ignore)


def test_different_definitions_of_one_name_stay_apart() -> None:
    class Place(BaseModel):
        street: str

    def visit(place: Place): ...

    visit.__annotations__["place"] = Place
    made_of_own = tool_from_function(visit)

    def other() -> type:
        class Place(BaseModel):
            room: int

        class Where(BaseModel):
            where: Place

        Where.model_rebuild(_types_namespace={"Place": Place})
        return Where

    schema = augmented(made_of_own, other(), ignore).definition.input_schema
    assert schema["properties"]["where"] == {"$ref": "#/$defs/Place_2"}
    assert list(schema["$defs"]["Place"]["properties"]) == ["street"]
    assert list(schema["$defs"]["Place_2"]["properties"]) == ["room"]


async def test_fields_that_do_not_fit_are_a_failed_call_without_their_values() -> None:
    with pytest.raises(BadArgumentsError, match="thought: ") as raised:
        await run(augmented(tool_from_function(forecast), Thinking, ignore), city="Rome", confidence="hunter2")
    assert "hunter2" not in str(raised.value)


async def test_a_consumer_that_fails_is_a_failed_call_and_the_tool_does_not_run() -> None:
    ran: list[str] = []

    def act(city: str) -> None:
        ran.append(city)

    def broken(event: AugmentedArguments[Thinking]) -> None:
        raise RuntimeError("the log is full")

    made = augmented(tool_from_function(act), Thinking, broken)
    call = ToolCall(id="1", name="act", arguments='{"city": "Rome", "thought": "t"}')
    (result,) = await ToolCallingManager().execute([call], AttachedTools([made]))
    assert (result.is_error, result.text) == (True, "the log is full")
    assert ran == []


def test_a_provider_augments_all_tools_of_an_object_when_it_is_asked() -> None:
    class Weather:
        @tool
        def now(self, city: str) -> str:
            return city

        @tool
        def later(self, city: str) -> str:
            return city

    made = AugmentedToolProvider(Weather(), model=Thinking, consumer=ignore).tools()
    assert [each.name for each in made] == ["now", "later"]
    assert all("thought" in each.definition.input_schema["required"] for each in made)
