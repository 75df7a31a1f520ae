"""What a model reads of a request, in each dialect, with the namespaces and the deferred tools that agents send."""

from typing import Any

import pytest

from tests.kit.loopback import SeenTool
from tests.kit.loopback.seen import seen_in

SCHEMA = {"type": "object", "properties": {"zone": {"type": "string"}}}
OF_MESSAGES: dict[str, Any] = {
    "tools": [{"name": "now", "description": "Tells the time.", "input_schema": SCHEMA, "cache_control": {"a": 1}}],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "When?"}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "now", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "noon"}]},
    ],
}
OF_CHAT: dict[str, Any] = {
    "tools": [
        {"type": "function", "function": {"name": "now", "description": "Tells the time.", "parameters": SCHEMA}}
    ],
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "When?"},
        {"role": "tool", "tool_call_id": "1", "content": [{"type": "text", "text": "noon"}]},
    ],
}
OF_RESPONSES: dict[str, Any] = {
    "tools": [{"type": "function", "name": "now", "description": "Tells the time.", "parameters": SCHEMA}],
    "input": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "When?"}]},
        {"type": "function_call_output", "call_id": "1", "output": "noon"},
    ],
}
OF_GEMINI: dict[str, Any] = {
    "tools": [
        {"functionDeclarations": [{"name": "now", "description": "Tells the time.", "parametersJsonSchema": SCHEMA}]}
    ],
    "contents": [
        {"role": "user", "parts": [{"text": "When?"}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "now", "response": {"output": "noon"}}}]},
    ],
}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/messages", OF_MESSAGES),
        ("/v1/chat/completions", OF_CHAT),
        ("/v1/responses", OF_RESPONSES),
        ("/v1beta/models/m:streamGenerateContent", OF_GEMINI),
    ],
)
def test_tools_results_and_prompt_are_read_in_each_dialect(path: str, body: dict[str, Any]) -> None:
    seen = seen_in(path, body)

    assert seen.tools == [SeenTool("now", "Tells the time.", SCHEMA)]
    assert seen.results == ["noon"]
    assert seen.said == "When?"


def test_marks_for_the_cache_do_not_change_a_listing() -> None:
    unmarked = {**OF_MESSAGES, "tools": [{k: v for k, v in OF_MESSAGES["tools"][0].items() if k != "cache_control"}]}

    assert seen_in("/v1/messages", OF_MESSAGES).listing == seen_in("/v1/messages", unmarked).listing


def test_a_deferred_tool_of_messages_can_be_called_once_a_result_refers_to_it() -> None:
    deferred = {**OF_MESSAGES, "tools": [{**OF_MESSAGES["tools"][0], "defer_loading": True}]}
    reference = {"type": "tool_result", "tool_use_id": "2", "content": [{"type": "tool_reference", "tool_name": "now"}]}
    found = {**deferred, "messages": [*deferred["messages"], {"role": "user", "content": [reference]}]}

    assert seen_in("/v1/messages", deferred).tool("now") is None
    assert seen_in("/v1/messages", found).tool("now") is not None


def test_a_tool_in_a_namespace_of_responses_goes_by_both_names() -> None:
    inner = {"type": "function", "name": "now", "parameters": SCHEMA, "defer_loading": True}
    namespace = {"type": "namespace", "name": "mcp__clock", "tools": [inner]}
    output = {"type": "tool_search_output", "call_id": "1", "tools": [namespace]}

    listed = seen_in("/v1/responses", {"tools": [namespace], "input": []})
    found = seen_in("/v1/responses", {"tools": [], "input": [output]})

    assert [(tool.name, tool.is_deferred) for tool in listed.tools] == [("mcp__clock.now", True)]
    assert [(tool.name, tool.is_deferred) for tool in found.tools] == [("mcp__clock.now", False)]
