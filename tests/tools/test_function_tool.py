"""`FunctionToolCallback`: a tool of any function of one input, of a supplier, or of a consumer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any

import pytest
from pydantic import BaseModel
from typing_extensions import TypedDict

from tests.kit.tools import run
from toolsearch import (
    AttachedTools,
    FunctionToolCallback,
    ToolCall,
    ToolCallingManager,
    ToolContext,
    ToolMetadata,
    ToolParam,
)
from toolsearch.errors import BadArgumentsError, BadToolError


class Unit(Enum):
    C = "C"
    F = "F"


@dataclass
class WeatherRequest:
    location: Annotated[str, ToolParam("A city.")]
    unit: Unit = Unit.C


def weather(request: WeatherRequest) -> str:
    """Tell the weather."""
    return f"{request.location} in {request.unit.name}"


def test_the_definition_comes_from_the_input_type_and_the_docstring() -> None:
    definition = FunctionToolCallback.build("currentWeather", weather, tags=["weather"]).definition
    assert (definition.name, definition.description, definition.tags) == (
        "currentWeather",
        "Tell the weather.",
        ("weather",),
    )
    assert definition.input_schema == {
        "type": "object",
        "properties": {
            "location": {"type": "string", "description": "A city."},
            "unit": {"$ref": "#/$defs/Unit", "default": "C"},
        },
        "required": ["location"],
        "additionalProperties": False,
        "$defs": {"Unit": {"type": "string", "enum": ["C", "F"]}},
    }


async def test_a_function_gets_its_input_as_the_input_type() -> None:
    made = FunctionToolCallback.build("currentWeather", weather)
    assert await run(made, location="Rome", unit="F") == "Rome in F"


async def test_a_function_of_input_and_context_gets_both() -> None:
    made = FunctionToolCallback.build(
        "currentWeather", lambda request, context: (request.location, context["user"]), input_type=WeatherRequest
    )
    assert list(made.definition.input_schema["properties"]) == ["location", "unit"]
    assert await run(made, location="Rome") == ("Rome", "ada")


async def test_a_supplier_takes_nothing_and_may_take_the_context() -> None:
    def who(context: ToolContext) -> str:
        return context["user"]

    for function, result in ((lambda: "noon", "noon"), (who, "ada")):
        made = FunctionToolCallback.build("supply", function)
        assert made.definition.input_schema == {"type": "object", "properties": {}, "additionalProperties": False}
        assert await run(made) == result


async def test_a_consumer_gives_nothing_which_a_model_reads_as_done() -> None:
    seen: list[WeatherRequest] = []
    made = FunctionToolCallback.build("note", seen.append, input_type=WeatherRequest)
    call = ToolCall(id="1", name="note", arguments='{"location": "Rome"}')
    (result,) = await ToolCallingManager().execute([call], AttachedTools([made]))
    assert (result.text, result.is_error) == ("Done", False)
    assert seen == [WeatherRequest("Rome")]


async def test_async_functions_and_callable_objects_are_functions_too() -> None:
    async def wait(request: WeatherRequest) -> str:
        return request.location

    class Service:
        def __call__(self, request: WeatherRequest) -> str:
            return request.location

    for function in (wait, Service()):
        assert await run(FunctionToolCallback.build("f", function), location="Rome") == "Rome"


class Tree(BaseModel):
    children: list[Tree] = []


class Typed(TypedDict):
    word: str


@pytest.mark.parametrize(
    ("input_type", "arguments", "value"),
    [
        (Typed, {"word": "w"}, {"word": "w"}),
        (Tree, {"children": [{}]}, Tree(children=[Tree()])),
        (dict[str, int], {"a": 1}, {"a": 1}),
    ],
)
async def test_the_input_type_may_be_whatever_is_a_json_object(
    input_type: Any, arguments: dict[str, Any], value: object
) -> None:
    made = FunctionToolCallback.build("f", lambda request: request, input_type=input_type)
    assert made.definition.input_schema["type"] == "object"
    assert await run(made, **arguments) == value


@pytest.mark.parametrize("input_type", [int, str, list[int], Unit, WeatherRequest | Tree])
def test_an_input_type_that_is_no_object_is_refused_with_what_to_do(input_type: Any) -> None:
    with pytest.raises(BadToolError, match=r"f cannot be a tool: the input type .* is not a JSON object"):
        FunctionToolCallback.build("f", lambda request: request, input_type=input_type)


def test_an_input_type_that_json_cannot_carry_is_refused() -> None:
    with pytest.raises(BadToolError, match="JSON cannot carry"):
        FunctionToolCallback.build("f", lambda request: request, input_type=Callable[[], int])


def test_without_an_input_type_or_a_schema_the_function_is_refused() -> None:
    with pytest.raises(BadToolError, match="give an input_type"):
        FunctionToolCallback.build("f", lambda request: request)


def test_other_shapes_are_refused() -> None:
    with pytest.raises(BadToolError, match="use @tool"):
        FunctionToolCallback.build("f", lambda a, b, c: a + b + c)
    with pytest.raises(BadToolError, match="'get_weather'"):
        FunctionToolCallback.build("get weather", weather)


async def test_a_schema_of_ones_own_is_shown_and_alone_gives_a_plain_dict() -> None:
    schema = {"type": "object", "properties": {"x": {"type": "integer"}}}
    alone = FunctionToolCallback.build("f", lambda request: request, input_schema=schema)
    assert alone.definition.input_schema == schema
    assert await run(alone, x=1) == {"x": 1}
    typed = FunctionToolCallback.build("f", weather, input_schema=schema)
    assert typed.definition.input_schema == schema
    assert await run(typed, location="Rome") == "Rome in C"


def test_a_schema_of_ones_own_that_is_none_is_refused() -> None:
    with pytest.raises(BadToolError, match=r"^f cannot be a tool: input_schema must be"):
        FunctionToolCallback.build("f", weather, input_schema={})
    with pytest.raises(BadToolError, match="no JSON Schema, at"):
        FunctionToolCallback.build("f", weather, input_schema={"type": "object", "required": "location"})


async def test_arguments_that_make_no_input_are_refused_without_their_values() -> None:
    with pytest.raises(BadArgumentsError, match="unit: ") as raised:
        await run(FunctionToolCallback.build("f", weather), location="Rome", unit="hunter2")
    assert "hunter2" not in str(raised.value)


async def test_what_the_function_raises_is_a_failed_call() -> None:
    def broken(request: WeatherRequest) -> str:
        raise RuntimeError("no weather today")

    made = FunctionToolCallback.build("f", broken)
    call = ToolCall(id="1", name="f", arguments='{"location": "Rome"}')
    (result,) = await ToolCallingManager().execute([call], AttachedTools([made]))
    assert (result.text, result.is_error) == ("no weather today", True)


def test_metadata_is_kept_and_checked() -> None:
    metadata = ToolMetadata(return_direct=True, timeout_s=3, result_converter=str)
    assert FunctionToolCallback.build("f", weather, metadata=metadata).metadata == metadata
    with pytest.raises(BadToolError, match="timeout_s"):
        FunctionToolCallback.build("f", weather, metadata=ToolMetadata(timeout_s=0))
