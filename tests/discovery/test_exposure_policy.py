"""How tools are shown and called: what each exposure lists and says, and that a list does not turn back and forth."""

from typing import Any

import pytest

from tests.kit.fake_servers import EXPANDING, GROWING, LEGACY, MODERN, OWN, gateway_of
from tests.kit.scripted_model import ScriptedModel, calls, says
from toolsearch import Catalog, PassThrough, SessionOptions, Tool, ToolDefinition, ToolSearch
from toolsearch.access.principals import LOCAL, Grant
from toolsearch.access.reach import Reach
from toolsearch.chat.advisor import ChatRequest, chain_of
from toolsearch.chat.model import ChatOptions, Prompt
from toolsearch.chat.tool_search import ToolSearchAdvisor
from toolsearch.discovery.answers import CALL_HINTS
from toolsearch.discovery.exposure import APPEND, DEFERRED, FIXED, WHOLE, Exposure, ExposurePolicy
from toolsearch.discovery.pass_through import PassThroughDecisions
from toolsearch.discovery.view import ViewCache
from toolsearch.errors import BadSettingError
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.exposure.clients import ClientTable
from toolsearch.tokens import HeuristicTokenCounter
from toolsearch.wire.capabilities import Endpoint
from toolsearch.wire.mcp.eras import Era
from toolsearch.wire.messages import ToolMessage, UserMessage

IN_REACH = ("a", "b", "c")
IN_LIST, BY_CALL_TOOL = CALL_HINTS["append"], CALL_HINTS["fixed"]

STATELESS = Caller(Grant(LOCAL), Era.LEGACY, client_name="growing")


@pytest.mark.parametrize(
    ("exposure", "listed", "answers", "hint"),
    [
        (WHOLE, ["a", "b", "c"], "names", "They are in your tool list; call them by name."),
        (APPEND, ["c", "b"], "names", IN_LIST),
        (FIXED, ["c"], "definitions", BY_CALL_TOOL),
        (DEFERRED, ["c"], "names", IN_LIST),
    ],
    ids=lambda value: value.kind if isinstance(value, Exposure) else None,
)
def test_each_exposure_lists_and_says_its_own(exposure: Exposure, listed: list[str], answers: str, hint: str):
    """*c* is a pin, and *b* and *c* were found."""
    assert exposure.listed(IN_REACH, pins=["c"], discovered=["b", "c"]) == listed
    assert exposure.answers == answers
    assert CALL_HINTS[exposure.kind] == hint
    assert exposure.is_searched == (exposure is not WHOLE)


@pytest.mark.parametrize(
    ("caller", "exposure"),
    [(EXPANDING, APPEND), (LEGACY, FIXED), (MODERN, FIXED), (STATELESS, FIXED)],
    ids=["as configured", "of the older protocol", "of 2026", "without a session"],
)
def test_a_client_has_the_exposure_of_its_kind_unless_its_catalog_is_small(caller: Caller, exposure: Exposure):
    view = ViewCache(Catalog(map(ToolDefinition, IN_REACH)), HeuristicTokenCounter()).get(Reach())
    searched = ClientTable(GROWING).exposure(caller)

    assert searched == exposure
    assert ExposurePolicy(PassThrough(max_tools=2), searched).exposure(view) == exposure
    assert ExposurePolicy(PassThrough(max_tools=3), searched).exposure(view) == WHOLE


# --- decided once, and steady -----------------------------------------------------------------------------------------


def test_a_catalog_that_has_outgrown_its_bounds_is_whole_again_at_three_quarters_of_them():
    engine = ToolSearch(Catalog(map(ToolDefinition, "abcd")), encoder=None, options=options(max_tools=4))
    session = engine.session("s")
    shown = [session.is_passed_through]
    for change in (
        lambda: engine.catalog.add(ToolDefinition("e")),  # five tools
        lambda: engine.catalog.remove("e"),  # four
        lambda: engine.catalog.remove("d"),  # three
        lambda: engine.catalog.add(ToolDefinition("d")),  # four
    ):
        change()
        shown.append(session.is_passed_through)

    assert shown == [True, False, False, True, True]


def test_an_empty_catalog_is_shown_whole_and_decides_nothing():
    """Five tools are over the bound, and within the slack of a catalog that was shown whole before."""
    decisions, rule = PassThroughDecisions(), PassThrough(max_tools=4, slack=0.25)

    assert decisions.is_whole(rule, 1, tools=0, tokens=lambda: 0)
    assert not decisions.is_whole(rule, 2, tools=5, tokens=lambda: 5)


def test_what_was_decided_for_a_reach_outlasts_its_view():
    """More reaches than views are kept come by between the decision and the next version of the catalog."""
    catalog = Catalog(map(ToolDefinition, "abcde"))
    views, rule = ViewCache(catalog, HeuristicTokenCounter()), PassThrough(max_tools=4)
    first = views.get(Reach())
    assert not first.is_shown_whole(rule)
    for number in range(300):
        views.get(Reach.parse(deny=[f"tool_{number}"]))
    catalog.remove("e")

    assert views.get(Reach()) is not first
    assert not views.get(Reach()).is_shown_whole(rule)


