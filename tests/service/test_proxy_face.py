"""Model APIs through the service, as the SDKs of OpenAI and Anthropic ask for them, before strict loopback APIs."""

from __future__ import annotations

import gc
import json
import weakref
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from tests.kit.loopback import Call, Failure, LoopbackApi, Reply
from tests.kit.proxied import raw_api
from tests.kit.service import HOST, PORT, ServiceKit, serving
from tests.kit.strict_upstreams import Reply as UpstreamReply
from tests.kit.strict_upstreams import StrictUpstreams, Text, ToolCall, scripted
from toolsearch.catalog.catalog import Catalog
from toolsearch.errors import UnsafeUrlError
from toolsearch.service.corpora.corpus import CorpusRef

PROVIDERS_KEY = "sk-of-the-team"
CLAUDE = "claude-haiku-4-5"
USER: Any = [{"role": "user", "content": "Hello"}]
HELLO: dict[str, Any] = {"model": CLAUDE, "max_tokens": 100, "messages": USER}


@pytest.fixture
async def kit(tmp_path: Path, api: LoopbackApi) -> AsyncIterator[ServiceKit]:
    outbound = {"allowed_networks": ["127.0.0.0/8"]}
    rates = {"requests": 50, "calls": 2}
    async with serving(tmp_path, outbound=outbound, rates=rates, tools=["module:statistics"]) as running:
        for each in ("anthropic", "openai"):
            body = {"api": each, "base_url": api.url, "key": PROVIDERS_KEY}
            (await running.client(running.operator).post("/v1/providers", json=body)).raise_for_status()
        yield running


def claude(kit: ServiceKit, key: str | None, **more: Any) -> anthropic.AsyncAnthropic:
    """It sends the key as ``x-api-key``."""
    return anthropic.AsyncAnthropic(
        api_key=key, base_url=f"http://{HOST}:{PORT}", http_client=kit.client(), max_retries=0, **more
    )


def gpt(kit: ServiceKit, key: str) -> openai.AsyncOpenAI:
    """It sends the key as a bearer token."""
    return openai.AsyncOpenAI(api_key=key, base_url=f"http://{HOST}:{PORT}/v1", http_client=kit.client(), max_retries=0)


def agent(kit: ServiceKit, **more: Any) -> str:
    return kit.key("default", "search", "call", **more)


async def test_each_api_is_asked_with_the_key_of_the_provider_and_never_with_that_of_the_caller(
    kit: ServiceKit, api: LoopbackApi
) -> None:
    key = agent(kit)
    api.script(Reply("Good day"), Reply("Good day"), Reply("Good day"))
    said = await claude(kit, key).messages.create(**HELLO)
    chat = await gpt(kit, key).chat.completions.create(model="gpt-4.1", messages=USER)
    response = await gpt(kit, key).responses.create(model="gpt-4.1", input="Hello")

    assert (said.content[0].text, chat.choices[0].message.content, response.output_text) == ("Good day",) * 3
    asked = [each.headers for each in api.requests]
    assert [each.path for each in api.requests] == ["/v1/messages", "/v1/chat/completions", "/v1/responses"]
    assert [each.get("x-api-key") for each in asked] == [PROVIDERS_KEY, None, None]
    assert [each.get("authorization") for each in asked] == [None, *(f"Bearer {PROVIDERS_KEY}",) * 2]
    assert key not in json.dumps(asked)


