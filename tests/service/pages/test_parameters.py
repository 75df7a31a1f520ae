"""Arguments by a form: what a schema asks for, and what the texts of its fields are taken as."""

import pytest

from toolsearch.errors import BadArgumentsError
from toolsearch.service.calls.page import arguments_in, arguments_in_json, parameters_of

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "Which city"},
        "days": {"type": "integer"},
        "share": {"type": "number"},
        "is_short": {"type": "boolean"},
        "unit": {"enum": ["C", "F"]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "either": {"type": ["string", "null"]},
    },
    "required": ["days"],
}


def test_required_fields_come_first_and_each_has_the_control_of_its_type() -> None:
    found = [(each.name, each.kind, each.control) for each in parameters_of(SCHEMA)]

    assert found == [
        ("days", "integer", "integer"),
        ("city", "string", "text"),
        ("share", "number", "number"),
        ("is_short", "boolean", "boolean"),
        ("unit", "any", "choice"),
        ("tags", "list of string", "json"),
        ("either", "string or null", "json"),
    ]


def test_texts_become_values_of_their_types_and_empty_fields_are_left_out() -> None:
    given = {
        "argument.city": "007",
        "argument.days": "3",
        "argument.share": "0.5",
        "argument.is_short": "false",
        "argument.unit": '"F"',
        "argument.tags": '["a"]',
    }

    assert arguments_in(parameters_of(SCHEMA), lambda name: given.get(name, "")) == {
        "city": "007",
        "days": 3,
        "share": 0.5,
        "is_short": False,
        "unit": "F",
        "tags": ["a"],
    }


@pytest.mark.parametrize(("field", "text"), [("days", "three"), ("days", "true"), ("tags", "[a]"), ("share", '"1"')])
def test_a_text_of_another_type_is_told_with_its_field(field: str, text: str) -> None:
    with pytest.raises(BadArgumentsError, match=field):
        arguments_in(parameters_of(SCHEMA), lambda name: text if name == f"argument.{field}" else "")


@pytest.mark.parametrize("text", ["[]", "1", "{", "[" * 100_000])
def test_arguments_as_json_must_be_an_object(text: str) -> None:
    with pytest.raises(BadArgumentsError):
        arguments_in_json(text)


def test_a_schema_that_is_no_good_asks_for_nothing() -> None:
    assert parameters_of({"properties": 7, "required": "x"}) == []
