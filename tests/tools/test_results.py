"""A tool's own conversion of its results."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolsearch.calling.attached import AttachedTools
from toolsearch.calling.manager import ToolCallingManager
from toolsearch.catalog.catalog import Catalog
from toolsearch.engine import ToolSearch
from toolsearch.errors import BadToolError
from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.decorator import tool, tool_from_function
from toolsearch.tools.definition import Tool
from toolsearch.tools.output import ToolOutput


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
    assert (result.is_error, result.text) == (True, "ValueError: cannot say that")


def test_a_converter_that_would_have_to_wait_is_refused() -> None:
    async def slow(value: object) -> str:
        return ""

    with pytest.raises(BadToolError, match="plain function"):
        tool(result_converter=slow)
    with pytest.raises(BadToolError, match="function of one value"):
        tool(result_converter="upper")


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
