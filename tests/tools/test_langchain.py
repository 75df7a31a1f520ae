"""LangChain's own tools in a catalog, and LangChain's own messages in a session."""

import asyncio
import threading
from typing import Annotated, Any

import pytest

pytest.importorskip("langchain_core", reason="langchain-core, of the dev extra, is not installed")

from langchain_core.messages import AIMessage, AIMessageChunk, ToolMessage, convert_to_messages
from langchain_core.tools import InjectedToolArg, StructuredTool, ToolException
from langchain_core.tools import Tool as SingleInputTool
from langchain_core.tools import tool as langchain_tool

from toolsearch import Catalog, PassThrough, SessionOptions, ToolDefinition, ToolSearch, as_tools
from toolsearch.errors import BadArgumentsError, BadToolError
from toolsearch.wire import parse_tool_calls

RAN: list[Any] = []


@langchain_tool
def delete_files(path: str, older_than_days: int = 0) -> str:
    """Delete files that are old.

    Args:
        path: The folder.
        older_than_days: Their least age.
    """
    RAN.append((path, older_than_days, threading.current_thread() is threading.main_thread()))
    return f"deleted {path}"


@langchain_tool
async def find_files(pattern: str, user: Annotated[str, InjectedToolArg] = "nobody") -> list[str]:
    """Find files."""
    return [pattern, user]


def call(name: str = "delete_files", call_id: str | None = "c1", **args: Any) -> dict[str, Any]:
    return {"name": name, "args": args, "id": call_id, "type": "tool_call"}


def chunk(args: str) -> Any:
    return {"name": "delete_files", "args": args, "id": "c1", "index": 0}


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    RAN.clear()


def run(reply: object) -> list[dict[str, Any]]:
    engine = ToolSearch([delete_files, find_files], encoder=None)
    return asyncio.run(engine.session("a").execute(reply))


# Tools


def test_a_langchain_tool_is_found_shown_and_run() -> None:
    engine = ToolSearch([delete_files, find_files], encoder=None, options=SessionOptions(pass_through=PassThrough(0)))
    session = engine.session("a")
    assert session.search("remove old files")[0].name == "delete_files"
    definition = session.shown()[1].definition
    assert definition.description.startswith("Delete files that are old.")
    assert definition.input_schema == {
        "type": "object",
        "properties": {
            "path": {"title": "Path", "type": "string"},
            "older_than_days": {"title": "Older Than Days", "type": "integer", "default": 0},
        },
        "required": ["path"],
    }
    assert asyncio.run(session.call("delete_files", {"path": "/tmp/x"})).text == "deleted /tmp/x"  # noqa: S108
    assert RAN == [("/tmp/x", 0, False)]  # noqa: S108  a plain function, in a thread
    assert asyncio.run(session.call("delete_files", {"path": 7})).error_code == "bad_arguments"


def test_what_langchain_injects_is_not_shown() -> None:
    (found,) = as_tools(find_files)
    assert list(found.definition.input_schema["properties"]) == ["pattern"]
    assert asyncio.run(found.callback.call({"pattern": "*.py"}, {})) == ["*.py", "nobody"]  # type: ignore[union-attr, arg-type]


def test_every_kind_of_langchain_tool_is_taken() -> None:
    by_schema = StructuredTool.from_function(
        func=lambda city: f"{city}: rain",
        name="weather report",
        description="Report the weather",
        args_schema={"type": "object", "properties": {"city": {"type": "string"}}, "title": "weather report"},
        return_direct=True,
        tags=["read"],
    )
    of_one_text = SingleInputTool(name="shout", description="Say it loudly", func=lambda text: text.upper())
    weather, shout = as_tools([by_schema, of_one_text])

    assert (weather.name, weather.definition.tags, weather.metadata.return_direct) == (
        "weather_report",
        ("read",),
        True,
    )
    assert weather.definition.input_schema == {"type": "object", "properties": {"city": {"type": "string"}}}
    assert asyncio.run(weather.callback.call({"city": "Oslo"}, {})) == "Oslo: rain"  # type: ignore[union-attr, arg-type]
    assert shout.definition.input_schema["required"] == ["tool_input"]
    assert asyncio.run(shout.callback.call({"tool_input": "hey"}, {})) == "HEY"  # type: ignore[union-attr, arg-type]


def test_a_langchain_tool_that_fails_is_a_result_that_says_so() -> None:
    @langchain_tool
    def fail() -> str:
        """Fail."""
        raise ToolException("no such folder")

    (message,) = asyncio.run(ToolSearch([fail], encoder=None).session("a").execute([call("fail")]))
    assert message["content"].startswith("Error: ")
    assert "no such folder" in message["content"]


