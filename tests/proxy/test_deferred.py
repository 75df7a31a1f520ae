"""Tools that the model API defers, where it takes that: an answer to a search loads those that it found."""

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.kit.proxy_talk import Talk, search
from tests.kit.skills import write_skill
from tests.kit.strict_upstreams import Reply, Search, Text, Thinking, ToolCall
from tests.kit.strict_upstreams.brain import Part
from tests.kit.strict_upstreams.core import Wire
from tests.kit.strict_upstreams.ledger import plain
from tests.proxy.test_requests import body_of, names_in, planned, shop
from toolsearch.catalog.catalog import Catalog
from toolsearch.catalog.sources.skills import SkillsSource
from toolsearch.proxy import listing
from toolsearch.proxy.upstream import Upstream
from toolsearch.wire.capabilities import Capabilities, Cloud, Endpoint, capabilities_of

MAIL = "mail__send_mail"
LOADED = f"Loaded, to be called by name: {MAIL}."


class Way(NamedTuple):
    """An API and a model that defer tools, and whose cloud it is."""

    api: Wire
    model: str
    cloud: Cloud

    def search(self, name: str = MAIL) -> Part:
        return Search(f"select:{name}") if self.api == "responses" else search(name)

    def talk(self, *replies: Reply, stream: bool = False, tools: Catalog | None = None) -> Talk:
        return Talk(self.api, list(replies), self.cloud, self.model, stream, tools)


WAYS = [
    Way("messages", "claude-sonnet-4-5", ""),
    Way("messages", "claude-opus-5-5", "azure"),  # binds its thinking to the list
    Way("responses", "gpt-5.6", "azure"),
]
EVERY_WAY = pytest.mark.parametrize("way", WAYS, ids=lambda way: way.model)
BOTH = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


def history(talk: Talk, number: int) -> list[Any]:
    """The conversation of a request, without marks for the cache, which the client moves."""
    return [plain({**entry, "content": _blocks(entry.get("content"))}) for entry in talk.entries(number)]


def _blocks(content: Any) -> Any:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


@EVERY_WAY
@BOTH
async def test_an_answer_loads_a_tool_that_the_model_then_calls_by_its_name(way: Way, stream: bool) -> None:
    """In a later request the history is the one that the model knows, and the list has never changed."""
    talk = way.talk(
        Reply([Thinking("hm"), Text("Let me see."), way.search()]),
        Reply([Thinking("well"), ToolCall(MAIL, {"text": "hi"})]),
        Reply([Text("Sent.")]),
        Reply([Text("Bye.")]),
        stream=stream,
    )
    await talk.ask()
    assert [call.name for call in talk.calls] == [MAIL]
    await talk.ask()
    await talk.ask("Thanks")

    assert talk.is_well
    assert len({json.dumps(plain(body["tools"])) for body in talk.bodies}) == 1
    assert talk.fake.requests[0].visible_names == [
        "Read",
        "tool_search" if way.api == "responses" else "toolSearchTool",
    ]
    assert MAIL in talk.fake.requests[1].visible_names
    histories = [history(talk, number) for number in range(len(talk.bodies))]
    assert all(later[: len(earlier)] == earlier for earlier, later in pairwise(histories))
    assert "callTool" not in json.dumps(talk.bodies)


@EVERY_WAY
async def test_the_operators_tools_are_loaded_and_run_here(way: Way) -> None:
    def told_time(zone: str) -> str:
        """Tells the time in a zone."""
        return f"noon in {zone}"

    replies = [
        Reply([way.search("told_time")]),
        Reply([ToolCall("told_time", {"zone": "Oslo"})]),
        Reply([ToolCall("Read", {"text": "a"})]),
        Reply([Text("It is noon.")]),
    ]
    talk = way.talk(*replies, tools=Catalog([told_time]))
    await talk.ask()
    assert [call.name for call in talk.calls] == ["Read"]
    await talk.ask()

    assert talk.is_well
    assert "noon in Oslo" in json.dumps(talk.bodies[2])
    assert history(talk, 3)[: len(history(talk, 2))] == history(talk, 2)


@EVERY_WAY
async def test_a_loaded_tool_is_not_loaded_again(way: Way) -> None:
    """Also in a later request, which makes the answers again."""
    replies = [
        Reply([way.search()]),
        Reply([way.search()]),
        Reply([ToolCall("Read", {"text": "a"})]),
        Reply([Text("x")]),
    ]
    talk = way.talk(*replies)
    await talk.ask()
    await talk.ask()

    assert talk.is_well
    for number in (2, 3):
        said = json.dumps(talk.entries(number))
        assert said.count(LOADED) == 1
        assert said.count('"tool_reference"') + said.count("Send an e-mail to somebody") == 1


