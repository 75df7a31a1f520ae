"""What is written as MCP is read back as it was, what a server sent stays as it came, and junk breaks nothing."""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st
from mcp import MCPError

from toolsearch import ToolDefinition
from toolsearch.errors import BadToolError, ToolExecutionError
from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.definition import Tool, ToolOrigin
from toolsearch.wire import mcp
from toolsearch.wire.mcp import definitions, eras, lists, requests
from toolsearch.wire.mcp.eras import Era

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.just(10**400) | st.floats(allow_nan=False) | st.text(),
    lambda each: st.lists(each, max_size=3) | st.dictionaries(st.text(max_size=8), each, max_size=3),
    max_leaves=4,
)
OBJECTS = st.dictionaries(st.text(max_size=8), JSON, max_size=4)
SCHEMAS = OBJECTS.map(lambda fields: {**fields, "type": "object"})
NAMES = st.text("abcdefghijklmnopqrstuvwxyz_", min_size=1, max_size=20)
BLOCKS = st.lists(OBJECTS, max_size=3)
LISTS = (lists.TOOLS, lists.PROMPTS, lists.RESOURCES, lists.TEMPLATES)

FIELDS = (  # of whatever is read in this package; junk at each of these places is what is tried
    *("name", "title", "description", "inputSchema", "outputSchema", "annotations", "icons", "execution"),
    *("uri", "uriTemplate", "size", "tools", "prompts", "resources", "resourceTemplates", "nextCursor", "ttlMs"),
    *("arguments", "content", "messages", "structuredContent", "isError", "resultType", "cacheScope", "_meta"),
    *("inputRequests", "inputResponses", "requestState", "params", "method", "mode"),
)
JUNK = st.dictionaries(st.sampled_from(FIELDS), JSON | st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=3))
PROPERTY = settings(deadline=None, max_examples=60)


