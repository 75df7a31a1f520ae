"""What a model is told of parameters and of the fields of their types: descriptions, what is required, schemas."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Annotated, Any, Generic, Literal, NotRequired, Optional, TypeVar
from uuid import UUID

import pytest
from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypeAliasType, TypedDict

from tests.kit.tools import run
from toolsearch import (
    AttachedTools,
    ToolCall,
    ToolCallingManager,
    ToolContext,
    ToolParam,
    json_schema_of,
    tool_from_function,
)
from toolsearch.errors import BadArgumentsError, BadToolError
from toolsearch.wire import strict_schema


def schema_of(function: Callable[..., Any]) -> dict[str, Any]:
    return dict(tool_from_function(function).definition.input_schema)


def test_tool_param_describes_before_a_bare_string_a_field_and_the_docstring() -> None:
    def f(
        a: Annotated[int, ToolParam("param"), "bare", Field(description="field")],
        b: Annotated[int, "bare", Field(description="field")],
        c: Annotated[int, Field(description="field", ge=0)],
        d: int,
    ):
        """Do it.

        Args:
            a: doc
            b: doc
            c: doc
            d: doc
        """

    properties = schema_of(f)["properties"]
    assert {name: each["description"] for name, each in properties.items()} == {
        "a": "param",
        "b": "bare",
        "c": "field",
        "d": "doc",
    }


def test_parameters_are_required_unless_a_default_or_optional_says_otherwise() -> None:
    def f(a: int, b: int | None, c: Optional[str], d: Annotated[int, Field(default=2)], e: int = 1): ...  # noqa: UP045

    assert schema_of(f)["required"] == ["a"]


def test_two_defaults_of_one_parameter_are_refused() -> None:
    def f(a: Annotated[int, Field(default=2)] = 3): ...

    with pytest.raises(BadToolError, match="'a' has two defaults"):
        tool_from_function(f)


def test_tool_param_required_beats_a_default_and_optional() -> None:
    def f(
        a: Annotated[int, ToolParam(required=False)],
        b: Annotated[int | None, ToolParam(required=True)],
        c: Annotated[int, ToolParam(required=True)] = 3,
    ): ...

    assert schema_of(f)["required"] == ["b", "c"]


async def test_an_optional_parameter_without_a_default_is_none_when_left_out() -> None:
    def f(a: Annotated[str, ToolParam(required=False)], b: int | None) -> tuple[str | None, int | None]:
        return a, b

    assert await run(tool_from_function(f)) == (None, None)
    assert await run(tool_from_function(f), a="x", b=1) == ("x", 1)


async def test_a_default_within_a_pydantic_field_is_used() -> None:
    def f(a: Annotated[int, Field(default=3)]) -> int:
        return a

    assert schema_of(f)["properties"]["a"] == {"type": "integer", "default": 3}
    assert await run(tool_from_function(f)) == 3


def test_tool_param_describes_fields_of_models_dataclasses_and_typed_dicts_at_any_depth() -> None:
    class Model(BaseModel):
        x: Annotated[int, ToolParam("in a model", required=True)]

    @dataclass
    class Data:
        x: Annotated[list[Model], ToolParam("in a dataclass")]

    class Typed(TypedDict):
        x: Annotated[Data, ToolParam("in a TypedDict")]

    def f(typed: Typed): ...

    definitions = schema_of(f)["$defs"]
    assert {name: definitions[name]["properties"]["x"]["description"] for name in definitions} == {
        "Model": "in a model",
        "Data": "in a dataclass",
        "Typed": "in a TypedDict",
    }


async def test_tool_param_makes_fields_of_models_and_dataclasses_optional_at_any_depth() -> None:
    """What is left out is None, as a parameter would be; a default of the field's own goes before that."""

    class Unit(Enum):
        C = "celsius"

    class Model(BaseModel):
        model_config = ConfigDict(strict=True)
        unit: Annotated[Unit, ToolParam("The unit.", required=False)]
        day: Annotated[date | None, ToolParam(required=False)]
        place: str

    @dataclass
    class Data:
        model: Model
        more: Annotated[Model, ToolParam(required=False)]
        count: Annotated[int, ToolParam(required=False)] = 3

    def f(data: Data) -> Data:
        return data

    definitions = schema_of(f)["$defs"]
    assert definitions["Model"]["required"] == ["place"]
    assert definitions["Data"]["required"] == ["model"]
    assert definitions["Data"]["properties"]["count"] == {"type": "integer", "default": 3}
    assert "default" not in {**definitions["Model"]["properties"]["unit"], **definitions["Data"]["properties"]["more"]}

    data: Data = await run(tool_from_function(f), data={"model": {"place": "Rome"}})
    assert (data.model.unit, data.model.day, data.model.place) == (None, None, "Rome")
    assert (data.more, data.count) == (None, 3)
    told: Data = await run(tool_from_function(f), data={"model": {"place": "Rome", "unit": "celsius"}, "count": 1})
    assert (told.model.unit, told.count) == (Unit.C, 1)