def test_tokens_are_not_counted_where_the_number_of_tools_decides():
    def counted() -> int:
        raise AssertionError("counting every definition of a large catalog takes a while")

    assert not PassThroughDecisions().is_whole(PassThrough(max_tools=1), 1, tools=2, tokens=counted)


def test_a_thread_that_is_late_does_not_decide_an_older_version_anew():
    decisions, rule = PassThroughDecisions(), PassThrough(max_tools=4, max_tokens=100)
    assert not decisions.is_whole(rule, 2, tools=5, tokens=lambda: 5)

    assert not decisions.is_whole(rule, 1, tools=1, tokens=lambda: 1)


def test_a_decision_that_was_overtaken_while_tokens_were_counted_gives_way():
    decisions, rule = PassThroughDecisions(), PassThrough(max_tools=4, max_tokens=100)
    assert decisions.is_whole(rule, 1, tools=4, tokens=lambda: 100)

    def counted_while_the_catalog_shrinks() -> int:
        assert decisions.is_whole(rule, 3, tools=4, tokens=lambda: 100)
        return 101

    assert decisions.is_whole(rule, 2, tools=4, tokens=counted_while_the_catalog_shrinks)
    assert decisions.is_whole(rule, 3, tools=4, tokens=lambda: 100)


def test_a_negative_slack_is_refused():
    with pytest.raises(BadSettingError, match=r"slack=-0\.1"):
        PassThrough(slack=-0.1)


# --- the same sentence on every face ----------------------------------------------------------------------------------


FOUND = {"query": "select:a__dig"}


def options(**bounds: Any) -> SessionOptions:
    return SessionOptions(pass_through=PassThrough(**bounds))


class Runs:
    async def call(self, arguments: Any, context: Any) -> str:
        return f"done with {arguments} and {context}"


def engine_of(max_tools: int) -> ToolSearch:
    tools = [Tool(ToolDefinition(f"a__{name}", f"Does {name}."), Runs()) for name in ("dig", "sow")]
    return ToolSearch(Catalog(tools), encoder=None, options=options(max_tools=max_tools))


async def in_library(max_tools: int) -> str:
    return (await engine_of(max_tools).session("s").call("toolSearchTool", FOUND)).text


async def in_chat(max_tools: int, **mode: Any) -> str:
    model = ScriptedModel(calls(("toolSearchTool", '{"query": "select:a__dig"}')), says("Found."))
    model.endpoint = Endpoint("anthropic", "claude-haiku-4-5")
    advisor = ToolSearchAdvisor(engine_of(max_tools), **mode)
    request = ChatRequest(Prompt((UserMessage("Dig."),), ChatOptions()), {"conversation_id": "s"})
    await chain_of([advisor], model).call(request)
    [answer] = [message for message in model.prompts[-1].messages if isinstance(message, ToolMessage)]
    return answer.results[0].text


async def in_gateway(max_tools: int, caller: Caller) -> str:
    async with gateway_of("a", section={"passThrough": {"maxTools": max_tools}}) as (gateway, servers):
        await servers["a"].lists("dig", "sow")
        return (await gateway.search(caller, FOUND)).text


async def test_the_same_situation_is_told_in_the_same_words_by_library_chat_and_gateway():
    growing = [await in_library(0), await in_chat(0, mode="append"), await in_gateway(0, EXPANDING)]
    assert [text.splitlines() for text in growing] == [[IN_LIST, "- a__dig() [fits, loaded]: Does dig."]] * 3

    whole = [await in_library(10), await in_chat(10, mode="append")]
    in_list = ["They are in your tool list; call them by name.", "- a__dig() [fits]: Does dig."]
    assert [text.splitlines() for text in whole] == [in_list] * 2


async def test_a_client_that_searches_though_it_lists_every_tool_is_not_told_what_is_in_its_list():
    """It has the search tool from an earlier list, so nobody knows what its model has before it."""
    assert (await in_gateway(10, LEGACY)).startswith(BY_CALL_TOOL)


async def test_where_the_provider_shows_what_is_loaded_the_answer_only_names_it() -> None:
    assert await in_chat(0, mode="deferred") == "Loaded, to be called by name: a__dig."


@pytest.mark.parametrize(
    ("caller", "lists"),
    [
        (EXPANDING, ["a__sow", "a__dig"]),
        (LEGACY, ["a__sow"]),
        (MODERN, ["a__sow"]),
    ],
    ids=["as configured", "of the older protocol", "of 2026"],
)
async def test_what_a_client_is_listed_after_a_search_is_what_its_exposure_says(caller: Caller, lists: list[str]):
    async with gateway_of("a", pins=["a__sow"]) as (gateway, servers):
        await servers["a"].lists("dig", "sow")
        found = await gateway.search(caller, FOUND)
        listed = [entry["name"] for entry in await gateway.list_tools(caller)]

    assert listed == OWN + lists
    assert found.structured["howToCall"] == CALL_HINTS[ClientTable(GROWING).exposure(caller).kind]
    assert found.list_changed == (lists == ["a__sow", "a__dig"])