def test_an_engine_is_made_of_a_list_of_whatever_a_catalog_takes() -> None:
    def plain() -> str:
        """Do something plain."""
        return "done"

    engine = ToolSearch([plain, delete_files, ToolDefinition("described", "Only described")], encoder=None)
    assert engine.catalog.names() == ["plain", "delete_files", "described"]
    assert ToolSearch((each for each in [plain]), encoder=None).catalog.names() == ["plain"]
    assert ToolSearch(catalog := Catalog([[plain], delete_files]), encoder=None).catalog is catalog
    for wrong in (plain, None, 7):
        with pytest.raises(BadToolError, match=r"made of a list of tools, not of a .*; write \[tool\]"):
            ToolSearch(wrong, encoder=None)  # type: ignore[arg-type]
    for wrong in ("plain", {"plain": plain}, delete_files, [7], [None]):
        with pytest.raises(BadToolError):
            ToolSearch(wrong, encoder=None)  # type: ignore[arg-type]


# Messages


@pytest.mark.parametrize(
    "reply",
    [
        AIMessage("", tool_calls=[call(path="/data")]),
        AIMessage("", tool_calls=[call(path="/data")], response_metadata={"finish_reason": "tool_calls"}),
        AIMessage("", tool_calls=[call(path="/data")], response_metadata={"stop_reason": "tool_use"}),
        AIMessage("", tool_calls=[call(path="/data")], response_metadata={"finish_reason": "STOP"}),
        AIMessage("", tool_calls=[call(path="/data")]).tool_calls,
        AIMessage("Let me see.", tool_calls=[call(path="/data")]).content_blocks,
        {"name": "delete_files", "args": {"path": "/data"}, "id": "c1"},
        AIMessageChunk("", tool_call_chunks=[chunk('{"path":"/data"}')]),
    ],
)  # fmt: skip
def test_langchains_calls_are_run_and_answered_as_langchain_takes_it(reply: Any) -> None:
    messages = run(reply)
    assert convert_to_messages(messages) == [ToolMessage("deleted /data", tool_call_id="c1")]
    assert [each[:2] for each in RAN] == [("/data", 0)]


def test_a_message_without_calls_has_nothing_to_append() -> None:
    assert run(AIMessage("Done.")) == []


def test_a_call_that_langchain_could_not_read_is_answered_and_not_run() -> None:
    for args in ('{"path": "/da', '{"path": "/data"}', "", None):
        bad = {"name": "delete_files", "args": args, "id": "c2", "error": "no JSON", "type": "invalid_tool_call"}
        reply = AIMessage("", tool_calls=[call("find_files", pattern="*")], invalid_tool_calls=[bad])
        first, second = run(reply)
        assert first["tool_call_id"] == "c1"
        assert second["tool_call_id"] == "c2"
        assert second["content"].startswith("Error: ")
    assert RAN == []


@pytest.mark.parametrize(
    "ended",
    [{"finish_reason": "length"}, {"stop_reason": "max_tokens"}, {"status": "incomplete"}, {"finish_reason": 7}],
)
def test_a_message_that_was_cut_off_runs_no_calls(ended: dict[str, Any]) -> None:
    """LangChain completes half an object of a stream to a valid one."""
    half = '{"path": "/data", "older_than_days'
    cut_off = AIMessageChunk("", tool_call_chunks=[chunk(half)], response_metadata=ended)
    assert cut_off.tool_calls[0]["args"] == {"path": "/data"}
    (message,) = run(cut_off)
    assert message["content"].startswith("Error: ")
    assert RAN == []


@pytest.mark.parametrize(
    "item",
    [
        {"type": "tool_call_chunk", "name": "delete_files", "args": "{", "id": "c1"},
        {"type": "custom_tool_call", "name": "delete_files", "input": "/data", "call_id": "c1"},
        {"type": "call", "name": "delete_files", "arguments": {}},
        {"type": "tool", "name": "delete_files", "parameters": {}},
        {"name": "delete_files", "input": {"path": "/data"}},
        {"name": "delete_files", "parameters": {"path": "/data"}},
    ],
    ids=str,
)
def test_what_looks_like_a_call_and_cannot_be_read_is_an_error_and_never_passed_over(item: dict[str, Any]) -> None:
    with pytest.raises(BadArgumentsError, match=r"cannot find tool calls in item number 1, which has .*pass an"):
        parse_tool_calls([item])
    assert RAN == []


@pytest.mark.parametrize("kind", ["server_tool_use", "mcp_tool_use", "mcp_call", "mcp_approval_request"])
def test_calls_of_the_providers_own_are_passed_over(kind: str) -> None:
    assert parse_tool_calls([{"type": kind, "name": "web_search", "input": {}, "arguments": "{}"}]) == ("mcp", [])
