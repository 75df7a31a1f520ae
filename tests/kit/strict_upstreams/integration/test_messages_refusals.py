"""Every check of the Messages wire has a request that trips it and, where it matters, one that passes."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.kit.strict_upstreams import Reply, Search, Text, Thinking, ToolCall, scripted
from tests.kit.strict_upstreams.integration.conftest import Bench
from tests.kit.strict_upstreams.messages_check import BINDING, CHANGES, INLINE

SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}}
TOOL = {"name": "look", "description": "d", "input_schema": SCHEMA}
OTHER = {"name": "move", "description": "d", "input_schema": SCHEMA}
LATER = {**OTHER, "name": "later", "defer_loading": True}
SEARCH = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
MARK = {"type": "ephemeral"}
FABLE = "claude-fable-5-1"


def user(content: Any = "hi") -> dict[str, Any]:
    return {"role": "user", "content": content}


def bot(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def use(name: str = "toolu_1", tool: str = "look") -> dict[str, Any]:
    return {"type": "tool_use", "id": name, "name": tool, "input": {}}


def result(name: str = "toolu_1", content: Any = "ok", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": name, "content": content, **more}


def text(words: str = "t") -> dict[str, Any]:
    return {"type": "text", "text": words}


def body(*messages: Any, **more: Any) -> dict[str, Any]:
    return {"model": "claude-opus-4-8", "max_tokens": 100, "messages": list(messages) or [user()], **more}


def tool(**more: Any) -> dict[str, Any]:
    return {"tools": [{**TOOL, **more}]}


def reference(name: str) -> dict[str, Any]:
    return {"type": "tool_reference", "tool_name": name}


def addition(name: str) -> dict[str, Any]:
    return {"role": "system", "content": [{"type": "tool_addition", "tool": {"type": "tool_reference", "name": name}}]}


ROUND = [user(), bot(use()), user([result()])]
BAD: list[tuple[str, dict[str, Any]]] = [
    ("unknown_field", body(foo=1)),
    ("unknown_field", body({**user(), "name": "x"})),
    ("unknown_field", body(user([{**text(), "x": 1}]))),
    ("unknown_field", body(user(), bot({**use(), "status": "done"}), user([result()]))),
    ("unknown_field", body(**tool(parameters={}))),
    ("unknown_field", body(tool_choice={"type": "auto", "name": "look"}, **tool())),
    ("unknown_field", body(user([{**text(), "cache_control": {"type": "ephemeral", "scope": "x"}}]))),
    ("missing_field", {"model": "claude-opus-4-8", "messages": [user()]}),
    ("missing_field", body(tools=[{"name": "x"}])),
    ("missing_field", body(user([{"type": "tool_result", "content": "x"}]))),
    ("max_tokens", body(max_tokens=-1)),
    ("sampling", body(temperature=0.3)),
    ("thinking", body(thinking={"type": "enabled", "budget_tokens": 2000})),
    ("thinking", body(thinking={"type": "adaptive"}, model="claude-sonnet-4-5")),
    ("thinking", body(thinking={"type": "disabled"}, model="claude-opus-5-5")),
    ("thinking", body(thinking={"type": "between_tools"}, model="claude-opus-5-5")),
    ("thinking", body(thinking={"type": "often"})),
    ("thinking", body(thinking={"type": "adaptive"}, temperature=0.5, model="claude-opus-4-6")),
    ("thinking", body(thinking={"type": "enabled", "budget_tokens": 2000}, model="claude-sonnet-4-5")),
    ("beta_needed", body(thinking={"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}})),
    ("tool_name", body(**tool(name="a.b"))),
    ("tool_name", body(**tool(name="a" * 129))),
    ("tool_name", body(**tool(name=""))),
    ("tool_name", body(user(), bot(use(tool="a b")), user([result()]))),
    ("tool_unique", body(tools=[TOOL, TOOL])),
    ("tool_type", body(**tool(type="function"))),
    ("property_key", body(**tool(input_schema={"type": "object", "properties": {"a b": {}}}))),
    ("property_key", body(**tool(input_schema={"type": "object", "properties": {"k" * 65: {}}}))),
    ("schema", body(**tool(input_schema={}))),
    ("schema", body(**tool(input_schema={"type": "string"}))),
    ("schema", body(**tool(input_schema={"type": "object", "anyOf": [{}]}))),
    ("schema", body(**tool(input_schema={"type": "object", "properties": {"a": {"type": "text"}}}))),
    ("deferred_mark", body(tools=[TOOL, {**LATER, "cache_control": MARK}])),
    ("all_deferred", body(tools=[LATER])),
    ("search_deferred", body(tools=[TOOL, {**SEARCH, "defer_loading": True}])),
    ("tool_choice", body(tool_choice="auto", **tool())),
    ("choice_without_tools", body(tool_choice={"type": "auto"})),
    ("choice_unlisted", body(tool_choice={"type": "tool", "name": "gone"}, **tool())),
    ("forced_choice", body(tool_choice={"type": "any"}, model="claude-opus-5-5", **tool())),
    ("forced_choice", body(tool_choice={"type": "tool", "name": "look"}, model=FABLE, **tool())),
    ("choice_thinking", body(tool_choice={"type": "any"}, thinking={"type": "adaptive"}, **tool())),
    ("no_messages", {**body(), "messages": []}),
    ("role", body({"role": "tool", "content": "x"})),
    ("content_null", body(user(None))),
    ("content_null", body(user(), bot(use()), user([result(content=None)]))),
    ("empty_content", body(user([]))),
    ("empty_content", body(user(), bot(), user())),
    ("empty_text", body(user([text("")]))),
    ("empty_text", body(user([text("  ")]))),
    ("empty_text", body(system=[text("")])),
    ("empty_error", body(user(), bot(use()), user([result(content="", is_error=True)]))),
    ("block_type", body(user([{"type": "input_text", "text": "x"}]))),
    ("block_type", body(user(), bot(use()), user([result(content=[{"type": "json"}])]))),
    ("block_type", body(system=[{"type": "image", "text": "x"}])),
    ("block_role", body(user([use()]))),
    ("block_role", body(user(), bot(result()), user())),
    ("block_role", body(user(), {"role": "system", "content": [result()]})),
    ("input_object", body(user(), bot({**use(), "input": "{}"}), user([result()]))),
    ("id_pattern", body(user(), bot(use("a.b")), user([result("a.b")]))),
    (
        "id_pattern",
        body(user(), bot({"type": "server_tool_use", "id": "toolu_1", "name": "web_search", "input": {}}), user()),
    ),
    ("id_unique", body(user(), bot(use(), use()), user([result()]))),
    ("id_unique", body(*ROUND, bot(use()), user([result()]))),
    ("result_missing", body(user(), bot(use()), user())),
    ("result_missing", body(user(), bot(use(), use("toolu_2")), user([result()]))),
    ("result_missing", body(user(), bot(use()))),
    ("result_place", body(user(), bot(use()), user([text(), result()]))),
    ("result_unexpected", body(user([result()]))),
    ("result_unexpected", body(*ROUND, bot(text()), user([result()]))),
    ("result_unexpected", body(user(), bot(use()), user([result(), result("toolu_9")]))),
    ("result_twice", body(user(), bot(use()), user([result(), result()]))),
    (
        "server_tool_name",
        body(user(), bot({"type": "server_tool_use", "id": "srvtoolu_1", "name": "look", "input": {}}), user()),
    ),
    (
        "server_id",
        body(
            user(),
            bot({"type": "server_tool_use", "id": "srvtoolu_1", "name": "tool_search_tool_bm25", "input": {}}),
            user(),
        ),
    ),
    (
        "server_id",
        body(
            user(),
            bot({"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "x", "server_name": "s", "input": {}}),
            user(),
        ),
    ),
    (
        "server_pair",
        body(
            user(),
            bot(
                {
                    "type": "tool_search_tool_result",
                    "tool_use_id": "srvtoolu_1",
                    "content": {"type": "tool_search_tool_search_result", "tool_references": []},
                }
            ),
            user(),
        ),
    ),
    ("reference_missing", body(user(), bot(use()), user([result(content=[reference("gone")])]), **tool())),
    (
        "reference_missing",
        body(user(), bot(use()), user([result(content=[reference("tool_search_tool_bm25")])]), tools=[TOOL, SEARCH]),
    ),
    ("signature", body(user(), bot({"type": "thinking", "thinking": "x", "signature": "bm8="}, text()), user())),
    ("redacted", body(user(), bot({"type": "redacted_thinking", "data": "x"}, text()), user())),
    ("thinking_last", body(user(), bot({"type": "thinking", "thinking": "x", "signature": "bm8="}), user())),
    ("prefill", body(user(), bot(text()))),
    ("prefill", body(user(), bot(text("a ")), model="claude-sonnet-4-5")),
    ("marks", body(user([{**text(), "cache_control": MARK}] * 5))),
    (
        "marks",
        body(
            user([{**text(), "cache_control": MARK}] * 3),
            cache_control=MARK,
            system=[{**text(), "cache_control": MARK}],
        ),
    ),
    ("mark", body(user([{**text(), "cache_control": {"type": "forever"}}]))),
    (
        "mark_order",
        body(
            user([{**text(), "cache_control": {"type": "ephemeral", "ttl": "1h"}}]),
            system=[{**text(), "cache_control": MARK}],
        ),
    ),
    ("system_model", body(user(), {"role": "system", "content": "x"}, model="claude-sonnet-5")),
    ("system_place", body({"role": "system", "content": "x"}, user())),
    ("system_place", body(user(), bot(text()), {"role": "system", "content": "x"}, user())),
    ("system_place", body(user(), {"role": "system", "content": "x"}, user())),
    ("system_place", body(user(), bot(use()), {"role": "system", "content": "x"}, user([result()]))),
    ("empty_content", body(user(), {"role": "system", "content": []})),
    ("beta_needed", body(user(), addition("later"), tools=[TOOL, LATER])),
    ("too_many_tools", body(tools=[{**TOOL, "name": f"t{number}"} for number in range(10_001)])),
]


@pytest.mark.parametrize(("check", "request_body"), BAD, ids=[f"{at}-{case[0]}" for at, case in enumerate(BAD)])
def test_refused(bench: Bench, check: str, request_body: dict[str, Any]) -> None:
    bench.bad(check, "messages", request_body)


GOOD: list[dict[str, Any]] = [
    body(),
    body(*ROUND, **tool()),
    body(user(), bot(use()), user([result(), text()])),
    body(user(), bot(use(), use("toolu_2")), user([result("toolu_2")]), user([result()])),
    body(user(), user("more"), bot(text()), bot(text("x")), user()),
    body(user(), {"role": "system", "content": "x"}),
    body(user(), {"role": "system", "content": "x"}, bot(text()), user()),
    body(user(), bot(text("a")), model="claude-sonnet-4-5"),
    body(user(), bot(use()), user([result(content=[reference("later")])]), tools=[TOOL, LATER]),
    body(tools=[TOOL, LATER, SEARCH], tool_choice={"type": "none"}),
    body(**tool(input_schema={"type": "object", "properties": {"a": {"type": "array"}}})),
    body(user([{**text(), "cache_control": MARK}] * 4)),
    body(temperature=0.3, model="claude-haiku-4-5"),
    body(tool_choice={"type": "tool", "name": "look"}, **tool()),
]


@pytest.mark.parametrize("request_body", GOOD)
def test_taken(bench: Bench, request_body: dict[str, Any]) -> None:
    bench.good("messages", request_body)


def test_headers(bench: Bench) -> None:
    bench.bad("auth", "messages", body(), 401, x_api_key="", authorization="")
    bench.bad("version", "messages", body(), anthropic_version="")
    bench.bad("beta_unknown", "messages", body(), anthropic_beta="made-up-2026-01-01")
    bench.bad("model", "messages", body(model="claude-none"), 404)
    answer = bench.http.post("/v1/messages", content=b"{")
    assert answer.status_code == 400 and answer.json()["type"] == "error"


def test_count_tokens(bench: Bench) -> None:
    request = body(**tool())
    del request["max_tokens"]
    assert bench.good("messages/count_tokens", request)["input_tokens"] > 10
    bench.bad("unknown_field", "messages/count_tokens", {**request, "max_tokens": 1})


def test_changes(bench: Bench) -> None:
    request = body(user(), addition("later"), tools=[TOOL, LATER])
    bench.good("messages", request, anthropic_beta=CHANGES)
    bench.good("messages", request, anthropic_beta=INLINE)
    assert bench.fake.requests[-1].visible_names == ["look", "later"]
    inline = {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": OTHER}}
    request = body(user(), {"role": "system", "content": [inline]}, **tool())
    bench.bad("beta_needed", "messages", request, anthropic_beta=CHANGES)
    bench.good("messages", request, anthropic_beta=INLINE)
    assert bench.fake.requests[-1].visible_names == ["look", "move"]
    bench.bad("reference_missing", "messages", body(user(), addition("gone"), **tool()), anthropic_beta=CHANGES)
    removal = {
        "role": "system",
        "content": [{"type": "tool_removal", "tool": {"type": "tool_reference", "name": "look"}}],
    }
    bench.good("messages", body(user(), removal, tools=[TOOL, OTHER]), anthropic_beta=CHANGES)
    assert bench.fake.requests[-1].visible_names == ["move"]
    bench.bad("reference_missing", "messages", body(user(), removal, tools=[OTHER]), anthropic_beta=CHANGES)


def test_changes_need_a_model_that_takes_them(bench: Bench) -> None:
    from dataclasses import replace

    old = bench.fake.claude["claude-opus-4-8"]
    bench.fake.claude["claude-test"] = replace(old, tool_changes=False)
    bench.bad(
        "changes_model",
        "messages",
        body(user(), addition("later"), tools=[TOOL, LATER], model="claude-test"),
        anthropic_beta=CHANGES,
    )


def thought(bench: Bench, model: str = FABLE, **more: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """A request and its continuation after a call with thinking before it."""
    bench.fake.brain = scripted([Reply([Thinking("hm"), ToolCall("look", {"q": "x"})])])
    request = body(user("first"), model=model, system="s", **{**tool(), **more})
    reply = bench.good("messages", request)
    assert [block["type"] for block in reply["content"]] == ["thinking", "tool_use"]
    after = copy.deepcopy(request)
    after["messages"] += [bot(*reply["content"]), user([result(reply["content"][1]["id"])])]
    return request, after


def test_thinking_is_bound_to_everything_before_it(bench: Bench) -> None:
    _, after = thought(bench)
    bench.good("messages", after)
    for change in ("tools", "system", "first", "order"):
        edited = copy.deepcopy(after)
        if change == "tools":
            edited["tools"].append(OTHER)
        if change == "system":
            edited["system"] = "s2"
        if change == "first":
            edited["messages"][0]["content"] = "first!"
        if change == "order":
            edited["messages"].insert(0, user("before"))
        assert "different conversation" in bench.bad("binding", "messages", edited)


def test_what_thinking_is_not_bound_to(bench: Bench) -> None:
    _, after = thought(bench)
    edited = copy.deepcopy(after)
    edited["tools"].append(LATER)
    edited["tools"][0]["cache_control"] = MARK
    edited["system"] = [{**text("s"), "cache_control": MARK}]
    edited["messages"][0]["content"] = [{**text("first"), "cache_control": MARK}]
    bench.good("messages", edited)
    edited["messages"][1]["content"].pop(0)
    bench.good("messages", edited)
    used = copy.deepcopy(after)
    used["tools"].append(LATER)
    used["messages"][2]["content"][0]["content"] = [reference("later")]
    bench.good("messages", used)


def test_unbound_models_only_check_their_own_signature(bench: Bench) -> None:
    _, after = thought(bench, "claude-opus-5")
    edited = copy.deepcopy(after)
    edited["tools"].append(OTHER)
    bench.good("messages", edited)
    edited["messages"][1]["content"][0]["thinking"] = "changed"
    bench.bad("signature", "messages", edited)
    other = copy.deepcopy(after)
    other["model"] = FABLE
    bench.good("messages", other)
    assert bench.fake.requests[-1].thinking_dropped == 1


def test_a_thinking_block_left_out_in_the_middle(bench: Bench) -> None:
    call = Reply([Thinking("hm"), ToolCall("look")])
    bench.fake.brain = scripted([call, call, call])
    request = body(user(), model=FABLE, **tool())
    for _ in range(3):
        reply = bench.good("messages", request)
        request["messages"] += [bot(*reply["content"]), user([result(reply["content"][1]["id"])])]
    bench.good("messages", request)
    middle = copy.deepcopy(request)
    middle["messages"][3]["content"].pop(0)
    bench.bad("binding", "messages", middle)
    leading = copy.deepcopy(middle)
    leading["messages"][1]["content"].pop(0)
    bench.good("messages", leading)


def test_mismatched_blocks_may_be_dropped(bench: Bench) -> None:
    _, after = thought(bench)
    after["tools"].append(OTHER)
    after["thinking"] = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    reply = bench.good("messages", after, anthropic_beta=BINDING)
    assert reply["input_transformations"][0]["reason"] == "prefix_binding_mismatch"
    assert bench.fake.requests[-1].thinking_dropped == 1


def test_rounds_glued_into_one_turn(bench: Bench) -> None:
    bench.fake.brain = scripted([Reply([Thinking("a"), Text("one")]), Reply([Thinking("b"), Text("two")])])
    request = body(user(), model="claude-opus-5")
    first = bench.good("messages", request)["content"]
    second = bench.good("messages", request)["content"]
    bench.bad("glued", "messages", body(user(), bot(first[0], second[0], second[1]), user(), model="claude-opus-5"))
    bench.bad("glued", "messages", body(user(), bot(*first), bot(*second), user(), model="claude-opus-5"))
    bench.good("messages", body(user(), bot(*first), user(), bot(*second), user(), model="claude-opus-5"))


def test_manual_thinking_starts_an_open_round(bench: Bench) -> None:
    manual = {"type": "enabled", "budget_tokens": 1024}
    _, after = thought(bench, "claude-sonnet-4-5", thinking=manual, max_tokens=4000)
    bench.good("messages", after)
    after["messages"][1]["content"].pop(0)
    bench.bad("thinking_first", "messages", after)


def test_server_search_blocks_go_back_as_they_came(bench: Bench) -> None:
    bench.fake.brain = scripted([Reply([Search("later")]), Reply([ToolCall("later")])])
    request = body(user(), tools=[TOOL, LATER, SEARCH])
    content = bench.good("messages", request)["content"]
    assert [block["type"] for block in content] == ["server_tool_use", "tool_search_tool_result", "tool_use"]
    request["messages"] += [bot(*content), user([result(content[2]["id"])])]
    bench.good("messages", request)
    assert "later" in bench.fake.requests[-1].visible_names
    alone = copy.deepcopy(request)
    alone["messages"][1]["content"].pop(1)
    bench.bad("server_pair", "messages", alone)
    gone = copy.deepcopy(request)
    gone["tools"] = [TOOL, SEARCH]
    bench.bad("reference_missing", "messages", gone)
    swapped = copy.deepcopy(request)
    swapped["messages"][1]["content"].insert(0, swapped["messages"][1]["content"].pop(1))
    bench.bad("server_pair", "messages", swapped)
