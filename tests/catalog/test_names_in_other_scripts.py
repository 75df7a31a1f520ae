"""Tools whose names model APIs do not take as they are: shown and found by the names that their authors gave them."""

import json

import pytest

from toolsearch.catalog.indexing import document_of
from toolsearch.catalog.sources.json_listing import JsonListingSource
from toolsearch.tools.definition import Tool, ToolDefinition
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.naming import given_name, namespaced, own_name, title_with_name
from toolsearch.upstreams.interface import read_listing
from toolsearch.wire.formats import render_definition
from toolsearch.wire.mcp.definitions import fields_for_calling, renamed_entry
from toolsearch_indexes.encoders.opening import BUILT_IN, open_encoder
from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.queries import Ranking

_DESCRIPTIONS = {
    "天气预报": "查询某个城市未来几天的情况",
    "get_weather": "Get the current weather for a city",
    "отправить_платёж": "Отправить деньги получателю",
    "send_payment": "Send a payment to a recipient",
    "größe_ändern": "Ändert ein Bild",
    "resize_image": "Resize an image",
    "メール送信": "宛先に書いたものを届ける",
    "send_email": "Send an email message",
}


def entry(name: str, title: str = "") -> JsonObject:
    titled: JsonObject = {"title": title} if title else {}
    return {"name": name, "description": _DESCRIPTIONS.get(name, ""), "inputSchema": {"type": "object"}, **titled}


def listed(*names: str) -> list[Tool]:
    return read_listing("srv", map(entry, names), "a server")[0]


@pytest.fixture(scope="module")
def index() -> ToolSearchIndex:
    documents = [document_of(tool.definition) for tool in listed(*_DESCRIPTIONS)]
    return ToolSearchIndex(documents, encoder=open_encoder(BUILT_IN))


@pytest.mark.parametrize("strategy", ["keyword", "hybrid"])
@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("天气", "天气预报"),
        ("预报", "天气预报"),
        ("天气预报", "天气预报"),
        ("платёж", "отправить_платёж"),
        ("Отправить платёж", "отправить_платёж"),
        ("größe", "größe_ändern"),
        ("Größe ändern", "größe_ändern"),
        ("メール", "メール送信"),
        ("送信", "メール送信"),
    ],
)
def test_a_query_that_is_a_name_or_a_part_of_it_finds_the_tool_first(
    index: ToolSearchIndex, query: str, name: str, strategy: Ranking
) -> None:
    hits = index.search(query, strategy=strategy)
    assert hits[0].name == {tool.remote_name: tool.name for tool in listed(*_DESCRIPTIONS)}[name]


def test_a_whole_name_is_found_by_name(index: ToolSearchIndex) -> None:
    (tool,) = listed("отправить_платёж")
    for query in ("отправить_платёж", "ОТПРАВИТЬ-ПЛАТЁЖ", "отправить платёж", "srv___", tool.name):
        assert (index.search(query, limit=1)[0].name, index.explain(query, tool.name).outcome) == (tool.name, "by name")


def test_the_legal_name_stays_and_the_title_tells_the_given_one() -> None:
    """Rules, sessions and approvals know a tool by its legal name."""
    (weather,), (payment,) = listed("天气预报"), read_listing("srv", [entry("платёж", "Платёж")], "a server")[0]

    assert (weather.name, weather.definition.title) == ("srv__tool_e2d89f9d", "天气预报")
    assert payment.definition.title == "Платёж (платёж)"
    for tool, title in ((weather, "天气预报"), (payment, "Платёж (платёж)")):
        assert (renamed_entry(tool)["name"], renamed_entry(tool)["title"]) == (tool.name, title)
        assert fields_for_calling(tool)["title"] == title
    assert "title" not in renamed_entry(listed("get_weather")[0])


def test_other_sources_keep_the_given_name_too() -> None:
    (tool,) = JsonListingSource([{"name": "天气预报", "description": "x"}], server="srv").load().tools
    assert (tool.definition.title, given_name(tool.definition)) == ("天气预报", "天气预报")


@pytest.mark.parametrize("server", ["", "srv", "погода"])
@pytest.mark.parametrize("title", ["", "Weather", "天气预报", "Weather (in short)"])
@pytest.mark.parametrize("name", ["天气预报", "отправить_платёж", "größe_ändern", "погода (тест)", "ж" * 80 + "a" * 40])
def test_the_given_name_is_read_back(server: str, title: str, name: str) -> None:
    definition = ToolDefinition(namespaced(server, name), title=title_with_name(title, name), server=server)
    assert given_name(definition) == name


def test_two_tools_of_one_legal_name_each_keep_their_own() -> None:
    one, other = listed("город", "страна_")
    again, another = listed("отправить_платёж", "список_платежей")  # both would be "_"
    assert [given_name(tool.definition) for tool in (one, other)] == ["город", "страна_"]
    assert [given_name(tool.definition) for tool in (again, another)] == ["отправить_платёж", "список_платежей"]
    assert own_name(again.definition) != own_name(another.definition)


@pytest.mark.parametrize("name", ["files.read", "say “hi”", "get\u202eweather天", "天" * 129])
def test_a_name_that_a_legal_one_tells_or_that_cannot_be_shown_is_no_title(name: str) -> None:
    """The quotation marks are no letters; U+202E turns the text around, and 129 characters are too many."""
    assert title_with_name("Title", name) == "Title"


def test_a_title_in_another_script_is_no_name() -> None:
    definition = ToolDefinition("srv__get_weather", title="天气预报", server="srv")
    assert given_name(definition) == ""
    assert document_of(definition).local_name == "get_weather"


LONG = "list_all_workflow_permissions_of_every_repository_of_an_organization"


def test_a_name_that_is_cut_is_told_by_the_title_and_found_by_all_its_words() -> None:
    (tool,) = listed(LONG)
    assert tool.name == "srv__list_all_workflo_permiss_of_every_reposi_of_an_organization"
    assert (tool.definition.title, given_name(tool.definition)) == (LONG, LONG)
    assert document_of(tool.definition).local_name == LONG
    assert listed("x" * 58)[0].definition.title == ""


@pytest.mark.parametrize("wire", ["anthropic", "openai", "openai-responses"])
def test_the_model_reads_the_given_name_where_a_format_has_no_place_for_a_title(wire: str) -> None:
    (weather,), (bare,), (english,) = listed("天气预报"), listed("天气"), listed("get_weather")
    texts = [
        json.dumps(render_definition(each.definition, wire), ensure_ascii=False) for each in (weather, bare, english)
    ]
    assert '"天气预报: 查询某个城市未来几天的情况"' in texts[0]
    assert '"天气"' in texts[1]
    assert '"Get the current weather for a city"' in texts[2]


def test_accents_are_folded_and_the_title_has_the_name_as_it_was_written() -> None:
    (tool,) = listed("größe_ändern")
    assert (tool.name, tool.definition.title) == ("srv__grosse_andern", "größe_ändern")
