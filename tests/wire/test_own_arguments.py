"""Where a name is the tool's own, where it is the one that was sent, and where it is neither."""

from typing import Any

import pytest

from toolsearch.wire.sendable_tools import own_arguments


def of(key: str, schema: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {key: schema}}


@pytest.mark.parametrize(
    ("schema", "sent", "own"),
    [
        (of("a b", {}), {"a_b": 1}, {"a b": 1}),
        (of("a b", {}), {"a b": 1}, {"a b": 1}),
        (of("a b", {}), {"a b": 1, "a_b": 2}, {"a b": 1, "a_b": 2}),
        (of("a b", {"type": "object"}), {"a_b": {"a_b": 1}}, {"a b": {"a_b": 1}}),
        ({**of("a b", {}), "properties": {"a b": {}, "a_b": {}}}, {"a_b": 1, "a_b_2": 2}, {"a_b": 1, "a b": 2}),
        (of("x", {"oneOf": [of("a b", {}), {"items": of("a b", {})}]}), {"x": [{"a_b": 1}]}, {"x": [{"a b": 1}]}),
        (of("x", {"additionalProperties": of("a b", {})}), {"x": {"a_b": {"a_b": 1}}}, {"x": {"a_b": {"a b": 1}}}),
        (of("x", {"items": [{}, of("a b", {})]}), {"x": [{"a_b": 1}, {"a_b": 1}]}, {"x": [{"a_b": 1}, {"a b": 1}]}),
        (of("a b", {"$ref": "#"}), {"a_b": {"a_b": {"a_b": 1}}}, {"a b": {"a b": {"a b": 1}}}),
        (of("x", {"$ref": "#/gone"}) | {"required": ["a b"]}, {"x": {"a_b": 1}, "a_b": 1}, {"x": {"a_b": 1}, "a b": 1}),
    ],
)
def test_names_come_back_only_where_the_schema_has_them(schema: Any, sent: Any, own: Any) -> None:
    assert own_arguments(schema, sent) == own


def test_arguments_of_a_tool_whose_names_were_sent_as_they_are_are_not_copied() -> None:
    arguments = {"x": {"a_b": 1}}

    assert own_arguments(of("x", {}), arguments) is arguments


def test_every_item_of_a_long_list_gets_its_own_names() -> None:
    schema = of("a b", {"type": "array", "items": of("c d", {})})

    assert own_arguments(schema, {"a_b": [{"c_d": 1}] * 30_000}) == {"a b": [{"c d": 1}] * 30_000}
