"""The schema of a function's arguments or of a type, without making a tool of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pytest
from pydantic import BaseModel, ConfigDict

from toolsearch import ToolContext, ToolParam, json_schema_of
from toolsearch.errors import BadToolError


class Address(BaseModel):
    street: Annotated[str, ToolParam("With the number.")]


class Tree(BaseModel):
    children: list[Tree] = []


def send(to: Address, context: ToolContext, copies: int = 1) -> None:
    """Send a letter.

    Args:
        copies: how many
    """


ADDRESS = {
    "type": "object",
    "properties": {"street": {"type": "string", "description": "With the number."}},
    "required": ["street"],
}
SEND = {
    "type": "object",
    "properties": {
        "to": {"$ref": "#/$defs/Address"},
        "copies": {"type": "integer", "default": 1, "description": "how many"},
    },
    "required": ["to"],
}


def test_the_schema_of_a_function_is_that_of_its_arguments() -> None:
    closed = {"additionalProperties": False}
    assert json_schema_of(send) == {**SEND, **closed, "$defs": {"Address": {**ADDRESS, **closed}}}


def test_the_schema_of_a_type_is_that_of_its_values() -> None:
    @dataclass
    class Trip:
        days: int

    assert json_schema_of(Address) == {**ADDRESS, "additionalProperties": False}
    assert json_schema_of(Trip)["properties"] == {"days": {"type": "integer"}}
    assert json_schema_of(list[int]) == {"type": "array", "items": {"type": "integer"}}
    tree = json_schema_of(Tree)
    assert tree["type"] == "object"
    assert tree["properties"] == tree["$defs"]["Tree"]["properties"]


def test_objects_admit_further_properties_on_request_unless_their_class_forbids_them() -> None:
    class Closed(BaseModel):
        model_config = ConfigDict(extra="forbid")
        x: int

    def f(address: Address, closed: Closed) -> None: ...

    f.__annotations__.update(address=Address, closed=Closed)
    schema = json_schema_of(f, additional_properties=True)
    assert schema["additionalProperties"] is True
    assert schema["$defs"]["Address"] == ADDRESS
    assert schema["$defs"]["Closed"]["additionalProperties"] is False
    assert json_schema_of(Address, additional_properties=True) == ADDRESS


def test_what_json_cannot_carry_is_refused() -> None:
    class Opaque: ...

    def f(x: Opaque) -> None: ...

    f.__annotations__["x"] = Opaque
    with pytest.raises(BadToolError, match="'x' has a type that JSON cannot carry"):
        json_schema_of(f)
    with pytest.raises(BadToolError, match="the type Opaque is one that JSON cannot carry"):
        json_schema_of(Opaque)
