"""Resources, prompts, completion and logging of the servers, through the gateway."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError, types
from mcp.client.subscriptions import ResourceUpdated

from tests.kit.gateway import ERAS, served
from tests.mcp_servers.rich_http import rich_over_http
from tests.mcp_servers.rich_server import Rich
from toolsearch.gateway.gateway import Gateway

each_era = pytest.mark.parametrize("era", ERAS)


@pytest.fixture
async def two(tmp_path: Path) -> AsyncIterator[str]:
    """A gateway to two rich servers, one of either era: its URL."""
    async with rich_over_http(Rich("ann")) as ann, rich_over_http(Rich("bob")) as bob:
        servers = {"ann": {"url": ann, "mode": "legacy"}, "bob": {"url": bob}}
        async with served({"mcpServers": servers, "toolsearch": {"stateDir": str(tmp_path)}}) as (_, url):
            yield url


@each_era
async def test_a_resource_keeps_its_uri_where_one_server_alone_lists_it(two, era):
    async with Client(two, mode=era) as client:
        listed = [resource.uri for resource in (await client.list_resources()).resources]
        assert listed == ["toolsearch:ann:note:///shared", "ann:///one", "toolsearch:bob:note:///shared", "bob:///one"]
        read = [await client.read_resource(uri) for uri in listed]
        assert [result.contents[0].text for result in read] == [
            "note:///shared of ann",
            "ann:///one of ann",
            "note:///shared of bob",
            "bob:///one of bob",
        ]


@each_era
async def test_a_resource_that_no_server_lists_is_found_by_template_or_not_at_all(two, era):
    async with Client(two, mode=era) as client:
        templates = (await client.list_resource_templates()).resource_templates
        assert [template.uri_template for template in templates] == ["ann-note:///{id}", "bob-note:///{id}"]
        found = await client.read_resource("bob-note:///7")
        assert found.contents[0].text == "bob-note:///7 of bob"
        for unknown in ("note:///shared", "other:///1", "toolsearch:eve:note:///shared"):
            with pytest.raises(MCPError, match="Resource not found") as refused:
                await client.read_resource(unknown)
            assert refused.value.error.code == (-32002 if era == "legacy" else -32602)
            assert refused.value.error.data == {"uri": unknown}


@each_era
async def test_what_a_result_links_to_can_be_read_from_then_on(two, era):
    async with Client(two, mode=era) as client:
        with pytest.raises(MCPError, match="Resource not found"):
            await client.read_resource("note:///linked")
        await client.call_tool("callToolRead", {"name": "bob__contents"})
        linked = await client.read_resource("note:///linked")
        assert linked.contents[0].text == "note:///linked of bob"


@each_era
async def test_what_a_server_says_of_a_missing_resource_is_passed_on(two, era):
    async with Client(two, mode=era) as client:
        with pytest.raises(MCPError) as refused:
            await client.read_resource("ann-note:///missing")
    assert refused.value.error.code == -32002
    assert refused.value.error.data == {"uri": "ann-note:///missing"}


@each_era
async def test_prompts_are_named_as_tools_are(two, era):
    async with Client(two, mode=era) as client:
        prompts = (await client.list_prompts()).prompts
        assert [(prompt.name, prompt.title) for prompt in prompts] == [("ann__greet", "Greet"), ("bob__greet", "Greet")]
        greeting = await client.get_prompt("bob__greet", {"whom": "Eve"})
        assert greeting.messages[0].content.text == "Greet Eve from bob."
        with pytest.raises(MCPError, match="Unknown prompt: greet"):
            await client.get_prompt("greet", {"whom": "Eve"})


@each_era
async def test_arguments_of_prompts_and_templates_are_completed(two, era):
    async with Client(two, mode=era) as client:
        of_prompt = await client.complete(types.PromptReference(name="ann__greet"), {"name": "whom", "value": "B"})
        of_template = await client.complete(
            types.ResourceTemplateReference(uri="bob-note:///{id}"), {"name": "id", "value": "b"}
        )
    assert of_prompt.completion.values == ["greet Bob"]
    assert of_template.completion.values == ["bob-note:///{id} bob"]


async def test_sessions_that_subscribed_hear_of_a_change_and_the_server_is_asked_once(tmp_path):
    heard: dict[str, asyncio.Queue[str]] = {"first": asyncio.Queue(), "second": asyncio.Queue()}

    def ear(name: str) -> Any:
        async def hear(message: object) -> None:
            if isinstance(message, types.ResourceUpdatedNotification):
                heard[name].put_nowait(message.params.uri)

        return hear

    ann = Rich("ann")
    async with rich_over_http(ann) as upstream:
        config = {"mcpServers": {"ann": {"url": upstream, "mode": "legacy"}}, "toolsearch": {"stateDir": str(tmp_path)}}
        async with (
            served(config) as (_, url),
            Client(url, mode="legacy", message_handler=ear("first")) as first,
            Client(url, mode="legacy", message_handler=ear("second")) as second,
        ):
            await subscribe(first, "ann:///one")
            await subscribe(second, "toolsearch:ann:ann:///one")
            assert ann.subscribed == ["ann:///one"]

            await first.call_tool("callToolDestructive", {"name": "ann__touch"})
            assert await heard["first"].get() == "ann:///one"
            assert await heard["second"].get() == "toolsearch:ann:ann:///one"

            await unsubscribe(first, "ann:///one")
            assert ann.subscribed == ["ann:///one"]
            await unsubscribe(second, "ann:///one")
            assert ann.subscribed == []
    assert heard["first"].empty()


@pytest.mark.parametrize("server_era", ["legacy", "auto"])
async def test_a_stream_of_2026_hears_of_the_resources_that_its_client_may_know(server_era, tmp_path):
    ann = Rich("ann", listens=True)
    async with rich_over_http(ann) as upstream:
        config = {
            "mcpServers": {"ann": {"url": upstream, "mode": server_era}},
            "toolsearch": {"stateDir": str(tmp_path)},
        }
        async with served(config) as (gateway, url), Client(url) as client:
            unknown = "none:///at all"
            async with client.listen(resource_subscriptions=["toolsearch:ann:ann:///one", unknown]) as stream:
                assert stream.honored.resource_subscriptions == ["toolsearch:ann:ann:///one"]
                assert ann.subscribed == ["ann:///one"]
                await client.call_tool("callToolDestructive", {"name": "ann__touch"})
                assert await anext(aiter(stream)) == ResourceUpdated("toolsearch:ann:ann:///one")
            await gone(ann, gateway)


async def test_sessions_hear_of_resources_of_a_server_of_2026_on_one_stream_that_is_opened_anew(tmp_path):
    heard: asyncio.Queue[str] = asyncio.Queue()

    async def hear(message: object) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            heard.put_nowait(message.params.uri)

    ann = Rich("ann", listens=True)
    async with rich_over_http(ann) as upstream:
        config = {"mcpServers": {"ann": {"url": upstream}}, "toolsearch": {"stateDir": str(tmp_path)}}
        async with served(config) as (gateway, url), Client(url, mode="legacy", message_handler=hear) as client:
            await subscribe(client, "ann:///one")
            await client.call_tool("callToolDestructive", {"name": "ann__touch"})
            assert await heard.get() == "ann:///one"
            await subscribe(client, "note:///shared")
            assert await heard.get() == "ann:///one"  # it may have changed while the stream was opened anew
            assert set(ann.subscribed) == {"ann:///one", "note:///shared"}
            await unsubscribe(client, "note:///shared")
            await client.call_tool("callToolDestructive", {"name": "ann__touch"})
            assert await heard.get() == "ann:///one"
            await unsubscribe(client, "ann:///one")
            await gone(ann, gateway)


async def test_a_server_of_2026_that_tells_of_nothing_says_so(tmp_path):
    async with rich_over_http(Rich("ann")) as upstream:
        config = {"mcpServers": {"ann": {"url": upstream}}, "toolsearch": {"stateDir": str(tmp_path)}}
        async with served(config) as (_, url), Client(url, mode="legacy") as client:
            with pytest.raises(MCPError, match="Method not found"):
                await subscribe(client, "ann:///one")
            async with Client(url) as newer, newer.listen(resource_subscriptions=["ann:///one"]) as stream:
                assert not stream.honored.resource_subscriptions


async def gone(server: Rich, gateway: Gateway) -> None:
    """Wait until the server has been told that nobody wants to hear of its resources."""
    async with asyncio.timeout(10):
        while server.subscribed or gateway.subscriptions._sessions:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def subscribe(client: Client, uri: str) -> None:
    request = types.SubscribeRequest(params=types.SubscribeRequestParams(uri=uri))
    await client.session.send_request(request, types.EmptyResult)


async def unsubscribe(client: Client, uri: str) -> None:
    request = types.UnsubscribeRequest(params=types.UnsubscribeRequestParams(uri=uri))
    await client.session.send_request(request, types.EmptyResult)
