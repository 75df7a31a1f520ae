"""Every door through which somebody says what may be seen or done: what is given wrongly is refused, never widened."""

import asyncio
import json
from collections.abc import Callable
from typing import Any, cast

import pytest

from toolsearch import (
    AlwaysEvictStrategy,
    CallLimits,
    Catalog,
    FunctionToolCallback,
    ImportPathResolver,
    LruEvictionStrategy,
    PassThrough,
    Reach,
    SessionOptions,
    SessionStore,
    ToolCallingManager,
    ToolDefinition,
    ToolSearch,
    ToolSearchError,
    tool,
)
from toolsearch.access.principals import Principal
from toolsearch.access.reach import EVERY_TOOL, Rule
from toolsearch.catalog.sources.mcp import McpSource
from toolsearch.chat import (
    ChatClient,
    MemoryAdvisor,
    MessageWindowMemory,
    ScriptedModel,
    ToolSearchAdvisor,
    UserMessage,
)
from toolsearch.chat.models.scripted import scripted_calls
from toolsearch.errors import BadSettingError, StorageError
from toolsearch.evaluation import evaluate
from toolsearch.evaluation.queries import LabelledQuery
from toolsearch.gateway.config_file import read_gateway_config
from toolsearch.gateway.settings import GatewaySettings
from toolsearch.sessions.session_eviction import EvictionStrategy
from toolsearch.sessions.state import SessionState
from toolsearch.storage.memory import InMemorySessionPersistence

NAMES = ["send_mail", "list_events", "pay_bill"]


def send_mail() -> str:
    """Send an email."""
    return "sent"


def list_events() -> str:
    """List the events of a calendar."""
    return "none"


@tool(tags=["money"])
def pay_bill() -> str:
    """Pay a bill."""
    return "paid"


def engine_of(**options: Any) -> ToolSearch:
    chosen = SessionOptions(pass_through=PassThrough(max_tools=0))
    return ToolSearch(Catalog([send_mail, list_events, pay_bill]), encoder=None, options=chosen, **options)


def in_reach(reach: Reach) -> list[str]:
    return [name for name in NAMES if reach.allows(engine_of().catalog.get(name).definition)]


# A collection of names that is none

DOORS: dict[str, Callable[[Any], object]] = {
    "session, allow": lambda given: engine_of().session("a", allow=given),
    "session, deny": lambda given: engine_of().session("a", deny=given),
    "session, pins": lambda given: engine_of().session("a", pins=given),
    "Reach.parse, allow": lambda given: Reach.parse(allow=given),
    "Reach.parse, deny": lambda given: Reach.parse(deny=given),
    "state, pins": lambda given: SessionState.new("a", clock=lambda: 0.0, pins=given),
    "advisor, pins": lambda given: ToolSearchAdvisor(pins=given),
    "limits, excluded": lambda given: CallLimits(excluded=given),
    "client, tool_names": lambda given: ChatClient(ScriptedModel(), tool_names=given),
    "resolver, paths": ImportPathResolver,
    "MCP servers, only": lambda given: McpSource({"mcpServers": {"s": {"command": "x"}}}, only=given),
    "evaluate, strategies": lambda given: evaluate(engine_of(), [LabelledQuery("mail", frozenset())], given),
    "tool, tags": lambda given: tool(tags=given)(send_mail),
    "definition, tags": lambda given: ToolDefinition("t", tags=given),
    "callback, tags": lambda given: FunctionToolCallback.build("t", send_mail, tags=given),
    "gateway, rules": lambda given: GatewaySettings.model_validate({"rules": {"deny": given}}),
    "gateway, principals": lambda given: GatewaySettings.model_validate({"principals": {"a": {"allow": given}}}),
    "gateway, pins": lambda given: GatewaySettings.model_validate({"exposure": {"pins": given}}),
}
OPTIONAL = ("MCP servers, only", "evaluate, strategies")  # None means all there are, and says so in their signatures
BY_PYDANTIC = "gateway, "


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    "given", ["pay_bill", b"pay_bill", {"pay_bill": True}, 7, None, [None], [7], [""], [" "]], ids=repr
)
def test_what_is_no_collection_of_names_is_refused_at_every_door(door: str, given: object) -> None:
    if (given is None and door in OPTIONAL) or (door.startswith(BY_PYDANTIC) and given in ([""], [" "])):
        return  # the second are read as rules or names later, where the blank ones are refused
    with pytest.raises((ToolSearchError, ValueError)) as raised:
        DOORS[door](given)
    if not door.startswith(BY_PYDANTIC):
        assert isinstance(raised.value, ToolSearchError)
        assert raised.value.code in ("bad_setting", "bad_tool", "bad_query")


