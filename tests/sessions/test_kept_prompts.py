"""Prompts that Anthropic is asked to keep for the next request: it keeps none by itself."""

from typing import Any

import pytest
from anthropic import AsyncAnthropic

from examples.anthropic_agent import answer
from tests.kit.clock import Clock
from tests.kit.loopback import Call, LoopbackApi, PromptCache, Reply
from tests.kit.session_tools import ALWAYS_SEARCH, SEARCH
from toolsearch import Catalog, Session, SessionOptions, ToolDefinition, ToolSearch
from toolsearch.wire.capabilities import Cloud

MARK = {"type": "ephemeral"}


@pytest.fixture
def session() -> Session:
    catalog = Catalog([ToolDefinition(name, f"Does {name}") for name in ("mail", "bill", "trip")])
    return ToolSearch(catalog, encoder=None, options=SessionOptions(pass_through=ALWAYS_SEARCH)).session("a")


def marked(request: dict[str, Any]) -> list[str]:
    return [tool["name"] for tool in request["tools"] if "cache_control" in tool]


@pytest.mark.parametrize("model", ["claude-opus-5-5", "claude-sonnet-5", "claude-opus-4-1"])
async def test_each_request_of_the_examples_loop_reads_all_that_the_one_before_has_left(
    api: LoopbackApi, clock: Clock, model: str
) -> None:
    api.cache = PromptCache(clock)
    calls = [Call(SEARCH, {"query": "median of numbers"}), Call(SEARCH, {"query": "day of the week"})]
    api.script(*(Reply(calls=[call]) for call in calls), Reply("It is 3."))
    catalog = Catalog()
    catalog.load("module:statistics")
    catalog.load("module:calendar")
    with ToolSearch(catalog, encoder=None) as engine:
        async with AsyncAnthropic(api_key="k", base_url=api.url, max_retries=0) as client:
            assert await answer(client, model, engine, "What is the median?") == "It is 3."

    assert api.refusals == []
    assert [use.read for use in api.cache.uses] == [use.readable for use in api.cache.uses]
    assert api.cache.uses[-1].read > 0


@pytest.mark.parametrize("model", ["claude-opus-5-5", "claude-sonnet-5", "claude-opus-4-1"])
@pytest.mark.parametrize("cloud", ["", "azure", "vertex"])
def test_the_mark_stands_on_the_request_itself(session: Session, model: str, cloud: Cloud) -> None:
    plain = session.request("anthropic", model=model, cloud=cloud)

    assert session.request("anthropic", model=model, cloud=cloud, cache_prompt=True) == plain | {"cache_control": MARK}


@pytest.mark.parametrize(("cloud", "model"), [("bedrock", "claude-sonnet-5"), ("other", "claude-sonnet-5")])
def test_where_a_request_cannot_be_marked_its_last_tool_that_is_not_deferred_is(
    session: Session, cloud: Cloud, model: str
) -> None:
    plain = session.request("anthropic", model=model, cloud=cloud)
    kept = session.request("anthropic", model=model, cloud=cloud, cache_prompt=True)

    assert (marked(plain), marked(kept)) == ([], ["callTool"])
    assert "cache_control" not in kept
    assert session.request("anthropic", model=model, cloud=cloud) == plain


@pytest.mark.parametrize("wire_format", ["openai", "openai-responses", "mcp"])
def test_the_other_formats_have_no_mark(session: Session, wire_format: Any) -> None:
    assert session.request(wire_format, cache_prompt=True) == session.request(wire_format)
