"""Tools are only held back where searching them costs less than listing them."""

import json
from typing import Any

import pytest

from tests.kit.proxy_clients import CLIENTS
from tests.kit.proxy_talk import Talk, search
from tests.kit.strict_upstreams import Reply, Text, ToolCall
from tests.proxy.test_requests import ALWAYS, ENTRIES, EVERY_API, OURS, body_of, names_in, planned, shop
from toolsearch.catalog.catalog import Catalog
from toolsearch.proxy.unchanged import PassUnchangedError
from toolsearch.tools.definition import Tool, ToolDefinition

SYSTEM: dict[str, Any] = {
    "messages": lambda text: {"system": [{"type": "text", "text": text}]},
    "responses": lambda text: {"instructions": text},
    "chat": lambda text: {"messages": [{"role": "system", "content": text}, {"role": "user", "content": "Hello"}]},
}


def _words(tokens: int) -> str:
    """A text that is estimated to have as many *tokens*."""
    return "x" * round(tokens * 4.63)


@EVERY_API
async def test_tools_are_listed_if_a_conversation_with_one_call_would_cost_more_with_a_search(api: str) -> None:
    """It has two requests, and a third one with a search. The shop's tools have 740 tokens, and ours 252: the system's
    text (2 x 740 - 3 x 252 = 724 tokens) and the user's word decide.
    """
    request = await planned(api, body_of(api, shop(api), **SYSTEM[api](_words(700))))

    assert names_in(request.content()) == OURS
    assert request.listing.saved_tokens == 740
    with pytest.raises(PassUnchangedError, match="too few to be searched"):
        await planned(api, body_of(api, shop(api), **SYSTEM[api](_words(730))))


@EVERY_API
async def test_the_clients_first_words_and_the_tools_that_it_keeps_count_as_well(api: str) -> None:
    own = CLIENTS[api].tool("own", _words(740))
    with pytest.raises(PassUnchangedError, match="too few"):
        await planned(api, body_of(api, [*shop(api), own]))
    with pytest.raises(PassUnchangedError, match="too few"):
        await planned(api, body_of(api, shop(api), _words(740)))


@EVERY_API
async def test_a_conversation_stays_searched_however_long_it_grows(api: str) -> None:
    long = _words(20_000)
    said = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": long}]
    content = body_of(api, shop(api), **{ENTRIES[api]: [*said, {"role": "user", "content": long}]})

    assert names_in((await planned(api, content)).content()) == OURS


@EVERY_API
async def test_a_picture_counts_no_characters(api: str) -> None:
    picture = {"type": "input_image", "image_url": "data:image/png;base64," + "A" * 1_000_000}
    content = body_of(api, shop(api), **{ENTRIES[api]: [{"role": "user", "content": [picture]}]})

    assert names_in((await planned(api, content)).content()) == OURS


@EVERY_API
async def test_no_size_counts_if_the_operator_wants_every_list_searched(api: str) -> None:
    long = _words(4_000)
    request = await planned(api, body_of(api, shop(api), **SYSTEM[api](long)), settings=ALWAYS)

    assert names_in(request.content()) == OURS


@pytest.mark.parametrize("api", ["chat", "responses"])
async def test_a_list_that_the_api_would_refuse_is_searched_whatever_it_costs(api: str) -> None:
    tools = shop(api, 129)
    long = _words(200_000)

    request = await planned(api, body_of(api, tools, model="gpt-4.1", **SYSTEM[api](long)), cloud="")
    assert len(request.listing.held_back) == 129
    with pytest.raises(PassUnchangedError, match="too few"):
        await planned(api, body_of(api, tools[:128], model="gpt-4.1", **SYSTEM[api](long)), cloud="")


@EVERY_API
async def test_an_operators_tools_are_listed_beside_a_clients_that_are(api: str) -> None:
    operator = Catalog([Tool(ToolDefinition("book", "Books."))])
    long = _words(10_000)
    request = await planned(api, body_of(api, shop(api), **SYSTEM[api](long)), tools=operator)

    assert sorted(names_in(request.content())) == ["book", *(f"shop__thing_{number:03}" for number in range(20))]
    assert (len(request.listing.held_back), request.listing.saved_tokens) == (0, 0)


@EVERY_API
async def test_rounds_in_ids_are_read_even_if_all_tools_are_listed_now(api: Any) -> None:
    """A client may have shortened its history, or have fewer tools than before. No API knows these ids."""
    talk = Talk(api, [Reply([search()]), Reply([ToolCall("Read", {"text": "a"})]), Reply([Text("Done.")])])
    await talk.ask()
    talk.client.tools = talk.client.tools[:3]
    await talk.ask()

    assert talk.is_well
    assert "_ts_" in json.dumps(talk.client.history)
    assert "_ts_" not in json.dumps(talk.bodies[-1])
    assert len(talk.bodies[-1]["tools"]) == 3
