"""A tool's own conversion of its results."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from toolsearch import (
    AttachedTools,
    Catalog,
    FunctionToolCallback,
    Tool,
    ToolCall,
    ToolCallingManager,
    ToolDefinition,
    ToolMetadata,
    ToolOutput,
    ToolResult,
    ToolSearch,
    augmented,
    tool,
    tool_from_function,
)
from toolsearch.errors import BadToolError


async def result_of(made: Tool) -> ToolResult:
    call = ToolCall(id="1", name=made.name, arguments="{}")
    (result,) = await ToolCallingManager().execute([call], AttachedTools([made]))
    return result


def shout(value: object) -> str:
    return str(value).upper()


def test_the_converter_is_carried_with_the_tool() -> None:
    @tool(result_converter=shout)
    def greet() -> str:
        return "hello"

    assert tool_from_function(greet).metadata.result_converter is shout
    assert greet() == "hello"


@pytest.mark.parametrize(
    ("converter", "text"),
    [
        (shout, "HELLO"),
        (lambda value: {"said": value}, '{"said":"hello"}'),
        (lambda value: ToolOutput(({"type": "text", "text": f"<{value}>"},)), "<hello>"),
    ],
    ids=["text", "JSON", "blocks"],
)
async def test_text_json_and_blocks_are_what_a_converter_may_give(converter, text: str) -> None:
    @tool(result_converter=converter)
    def greet() -> str:
        return "hello"

    assert (await result_of(tool_from_function(greet))).text == text


async def test_a_converter_that_fails_is_a_failed_call() -> None:
    def fail(value: object) -> str:
        raise ValueError("cannot say that")

    @tool(result_converter=fail)
    def greet() -> str:
        return "hello"

    result = await result_of(tool_from_function(greet))
    assert (result.is_error, result.text) == (True, "cannot say that")


def test_a_converter_that_would_have_to_wait_is_refused() -> None:
    async def slow(value: object) -> str:
        return ""

    class Slow:
        async def convert(self, *_: object) -> str:
            return ""

    for waiting in (slow, Slow()):
        with pytest.raises(BadToolError, match="must be plain, not async"):
            tool(result_converter=waiting)
    with pytest.raises(BadToolError, match="a method 'convert', or be a function of one value"):
        tool(result_converter="upper")
    with pytest.raises(BadToolError, match="not the class Slow; make one of it"):
        tool(result_converter=Slow)


class Typed:
    """A converter that goes by the type."""

    def convert(self, value: object, return_type: Any) -> str:
        return f"{value} of {return_type}"


def count() -> int:
    return 3


def counts() -> list[int]:
    return [3]


async def later() -> int:
    return 3


def nothing() -> None: ...


def untyped():
    return 3


class Plain:
    def call(self, *_: object) -> int:
        return 3


@dataclass
class Why:
    why: str


RETURNED = [
    (tool_from_function(count), int),
    (tool_from_function(counts), list[int]),
    (tool_from_function(later), int),
    (tool_from_function(nothing), type(None)),
    (tool_from_function(untyped), Any),
    (FunctionToolCallback.build("count", count), int),
    (Tool(ToolDefinition("plain"), Plain()), Any),
]


@pytest.mark.parametrize(("made", "kind"), RETURNED, ids=lambda each: getattr(each, "name", str(each)))
async def test_an_object_converts_by_the_type_that_the_function_is_annotated_to_return(made: Tool, kind: Any) -> None:
    value = {list[int]: [3], type(None): None}.get(kind, 3)
    result = await result_of(replace(made, metadata=ToolMetadata(result_converter=Typed())))

    assert (result.is_error, result.text) == (False, f"{value} of {kind}")


async def test_an_augmented_tool_still_tells_its_converter_the_type() -> None:
    made = replace(tool_from_function(count), metadata=ToolMetadata(result_converter=Typed()))
    (result,) = await ToolCallingManager().execute(
        [ToolCall("1", "count", '{"why": "asked"}')], AttachedTools([augmented(made, Why, lambda _: None)])
    )

    assert result.text == f"3 of {int}"


def test_static_and_class_method_markers_carry_it_too() -> None:
    class Greeter:
        @tool(result_converter=shout)
        @staticmethod
        def greet() -> str:
            return "hello"

    assert tool_from_function(Greeter.greet).metadata.result_converter is shout


async def test_a_stored_catalog_converts_as_its_source_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "greeting.py").write_text(
        "from toolsearch import tool\n\n@tool(result_converter=str.upper)\ndef greet() -> str:\n    return 'hello'\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    catalog = Catalog()
    catalog.load("greeting")
    ToolSearch(catalog, encoder=None, index_dir=tmp_path / "index").close()
    with ToolSearch.open(tmp_path / "index") as stored:
        assert (await result_of(stored.catalog.get("greeting__greet"))).text == "HELLO"


async def test_a_stored_catalog_tells_a_converter_the_type_as_its_source_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "counting.py").write_text(
        "from toolsearch import tool\n\nclass Typed:\n    def convert(self, value, kind):\n"
        "        return f'{value} of {kind.__name__}'\n\n"
        "@tool(result_converter=Typed())\ndef count() -> int:\n    return 3\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    catalog = Catalog()
    catalog.load("counting")
    ToolSearch(catalog, encoder=None, index_dir=tmp_path / "index").close()
    with ToolSearch.open(tmp_path / "index") as stored:
        assert (await result_of(stored.catalog.get("counting__count"))).text == "3 of int"