def test_a_text_in_place_of_a_list_is_told_how_it_is_written() -> None:
    with pytest.raises(BadSettingError, match=r"deny must be a list of names, not one text; write deny=\['pay_bill'\]"):
        engine_of().session("a", deny="pay_bill")


@pytest.mark.parametrize("kind", [list, tuple, set, frozenset, iter, lambda names: (name for name in names)])
def test_every_collection_is_read_once_and_holds_in_every_later_use(kind: Callable[[list[str]], Any]) -> None:
    """An iterator would be exhausted at its second use, and then deny nothing, and pin nothing."""
    engine = engine_of()
    session = engine.session("a", allow=kind(NAMES), deny=kind(["pay_bill"]), pins=kind(["send_mail"]))
    for _ in range(2):
        assert session.search("select:pay_bill") == []
        assert session.discovered == ["send_mail"]
    assert session.state.pins == {"send_mail"}
    assert SessionState.from_json(session.state.to_json(), budget=engine.options.budget, clock=engine.clock).reach == (
        Reach.parse(sorted(NAMES) if kind in (set, frozenset) else NAMES, ["pay_bill"])
    )
    assert CallLimits(excluded=kind(NAMES)).excluded == set(NAMES)


def test_a_search_within_one_text_is_refused_too() -> None:
    with pytest.raises(ToolSearchError, match=r"within must be a collection of names.*write \['pay_bill'\]"):
        engine_of().index.search("bill", within="pay_bill")


# Rules


@pytest.mark.parametrize(
    "rule",
    [
        "sever:git", "Server:git", "server :git", "denied:pay_bill", "server:", "tag: ", "name:", ":", "", "  ",
        "pay_bill, send_mail", "pay_bill;send_mail", "pay bill", "pay.bill", "pay/bill", "zahle_rechnüng", "a" * 65,
        "class:write,read", "class:", "pay_[bill",
    ],
)  # fmt: skip
def test_a_rule_that_can_match_no_tool_at_all_is_refused(rule: str) -> None:
    for door in (Reach.parse, engine_of().session):
        arguments = () if door == Reach.parse else ("a",)
        with pytest.raises(BadSettingError):
            door(*arguments, deny=[rule])


@pytest.mark.parametrize("rule", [" pay_bill ", "tag: money", "name: pay_bill", " tag:money", "pay_*", "pay[_-]bill"])
def test_blanks_around_the_parts_of_a_rule_change_nothing(rule: str) -> None:
    assert in_reach(Reach.parse(deny=[rule])) == ["send_mail", "list_events"]


def test_a_rule_for_a_tool_that_may_come_later_is_legal_and_holds_when_it_comes() -> None:
    engine = engine_of()
    session = engine.session("a", deny=["wire_*", "server:bank"])
    engine.catalog.add(ToolDefinition("wire_money", "Wire money"), ToolDefinition("t", "Wire money", server="bank"))
    assert session.search("select:wire_money,t") == []


def test_an_empty_list_allows_nothing_and_no_list_everything() -> None:
    engine = engine_of()
    nobody = engine.session("a", allow=[])
    assert nobody.search("select:send_mail,pay_bill") == []
    assert asyncio.run(nobody.call("pay_bill")).error_code == "unknown_tool"
    assert in_reach(Reach.parse([])) == in_reach(Reach(allow=())) == []
    assert in_reach(Reach.parse()) == in_reach(Reach()) == NAMES
    assert in_reach(Reach.parse(deny=[])) == NAMES
    for emptied in (SessionState.from_json(nobody.state.to_json(), budget=engine.options.budget, clock=engine.clock),):
        assert in_reach(emptied.reach) == []


def test_an_empty_list_in_the_gateways_file_allows_nothing_too() -> None:
    rules = GatewaySettings.model_validate({"rules": {"allow": []}, "principals": {"ann": {"allow": []}}})
    assert (rules.rules.allow, rules.principals["ann"].allow) == ((), ())
    assert GatewaySettings().rules.allow == EVERY_TOOL


