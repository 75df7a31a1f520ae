"""Checking arguments: what a model is told, and that no schema can hang, fetch or crash."""

from typing import Any

import pytest

from toolsearch.calling.validation import checked_arguments
from toolsearch.errors import BadArgumentsError, BadToolError
from toolsearch.tools.calls import parse_arguments
from toolsearch.tools.definition import ToolDefinition

DRAFT = "https://json-schema.org/draft/2020-12/schema"


def faults(properties: dict[str, Any], arguments: Any, **keywords: Any) -> str:
    """What the model is told, without the beginning; empty if the arguments fit."""
    return schema_faults({"type": "object", "properties": properties, **keywords}, arguments)


def schema_faults(schema: dict[str, Any], arguments: Any) -> str:
    definition = ToolDefinition("f", input_schema=schema)
    try:
        checked_arguments(definition, arguments)
    except BadArgumentsError as error:
        return str(error).removeprefix("the arguments do not fit the schema of 'f': ")
    return ""


@pytest.mark.parametrize(
    ("schema", "value", "told"),
    [
        ({"type": "integer"}, "5", "x: expected integer, got string"),
        ({"type": ["integer", "null"]}, [], "x: expected integer or null, got array"),
        ({"type": "integer"}, True, "x: expected integer, got boolean"),
        ({"enum": ["a", "b"]}, "c", 'x: must be one of ["a", "b"]'),
        ({"const": 1}, 2, "x: must be 1"),
        ({"minimum": 3}, 2, "x: must be at least 3"),
        ({"exclusiveMaximum": 3}, 3, "x: must be less than 3"),
        ({"multipleOf": 2}, 3, "x: must be a multiple of 2"),
        ({"minLength": 2}, "a", "x: must have at least 2 characters"),
        ({"maxItems": 1}, [1, 2], "x: must have at most 1 items"),
        ({"uniqueItems": True}, [{"a": 1}, {"a": 1.0}], "x: holds the same item twice"),
        ({"pattern": "^a+$"}, "b", 'x: must match the pattern "^a+$"'),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "5", "x: expected integer or null, got string"),
        (
            {"oneOf": [{"minimum": 1}, {"maximum": 5}]},
            3,
            "x: fits several of the schema's alternatives, but must fit just one",
        ),
        ({"not": {"type": "string"}}, "s", "x: does not meet 'not' of the schema"),
        ({"items": {"properties": {"y": {"type": "string"}}}}, [{}, {"y": 1}], "x[1].y: expected string, got integer"),
        (False, 1, "arguments: a property or item that the schema rules out"),
    ],
)
def test_the_model_is_told_where_and_what_is_expected(schema: Any, value: Any, told: str):
    assert faults({"x": schema}, {"x": value}) == told


def test_missing_and_unknown_names_are_told_once_each():
    told = faults({"a": {}, "b": {}}, {"c": 1, "d": 2}, required=["a", "b"], additionalProperties=False)

    assert told == "arguments: missing a, b; arguments: unknown c, d (known: a, b)"


def test_of_several_shapes_the_one_that_was_meant_is_explained():
    circle = {"properties": {"kind": {"const": "circle"}, "radius": {"type": "number"}}}
    square = {"properties": {"kind": {"const": "square"}, "side": {"type": "number"}}}

    told = faults({"shape": {"oneOf": [circle, square]}}, {"shape": {"kind": "square", "side": "two"}})

    assert told == "shape.side: expected number, got string"


def test_at_most_five_faults_are_told_and_no_value_is_quoted():
    properties = {f"p{n}": {"type": "integer"} for n in range(9)}

    told = faults(properties, {f"p{n}": "hunter2" * 1_000 for n in range(9)})

    assert told.count("expected integer") == 5
    assert "hunter2" not in told


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"uniqueItems": True}, [1, True, "1", [1], [True]]),
        ({"type": "integer"}, 5.0),
        ({"enum": [1]}, 1.0),
        ({"type": "string", "format": "date"}, "not a date"),
    ],
)
def test_what_fits_passes(schema: Any, value: Any):
    assert faults({"x": schema}, {"x": value}) == ""


# Patterns


def test_a_pattern_that_hangs_other_engines_is_answered():
    assert faults({"x": {"pattern": "(a+)+$"}}, {"x": "a" * 100_000 + "b"}) == 'x: must match the pattern "(a+)+$"'