async def test_a_caller_of_anthropic_may_give_the_key_as_a_bearer_token(kit: ServiceKit, api: LoopbackApi) -> None:
    api.script(Reply("Good day"))
    client = claude(kit, None, auth_token=agent(kit))
    assert (await client.messages.create(**HELLO)).content[0].text == "Good day"
    assert api.requests[0].headers["x-api-key"] == PROVIDERS_KEY
    assert "authorization" not in api.requests[0].headers


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/responses", "/v1/models"])
async def test_no_credential_of_the_caller_is_among_the_bytes_that_the_provider_gets(
    kit: ServiceKit, path: str
) -> None:
    key = agent(kit)
    headers = {"x-api-key": key, "cookie": f"visit={key}", "x-toolsearch": "off"}
    with raw_api([b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"]) as raw:
        for each in ("anthropic", "openai"):
            body = {"api": each, "base_url": raw.url, "key": PROVIDERS_KEY}
            await kit.client(kit.operator).post("/v1/providers", json=body)
        method = "GET" if path == "/v1/models" else "POST"
        answer = await kit.client(key, **headers).request(method, path, json=HELLO if method == "POST" else None)

    assert answer.text == "{}"
    assert key.encode() not in raw.heads[0]
    assert raw.heads[0].count(PROVIDERS_KEY.encode()) == 1


async def test_a_stream_comes_as_the_provider_gave_it(kit: ServiceKit, api: LoopbackApi) -> None:
    api.script(Reply("Good day"), Reply("Good day"))
    async with claude(kit, agent(kit)).messages.stream(**HELLO) as stream:
        assert await stream.get_final_text() == "Good day"
    chunks = await gpt(kit, agent(kit)).chat.completions.create(model="gpt-4.1", messages=USER, stream=True)
    assert "".join([each.choices[0].delta.content or "" async for each in chunks if each.choices]) == "Good day"


async def test_counting_and_lists_of_models_go_to_the_provider_of_the_api_that_asks(
    kit: ServiceKit, api: LoopbackApi
) -> None:
    api.is_strict = False
    assert (await claude(kit, agent(kit)).messages.count_tokens(model=CLAUDE, messages=USER)).input_tokens == 10
    assert [each.id async for each in await claude(kit, agent(kit)).models.list()] == ["m"]
    assert [each.id async for each in await gpt(kit, agent(kit)).models.list()] == ["m"]

    await kit.client(kit.operator).delete("/v1/providers/openai")
    assert [each.id async for each in await claude(kit, agent(kit)).models.list()] == ["m"]
    with pytest.raises(openai.NotFoundError):
        await gpt(kit, agent(kit)).models.list()


async def test_only_the_paths_and_methods_that_ask_models_are_passed_on(kit: ServiceKit, api: LoopbackApi) -> None:
    client = kit.client(agent(kit))
    answers = [
        await client.get("/v1/messages"),
        await client.delete("/v1/models/m"),
        await client.post("/v1/models"),
        await client.get("/v1/files"),
        await client.post("/v1/embeddings", json={}),
        await client.get("/v1/models/..%2Ffiles"),
        await client.get("/v1/responses/resp_1"),
    ]
    assert [each.status_code for each in answers] == [405, 405, 405, 404, 404, 404, 404]
    assert answers[0].headers["allow"] == "POST"
    assert api.requests == []


# Who may ask


async def refused(kit: ServiceKit, key: str) -> tuple[str, str]:
    """The codes that SDKs read of their errors, of a key that neither is to get through with."""
    with pytest.raises(anthropic.APIStatusError) as said:
        await claude(kit, key).messages.create(**HELLO)
    with pytest.raises(openai.APIStatusError) as chat:
        await gpt(kit, key).chat.completions.create(model="gpt-4.1", messages=USER)
    told: Any = said.value.body
    assert said.value.status_code == chat.value.status_code
    assert told["type"] == "error"
    return f"{said.value.status_code} {told['error']['type']}", str(chat.value.code)


@pytest.mark.parametrize("unknown", ["ts_made_up", PROVIDERS_KEY, "x"])
async def test_an_unknown_key_is_refused_in_the_words_of_the_api(
    kit: ServiceKit, api: LoopbackApi, unknown: str
) -> None:
    assert await refused(kit, unknown) == ("401 authentication_error", "not_authenticated")
    assert api.requests == []


async def test_a_request_without_a_key_is_refused(kit: ServiceKit, api: LoopbackApi) -> None:
    for path in ("/v1/messages", "/v1/chat/completions", "/v1/responses"):
        assert (await kit.client().post(path, json=HELLO)).status_code == 401
    assert (await kit.client().get("/v1/models")).status_code == 401
    assert api.requests == []


@pytest.mark.parametrize("scopes", [("search",), ("call",), ("read-catalog", "write-catalog", "feedback")])
async def test_a_key_must_allow_to_search_and_to_call(kit: ServiceKit, api: LoopbackApi, scopes: Any) -> None:
    assert await refused(kit, kit.key("default", *scopes)) == ("403 permission_error", "not_permitted")
    assert api.requests == []


async def test_the_token_of_a_session_asks_no_model(kit: ServiceKit, api: LoopbackApi) -> None:
    made = (await kit.client(kit.operator).post("/v1/sessions", json={"url_token": True})).json()
    token = made["mcp_url"].rpartition("/")[2]
    assert await refused(kit, token) == ("403 permission_error", "not_permitted")
    assert api.requests == []


async def test_a_tenant_without_a_provider_is_told_so_and_never_reaches_that_of_another(
    kit: ServiceKit, api: LoopbackApi
) -> None:
    assert await refused(kit, kit.key("other")) == ("404 not_found_error", "no_provider")
    assert api.requests == []


async def test_a_key_as_x_api_key_is_for_model_apis_alone(kit: ServiceKit) -> None:
    assert (await kit.client(**{"x-api-key": kit.operator}).get("/v1/me")).status_code == 401


async def test_a_provider_within_the_network_is_not_reached_although_it_was_named(
    kit: ServiceKit, api: LoopbackApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when its name leads elsewhere by now."""

    async def refuse(*_: object) -> list[str]:
        raise UnsafeUrlError("no")

    monkeypatch.setattr(type(kit.service.outbound.guard), "addresses", refuse)
    with pytest.raises(anthropic.APIStatusError) as said:
        await claude(kit, agent(kit)).messages.create(**HELLO)
    assert said.value.status_code >= 500
    assert api.requests == []


async def test_a_foreign_page_is_refused_in_the_words_of_the_api(kit: ServiceKit, api: LoopbackApi) -> None:
    answer = await kit.client(agent(kit), origin="https://evil.example").post("/v1/chat/completions", json=HELLO)
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "foreign_page")
    assert api.requests == []


async def test_requests_count_by_the_rate_of_the_key(kit: ServiceKit, api: LoopbackApi) -> None:
    key = agent(kit)
    api.script(*(Reply("Good day") for _ in range(50)))
    for _ in range(50):
        await gpt(kit, key).chat.completions.create(model="gpt-4.1", messages=USER)
    assert await refused(kit, key) == ("429 rate_limit_error", "too_many")
    assert len(api.requests) == 50


# The provider's answers


ANIMALS = ["horse", "zebra", "otter", "crane", "adder", "bison", "camel", "eagle", "gecko", "hyena", "koala", "lemur"]
BARN: Any = [
    {
        "name": f"barn__feed_{animal}",
        "description": f"Feed every {animal} in the barn. " + "It takes a while, and needs hay. " * 20,
        "input_schema": {"type": "object", "properties": {"hay": {"type": "integer"}}},
    }
    for animal in ANIMALS
]


async def test_proxied_requests_count_in_usage_savings_and_metrics(kit: ServiceKit, api: LoopbackApi) -> None:
    """Two lists go to the model, for a search and after it, and without the proxy one with all tools would."""
    key = agent(kit)
    api.script(Reply(calls=[Call("toolSearchTool", {"queries": ["feed the zebras"]})]), Reply("Done"), Reply("Hi"))
    await claude(kit, key).messages.create(**HELLO, tools=BARN)
    await claude(kit, key).messages.create(**HELLO, tools=BARN[:2], extra_headers={"x-toolsearch": "off"})
    client = kit.client(kit.operator)
    [used] = (await client.get("/v1/usage?by=session")).json()["items"]
    [saved] = (await client.get("/v1/savings?by=session")).json()["items"]
    figures = (await client.get("/metrics")).text

    in_reach = len(BARN) + STATISTICS
    assert (used["group"], used["requests"], used["held_back_tools"]) == ("proxy:anthropic", 2, in_reach)
    assert 1 <= used["revealed_tools"] < 8
    assert saved["all_tools_tokens"] > 12 * 150
    assert saved["saved_tokens"] == saved["all_tools_tokens"] - saved["sent_tokens"] - saved["written_tokens"] > 0
    assert f'toolsearch_activity_total{{what="held_back_tools"}} {in_reach}.0' in figures
    for what, count in (
        ("requests", 2),
        ("unchanged", 1),
        ("held_back_tools", in_reach),
        ("revealed_tools", used["revealed_tools"]),
        ("saved_tokens", saved["saved_tokens"]),
    ):
        assert f'toolsearch_proxied_total{{api="anthropic",what="{what}"}} {count}.0' in figures


async def test_what_another_tenant_saves_is_not_told(kit: ServiceKit, api: LoopbackApi) -> None:
    await told_by_tools(kit, api, agent(kit), SEARCH)

    assert (await kit.client(kit.key("other", "admin")).get("/v1/usage")).json()["items"] == []
    assert (await kit.client(agent(kit)).get("/v1/usage")).json()["items"] == []  # nor what another key saves


async def test_a_request_that_the_provider_refuses_is_not_counted(kit: ServiceKit, api: LoopbackApi) -> None:
    api.script(Failure(529, "too many at once", "overloaded_error"), Failure(529, "again", "overloaded_error"))
    for tools in (BARN, BARN[:1]):
        with pytest.raises(anthropic.APIStatusError):
            await claude(kit, agent(kit)).messages.create(**HELLO, tools=tools)
    api.is_strict = False
    await claude(kit, agent(kit)).messages.count_tokens(model=CLAUDE, messages=USER, tools=BARN)

    assert (await kit.client(kit.operator).get("/v1/usage")).json()["items"] == []
    assert "toolsearch_proxied_total{" not in (await kit.client(kit.operator).get("/metrics")).text


async def test_requests_to_models_are_counted_by_their_path(kit: ServiceKit, api: LoopbackApi) -> None:
    api.script(Reply("Good day"))
    await claude(kit, agent(kit)).messages.create(**HELLO)
    await kit.client(agent(kit)).get("/v1/models/m")
    figures = (await kit.client(kit.operator).get("/metrics")).text

    assert 'toolsearch_requests_total{method="POST",route="/v1/messages",status="200"} 1.0' in figures
    assert 'toolsearch_requests_total{method="GET",route="/v1/models/{model}",status="404"} 1.0' in figures


async def test_an_error_of_the_provider_comes_as_it_is(kit: ServiceKit, api: LoopbackApi) -> None:
    api.script(Failure(529, "too many at once", "overloaded_error"))
    with pytest.raises(anthropic.APIStatusError) as said:
        await claude(kit, agent(kit)).messages.create(**HELLO)
    told: Any = said.value.body
    assert (said.value.status_code, told["error"]["message"]) == (529, "too many at once")


async def test_a_repeated_request_is_answered_by_the_provider_not_from_the_store(
    kit: ServiceKit, api: LoopbackApi
) -> None:
    client = kit.client(agent(kit), **{"idempotency-key": "once"})
    api.script(Reply("first"), Reply("second"))
    body = {"model": "gpt-4.1", "messages": USER, "stream": True}
    answers = [await client.post("/v1/chat/completions", json=body) for _ in range(2)]

    assert ["first" in each.text or "second" in each.text for each in answers] == [True, True]
    assert "idempotency-replayed" not in answers[1].headers
    assert [each.headers["idempotency-key"] for each in api.requests] == ["once", "once"]


# The operator's tools

STATISTICS = len(Catalog.from_module("statistics"))
SEARCH = Call("toolSearchTool", {"queries": ["the median of some numbers"]})
MEDIAN = Call("callTool", {"name": "statistics__median", "arguments": {"data": [3, 1, 2]}})


async def told_by_tools(kit: ServiceKit, api: LoopbackApi, key: str, *calls: Call, **headers: str) -> list[str]:
    """What the model reads of each of its *calls*, one a round, in a request of a client without tools of its own."""
    api.requests.clear()
    api.script(*(Reply(calls=[call]) for call in calls), Reply("Done"))
    said = await gpt(kit, key).chat.completions.create(model="gpt-4.1", messages=USER, extra_headers=headers)
    assert said.choices[0].message.content == "Done"
    return [each["content"] for each in api.bodies[-1]["messages"] if each["role"] == "tool"]


async def receipts(kit: ServiceKit) -> list[tuple[str, str]]:
    await kit.service.activity.settled()
    found = (await kit.client(kit.operator).get("/v1/receipts")).json()["items"]
    return [(each["tool"], each["outcome"]) for each in found]


async def test_a_model_finds_and_calls_tools_of_the_default_catalog_with_receipts(
    kit: ServiceKit, api: LoopbackApi
) -> None:
    found, answered = await told_by_tools(kit, api, agent(kit), SEARCH, MEDIAN)

    assert "statistics__median" in found
    assert answered == "2"
    assert api.tools[0] == ["toolSearchTool", "callTool"]
    assert await receipts(kit) == [("statistics__median", "ok")]


async def test_a_key_finds_and_calls_only_what_its_rules_allow(kit: ServiceKit, api: LoopbackApi) -> None:
    await told_by_tools(kit, api, agent(kit), MEDIAN)  # another key has had it
    found, answered = await told_by_tools(kit, api, agent(kit, deny=["statistics__median"]), SEARCH, MEDIAN)

    assert "statistics__" in found
    assert '"statistics__median"' not in found
    assert answered != "2"
    assert await receipts(kit) == [("statistics__median", "ok")]


async def test_keys_that_reach_the_same_tools_call_them_each_for_itself(kit: ServiceKit, api: LoopbackApi) -> None:
    for key in (agent(kit), agent(kit)):
        await told_by_tools(kit, api, key, MEDIAN)
    await kit.service.activity.settled()
    found = (await kit.client(kit.operator).get("/v1/receipts")).json()["items"]

    assert len({each["key"] for each in found}) == 2


async def test_calls_count_by_the_rate_of_the_key(kit: ServiceKit, api: LoopbackApi) -> None:
    told = await told_by_tools(kit, api, agent(kit), MEDIAN, MEDIAN, MEDIAN)
    assert told[:2] == ["2", "2"]
    assert "more than 2 calls in a minute" in told[2]


async def test_a_request_may_name_a_toolset(kit: ServiceKit, api: LoopbackApi) -> None:
    tools = [{"catalog": "default", "tool": "statistics__median", "name": "middle"}]
    await kit.client(kit.operator).post("/v1/toolsets", json={"name": "desk", "tools": tools})
    call = Call("middle", {"data": [3, 1, 2]})
    told = await told_by_tools(kit, api, agent(kit), call, **{"x-toolsearch-toolset": "desk"})

    assert (api.tools[0], told) == (["middle"], ["2"])
    assert "x-toolsearch-toolset" not in api.requests[0].headers


async def test_a_change_of_the_tools_counts_from_the_next_request_on(kit: ServiceKit, api: LoopbackApi) -> None:
    operator, named = kit.client(kit.operator), {"x-toolsearch-toolset": "desk"}
    for tool in ("median", "mean"):
        desk = {"tools": [{"catalog": "default", "tool": f"statistics__{tool}", "name": tool}]}
        if (await operator.post("/v1/toolsets", json={"name": "desk", **desk})).status_code != 201:
            await operator.patch("/v1/toolsets/desk", json=desk, headers={"if-match": "*"})
        await told_by_tools(kit, api, agent(kit), **named)
        assert api.tools[0] == [tool]


async def test_a_toolset_that_is_not_there_is_an_error_and_no_catalog_at_all_is_not(
    kit: ServiceKit, api: LoopbackApi
) -> None:
    body = {"api": "openai", "base_url": api.url, "key": PROVIDERS_KEY}
    await kit.client(kit.key("other", "admin")).post("/v1/providers", json=body)
    for key in (agent(kit), kit.key("other", "search", "call")):
        with pytest.raises(openai.NotFoundError, match="desk"):
            await told_by_tools(kit, api, key, **{"x-toolsearch-toolset": "desk"})
    api.replies.clear()
    assert await told_by_tools(kit, api, kit.key("other", "search", "call")) == []
    assert api.tools == [[]]


async def test_tools_that_live_with_a_caller_are_not_the_operators(kit: ServiceKit, api: LoopbackApi) -> None:
    body = {"api": "openai", "base_url": api.url, "key": PROVIDERS_KEY}
    other = kit.key("other", "admin")
    await kit.client(other).post("/v1/providers", json=body)
    await kit.catalog(other)
    assert await told_by_tools(kit, api, other) == []
    assert api.tools == [[]]


async def test_a_catalog_leaves_memory_although_models_were_asked_with_its_tools(
    kit: ServiceKit, api: LoopbackApi
) -> None:
    tools = [{"catalog": "default", "tool": "statistics__median", "name": "middle"}]
    await kit.client(kit.operator).post("/v1/toolsets", json={"name": "desk", "tools": tools})
    await told_by_tools(kit, api, agent(kit), **{"x-toolsearch-toolset": "desk"})
    async with kit.service.corpora.using(CorpusRef("default", "toolset", "desk")) as corpus:
        engine = weakref.ref(corpus.engine)
    del corpus
    await kit.client(kit.operator).delete("/v1/toolsets/desk", headers={"if-match": "*"})
    await kit.service.corpora.settled()
    gc.collect()

    assert engine() is None


async def test_the_index_of_a_catalog_is_searched_as_it_is_and_leaves_memory_with_it(
    kit: ServiceKit, api: LoopbackApi
) -> None:
    applications = kit.service.proxy._kept
    tools = [{"catalog": "default", "tool": "statistics__median", "name": "middle"}]
    await kit.client(kit.operator).post("/v1/toolsets", json={"name": "desk", "tools": tools})
    await told_by_tools(kit, api, agent(kit), **{"x-toolsearch-toolset": "desk"})
    (kept,) = applications.values()
    engine = kept.engine and kept.engine()
    assert engine is not None
    assert kept.app.lists.index is engine.index

    del kept, engine
    await kit.client(kit.operator).delete("/v1/toolsets/desk", headers={"if-match": "*"})
    await kit.service.corpora.settled()
    gc.collect()
    await told_by_tools(kit, api, agent(kit))

    assert [place.ref and place.ref.name for place in applications] == ["default"]


async def test_applications_that_take_too_much_memory_leave_it(
    kit: ServiceKit, api: LoopbackApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    applications = kit.service.proxy._kept
    for deny in ([], ["statistics__mean"], ["statistics__mode"]):
        await told_by_tools(kit, api, agent(kit, deny=deny))
    assert len(applications) == 3
    monkeypatch.setattr("toolsearch.service.proxy_face._MOST_BYTES", 1)
    await told_by_tools(kit, api, agent(kit, deny=["statistics__mode"]))

    assert len(applications) == 1


async def test_tools_of_the_client_are_held_back_and_found_beside_the_operators_and_the_client_runs_them(
    kit: ServiceKit, api: LoopbackApi
) -> None:
    feed = Call("callTool", {"name": "barn__feed_zebra", "arguments": {"hay": 3}})
    api.script(Reply(calls=[Call("toolSearchTool", {"queries": ["feed the zebras"]})]), Reply(calls=[feed]))
    said = await claude(kit, agent(kit)).messages.create(**HELLO, tools=BARN)

    assert api.tools[0] == ["toolSearchTool", "callTool"]
    assert [(each.name, each.input) for each in said.content if each.type == "tool_use"] == [
        ("barn__feed_zebra", {"hay": 3})
    ]
    assert said.stop_reason == "tool_use"
    assert await receipts(kit) == []


# Replies that the provider stores


STORED: dict[str, Any] = {"model": "gpt-4o", "input": "Please tell the median", "store": True}
READ = {"type": "function", "name": "Read", "description": "Reads a file.", "parameters": {"type": "object"}}
TELL: Any = ToolCall("callTool", {"name": "statistics__median", "arguments": {"data": [30, 10, 20]}})


async def stored_reply(kit: ServiceKit, key: str) -> tuple[StrictUpstreams, dict[str, Any], dict[str, Any]]:
    """A provider that stores replies, its reply with hidden calls before and beside a client's, and the request that
    continues it.
    """
    replies = [UpstreamReply([TELL]), UpstreamReply([TELL, ToolCall("Read", {})]), UpstreamReply([Text("Done.")])]
    provider = StrictUpstreams(scripted(replies))
    kit.service.proxy._transport = httpx2.ASGITransport(provider.app)
    first = (await kit.client(key).post("/v1/responses", json={**STORED, "tools": [READ]})).json()
    (call,) = [each for each in first["output"] if each["type"] == "function_call"]
    output = {"type": "function_call_output", "call_id": call["call_id"], "output": "a file"}
    after = {**STORED, "tools": [READ], "previous_response_id": first["id"], "input": [output]}
    return provider, first, after


async def test_a_reply_goes_on_after_the_tools_and_the_callers_reach_have_changed(kit: ServiceKit) -> None:
    """Another application answers then."""
    applications = kit.service.proxy._kept
    key = agent(kit)
    provider, _, after = await stored_reply(kit, key)
    before = {id(each.app) for each in applications.values()}
    applications.clear()
    answer = await kit.client(key).post("/v1/responses", json=after)

    assert not before.intersection(id(each.app) for each in applications.values())
    assert answer.json()["output"][0]["content"][0]["text"] == "Done."
    outputs = [each["output"] for each in provider.requests[-1].body["input"]]
    assert (sorted(outputs), provider.refusals) == (["20", "a file"], [])


async def test_nobody_continues_the_reply_of_another_key_of_the_tenant(kit: ServiceKit) -> None:
    """The model would be given the results of the other's calls."""
    provider, first, after = await stored_reply(kit, agent(kit))
    asked = len(provider.requests)
    answer = await kit.client(agent(kit)).post("/v1/responses", json=after)
    words = {**after, "input": "Repeat all results"}
    said = await kit.client(agent(kit)).post("/v1/responses", json=words)

    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "previous_response_not_found")
    assert said.headers["x-toolsearch-off"] == "previous_response_id names no reply to this caller that is known"
    assert [each.body["input"] for each in provider.requests[asked:]] == ["Repeat all results"]
    assert first["id"] == provider.requests[-1].body["previous_response_id"]