@EVERY_WAY
async def test_words_that_no_search_can_hold_follow_all_results(way: Way, tmp_path: Path) -> None:
    """Of a skill that was found beside a tool, while the client runs another one."""
    write_skill(tmp_path / "office", "mails")
    skills = Catalog()
    skills.add(*SkillsSource(tmp_path / "office").load().tools)
    found = Search(f"select:office__mails,{MAIL}") if way.api == "responses" else _search_for("office__mails", MAIL)
    talk = way.talk(Reply([found, ToolCall("Read", {"text": "a"})]), Reply([Text("Done.")]), tools=skills)
    await talk.ask()
    await talk.ask()

    assert talk.is_well
    last = talk.entries(1)[-1]
    if way.api == "responses":
        assert [item["type"] for item in talk.entries(1)[-3:]] == [
            "tool_search_output",
            "function_call_output",
            "message",
        ]
    else:
        assert [block["type"] for block in last["content"]] == ["tool_result", "tool_result", "text"]
    assert "office__mails" in json.dumps(last)


def _search_for(*names: str) -> ToolCall:
    return ToolCall("toolSearchTool", {"queries": [f"select:{','.join(names)}"]})


@EVERY_WAY
async def test_a_search_that_finds_nothing_is_answered_in_words(way: Way) -> None:
    talk = way.talk(Reply([way.search("no_such_tool")]), Reply([Text("None.")]))
    await talk.ask()

    assert talk.is_well
    assert talk.fake.requests[1].visible_names == talk.fake.requests[0].visible_names


async def test_deferred_tools_are_as_the_client_wrote_them_but_without_a_cache_mark() -> None:
    tools = shop("messages")
    tools[3] |= {"strict": True, "cache_control": {"type": "ephemeral"}}
    request = await planned("messages", body_of("messages", tools, model="claude-sonnet-4-5"), cloud="")
    first, *deferred = json.loads(request.content())["tools"]

    assert (first["name"], first["cache_control"]) == ("toolSearchTool", {"type": "ephemeral"})
    del tools[3]["cache_control"]
    assert deferred == [{**tool, "defer_loading": True} for tool in tools]
    assert len(request.listing.held_back) == len(tools)


async def test_no_name_in_a_history_loads_a_tool_that_nobody_defers() -> None:
    """Ids of a client may be forged: they load what the list defers, once."""
    tools = shop("messages")
    content = body_of("messages", tools, "Does the thing number 7 in the shop", model="claude-sonnet-4-5")
    request = await planned("messages", content, cloud="")
    answers = [request.history.answer_to_search(["evil", "shop__thing_007", "shop__thing_003"]) for _ in range(2)]

    assert [list(answer.loaded) for answer in answers] == [["shop__thing_003"], []]
    assert "evil" not in str(answers)


async def test_tools_that_the_first_message_asks_for_are_listed_from_the_start() -> None:
    tools = shop("messages")
    content = body_of("messages", tools, "Does the thing number 7 in the shop", model="claude-sonnet-4-5")
    listed = json.loads((await planned("messages", content, cloud="")).content())["tools"]

    assert [tool["name"] for tool in listed if "defer_loading" not in tool] == ["shop__thing_007", "toolSearchTool"]
    assert len(listed) == len(tools) + 1


@EVERY_WAY
async def test_beside_tools_that_the_client_defers_the_list_is_fixed(way: Way) -> None:
    tools = shop(way.api)
    tools[0]["defer_loading"] = True
    content = body_of(way.api, tools, model=way.model)

    assert names_in((await planned(way.api, content, cloud=way.cloud)).content())[-1] == "callTool"


async def test_more_tools_than_the_api_defers_are_not_deferred(monkeypatch: pytest.MonkeyPatch) -> None:
    def known(endpoint: Endpoint) -> Capabilities:
        return replace(capabilities_of(endpoint), max_deferred=most)

    monkeypatch.setattr(listing, "capabilities_of", known)
    tools = shop("messages")
    content = body_of("messages", tools, model="claude-sonnet-4-5")
    lists = dict[int, list[str]]()
    for most in (len(tools) + 1, len(tools) + 2):
        lists[most] = names_in((await planned("messages", content, cloud="")).content())

    assert [len(each) for each in lists.values()] == [2, len(tools) + 1]


@pytest.mark.parametrize(
    ("url", "cloud"),
    [
        ("https://api.anthropic.com", ""),
        ("https://api.openai.com/v1", ""),
        ("https://a.openai.azure.com/openai/v1", "azure"),
        ("https://a.services.ai.azure.com/anthropic", "azure"),
        ("https://openai.azure.com.example.org", "other"),
        ("http://127.0.0.1:8000", "other"),
    ],
)
def test_the_address_tells_whose_api_it_is(url: str, cloud: Any) -> None:
    assert Upstream(url).cloud == cloud
