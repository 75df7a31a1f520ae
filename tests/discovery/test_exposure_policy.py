"""How tools are shown and called: what each exposure lists and says, and that a list does not turn back and forth."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.scripted_model import ScriptedModel, calls, says
from toolsearch import Catalog, PassThrough, SessionOptions, ToolDefinition, ToolSearch
from toolsearch.access.principals import LOCAL
from toolsearch.access.reach import Reach
from toolsearch.chat.advisor import ChatRequest, chain_of
from toolsearch.chat.model import ChatOptions, Prompt
from toolsearch.chat.tool_search import ToolSearchAdvisor
from toolsearch.discovery.exposure import APPEND, DEFERRED, FIXED, HEDGE, WHOLE, Exposure, ExposurePolicy
from toolsearch.discovery.pass_through import PassThroughDecisions
from toolsearch.discovery.view import ViewCache
from toolsearch.errors import BadSettingError
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.exposure.clients import ClientTable
from toolsearch.gateway.gateway import Gateway
from toolsearch.gateway.settings import read_gateway_config
from toolsearch.gateway.trust.verdicts import OpenGate
from toolsearch.tokens import HeuristicTokenCounter
from toolsearch.upstreams.entries import read_listing
from toolsearch.upstreams.interface import Listing, UpstreamSinks, UpstreamState, UpstreamStatus
from toolsearch.upstreams.settings import UpstreamSettings
from toolsearch.wire.mcp.eras import Era
from toolsearch.wire.messages import ToolMessage, UserMessage

IN_REACH = ("a", "b", "c")
BY_CALL_TOOL = "Run one with the tool that its 'callWith' names, giving 'name' and 'arguments' by its inputSchema."

CLAUDE = Caller(LOCAL, Era.LEGACY, session_key="1", client_name="claude-code")
CURSOR = Caller(LOCAL, Era.LEGACY, session_key="2", client_name="cursor")
UNKNOWN = Caller(LOCAL, Era.LEGACY, session_key="3", client_name="whoever")
OF_2026 = Caller(LOCAL, Era.MODERN, client_name="claude-code")
STATELESS = Caller(LOCAL, Era.LEGACY, client_name="claude-code")


@pytest.mark.parametrize(
    ("exposure", "listed", "answers", "hint"),
    [
        (WHOLE, ["a", "b", "c"], "names", "They are in your tool list; call them by name."),
        (APPEND, ["c", "b"], "names", "They are in your tool list from now on; call them by name."),
        (
            HEDGE,
            ["c", "b"],
            "definitions",
            f"{BY_CALL_TOOL} If your tool list has it by now, call it by name instead.",
        ),
        (FIXED, ["c"], "definitions", BY_CALL_TOOL),
        (DEFERRED, ["c"], "names", "They are in your tool list from now on; call them by name."),
    ],
    ids=lambda value: value.kind if isinstance(value, Exposure) else None,
)
def test_each_exposure_lists_and_says_its_own(exposure: Exposure, listed: list[str], answers: str, hint: str):
    """*c* is a pin, and *b* and *c* were found."""
    assert exposure.listed(IN_REACH, pins=["c"], discovered=["b", "c"]) == listed
    assert exposure.answers == answers
    assert exposure.call_hint == hint
    assert exposure.is_searched == (exposure is not WHOLE)


@pytest.mark.parametrize(
    ("caller", "exposure"),
    [(CLAUDE, APPEND), (CURSOR, FIXED), (UNKNOWN, HEDGE), (OF_2026, FIXED), (STATELESS, FIXED)],
    ids=["follows its list", "lists once", "unknown", "of 2026", "without a session"],
)
def test_a_client_has_the_exposure_of_its_kind_unless_its_catalog_is_small(caller: Caller, exposure: Exposure):
    view = ViewCache(Catalog(map(ToolDefinition, IN_REACH)), HeuristicTokenCounter()).get(Reach())
    searched = ClientTable().exposure(caller)

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


def test_a_negative_slack_is_refused():
    with pytest.raises(BadSettingError, match=r"slack=-0\.1"):
        PassThrough(slack=-0.1)


BOUND = 100
SIZES = st.lists(st.integers(1, 2 * BOUND), min_size=1, max_size=30)


@given(sizes=SIZES, slack=st.sampled_from([0.0, 0.25, 1.0]), is_of_tokens=st.booleans())
def test_a_list_turns_only_where_the_catalog_has_left_the_slack(sizes: list[int], slack: float, is_of_tokens: bool):
    """Between three quarters of the bounds and the bounds with their slack, it stays as it was."""
    decisions, rule = PassThroughDecisions(), PassThrough(max_tools=BOUND, max_tokens=BOUND, slack=slack)
    whole: bool | None = None
    for version, size in enumerate(sizes):
        tools, tokens = (1, size) if is_of_tokens else (size, 1)

        def is_whole(version: int = version, tools: int = tools, tokens: int = tokens) -> bool:
            return decisions.is_whole(rule, version, tools=tools, tokens=lambda: tokens)

        before, whole = whole, is_whole()
        assert is_whole() == whole
        if before is None:
            assert whole == (size <= BOUND)
        elif whole != before:
            assert size <= 0.75 * BOUND if whole else size > BOUND * (1 + slack)


# --- the same sentence on every face ----------------------------------------------------------------------------------


FOUND = {"query": "select:a__dig"}


def options(**bounds: Any) -> SessionOptions:
    return SessionOptions(pass_through=PassThrough(**bounds))


def engine_of(max_tools: int) -> ToolSearch:
    tools = [ToolDefinition(f"a__{name}", f"Does {name}.") for name in ("dig", "sow")]
    return ToolSearch(Catalog(tools), encoder=None, options=options(max_tools=max_tools))


async def in_library(max_tools: int) -> str:
    return (await engine_of(max_tools).session("s").call("toolSearchTool", FOUND)).text


async def in_chat(max_tools: int, **mode: Any) -> str:
    model = ScriptedModel(calls(("toolSearchTool", '{"query": "select:a__dig"}')), says("Found."))
    model.native_tool_search = mode.get("mode") == "native"
    advisor = ToolSearchAdvisor(engine_of(max_tools), **mode)
    request = ChatRequest(Prompt((UserMessage("Dig."),), ChatOptions()), {"conversation_id": "s"})
    await chain_of([advisor], model).call(request)
    [answer] = [message for message in model.prompts[-1].messages if isinstance(message, ToolMessage)]
    return answer.results[0].text


class IdleUpstream:
    """A server that is only listed."""

    is_modern = False
    state = UpstreamState.READY

    def __init__(self, settings: UpstreamSettings, sinks: UpstreamSinks) -> None:
        self.name = settings.name
        self._sinks = sinks

    def start(self) -> None: ...

    def wake(self) -> None: ...

    async def request(self, _: object) -> dict[str, Any]:
        raise AssertionError("nothing is called here")

    async def aclose(self) -> None: ...

    def status(self) -> UpstreamStatus:
        return UpstreamStatus(self.name, "idle", self.state)

    async def lists(self, *names: str) -> None:
        entries = [{"name": name, "description": f"Does {name}.", "inputSchema": {"type": "object"}} for name in names]
        await self._sinks.listing(Listing(self.name, tuple(read_listing(self.name, entries, self.name)[0])))


@asynccontextmanager
async def gateway_of(max_tools: int, **exposure: Any) -> AsyncIterator[Gateway]:
    section: Mapping[str, Any] = {"exposure": {"passThroughTools": max_tools, **exposure}, "encoder": None}
    config = read_gateway_config({"mcpServers": {"a": {"command": "none"}}, "toolsearch": section}, {})
    async with Gateway(config, upstreams=IdleUpstream, gate=OpenGate()) as gateway:
        await gateway.upstreams["a"].lists("dig", "sow")  # type: ignore[attr-defined]
        yield gateway


async def in_gateway(max_tools: int, caller: Caller) -> str:
    async with gateway_of(max_tools) as gateway:
        return (await gateway.search(caller, FOUND)).answer.text


@pytest.mark.parametrize(
    ("max_tools", "answer"),
    [
        (0, "1 tool found, 1 of them new. They are in your tool list from now on; call them by name."),
        (10, "1 tool found. They are in your tool list; call them by name."),
    ],
    ids=["the list grows", "all of it is listed"],
)
async def test_the_same_situation_is_told_in_the_same_words_by_library_chat_and_gateway(max_tools: int, answer: str):
    answers = [
        await in_library(max_tools),
        await in_chat(max_tools),
        await in_chat(max_tools, mode="native"),
        await in_gateway(max_tools, CLAUDE),
    ]

    assert answers == [f"{answer}\n- a__dig: Does dig."] * 4


@pytest.mark.parametrize(
    ("caller", "lists"),
    [
        (CLAUDE, ["a__sow", "a__dig"]),
        (UNKNOWN, ["a__sow", "a__dig"]),
        (CURSOR, ["a__sow"]),
        (OF_2026, ["a__sow"]),
    ],
    ids=["follows its list", "unknown", "lists once", "of 2026"],
)
async def test_what_a_client_is_listed_after_a_search_is_what_its_exposure_says(caller: Caller, lists: list[str]):
    async with gateway_of(0, pins=["a__sow"]) as gateway:
        found = await gateway.search(caller, FOUND)
        listed = [entry["name"] for entry in await gateway.list_tools(caller)]

    own = ["toolSearchTool", "callToolRead", "callToolWrite", "callToolDestructive"]
    assert listed == own + lists
    assert found.answer.structured["howToCall"] == ClientTable().exposure(caller).call_hint
    assert found.list_changed == (lists == ["a__sow", "a__dig"])