async def test_tool_param_requires_fields_at_any_depth_whatever_default_they_have() -> None:
    class Model(BaseModel):
        unit: Annotated[str, ToolParam("The unit.", required=True)] = "celsius"
        day: Annotated[date | None, ToolParam(required=True)] = None
        hour: int = 12

    class Typed(TypedDict, total=False):
        model: Annotated[Model, ToolParam("Which.", required=True)]
        words: list[Annotated[str, ToolParam(required=True)]]

    @dataclass
    class Data:
        early: Annotated[int, ToolParam(required=True)] = 1
        typed: Annotated[Typed | None, ToolParam(required=True)] = None
        late: int = 2

    def f(data: Data) -> Data:
        return data

    made = tool_from_function(f)
    definitions = schema_of(f)["$defs"]
    assert {name: each.get("required") for name, each in definitions.items()} == {
        "Model": ["unit", "day"],
        "Typed": ["model"],
        "Data": ["early", "typed"],
    }
    assert definitions["Model"]["properties"]["unit"] == {"type": "string", "description": "The unit."}
    assert definitions["Model"]["properties"]["hour"] == {"type": "integer", "default": 12}
    assert "x-toolsearch" not in json.dumps(made.definition.input_schema)
    assert "x-toolsearch" not in json.dumps(json_schema_of(Data, additional_properties=True))

    told: Data = await run(made, data={"early": 3, "typed": {"model": {"unit": "kelvin", "day": None}}})
    assert told.typed == {"model": Model(unit="kelvin")}
    call = ToolCall("1", "f", json.dumps({"data": {"early": 3, "typed": {"model": {"day": None}}}}))
    (refused,) = await ToolCallingManager().execute([call], AttachedTools([made]))
    assert (refused.error_code, "unit" in refused.text) == ("bad_arguments", True)


async def test_a_field_of_a_typed_dict_is_optional_by_not_required() -> None:
    class Typed(TypedDict):
        x: NotRequired[Annotated[int, ToolParam("how many", required=False)]]

    class Refused(TypedDict):
        x: Annotated[int, ToolParam(required=False)]

    def f(typed: Typed) -> Typed:
        return typed

    def g(typed: Refused): ...

    assert schema_of(f)["$defs"]["Typed"] == {
        "type": "object",
        "properties": {"x": {"type": "integer", "description": "how many"}},
        "additionalProperties": False,
    }
    assert await run(tool_from_function(f), typed={}) == {"x": None}
    with pytest.raises(BadToolError, match=r"'typed' .* 'x': .* NotRequired"):
        tool_from_function(g)


async def test_what_a_strict_schema_offers_for_an_optional_field_is_taken() -> None:
    @dataclass
    class Data:
        x: Annotated[int, ToolParam(required=False)]

    def f(data: Data) -> int | None:
        return data.x

    strict = strict_schema(tool_from_function(f).definition.input_schema)
    assert strict is not None
    assert strict["$defs"]["Data"]["properties"]["x"]["type"] == ["integer", "null"]
    call = ToolCall(id="1", name="f", arguments='{"data": {"x": null}}')
    (result,) = await ToolCallingManager().execute([call], AttachedTools([tool_from_function(f)]))
    assert (result.is_error, result.text) == (False, "Done")