@pytest.mark.parametrize("key", ["toolSearch", "tool_search", "tool-search", "ToolSearch", "toolsearch "])
def test_the_gateways_section_is_not_passed_over_for_its_spelling(key: str) -> None:
    document = {"mcpServers": {"a": {"command": "x"}}, key: {"rules": {"deny": ["a__*"]}}}
    with pytest.raises(BadSettingError, match="write it as 'toolsearch'"):
        read_gateway_config(document, {})


def test_a_reach_holds_rules_and_keeps_them_whatever_they_came_in() -> None:
    rule = Rule.parse("pay_bill")
    reach = Reach(deny=iter([rule]))  # type: ignore[arg-type]
    assert (reach.deny, reach.is_everything, hash(reach)) == ((rule,), False, hash(Reach(deny=(rule,))))
    for wrong in ("pay_bill", ["pay_bill"], None, rule, [None]):
        with pytest.raises(BadSettingError, match=r"use Reach\.parse"):
            Reach(deny=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", ["", [], "pay_bill", ["pay_bill"], {}, 0], ids=repr)
def test_a_reach_that_is_none_is_refused_instead_of_letting_everything_through(wrong: Any) -> None:
    engine = engine_of()
    for door in (
        lambda: engine.search("bill", reach=wrong),
        lambda: engine.explain("bill", "pay_bill", reach=wrong),
        lambda: engine.session("a", reach=wrong),
        lambda: engine.view(wrong),
    ):
        with pytest.raises(BadSettingError, match="reach must be a Reach"):
            door()


def test_a_reach_and_rules_beside_it_are_refused_since_one_would_be_ignored() -> None:
    for more in ({"deny": ["pay_bill"]}, {"allow": []}):
        with pytest.raises(BadSettingError, match="not both"):
            engine_of().session("a", reach=Reach(), **more)


# Whose session it is


@pytest.mark.parametrize("given", [None, "", "  ", 0, 7, b"ann", ["ann"], True], ids=repr)
def test_an_id_that_would_be_shared_is_refused_at_every_door(given: Any) -> None:
    said = [UserMessage("hi")]
    memory = MessageWindowMemory()
    store = SessionStore()
    doors: list[Callable[[], object]] = [
        lambda: engine_of().session(given),
        lambda: store.get_or_create(given, lambda: SessionState.new("a", clock=lambda: 0.0)),
        lambda: SessionState.new(given, clock=lambda: 0.0),
        lambda: memory.add(given, said),
        lambda: memory.get(given),
        lambda: memory.clear(given),
    ]
    for advisor in (MemoryAdvisor(memory), ToolSearchAdvisor(engine_of())):
        client = ChatClient(ScriptedModel("hello"), advisors=[advisor])
        doors.append(client.prompt("hi").context(conversation_id=given).call_sync)
    for door in doors:
        with pytest.raises(BadSettingError, match="must be a text such as 'user-42', not"):
            door()
    assert len(store) == 0


@pytest.mark.parametrize("given", [0, 7, b"acme", ["acme"], " "], ids=repr)
def test_the_id_of_a_principal_is_a_text_too(given: Any) -> None:
    with pytest.raises(BadSettingError, match="the id of a principal must be a text"):
        Principal(given)


def ask_through_chat(engine: ToolSearch, **context: object) -> None:
    client = ChatClient(ScriptedModel("hello"), advisors=[ToolSearchAdvisor(engine)])
    client.prompt("hi").context(conversation_id="a", **context).call_sync()


@pytest.mark.parametrize("given", [None, "acme", 7, Principal], ids=repr)
@pytest.mark.parametrize(
    "door",
    [
        lambda engine, given: engine.session("a", principal=given),
        lambda engine, given: engine.search("mail", principal=given or ""),
        lambda engine, given: engine.explain("mail", "send_mail", principal=given or ""),
        lambda engine, given: ask_through_chat(engine, principal=given),
    ],
)
def test_a_principal_is_a_principal_and_not_its_name(door: Callable[[ToolSearch, Any], object], given: object) -> None:
    with pytest.raises(BadSettingError, match="principal must be a Principal"):
        door(engine_of(), given)


def test_the_reach_of_a_principal_is_a_reach() -> None:
    with pytest.raises(BadSettingError, match="the reach of the principal 'acme' must be a Reach"):
        Principal("acme", cast("Reach", ["send_mail"]))


# What was kept of a session


def kept_session(**changes: Any) -> InMemorySessionPersistence:
    kept = InMemorySessionPersistence()
    with engine_of(sessions=SessionStore(persistence=kept)) as engine:
        engine.session("a", deny=["pay_bill"])
    stored = kept.load("a")
    assert stored is not None
    kept.save("a", json.dumps({**json.loads(stored.text), **changes}), version=stored.version)
    return kept


@pytest.mark.parametrize(
    "changes",
    [
        {"reach": {}}, {"reach": None}, {"reach": {"deny": []}}, {"reach": {"allow": []}}, {"version": 9},
        {"reach": {"allow": "pay_bill", "deny": []}}, {"reach": {"allow": ["*"], "deny": None}},
        {"reach": {"allow": ["*"], "deny": "pay_bill"}}, {"reach": {"allow": [None], "deny": []}}, {"pins": "pay_bill"},
    ],
    ids=str,
)  # fmt: skip
def test_a_session_whose_reach_was_lost_does_not_come_back_with_a_wider_one(changes: dict[str, Any]) -> None:
    engine = engine_of(sessions=SessionStore(persistence=kept_session(**changes)))
    with pytest.raises(StorageError, match=r"'a' and its reach cannot be read.*open it with"):
        engine.session("a")
    with pytest.raises(StorageError, match="cannot be read"):
        ChatClient(ScriptedModel("x"), advisors=[ToolSearchAdvisor(engine)]).prompt("x").context(
            conversation_id="a"
        ).call_sync()
    assert engine.session("a", deny=["send_mail"]).search("select:send_mail") == []


@pytest.mark.parametrize(
    ("strategy", "refusal"),
    [
        (AlwaysEvictStrategy(), "no tool named 'pay_bill'"),
        (LruEvictionStrategy(), "the tool 'pay_bill' is not available any more"),  # this session knows that it was sent
    ],
)
def test_a_conversation_in_a_chat_has_the_reach_of_its_request_whether_its_session_was_evicted_or_is_wider(
    strategy: EvictionStrategy, refusal: str
) -> None:
    engine = engine_of(sessions=SessionStore(strategy))

    def told(**context: Any) -> list[str]:
        model = ScriptedModel(
            scripted_calls(("toolSearchTool", {"query": "select:pay_bill"}), ("pay_bill", {})), "done"
        )
        client = ChatClient(model, advisors=[ToolSearchAdvisor(engine)])
        response = client.prompt("pay").context(conversation_id="a", **context).call_sync()
        return [result.text for result in response.steps[1].results]  # type: ignore[union-attr]

    assert told()[1] == "paid"
    for _ in range(2):
        found, called = told(reach=Reach.parse(deny=["pay_bill"]))
        assert found.startswith("No tool found")
        assert refusal in called
    with pytest.raises(BadSettingError, match="'reach' in the request's context must be a Reach"):
        told(reach=["pay_bill"])


# Limits and hooks


@pytest.mark.parametrize("limit", [float("nan"), 2.5, "3", True, -1], ids=repr)
@pytest.mark.parametrize("name", ["per_tool", "total", "repeats", "per_tool_overrides", "repeats_overrides"])
def test_a_limit_that_would_never_be_reached_is_refused(name: str, limit: Any) -> None:
    with pytest.raises(BadSettingError, match="use a number of 0 or more, or None"):
        CallLimits(**{name: {"t": limit} if name.endswith("overrides") else limit})


@pytest.mark.parametrize("overrides", [None, ["t"], "t", 3], ids=repr)
def test_limits_of_single_tools_are_a_mapping(overrides: Any) -> None:
    for name in ("per_tool_overrides", "repeats_overrides"):
        with pytest.raises(BadSettingError, match=f"{name} must map names of tools to limits"):
            CallLimits(**{name: overrides})


@pytest.mark.parametrize("hooks", [print, None, "approve", [None], ["approve"]], ids=repr)
def test_hooks_are_a_list_of_functions(hooks: Any) -> None:
    for option in ("before", "after"):
        with pytest.raises(
            BadSettingError, match=rf"{option} must be a list of functions; write {option}=\[function\]"
        ):
            ToolCallingManager(**{option: hooks})