@pytest.mark.parametrize(
    "schema",
    [
        {"$schema": DRAFT, "properties": {"x": {"$schema": DRAFT, "pattern": "(a+)+$"}}},
        {"$schema": DRAFT, "patternProperties": {"^x": {"$ref": "#/$defs/p"}}, "$defs": {"p": {"pattern": "(a+)+$"}}},
        {"properties": {"x": {"propertyNames": {"pattern": "(a+)+$"}}}},
        {"patternProperties": {"(a+)+$": {}}, "additionalProperties": False},
        {"allOf": [{"patternProperties": {"(a+)+$": {}}}], "unevaluatedProperties": False},
        {"properties": {"x": {"format": "regex", "pattern": "(a+)+$"}}},
    ],
)
def test_python_never_runs_a_pattern_wherever_it_stands(schema: dict[str, Any], monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("Python's re was given a pattern")

    faults({}, {})  # what is loaded on first use is loaded now
    monkeypatch.setattr("re.search", refuse)
    monkeypatch.setattr("re.match", refuse)
    monkeypatch.setattr("re.compile", refuse)

    for arguments in ({"x": "a" * 50 + "b"}, {"x": {"a" * 50 + "b": 1}}, {"a" * 50 + "b": 1}):
        schema_faults(schema, arguments)


def test_a_pattern_that_re2_cannot_run_is_not_checked_and_noted_once(caplog: pytest.LogCaptureFixture):
    schema = {"pattern": "^(?!internal-once)"}

    assert faults({"x": schema}, {"x": "internal-once"}) == ""
    assert faults({"x": schema}, {"x": "internal-once"}) == ""
    assert caplog.text.count("RE2 cannot run it") == 1


def test_a_name_is_not_refused_on_account_of_a_pattern_that_cannot_be_run():
    assert faults({}, {"y": 1}, patternProperties={"^(?!z)": {}}, additionalProperties=False) == ""


def test_half_surrogates_are_checked_like_other_text():
    assert faults({"x": {"pattern": "^[a-z]$"}}, {"x": "\ud800"}) == 'x: must match the pattern "^[a-z]$"'


# References, size and malformed schemas


def test_a_reference_within_the_schema_is_followed():
    keywords = {"$defs": {"n": {"type": "integer"}}}

    assert faults({"x": {"$ref": "#/$defs/n"}}, {"x": "a"}, **keywords) == "x: expected integer, got string"


@pytest.mark.parametrize("ref", ["https://example.com/schema.json", "#/$defs/gone", "file:///etc/passwd", "#gone"])
def test_a_reference_that_leads_out_of_the_schema_is_not_fetched_but_said(ref: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("socket.socket.connect", lambda *_: pytest.fail("the network was used"))

    with pytest.raises(BadToolError, match="no reference is fetched"):
        faults({"x": {"$ref": ref}}, {"x": 1})


def test_a_recursive_schema_is_followed_as_deep_as_the_arguments_go():
    tree = {"type": "object", "properties": {"next": {"$ref": "#"}}, "additionalProperties": False}

    checked_arguments(ToolDefinition("f", input_schema=tree), {"next": {"next": {}}})
    with pytest.raises(BadArgumentsError, match=r"next\.next: expected object, got integer"):
        checked_arguments(ToolDefinition("f", input_schema=tree), {"next": {"next": 1}})


def test_a_schema_that_refers_to_itself_forever_is_an_error():
    with pytest.raises(BadToolError, match="cannot be checked"):
        checked_arguments(ToolDefinition("f", input_schema={"$ref": "#"}), {})


def test_a_schema_that_doubles_its_work_at_every_level_is_stopped():
    levels = {f"l{n}": {"allOf": [{"$ref": f"#/$defs/l{n + 1}"}] * 2} for n in range(30)}
    schema = {"$ref": "#/$defs/l0", "$defs": {**levels, "l30": {"type": "object"}}}

    with pytest.raises(BadToolError, match="cannot be checked"):
        checked_arguments(ToolDefinition("f", input_schema=schema), {})


def test_arguments_nested_too_deeply_are_an_error():
    schema = {"properties": {"a": {"$ref": "#"}}}
    arguments: dict[str, Any] = {}
    for _ in range(900):
        arguments = {"a": arguments}

    with pytest.raises(BadToolError, match="cannot be checked"):
        checked_arguments(ToolDefinition("f", input_schema=schema), arguments)


@pytest.mark.parametrize(
    "schema",
    [
        {"required": True},
        {"type": "any"},
        {"minimum": 0, "exclusiveMinimum": True},
        {"pattern": 5},
        {"enum": 7},
        {"multipleOf": 0},
        {"properties": ["a"]},
        {"items": [{"type": "string"}]},
        {"anyOf": "string"},
    ],
)
@pytest.mark.parametrize("value", [1, "s", {"a": 1}, [1]])
def test_a_malformed_keyword_refuses_no_call(schema: dict[str, Any], value: Any):
    assert faults({"x": schema}, {"x": value}) == ""


# From text to an object


@pytest.mark.parametrize(("text", "arguments"), [("", {}), ("  \n", {}), ("{}", {}), ('{"a": [1]}', {"a": [1]})])
def test_blank_text_is_no_arguments_and_an_object_is_itself(text: str, arguments: dict[str, Any]):
    assert parse_arguments(text) == arguments


def test_a_number_that_json_cannot_carry_is_no_argument_however_it_came():
    for arguments in ('{"a": [{"b": -1e400}]}', {"a": [{"b": float("-inf")}]}, {"a": ({"b": float("nan")},)}):
        with pytest.raises(BadArgumentsError, match=r"^a: holds .* and cannot be sent as JSON; send a smaller number"):
            parse_arguments(arguments)
    assert parse_arguments('{"a": 1e308, "b": 12345678901234567890}') == {"a": 1e308, "b": 12345678901234567890}


def test_arguments_that_contain_themselves_are_looked_through_once():
    endless = list[Any]([1.0])
    endless.append(endless)

    assert parse_arguments({"a": endless}) == {"a": endless}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"a": "hunter2', "not valid JSON: .* line 1, column 7; send one JSON object"),
        ('["hunter2"]', "are JSON, but not an object; send one JSON object"),
        ('{"a": NaN}', "hold NaN, and JSON has no such value"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a": ' + "1" * 5_000 + "}", "a number that is too long"),
    ],
)
def test_text_that_is_not_an_object_is_told_to_the_model_without_quoting_it(text: str, told: str):
    with pytest.raises(BadArgumentsError, match=told) as raised:
        parse_arguments(text)

    assert "hunter2" not in str(raised.value)