def test_tool_param_as_a_default_is_refused_with_what_to_write_instead() -> None:
    def f(a: int = ToolParam("how many")): ...

    with pytest.raises(BadToolError, match=r"Annotated\[<type>, ToolParam\(...\)\]"):
        tool_from_function(f)


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Unit(Enum):
    C = "celsius"


def test_scalars_have_the_types_and_formats_of_json_schema() -> None:
    def f(
        day: date,
        at: datetime,
        lasts: timedelta,
        key: UUID,
        data: bytes,
        level: Level,
        unit: Unit,
        only: Literal[1, "a"],
    ): ...

    properties = schema_of(f)["properties"]
    definitions = schema_of(f)["$defs"]
    assert properties == {
        "day": {"type": "string", "format": "date"},
        "at": {"type": "string", "format": "date-time"},
        "lasts": {"type": "string", "format": "duration"},
        "key": {"type": "string", "format": "uuid"},
        "data": {"type": "string", "contentEncoding": "base64"},
        "level": {"$ref": "#/$defs/Level"},
        "unit": {"$ref": "#/$defs/Unit"},
        "only": {"enum": [1, "a"]},
    }
    assert definitions == {
        "Level": {"type": "integer", "enum": [1, 2]},
        "Unit": {"type": "string", "enum": ["celsius"]},
    }


async def test_scalars_arrive_as_what_they_are_annotated_as() -> None:
    def f(at: datetime, price: Decimal, data: bytes, level: Level, seen: set[int], pair: tuple[int, str]) -> Any:
        return at, price, data, level, seen, pair

    sent = {"at": "2024-05-01T10:00:00Z", "price": "1.10", "data": "aGk=", "level": 2, "seen": [1, 1], "pair": [1, "a"]}
    assert await run(tool_from_function(f), **sent) == (
        datetime(2024, 5, 1, 10, tzinfo=UTC),
        Decimal("1.10"),
        b"hi",
        Level.HIGH,
        {1},
        (1, "a"),
    )


async def test_a_strict_model_takes_the_dates_and_enums_that_json_can_only_write_as_text() -> None:
    class Booking(BaseModel):
        model_config = ConfigDict(strict=True)
        day: date
        unit: Unit

    def f(booking: Booking) -> Booking:
        return booking

    booking = await run(tool_from_function(f), booking={"day": "2024-05-01", "unit": "celsius"})
    assert booking == Booking(day=date(2024, 5, 1), unit=Unit.C)


def test_collections_nest_and_maps_stay_open() -> None:
    def f(a: list[list[int]], b: dict[str, list[str]], c: set[int], d: list[dict[str, int | None]]): ...

    assert schema_of(f)["properties"] == {
        "a": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
        "b": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}},
        "c": {"type": "array", "items": {"type": "integer"}, "uniqueItems": True},
        "d": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            },
        },
    }


def test_nested_objects_are_closed_unless_their_class_opens_them() -> None:
    class Open(BaseModel):
        model_config = ConfigDict(extra="allow")
        x: int

    class Inner(TypedDict):
        properties: NotRequired[int]

    @dataclass
    class Outer:
        inner: Inner
        items: list[Open] = field(default_factory=list)

    def f(outer: Outer): ...

    schema = schema_of(f)
    assert schema["additionalProperties"] is False
    assert {name: each["additionalProperties"] for name, each in schema["$defs"].items()} == {
        "Outer": False,
        "Inner": False,
        "Open": True,
    }
    assert schema["$defs"]["Inner"]["properties"] == {"properties": {"type": "integer"}}


def test_definitions_stand_at_the_root_and_are_shared() -> None:
    class Address(BaseModel):
        street: str

    def f(home: Address, work: list[Address]): ...

    schema = schema_of(f)
    assert list(schema["$defs"]) == ["Address"]
    assert schema["properties"] == {
        "home": {"$ref": "#/$defs/Address"},
        "work": {"type": "array", "items": {"$ref": "#/$defs/Address"}},
    }


