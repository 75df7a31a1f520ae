"""Every check of the two OpenAI wires has a request that trips it and, where it matters, one that passes."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.kit.strict_upstreams import Reply, Search, Text, Thinking, ToolCall, scripted
from tests.kit.strict_upstreams.integration.conftest import Bench

PARAMETERS = {"type": "object", "properties": {"q": {"type": "string"}}}
STRICT = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"], "additionalProperties": False}


# --- Chat ---------------------------------------------------------------------------------------------------------


def function(name: str = "look", **more: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": PARAMETERS, **more}}


def user(content: Any = "hi") -> dict[str, Any]:
    return {"role": "user", "content": content}


def calls(*names: str, content: Any = None, **more: Any) -> dict[str, Any]:
    inner = {"name": "look", "arguments": "{}", **more}
    return {
        "role": "assistant",
        "content": content,
        "tool_calls": [{"id": name, "type": "function", "function": inner} for name in names],
    }


def answer(name: str = "call_1", content: Any = "ok") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": name, "content": content}


def chat(*messages: Any, **more: Any) -> dict[str, Any]:
    return {"model": "gpt-4o", "messages": list(messages) or [user()], **more}


def schema(value: Any) -> dict[str, Any]:
    return chat(tools=[function(parameters=value)])


CHAT_BAD: list[tuple[str, dict[str, Any]]] = [
    ("unknown_field", chat(foo=1)),
    ("unknown_field", chat({**user(), "cache_control": {}})),
    ("unknown_field", chat({"role": "assistant", "content": "x", "reasoning_content": "y"})),
    ("unknown_field", chat(tools=[{**function(), "defer_loading": True}])),
    ("unknown_field", chat(tools=[function(defer_loading=True)])),
    ("unknown_field", chat(user([{"type": "text", "text": "x", "cache_control": {}}]))),
    ("missing_field", {"model": "gpt-4o"}),
    ("missing_field", {"messages": [user()]}),
    ("missing_field", chat(user(), calls("call_1"), {"role": "tool", "content": "x"})),
    ("missing_field", chat({"role": "user"})),
    ("no_messages", {"model": "gpt-4o", "messages": []}),
    ("max_tokens", chat(model="gpt-5", max_tokens=10)),
    ("sampling", chat(model="gpt-5", temperature=0.2)),
    ("effort", chat(reasoning_effort="low")),
    ("effort", chat(model="gpt-5", reasoning_effort="huge")),
    ("chat_reasoning_tools", chat(model="gpt-5.6", tools=[function()])),
    ("chat_reasoning_tools", chat(model="gpt-6-sol", tools=[function()], reasoning_effort="low")),
    ("chat_reasoning_tools", chat(model="gpt-5.4", tools=[function()], reasoning_effort="low")),
    ("tool_type", chat(tools=[{"type": "tool_search"}])),
    ("tool_name", chat(tools=[function("a.b")])),
    ("tool_name", chat(tools=[function("a" * 65)])),
    ("tool_name", chat(tools=[function("")])),
    ("tool_name", chat(tools=[function("a\n")])),
    ("tool_unique", chat(tools=[function(), function()])),
    ("too_many_tools", chat(tools=[function(f"t{number}") for number in range(129)])),
    ("array", chat(tools=[])),
    ("schema", schema({"type": "string"})),
    ("schema", schema({"properties": {}})),
    ("schema", schema({"type": "object", "oneOf": []})),
    ("schema", schema({"type": "object", "properties": {"a": {"type": "any"}}})),
    ("array_items", schema({"type": "object", "properties": {"a": {"type": "array"}}})),
    ("array_items", schema({"type": "object", "properties": {"a": {"anyOf": [{"type": "array"}]}}})),
    ("strict", chat(tools=[function(strict=True)])),
    ("choice_without_tools", chat(tool_choice="auto")),
    ("choice_without_tools", chat(tool_choice="required")),
    ("choice_unlisted", chat(tools=[function()], tool_choice={"type": "function", "function": {"name": "gone"}})),
    (
        "choice_unlisted",
        chat(
            tools=[function()],
            tool_choice={
                "type": "allowed_tools",
                "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "gone"}}]},
            },
        ),
    ),
    ("tool_choice", chat(tools=[function()], tool_choice="any")),
    ("parallel", chat(parallel_tool_calls=True)),
    ("stream_options", chat(stream_options={"include_usage": True})),
    ("role", chat({"role": "bot", "content": "x"})),
    ("content_null", chat(user(None))),
    ("content_null", chat({"role": "system", "content": None}, user())),
    ("content_null", chat(user(), {"role": "assistant", "content": None})),
    ("content_null", chat(user(), calls("call_1"), answer(content=None))),
    ("empty_content", chat(user([]))),
    ("empty_content", chat(user(), {"role": "assistant", "content": []}, user())),
    ("empty_calls", chat(user(), {"role": "assistant", "content": "x", "tool_calls": []})),
    ("part_type", chat(user([{"type": "input_text", "text": "x"}]))),
    ("part_type", chat(user(), calls("call_1"), answer(content=[{"type": "image_url", "image_url": {"url": "x"}}]))),
    ("call_type", chat(user(), {**calls("call_1"), "tool_calls": [{"id": "call_1", "function": {}}]})),
    ("call_id_length", chat(user(), calls("c" * 41), answer("c" * 41))),
    ("call_name", chat(user(), calls("call_1", name="a.b"), answer())),
    ("arguments_string", chat(user(), calls("call_1", arguments={}), answer())),
    ("id_unique", chat(user(), calls("call_1", "call_1"), answer())),
    ("result_missing", chat(user(), calls("call_1"), user())),
    ("result_missing", chat(user(), calls("call_1", "call_2"), answer())),
    ("result_missing", chat(user(), calls("call_1"), user(), answer())),
    ("result_unexpected", chat(answer())),
    ("result_unexpected", chat(user(), calls("call_1"), answer(), answer("call_2"))),
    ("result_twice", chat(user(), calls("call_1"), answer(), answer())),
]


@pytest.mark.parametrize(("check", "body"), CHAT_BAD, ids=[f"{at}-{case[0]}" for at, case in enumerate(CHAT_BAD)])
def test_chat_refuses(bench: Bench, check: str, body: dict[str, Any]) -> None:
    bench.bad(check, "chat/completions", body)


CHAT_GOOD: list[dict[str, Any]] = [
    chat(),
    chat({"role": "developer", "content": "x"}, user([{"type": "text", "text": "x"}])),
    chat(user(), calls("call_2", "call_1"), answer(), answer("call_2"), {"role": "assistant", "content": "x"}, user()),
    chat(user(), calls("call_1", content=""), answer(content="")),
    chat(tools=[function(strict=True, parameters=STRICT)], tool_choice="required"),
    chat(tools=[function(f"t{number}") for number in range(128)]),
    chat(model="gpt-5.6", tools=[function()], reasoning_effort="none"),
    chat(model="gpt-5", tools=[function()]),
]


@pytest.mark.parametrize("body", CHAT_GOOD)
def test_chat_takes(bench: Bench, body: dict[str, Any]) -> None:
    bench.good("chat/completions", body)


def test_openai_headers_and_models(bench: Bench) -> None:
    bench.bad("auth", "chat/completions", chat(), 401, authorization="")
    bench.bad("auth", "responses", respond(), 401, authorization="")
    bench.bad("model", "chat/completions", chat(model="gpt-none"), 404)
    assert bench.http.get("/v1/models").json()["data"][0]["type"] == "model"
    assert bench.http.get("/v1/models", headers={"anthropic-version": ""}).json()["object"] == "list"


# --- Responses ----------------------------------------------------------------------------------------------------


def tool(name: str = "look", **more: Any) -> dict[str, Any]:
    return {"type": "function", "name": name, "parameters": PARAMETERS, "strict": False, **more}


def call(key: str = "call_1", **more: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": key, "name": "look", "arguments": "{}", **more}


def output(name: str = "call_1", value: Any = "ok", **more: Any) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": name, "output": value, **more}


def respond(*items: Any, **more: Any) -> dict[str, Any]:
    return {"model": "gpt-5.6", "input": list(items) or "hi", **more}


LATER = tool("later", defer_loading=True)
SEARCH = {"type": "tool_search"}


def extra(*tools: Any, role: str = "developer") -> dict[str, Any]:
    return {"type": "additional_tools", "role": role, "tools": list(tools)}


RESPONSES_BAD: list[tuple[str, dict[str, Any], int]] = [
    ("unknown_field", respond(messages=[]), 400),
    ("unknown_field", respond({**user(), "name": "x"}), 400),
    ("unknown_field", respond(user(), call(index=0), output()), 400),
    ("unknown_field", respond(tools=[tool(input_schema={})]), 400),
    ("unknown_field", respond(user([{"type": "input_text", "text": "x", "cache_control": {}}])), 400),
    ("missing_field", {"model": "gpt-5.6"}, 400),
    ("missing_field", respond({"type": "function_call", "name": "x", "arguments": "{}"}), 400),
    ("no_messages", {"model": "gpt-5.6", "input": []}, 400),
    ("max_tokens", respond(max_output_tokens=1), 400),
    ("sampling", respond(temperature=0.2), 400),
    ("effort", respond(model="gpt-4o", reasoning={"effort": "low"}), 400),
    ("shape", respond(instructions=["x"]), 400),
    ("previous_response", respond(previous_response_id="resp_x"), 400),
    ("tool_type", respond(tools=[{"type": "web_search_20250305"}]), 400),
    ("tool_type", respond(tools=[{"type": "namespace", "name": "n", "description": "d", "tools": [SEARCH]}]), 400),
    ("tool_name", respond(tools=[tool("a.b")]), 400),
    ("tool_unique", respond(tools=[tool(), tool()]), 400),
    ("tool_unique", respond(tools=[LATER, SEARCH, SEARCH]), 400),
    ("tool_unique", respond(extra(tool(description="other")), user(), tools=[tool()]), 400),
    ("too_many_tools", respond(tools=[tool(f"t{number}") for number in range(129)]), 400),
    ("array_items", respond(tools=[tool(parameters={"type": "object", "properties": {"a": {"type": "array"}}})]), 400),
    ("strict", respond(tools=[tool(strict=True)]), 400),
    ("search_model", respond(model="gpt-5", tools=[LATER, SEARCH]), 400),
    ("search_model", respond(model="gpt-5", tools=[LATER]), 400),
    ("deferred_without_search", respond(tools=[tool(), LATER]), 400),
    ("search_without_deferred", respond(tools=[tool(), SEARCH]), 400),
    ("choice_without_tools", respond(tool_choice="required"), 400),
    ("choice_without_tools", respond(tool_choice={"type": "function", "name": "look"}), 400),
    ("choice_unlisted", respond(tools=[tool()], tool_choice={"type": "function", "name": "gone"}), 400),
    (
        "choice_unlisted",
        respond(
            tools=[tool()],
            tool_choice={"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "gone"}]},
        ),
        400,
    ),
    ("tool_choice", respond(tools=[tool()], tool_choice="any"), 400),
    ("tool_choice", respond(tools=[tool()], tool_choice={"type": "tool", "name": "look"}), 400),
    ("role", respond({"role": "tool", "content": "x"}), 400),
    ("content_null", respond(user(None)), 400),
    ("content_null", respond(user(), call(), output(value=None)), 400),
    ("empty_content", respond(user([])), 400),
    ("part_type", respond(user([{"type": "text", "text": "x"}])), 400),
    ("part_type", respond(user(), {"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}), 400),
    ("item_type", respond({"type": "tool_result", "call_id": "x"}), 400),
    ("item_type", respond({"type": None}), 400),
    ("call_id_length", respond(user(), call("c" * 65), output("c" * 65)), 400),
    ("call_name", respond(user(), call(name="a.b"), output()), 400),
    ("arguments_string", respond(user(), call(arguments={}), output()), 400),
    ("id_length", respond(user(), call(id="fc_" + "x" * 64), output()), 400),
    ("id_prefix", respond(user(), call(id="call_1"), output()), 400),
    ("id_unique", respond(user(), call(id="fc_1"), call("call_2", id="fc_1"), output(), output("call_2")), 400),
    ("id_unique", respond(user(), call(), call(), output()), 400),
    ("result_missing", respond(user(), call()), 400),
    ("result_unexpected", respond(user(), output()), 400),
    ("result_unexpected", respond(user(), output(), call()), 400),
    ("result_twice", respond(user(), call(), output(), output()), 400),
    ("item_missing", respond({"type": "item_reference", "id": "msg_x"}), 404),
    ("item_missing", respond({"type": "reasoning", "id": "rs_x", "summary": []}, user()), 404),
    (
        "encrypted",
        respond({"type": "reasoning", "id": "rs_x", "summary": [], "encrypted_content": "gAAA"}, user()),
        400,
    ),
    ("additional_model", respond(extra(tool()), user(), model="gpt-4o"), 400),
    ("additional_role", respond(extra(tool(), role="user"), user()), 400),
    ("additional_place", respond(user(), call(), extra(tool()), output()), 400),
    ("server_id", respond(user(), {"type": "tool_search_call", "id": "tsc_1", "arguments": {}}), 400),
    ("server_pair", respond(user(), {"type": "tool_search_output", "id": "tso_1", "tools": []}), 400),
    ("result_missing", respond(user(), {"type": "tool_search_call", "call_id": "call_1", "arguments": {}}), 400),
    ("result_unexpected", respond(user(), {"type": "tool_search_output", "call_id": "call_1", "tools": []}), 400),
]


@pytest.mark.parametrize(
    ("check", "body", "status"), RESPONSES_BAD, ids=[f"{at}-{case[0]}" for at, case in enumerate(RESPONSES_BAD)]
)
def test_responses_refuses(bench: Bench, check: str, body: dict[str, Any], status: int) -> None:
    bench.bad(check, "responses", body, status)


RESPONSES_GOOD: list[dict[str, Any]] = [
    respond(),
    respond(user(), call(), call("call_2"), output("call_2"), output()),
    respond(user(), call(), {"role": "assistant", "content": "x"}, output()),
    respond(extra(tool("more")), user(), tools=[tool()], tool_choice={"type": "function", "name": "more"}),
    respond(extra(tool()), user(), tool_choice="required"),
    respond(tools=[tool(), LATER, SEARCH]),
    respond(tools=[{"type": "namespace", "name": "crm", "description": "d", "tools": [tool(), LATER]}, SEARCH]),
    respond(tools=[tool(strict=True, parameters=STRICT)]),
]


@pytest.mark.parametrize("body", RESPONSES_GOOD)
def test_responses_takes(bench: Bench, body: dict[str, Any]) -> None:
    bench.good("responses", body)


def thought(bench: Bench) -> dict[str, Any]:
    """A request that echoes a reasoning item and two calls."""
    bench.fake.brain = scripted([Reply([Thinking("hm"), ToolCall("look"), ToolCall("look", {"q": "2"})])])
    items = bench.good("responses", respond(tools=[tool()], store=False))["output"]
    assert [item["type"] for item in items] == ["reasoning", "function_call", "function_call"]
    results = [output(item["call_id"]) for item in items[1:]]
    return respond(user(), *items, *results, tools=[tool()], store=False)


def test_reasoning_goes_back_with_its_item(bench: Bench) -> None:
    request = thought(bench)
    bench.good("responses", request)

    def edited(**changes: Any) -> dict[str, Any]:
        copied = copy.deepcopy(request)
        for place, value in changes.items():
            copied["input"][int(place[1:])] = value
        return copied

    items = request["input"]
    alone = copy.deepcopy(request)
    del alone["input"][2:]
    bench.bad("reasoning_follower", "responses", alone)
    without = copy.deepcopy(request)
    del without["input"][1]
    bench.bad("reasoning_missing", "responses", without)
    for item in without["input"]:
        item.pop("id", None)
    bench.good("responses", without)
    bench.bad("encrypted", "responses", edited(i1={**items[1], "encrypted_content": "gAAAAAother"}))
    bench.bad("encrypted", "responses", edited(i1={**items[1], "id": "rs_other"}))
    bench.bad("item_missing", "responses", edited(i1={"type": "reasoning", "id": items[1]["id"], "summary": []}), 404)
    bench.bad("item_missing", "responses", edited(i2={**items[2], "id": "fc_other"}), 404)
    bench.bad("reasoning_follower", "responses", edited(i2=items[3], i3=items[2]))


def test_stored_responses(bench: Bench) -> None:
    bench.fake.brain = scripted([Reply([Thinking("hm"), ToolCall("look")])])
    first = bench.good("responses", respond(tools=[tool()]))
    later = respond(output(first["output"][1]["call_id"]), previous_response_id=first["id"])
    bench.good("responses", later)
    bench.bad("result_missing", "responses", respond(user(), previous_response_id=first["id"]))
    references = [{"type": "item_reference", "id": item["id"]} for item in first["output"]]
    bench.good("responses", respond(user(), *references, output(first["output"][1]["call_id"])))


def test_tool_search_on_the_server(bench: Bench) -> None:
    bench.fake.brain = scripted([Reply([Search("later")]), Reply([ToolCall("later")])])
    request = respond(user(), tools=[tool(), LATER, SEARCH])
    items = bench.good("responses", request)["output"]
    assert [item["type"] for item in items] == ["tool_search_call", "tool_search_output", "function_call"]
    assert items[1]["tools"] == [LATER]
    request["input"] += [*items, output(items[2]["call_id"])]
    bench.good("responses", request)
    assert bench.fake.requests[-1].visible_names == ["look", "tool_search", "later"]
    del request["input"][2]
    bench.bad("server_pair", "responses", request)


def test_tool_search_by_the_client(bench: Bench) -> None:
    bench.fake.brain = scripted([Reply([Search("later")])])
    search = {"type": "tool_search", "execution": "client", "parameters": PARAMETERS, "description": "d"}
    request = respond(user(), tools=[tool(), search])
    items = bench.good("responses", request)["output"]
    assert items[0]["execution"] == "client" and items[0]["call_id"]
    request["input"] += items
    bench.bad("result_missing", "responses", request)
    request["input"].append(
        {"type": "tool_search_output", "execution": "client", "call_id": items[0]["call_id"], "tools": [tool("later")]}
    )
    bench.good("responses", request)
    assert "later" in bench.fake.requests[-1].visible_names


def test_namespaces_reach_the_brain(bench: Bench) -> None:
    space = {"type": "namespace", "name": "crm", "description": "d", "tools": [tool()]}
    bench.fake.brain = scripted([Reply([Text("x"), ToolCall("look", namespace="crm")])])
    item = bench.good("responses", respond(tools=[space, tool()]))["output"][-1]
    assert item["namespace"] == "crm" and item["name"] == "look"