def as_text(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


@PROPERTY
@given(
    st.builds(
        ToolDefinition,
        name=NAMES,
        description=st.text(),
        input_schema=SCHEMAS,
        title=st.text(),
        output_schema=st.none() | OBJECTS,
        annotations=OBJECTS.map(lambda fields: {key: each for key, each in fields.items() if key != "title"}),
    )
)
def test_a_definition_is_read_back_as_it_was_written(definition: ToolDefinition) -> None:
    assert definitions.read_tool(definitions.write_tool(definition)) == definition


@PROPERTY
@given(st.lists(st.tuples(NAMES, OBJECTS), max_size=3))
def test_calls_are_read_back_as_they_were_written(asked: list[tuple[str, dict[str, Any]]]) -> None:
    calls = [ToolCall(f"call_{place}", name, arguments) for place, (name, arguments) in enumerate(asked, 1)]

    assert mcp.read_calls(mcp.write_calls(calls)) == calls
    as_text = [ToolCall(call.id, call.name, json.dumps(call.arguments)) for call in calls]
    assert mcp.read_calls(mcp.write_calls(as_text)) == calls


@PROPERTY
@given(BLOCKS, st.none() | OBJECTS)
def test_results_of_every_version_are_read_back_as_they_were_written(content: list[Any], structured: Any) -> None:
    calls = [ToolCall("1", "add"), ToolCall("2", "take")]
    answered = [ToolResult(call.id, call.name, tuple(content), structured) for call in calls]

    assert mcp.read_results(mcp.write_results(answered), calls) == answered


@PROPERTY
@given(BLOCKS, JSON, st.booleans())
def test_a_result_is_read_back_as_it_was_written(content: list[Any], structured: Any, is_error: bool) -> None:
    code = ToolExecutionError.code if is_error else None
    result = ToolResult("7", "add", tuple(content), structured, is_error=is_error, error_code=code)

    assert requests.read_result(requests.write_result(result), ToolCall("7", "add")) == result


@PROPERTY
@given(st.dictionaries(NAMES, OBJECTS, max_size=3), st.text(), OBJECTS)
def test_questions_and_their_answers_are_read_back_as_they_were_written(
    asked: dict[str, dict[str, Any]], state: str, params: dict[str, Any]
) -> None:
    written = eras.input_required({key: {"method": "roots/list", "params": each} for key, each in asked.items()}, state)

    assert requests.asks_for_input(written)
    assert eras.state_in(written) == state
    assert {key: params for key, _, params in eras.questions_in(written)} == asked
    answered = eras.with_state(eras.with_answers(params, asked), state)
    assert (eras.answers_in(answered), eras.state_in(answered)) == (asked, state)
    assert eras.without_round(answered) == eras.without_round(params)


@PROPERTY
@given(OBJECTS, NAMES)
def test_an_entry_is_kept_byte_for_byte_whatever_is_in_it(fields: dict[str, Any], name: str) -> None:
    entry = {**fields, "name": name}
    tool = Tool(definitions.read_tool(entry, name="ours"), origin=ToolOrigin("s", name, entry))

    assert as_text(definitions.entry_of(tool)) == as_text(entry)
    kept = {key: each for key, each in definitions.renamed_entry(tool).items() if key in fields}
    assert as_text({**kept, "name": name}) == as_text(entry)


@PROPERTY
@given(st.sampled_from([requests.LIST_TOOLS, requests.CALL_TOOL, requests.READ_RESOURCE, requests.GET_PROMPT]), OBJECTS)
def test_a_result_goes_past_the_models_of_the_sdk_byte_for_byte(method: str, result: dict[str, Any]) -> None:
    carrying = requests.carrying(method, result)

    assert requests.carried(carrying["_meta"]) is result
    older = {key: each for key, each in carrying.items() if key not in requests.MODERN_FIELDS}  # as the SDK sends them
    assert as_text(requests.unpacked(older)) == as_text(result)


def test_what_the_sdk_adds_to_a_result_is_added_to_the_one_that_it_carries() -> None:
    carrying = requests.carrying(requests.LIST_TOOLS, {"tools": [], "_meta": {"a": 1}}, ttl_ms=5)
    stamped = {**carrying, "_meta": {**carrying["_meta"], "server": "it"}}
    around = {"resultType": "complete", "ttlMs": 5, "cacheScope": "private"}

    assert requests.unpacked(stamped) == {"tools": [], "_meta": {"a": 1, "server": "it"}, **around}


def test_a_meta_that_is_no_object_gives_way_to_what_the_sdk_adds() -> None:
    carrying = requests.carrying(requests.CALL_TOOL, {"content": [], "_meta": "x"})
    stamped = {**carrying, "_meta": {**carrying["_meta"], "server": "it"}}

    assert requests.unpacked(stamped)["_meta"] == {"server": "it"}
    assert requests.unpacked(carrying)["_meta"] == "x"


def test_a_result_that_asks_for_input_is_not_stamped_as_complete() -> None:
    asking = eras.input_required({}, "s")

    assert requests.unpacked(requests.carrying(requests.CALL_TOOL, asking)) == asking


def test_a_method_without_an_empty_result_is_answered_with_its_own() -> None:
    assert requests.carrying("ping", {"a": 1}) == {"a": 1}


READERS: Mapping[str, Callable[[dict[str, Any]], object]] = {
    "tool_name": definitions.tool_name,
    "schema_of": definitions.schema_of,
    "read_call": requests.read_call,
    "target_of": requests.target_of,
    "forwarded_meta": requests.forwarded_meta,
    "read_result": lambda junk: requests.read_result(junk, ToolCall("1", "add")),
    "is_error": requests.is_error,
    "all_content_of": lambda junk: list(requests.all_content_of(junk)),
    "asks_for_input": requests.asks_for_input,
    "with_meta": lambda junk: requests.with_meta(junk, {"a": 1}),
    "unpacked": lambda junk: requests.unpacked(requests.carrying(requests.CALL_TOOL, junk)),
    "questions_in": lambda junk: list(eras.questions_in(junk)),
    "answers_in": eras.answers_in,
    "without_round": eras.without_round,
    "as_live_request": lambda junk: eras.as_live_request(junk, 1),
    "next_cursor": lists.next_cursor,
    "ttl_s": lists.ttl_s,
    "entries": lambda junk: [each.entries_of(junk) for each in LISTS],
    "names": lambda junk: [each.name_of(junk) for each in LISTS],
    "without_modification": lists.without_modification,
    "older": lambda junk: eras.result_for(junk, Era.LEGACY),
    "of 2026": lambda junk: eras.result_for(junk, Era.MODERN),
}


@PROPERTY
@given(JUNK)
def test_nothing_that_a_peer_sends_makes_reading_fail(junk: dict[str, Any]) -> None:
    for reader, read in READERS.items():
        note(reader)
        read(junk)


@PROPERTY
@given(JSON | JUNK)
def test_an_entry_that_is_no_tool_is_refused_by_nothing_but_the_error_that_says_why(entry: Any) -> None:
    definition = None
    with suppress(BadToolError):
        definition = definitions.read_tool(entry)
    if definition is not None:
        assert definition.input_schema["type"] == "object"
        assert definition.name == definitions.tool_name(entry)


@PROPERTY
@given(JUNK, NAMES, st.sampled_from(Era))
def test_whatever_is_wrong_with_a_tool_a_client_can_be_listed_it(junk: dict[str, Any], name: str, era: Era) -> None:
    entry = {**junk, "name": name, "inputSchema": {"type": "object"}}
    tool = Tool(definitions.read_tool(entry), origin=ToolOrigin("s", name, entry))

    listed = eras.entry_for(tool, era)

    assert (listed["name"], listed["inputSchema"]) == (name, {"type": "object", "properties": {}})
    assert eras.entry_for(tool, era) == listed


@PROPERTY
@given(JUNK)
def test_a_question_in_a_form_that_nobody_knows_fails_with_nothing_but_a_refusal(
    params: dict[str, Any],
) -> None:
    capabilities = {"elicitation": {}, "sampling": {}}
    for method in (requests.ELICIT, requests.SAMPLE, "of another"):
        with suppress(MCPError):
            eras.check_askable(capabilities, method, params)


def test_a_question_without_usable_parameters_is_asked_without_any() -> None:
    asking = {"inputRequests": {"a": {"method": "roots/list", "params": "x"}, "b": "x"}}

    assert list(eras.questions_in(asking)) == [("a", "roots/list", {})]
    assert list(eras.questions_in({"inputRequests": [1]})) == []


@pytest.mark.parametrize(
    ("told", "seconds"),
    [(5_000, 5.0), (0.5, 0.0005), (0, None), (-1, None), ("5", None), (None, None), (10**400, None)],
)
def test_a_page_may_be_relied_on_as_long_as_it_says_in_a_number_that_means_something(told: Any, seconds: Any) -> None:
    assert lists.ttl_s({"ttlMs": told}) == seconds


def test_the_size_of_a_resource_and_its_date_are_no_change_of_its_entry() -> None:
    entry = {"uri": "file:///a", "size": 3, "annotations": {"lastModified": "2026-11-20T10:00:00Z", "priority": 1}}

    assert lists.without_modification(entry) == {"uri": "file:///a", "annotations": {"priority": 1}}
    worded = {"uri": "file:///a", "size": "obey me", "annotations": {"lastModified": "obey me"}}
    assert lists.without_modification(worded) == worded
