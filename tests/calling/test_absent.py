"""A null for what may be left out is as good as leaving it out, for every caller."""

from typing import Any, Literal

import pytest
from pydantic import BaseModel

from toolsearch.calling.hooks import Edit
from toolsearch.calling.manager import ToolCallingManager
from toolsearch.calling.resolvers import AttachedTools
from toolsearch.calling.validation import checked_arguments, without_absent
from toolsearch.errors import BadArgumentsError
from toolsearch.tools.calls import ToolCall
from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.function_tools import tool_from_function
from toolsearch.tools.strict import strict_schema


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"]
    bone: str = "large"
    toys: list[str] = []


class Cage(BaseModel):
    width: int
    pet: Cat | Dog = Cat()
    note: str | None = "none"


def keep(cages: list[Cage], days: int = 1, until: int | str = "noon") -> str:
    return repr((cages, days, until))


KEEP = tool_from_function(keep)
SCHEMA = KEEP.definition.input_schema


def test_only_nulls_that_the_schema_refuses_and_does_not_require_go() -> None:
    sent = {
        "cages": [
            {"width": 1, "pet": None, "note": None},
            {"width": 2, "pet": {"kind": "dog", "bone": None, "toys": None}, "note": "x"},
            {"width": 3, "pet": {"kind": None, "lives": None}},
        ],
        "days": None,
        "until": None,
    }
    before = repr(sent)

    assert without_absent(SCHEMA, sent) == {
        "cages": [
            {"width": 1, "note": None},
            {"width": 2, "pet": {"kind": "dog"}, "note": "x"},
            {"width": 3, "pet": {}},
        ]
    }
    assert repr(sent) == before


def test_whatever_the_strict_form_offers_is_taken() -> None:
    """Every property is there in strict mode, and every optional one may be null, also within a union."""
    strict = ToolDefinition("keep", input_schema=strict_schema(SCHEMA))
    sent = {
        "cages": [{"width": 1, "pet": {"kind": "dog", "bone": None, "toys": None}, "note": None}],
        "days": None,
        "until": None,
    }
    assert checked_arguments(strict, sent) == sent

    assert checked_arguments(KEEP.definition, sent) == {"cages": [{"width": 1, "pet": {"kind": "dog"}, "note": None}]}


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        ({"cages": None}, "cages: expected array, got null"),
        ({"cages": [{"width": None, "note": None}]}, r"cages\[0\].width: expected integer, got null"),
        ({"cages": [None]}, r"cages\[0\]: expected object, got null"),
        ({"cages": [], "day": None}, "unknown day"),
        ({"cages": [], "days": "x", "until": None}, "schema of 'keep': days: expected integer, got string$"),
        ({"cages": [{"width": 1, "pet": {"kind": "cow", "bone": None}}]}, "none of the schema's 2 alternatives"),
    ],
)
def test_other_faults_are_told_as_ever(sent: dict[str, Any], told: str) -> None:
    with pytest.raises(BadArgumentsError, match=told):
        checked_arguments(KEEP.definition, sent)


def test_an_alternative_that_does_not_fit_otherwise_is_passed_over() -> None:
    def alternative(kind: str, *optional: str) -> dict[str, Any]:
        properties = {"kind": {"const": kind}} | {name: {"type": "string"} for name in optional}
        return {"type": "object", "properties": properties, "required": ["kind"], "additionalProperties": False}

    schema = {"properties": {"pet": {"anyOf": [alternative("cat", "name"), alternative("dog", "name", "bone")]}}}

    assert without_absent(schema, {"pet": {"kind": "dog", "name": None, "bone": None}}) == {"pet": {"kind": "dog"}}


def test_a_schema_that_takes_null_keeps_it() -> None:
    schema = {
        "properties": {"a": {}, "b": {"type": ["string", "null"]}, "c": {"enum": [1, None]}, "d": {"type": "any"}}
    }
    nulls = dict.fromkeys("abcd")

    assert without_absent(schema, nulls) is nulls


def test_more_nulls_go_than_faults_are_told() -> None:
    schema = {"properties": {f"p{number}": {"type": "string"} for number in range(30)}, "additionalProperties": False}

    assert without_absent(schema, dict.fromkeys(schema["properties"])) == {}


def test_arguments_nested_deeper_than_python_recurses_are_no_failure() -> None:
    deep: Any = None
    for _ in range(5_000):
        deep = [deep]
    schema = {"properties": {"a": {"type": "string"}, "b": {}}}

    assert list(without_absent(schema, {"a": None, "b": deep})) == ["b"]


async def test_a_tool_runs_with_its_defaults_also_after_an_edit() -> None:
    scope = AttachedTools([KEEP])
    call = ToolCall("1", "keep", '{"cages": [], "days": null}')
    plain, edited = ToolCallingManager(), ToolCallingManager(before=[lambda *_: Edit({"cages": [], "until": None})])

    [result], [after] = await plain.execute([call], scope), await edited.execute([call], scope)

    assert result.text == after.text == "([], 1, 'noon')"
