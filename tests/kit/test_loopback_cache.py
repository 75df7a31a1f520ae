"""The prompt cache of the loopback APIs: what it reads and writes, by prefix and for a time, and how it is reported."""

from typing import Any

import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from tests.kit.clock import Clock
from tests.kit.loopback import LoopbackApi, PromptCache, Reply
from tests.kit.loopback.prompt_cache import CacheUse, Rendered, message_ends
from tests.kit.test_loopback import ASKED, LATE, SAID, function, response_function, tool

MESSAGES, CHAT = "/v1/messages", "/v1/chat/completions"
ONE, TWO, THREE = "one", "two two", "three three three"  # so many tokens each


@pytest.fixture
def cache(clock: Clock) -> PromptCache:
    return PromptCache(clock)


def ask(cache: PromptCache, *parts: str, marks: Any = None, path: str = CHAT, model: str = "m") -> CacheUse:
    cache.use(path, model, Rendered(parts, marks))
    return cache.uses[-1]


def test_openai_caches_from_gpt_5_6_on_up_to_the_ends_of_messages(cache: PromptCache) -> None:
    def use(*parts: str, ends: list[int]) -> CacheUse:
        cache.use(CHAT, "m", Rendered(parts, ends=ends))
        return cache.uses[-1]

    assert use(ONE, TWO, THREE, ends=[1]) == CacheUse(prompt=6, readable=0, read=0, written=3)
    assert use(ONE, TWO, THREE, ONE, ends=[1, 3]) == CacheUse(prompt=7, readable=3, read=3, written=4)
    assert use(ONE, THREE, ends=[1]) == CacheUse(prompt=4, readable=7, read=0, written=4)


def test_the_ends_of_messages_that_count() -> None:
    kinds = ["instructions", "instructions", "user", "", "result", "result", "instructions", "result", "user", ""]
    assert message_ends(kinds, 3) == [4, 5, 8, 10, 11]


def test_openai_caches_every_prefix(cache: PromptCache) -> None:
    assert ask(cache, ONE, TWO) == CacheUse(prompt=3, readable=0, read=0, written=3)
    assert ask(cache, ONE, TWO, THREE) == CacheUse(prompt=6, readable=3, read=3, written=3)
    assert ask(cache, ONE, THREE) == CacheUse(prompt=4, readable=6, read=1, written=3)
    assert ask(cache, TWO) == CacheUse(prompt=2, readable=4, read=0, written=2)


def test_anthropic_caches_up_to_marks_and_only_there(cache: PromptCache) -> None:
    assert ask(cache, ONE, TWO, marks=frozenset(), path=MESSAGES) == CacheUse(3, 0, 0, 0)
    assert ask(cache, ONE, TWO, marks={1}, path=MESSAGES) == CacheUse(3, 0, 0, 3)
    assert ask(cache, ONE, TWO, THREE, marks={1}, path=MESSAGES) == CacheUse(6, readable=3, read=3, written=0)
    assert ask(cache, ONE, TWO, THREE, marks={2}, path=MESSAGES) == CacheUse(6, readable=3, read=3, written=3)
    assert ask(cache, ONE, THREE, marks={1}, path=MESSAGES) == CacheUse(4, readable=6, read=0, written=4)
    assert cache.uses[2].uncached == 3


def test_anthropic_looks_twenty_parts_back_from_a_mark(cache: PromptCache) -> None:
    for length, read in ((1, 0), (20, 1), (40, 0)):
        assert ask(cache, *[ONE] * length, marks={length - 1}, path=MESSAGES).read == read


@pytest.mark.parametrize(("path", "lifetime_s"), [(MESSAGES, 300), (CHAT, 1_800)])
def test_what_is_cached_lasts_from_its_last_use(cache: PromptCache, clock: Clock, path: str, lifetime_s: int) -> None:
    ask(cache, ONE, marks={0}, path=path)
    for _ in range(2):
        clock.now_s += lifetime_s - 1
        assert ask(cache, ONE, marks={0}, path=path) == CacheUse(1, readable=1, read=1, written=0)
    clock.now_s += lifetime_s
    assert ask(cache, ONE, marks={0}, path=path) == CacheUse(1, readable=0, read=0, written=1)


