"""What a session says that its requests cost, beside what stood on the wire."""

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from tests.kit.loopback import Call, LoopbackApi, Reply
from tests.kit.scripted_model import ScriptedModel, calls, says
from tests.kit.tool_search import ALWAYS_SEARCH
from toolsearch import Catalog, SessionOptions, ToolDefinition, ToolSearch
from toolsearch.chat import (
    AnthropicModel,
    ChatClient,
    MemoryAdvisor,
    MessageWindowMemory,
    OpenAIChatModel,
    OpenAIResponsesModel,
    ToolSearchAdvisor,
    Usage,
)

SEARCH = "toolSearchTool"
TURNS = 6


class Pieces:
    """Each definition, each call of the search tool and each answer counts as one."""

    estimate = True

    def count(self, text: str) -> int:
        return 1 if text else 0


def pieces_in(body: dict[str, Any]) -> int:
    listed = sum(not tool.get("defer_loading") for tool in body["tools"])
    parts = list(_objects(body.get("messages") or body["input"]))
    asked = [part for part in parts if _is_search(part)]
    searches = {part.get("call_id") or part.get("id") for part in asked}
    return listed + len(asked) + sum(_answered(part, searches) for part in parts)


def _is_search(part: dict[str, Any]) -> bool:
    if part.get("type") == "function":
        return bool(part["function"]["name"] == SEARCH)
    return part.get("type") == "tool_search_call" or (
        part.get("type") in ("tool_use", "function_call") and part["name"] == SEARCH
    )


def _answered(part: dict[str, Any], searches: set[Any]) -> int:
    """The definitions that *part* adds or loads, or 1 for the answer to a search in words."""
    kind = part.get("type", part.get("role"))
    if kind == "tool_result" and part["tool_use_id"] in searches:
        return len(part["content"])  # one reference each, or one text
    if kind in ("additional_tools", "tool_search_output"):
        return len(part["tools"])
    if kind == "tool_definition":
        return 1
    if kind == "message" and part["role"] == "developer":
        return int(part["content"].startswith(SEARCH))  # what the output of a search has no place for
    answered = part.get("call_id") if kind == "function_call_output" else part.get("tool_call_id")
    return int(answered in searches and kind in ("function_call_output", "tool"))


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        if value.get("type") in ("tool_definition", "additional_tools", "tool_search_output"):
            return
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _objects(each)


@pytest.mark.parametrize("max_messages", [12, 1_000])
@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("claude-opus-4-8", "messages"),
        ("claude-opus-4-8", "deferred"),
        ("claude-opus-4-8", "fixed"),
        ("gpt-5.4", "messages"),
        ("gpt-5.4", "deferred"),
        ("gpt-5.4", "append"),
        ("gpt-4.1", "append"),
    ],
)
async def test_a_session_counts_what_stood_on_the_wire_also_where_a_memory_forgets(
    api: LoopbackApi, name: str, mode: Any, max_messages: int
) -> None:
    api.remembers = False
    options = SessionOptions(pass_through=ALWAYS_SEARCH)
    catalog = Catalog(ToolDefinition(f"tool_{number}", f"Does the job {number}.") for number in range(TURNS))
    engine = ToolSearch(catalog, encoder=None, options=options, counter=Pieces())
    memory = MemoryAdvisor(MessageWindowMemory(max_messages=max_messages))
    model: Any = {"c": AnthropicModel, "g": OpenAIResponsesModel if name == "gpt-5.4" else OpenAIChatModel}[name[0]](
        name, base_url=api.url if name[0] == "c" else api.openai_url, api_key="k", cloud=""
    )
    client = ChatClient(model, advisors=[ToolSearchAdvisor(engine, mode=mode), memory])
    for number in range(TURNS):
        api.script(Reply(calls=[Call(SEARCH, {"query": f"select:tool_{number}"})]), Reply("Found."))
        await client.prompt("Go on.").context(conversation_id="a").call()
    await model.close()

    savings = engine.session("a").savings()
    lists = [json.dumps(body["tools"]) for body in api.bodies]
    changes = sum(one != other for one, other in pairwise(lists))
    assert api.refusals == []
    assert (savings.requests, savings.search_rounds) == (2 * TURNS, TURNS)
    assert savings.sent_tokens == sum(map(pieces_in, api.bodies))
    assert savings.cache_breaks == (changes if mode == "append" else 0)
    if mode == "append":
        assert changes == TURNS
    else:  # what a memory of three exchanges drops comes into the list with all that is there
        assert changes == (1 if max_messages == 12 else 0)


async def test_a_break_costs_the_prompt_that_the_provider_has_counted() -> None:
    options = SessionOptions(pass_through=ALWAYS_SEARCH)
    catalog = Catalog([ToolDefinition("send_mail", "Sends an email.")])
    engine = ToolSearch(catalog, encoder=None, options=options)
    search = calls((SEARCH, '{"query": "send an email"}'), usage=Usage(12_345, 6))
    client = ChatClient(ScriptedModel(search, says("Sent.")), advisors=[ToolSearchAdvisor(engine, mode="append")])

    await client.prompt("Write to Ann.").context(conversation_id="a").call()

    savings = engine.session("a").savings()
    assert (savings.cache_breaks, savings.break_tokens) == (1, 12_345)
