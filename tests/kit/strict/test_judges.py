"""Each judge takes good requests from the providers' documents and refuses a bad one for each of its rules."""

import copy
import json
from importlib import import_module
from typing import Any

import pytest

from . import anthropic_messages, mcp_tools, openai_chat, openai_responses
from .common import deep_recursion, draft_problems, ref_problems
from .odd_tools import ODD_TOOLS, OddTool, props
from .sample_requests import (
    BAD,
    GOOD,
    NEWEST,
    TOOL_SEARCH,
    TOOLS,
    Json,
    Judge,
    chat,
    chat_schema,
    claude,
    lasting,
    responses,
    tool,
)


@pytest.mark.parametrize(("judge", "request_body"), GOOD)
def test_good_requests_are_taken(judge: Judge, request_body: Json) -> None:
    before = copy.deepcopy(request_body)
    assert judge(request_body) == []
    assert request_body == before, "a judge must leave the request as it was"
    json.dumps(request_body)


@pytest.mark.parametrize(("judge", "request_body", "words"), BAD)
def test_bad_requests_are_refused(judge: Judge, request_body: Json, words: str) -> None:
    found = judge(request_body)
    assert any(words in problem for problem in found), found


def test_the_model_may_be_given_apart() -> None:
    request = lasting("model", of=claude(tools=TOOLS, tool_choice={"type": "any"}))
    assert anthropic_messages.problems(request, NEWEST) == []
    assert anthropic_messages.problems(request, "claude-fable-5-1")
    deferred = lasting("model", of=responses(tools=[tool(defer_loading=True), TOOL_SEARCH]))
    assert openai_responses.problems(deferred, "gpt-5.5") == []
    assert openai_responses.problems(deferred, "gpt-5")


def test_data_inside_schemas_is_not_taken_for_schemas() -> None:
    value = {"type": "array", "$ref": "#/nowhere", "pattern": "(?=a)", "properties": None}
    schema = props(
        {"$defs": {"type": "string"}, "a": {"type": "object", "default": value, "enum": [value], "const": value}}
    )
    assert openai_chat.problems(chat_schema(schema)) == []


@pytest.mark.parametrize("odd_tool", ODD_TOOLS, ids=lambda odd_tool: odd_tool.label)
def test_every_judge_bears_every_odd_tool(odd_tool: OddTool) -> None:
    given = odd_tool.tool
    fields = {key: value for key, value in given.items() if key in ("name", "description")}
    schema = given["inputSchema"]
    for found in (
        anthropic_messages.problems(claude(tools=[{**fields, "input_schema": schema}])),
        openai_chat.problems(chat(tools=[{"type": "function", "function": {**fields, "parameters": schema}}])),
        openai_responses.problems(responses(tools=[{"type": "function", **fields, "parameters": schema}])),
        mcp_tools.problems({"tools": [given]}),
    ):
        assert all(isinstance(problem, str) and ": " in problem for problem in found)


def test_odd_tools_are_many_and_told_apart() -> None:
    assert len(ODD_TOOLS) >= 80
    assert len({odd_tool.label for odd_tool in ODD_TOOLS}) == len(ODD_TOOLS)


@pytest.mark.parametrize("odd_tool", ODD_TOOLS, ids=lambda odd_tool: odd_tool.label)
def test_sample_arguments_fit_their_tool(odd_tool: OddTool) -> None:
    schema = odd_tool.tool["inputSchema"]
    assert isinstance(schema, bool) or schema is None or odd_tool.label == "root an array" or fits(schema, odd_tool)


def fits(schema: Any, odd_tool: OddTool) -> bool:
    """Whether the arguments are valid by the first draft that can read the schema; true where none can."""
    if odd_tool.label == "a reference to itself" or list(ref_problems(schema, "")):
        return True
    if not draft_problems(schema, "", python_patterns=True):
        return valid("Draft202012Validator", schema, odd_tool.arguments)
    readable = [draft for draft in ("Draft7Validator", "Draft4Validator") if accepts(draft, schema)]
    return not readable or valid(readable[0], schema, odd_tool.arguments)


def accepts(draft: str, schema: Any) -> bool:
    """Whether a draft's own meta-schema accepts the schema."""
    validator: Any = getattr(import_module("jsonschema"), draft)
    return bool(validator(validator.META_SCHEMA).is_valid(schema)) and not draft_has_bad_pattern(schema)


def draft_has_bad_pattern(schema: Any) -> bool:
    """Whether a pattern in the schema cannot be compiled in Python."""
    return "is not a 'regex'" in " ".join(draft_problems(schema, "", python_patterns=True))


def valid(draft: str, schema: Any, arguments: Json) -> bool:
    """Whether the arguments are valid by a draft."""
    validator: Any = getattr(import_module("jsonschema"), draft)
    with deep_recursion():
        return bool(validator(schema).is_valid(arguments))
