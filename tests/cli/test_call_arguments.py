"""Arguments of ``toolsearch call``: pairs that the tool's schema reads, and JSON."""

import io
import sys

import pytest

from toolsearch.cli.call import read_arguments
from toolsearch.errors import BadArgumentsError
from toolsearch.tools.definition import ToolDefinition

SCHEMA = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "share": {"type": "number"},
        "flag": {"type": "boolean"},
        "names": {"type": "array", "items": {"type": "string"}},
        "numbers": {"type": "array", "items": {"type": "integer"}},
        "options": {"type": "object"},
        "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "either": {"type": ["integer", "string"]},
        "level": {"enum": ["1", "2"]},
        "anything": {},
        "city": {"$ref": "#/$defs/City"},
    },
    "$defs": {"City": {"type": "string"}},
}
TOOL = ToolDefinition("draw", input_schema=SCHEMA)


@pytest.mark.parametrize(
    ("pair", "value"),
    [
        ("text=3", "3"),
        ("text=", ""),
        ("text=a=b", "a=b"),
        ("text=true", "true"),
        ("count=3", 3),
        ("share=0.5", 0.5),
        ("share=2", 2),
        ("flag=true", True),
        ("names=Ann", None),
        ('names=["Ann"]', ["Ann"]),
        ("numbers=[1, 2]", [1, 2]),
        ('options={"a": 1}', {"a": 1}),
        ("maybe=null", None),
        ("maybe=4", 4),
        ("either=4", 4),
        ("either=four", "four"),
        ("level=1", "1"),
        ("anything=[1]", [1]),
        ("anything=so", "so"),
        ("city=90210", "90210"),
    ],
)
def test_a_value_is_read_as_its_parameter_s_type(pair, value):
    if pair == "names=Ann":
        with pytest.raises(BadArgumentsError, match="names: 'Ann' is not a JSON list"):
            read_arguments([pair], TOOL)
    else:
        assert read_arguments([pair], TOOL) == {pair.partition("=")[0]: value}


def test_a_key_that_is_repeated_is_a_list():
    assert read_arguments(["names=1", "names=b", "numbers=1", "numbers=2"], TOOL) == {
        "names": ["1", "b"],
        "numbers": [1, 2],
    }


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["count=x"], "count: 'x' is not an integer"),
        (["count=1.5"], "count: '1.5' is not an integer"),
        (["count=true"], "count: 'true' is not an integer"),
        (["flag=yes"], "flag: 'yes' is not true or false"),
        (["maybe=x"], "maybe: 'x' is not an integer or null"),
        (["text=a", "text=b"], "text is given 2 times, and is no list: it takes a string"),
        (["coutn=3"], "draw has no parameter 'coutn'; did you mean count"),
        (["text=a", "{}"], "'{}' is no argument: write key=value"),
        (["=3"], "'=3' is no argument"),
        (["@none.json"], "'none.json' with the arguments cannot be read: No such file or directory"),
    ],
)
def test_what_cannot_be_read_is_told_by_its_key(given, message):
    with pytest.raises(BadArgumentsError) as raised:
        read_arguments(given, TOOL)

    assert str(raised.value).startswith(message)


def test_a_tool_that_takes_more_is_given_more():
    open_ended = ToolDefinition("draw", input_schema={**SCHEMA, "additionalProperties": {"type": "integer"}})

    assert read_arguments(["width=3"], open_ended) == {"width": 3}


def test_json_is_given_as_it_is(tmp_path, monkeypatch):
    file = tmp_path / "arguments.json"
    file.write_text('{"text": "a"}')
    monkeypatch.setattr(sys, "stdin", io.StringIO("{}"))

    assert read_arguments([], TOOL) == "{}"
    assert read_arguments(['{"count": 1}'], TOOL) == '{"count": 1}'
    assert read_arguments([f"@{file}"], TOOL) == '{"text": "a"}'
    assert read_arguments(["-"], TOOL) == "{}"