def test_each_model_has_a_cache_of_its_own(cache: PromptCache) -> None:
    ask(cache, ONE)
    assert ask(cache, ONE, model="n") == CacheUse(1, readable=0, read=0, written=1)


# As the APIs report it


async def test_messages_reports_reads_and_writes_apart_from_the_rest(api: LoopbackApi, cache: PromptCache) -> None:
    api.cache = cache
    api.script(Reply("1"), Reply("2"), Reply("3"))
    first, second = await ask_claude(api, [ASKED]), await ask_claude(api, [ASKED, SAID, ASKED])
    third = await ask_claude(api, [ASKED, SAID, ASKED], tools=[tool("add"), tool("new")])

    assert (first.cache_read_input_tokens, first.input_tokens) == (0, 0)
    assert second.cache_read_input_tokens == first.cache_creation_input_tokens > 0
    assert second.cache_creation_input_tokens > 0
    assert third.cache_read_input_tokens == 0  # since the list of tools has grown
    assert [use.readable for use in cache.uses] == [0, cache.uses[0].prompt, cache.uses[1].prompt]


async def test_an_unreferenced_deferred_tool_is_no_part_of_the_prompt(api: LoopbackApi, cache: PromptCache) -> None:
    api.cache = cache
    api.script(Reply("1"), Reply("2"))
    other = tool("other", defer_loading=True)
    first = await ask_claude(api, [ASKED], tools=[tool("add"), LATE])
    second = await ask_claude(api, [ASKED], tools=[tool("add"), LATE, other])
    assert second.cache_read_input_tokens == first.cache_creation_input_tokens > 0
    assert second.cache_creation_input_tokens == 0


async def test_the_first_deferred_tool_breaks_the_cache(api: LoopbackApi, cache: PromptCache) -> None:
    api.cache = cache
    api.script(Reply("1"), Reply("2"))
    await ask_claude(api, [ASKED])
    assert (await ask_claude(api, [ASKED], tools=[tool("add"), LATE])).cache_read_input_tokens == 0


async def test_another_tool_choice_keeps_tools_and_system_text_only(api: LoopbackApi, cache: PromptCache) -> None:
    api.cache = cache
    api.script(Reply("1"), Reply("2"), Reply("3"))
    marked = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
    first = await ask_claude(api, [ASKED], system=marked)
    second = await ask_claude(api, [ASKED], system=marked, tool_choice={"type": "any"})
    assert 0 < second.cache_read_input_tokens < first.cache_creation_input_tokens


async def ask_claude(api: LoopbackApi, messages: list[Any], **more: Any) -> Any:
    asked: dict[str, Any] = {"tools": [tool("add")], "cache_control": {"type": "ephemeral"}, "messages": messages}
    async with AsyncAnthropic(api_key="k", base_url=api.url, max_retries=0) as client:
        return (await client.messages.create(model="claude-opus-5", max_tokens=9, **(asked | more))).usage


async def test_openai_reports_what_was_cached_as_a_part_of_the_prompt(api: LoopbackApi, cache: PromptCache) -> None:
    api.cache = cache
    api.script(*[Reply("yes")] * 4)
    chat_tools: Any = [function("add")]
    tools: Any = [response_function("add")]
    messages: Any = [ASKED]
    async with AsyncOpenAI(api_key="k", base_url=api.openai_url, max_retries=0) as client:
        for asked in (messages, [ASKED, SAID, ASKED]):
            chat = await client.chat.completions.create(model="m", messages=asked, tools=chat_tools)
        for asked in (messages, [ASKED, SAID, ASKED]):
            response = await client.responses.create(model="m", input=asked, tools=tools)
    assert chat.usage is not None
    assert chat.usage.prompt_tokens_details is not None
    assert response.usage is not None
    assert chat.usage.prompt_tokens == cache.uses[1].prompt
    assert chat.usage.prompt_tokens_details.cached_tokens == cache.uses[0].prompt
    assert response.usage.input_tokens == cache.uses[3].prompt
    assert response.usage.input_tokens_details.cached_tokens == cache.uses[2].prompt