def test_different_classes_of_one_name_are_numbered() -> None:
    def with_field(name: str) -> type[BaseModel]:
        return type("Address", (BaseModel,), {"__annotations__": {name: str}, "__qualname__": f"{name}.Address"})

    def f(home, work): ...

    f.__annotations__.update(home=with_field("street"), work=with_field("floor"))
    schema = schema_of(f)
    names = {name: each["$ref"].removeprefix("#/$defs/") for name, each in schema["properties"].items()}
    assert sorted(schema["$defs"]) == ["Address", "Address_2"]
    assert list(schema["$defs"][names["home"]]["properties"]) == ["street"]
    assert list(schema["$defs"][names["work"]]["properties"]) == ["floor"]


Item = TypeVar("Item")


class Page(BaseModel, Generic[Item]):
    items: list[Item]


def test_names_in_a_schema_hold_nothing_of_where_a_type_is_defined() -> None:
    """Not the function or class that it is in, not its module, be it generic, an alias, or one of several namesakes."""

    class Row(BaseModel):
        x: int

    class Other:
        class Row(BaseModel):
            y: str

    either, other_either = TypeAliasType("Either", "int | str"), TypeAliasType("Either", "float")

    def f(page: Page[Row], pages: Page[list[Row]], row: Other.Row, either, number): ...

    f.__annotations__.update(either=either, number=other_either)
    schema = schema_of(f)

    assert sorted(schema["$defs"]) == ["Either", "Either_2", "Page_Row", "Page_list_Row", "Row", "Row_2"]
    text = json.dumps(schema)
    assert not [word for word in ("test_", "locals", "Other", "title") if word in text]
    row = schema["$defs"]["Page_Row"]["properties"]["items"]["items"]["$ref"].removeprefix("#/$defs/")
    assert list(schema["$defs"][row]["properties"]) == ["x"]


class Tree(BaseModel):
    """A tree."""

    children: list["Tree"] = []


def test_recursive_types_refer_to_themselves() -> None:
    def f(tree: Tree): ...

    assert schema_of(f)["$defs"]["Tree"] == {
        "type": "object",
        "description": "A tree.",
        "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/Tree"}, "default": []}},
        "additionalProperties": False,
    }


def test_unions_of_models_with_a_discriminator_keep_their_references() -> None:
    class Cat(BaseModel):
        kind: Literal["cat"]

    class Dog(BaseModel):
        kind: Literal["dog"]

    def f(pet: Annotated[Cat | Dog, Field(discriminator="kind")]): ...

    pet = schema_of(f)["properties"]["pet"]
    assert pet["oneOf"] == [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}]
    assert pet["discriminator"]["mapping"] == {"cat": "#/$defs/Cat", "dog": "#/$defs/Dog"}


def test_titles_are_only_those_that_somebody_wrote() -> None:
    class Named(BaseModel):
        model_config = ConfigDict(title="A better name")
        x: Annotated[int, Field(title="The x")]
        y: int

    def f(named: Named): ...

    definitions = schema_of(f)["$defs"]
    (definition,) = definitions.values()
    assert definition["title"] == "A better name"
    assert definition["properties"] == {"x": {"type": "integer", "title": "The x"}, "y": {"type": "integer"}}


def test_the_schema_of_no_parameters_is_an_empty_closed_object() -> None:
    def f(context: ToolContext, maybe: ToolContext | None = None): ...

    assert schema_of(f) == {"type": "object", "properties": {}, "additionalProperties": False}


@pytest.mark.parametrize("annotation", [Iterator[int], Callable[[], int]])
def test_a_result_that_no_model_could_be_sent_is_refused_when_the_tool_is_defined(annotation: Any) -> None:
    def f(): ...

    f.__annotations__["return"] = annotation
    with pytest.raises(BadToolError, match="no JSON form"):
        tool_from_function(f)


async def test_arguments_that_no_json_can_hold_are_refused_without_their_values() -> None:
    def f(a: Any): ...

    with pytest.raises(BadArgumentsError, match="half of a character"):
        await run(tool_from_function(f), a="hunter2 \ud83d")
    with pytest.raises(BadArgumentsError, match="not JSON"):
        await run(tool_from_function(f), a=object())
