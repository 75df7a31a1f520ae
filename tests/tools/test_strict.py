"""Schemas as OpenAI's strict mode takes them, and what comes back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from toolsearch.calling.validation import without_absent
from toolsearch.errors import BadToolError
from toolsearch.tools.function_tools import tool_from_function
from toolsearch.tools.strict import strict_schema


@dataclass
class Stop:
    """Where to stop."""

    city: str
    nights: int = 1
    next: Stop | None = None


def plan(start: Stop, mode: Literal["train", "car"] = "train", budget: float | None = None, tags: list[str] = []): ...  # noqa: B006


PLAN = tool_from_function(plan).definition.input_schema


def test_every_property_is_required_and_what_was_optional_may_be_null() -> None:
    strict = strict_schema(PLAN)
    assert strict["required"] == ["start", "mode", "budget", "tags"]
    assert strict["properties"] == {
        "start": {"$ref": "#/$defs/Stop"},
        "mode": {
            "anyOf": [{"type": "string", "enum": ["train", "car"]}, {"type": "null"}],
            "description": 'Default: "train".',
        },
        "budget": {"anyOf": [{"type": "number"}, {"type": "null"}], "description": "Default: null."},
        "tags": {"type": ["array", "null"], "items": {"type": "string"}, "description": "Default: []."},
    }


def test_definitions_are_made_strict_too_also_recursive_ones() -> None:
    stop = strict_schema(PLAN)["$defs"]["Stop"]
    assert stop["required"] == ["city", "nights", "next"]
    assert stop["additionalProperties"] is False
    assert stop["properties"]["next"]["anyOf"] == [{"$ref": "#/$defs/Stop"}, {"type": "null"}]


def test_keywords_that_strict_mode_does_not_take_are_said_in_the_description() -> None:
    def f(name: Annotated[str, Field(description="A name.", min_length=2, max_length=9, pattern="^[a-z]+$")]): ...

    assert strict_schema(tool_from_function(f).definition.input_schema)["properties"]["name"] == {
        "type": "string",
        "pattern": "^[a-z]+$",
        "description": "A name. Maximum length: 9. Minimum length: 2.",
    }


def test_nothing_stands_beside_a_reference() -> None:
    def f(stop: Annotated[Stop, Field(description="The first.")]): ...

    strict = strict_schema(tool_from_function(f).definition.input_schema)
    assert strict["properties"]["stop"] == {"anyOf": [{"$ref": "#/$defs/Stop"}], "description": "The first."}


@pytest.mark.parametrize(
    ("annotation", "reason"),
    [
        (Any, "arguments.a takes any value"),
        (dict[str, int], "arguments.a takes properties of any name"),
        (list[dict[str, int]], r"arguments.a\[\] takes properties of any name"),
        (tuple[int, str], "arguments.a uses 'prefixItems'"),
    ],
)
def test_what_cannot_be_strict_is_refused_with_the_place_and_the_reason(annotation: Any, reason: str) -> None:
    def f(a): ...

    f.__annotations__["a"] = annotation
    with pytest.raises(BadToolError, match=reason):
        strict_schema(tool_from_function(f).definition.input_schema)


def test_open_objects_and_other_roots_cannot_be_strict() -> None:
    def f(**more: Any): ...

    with pytest.raises(BadToolError, match="arguments takes properties of any name"):
        strict_schema(tool_from_function(f).definition.input_schema)
    with pytest.raises(BadToolError, match="not an object"):
        strict_schema({"anyOf": [{"type": "object"}]})


def test_a_tool_without_parameters_is_strict() -> None:
    strict = strict_schema({"type": "object"})
    assert strict == {"type": "object", "properties": {}, "required": [], "additionalProperties": False}


def test_making_a_schema_strict_leaves_the_original_as_it_was() -> None:
    before = repr(PLAN)
    strict_schema(PLAN)
    assert repr(PLAN) == before


def test_nulls_that_stand_for_what_was_left_out_go_and_real_ones_stay() -> None:
    sent = {"start": {"city": "Rome", "nights": None, "next": None}, "mode": None, "budget": None, "tags": None}
    assert without_absent(PLAN, sent) == {"start": {"city": "Rome", "next": None}, "budget": None}
