"""What a call of the search tool answers in a session, and what it lets the model see from then on."""

import json
from typing import Any

import pytest

from tests.kit.session_tools import FUNCTIONS, SEARCH, engine_of, names_in
from toolsearch import Budget, Catalog, PassThrough, Session, SessionOptions, Tool, ToolDefinition, ToolSearch, as_tools
from toolsearch.errors import BadPatternError, BadQueryError
from toolsearch.upstreams.interface import ServerHealth, UpstreamState


def ask(session: Session, *queries: str, **arguments: Any) -> str:
    return session.call_sync(SEARCH, {"queries": list(queries), **arguments}).text


def lines(session: Session, *queries: str, **arguments: Any) -> list[str]:
    return ask(session, *queries, **arguments).splitlines()


def two_servers() -> Catalog:
    """Two servers with a tool ``send``, and one with a tool that is too wide for 200 tokens."""
    properties: dict[str, Any] = {f"parameter_{number}": {"type": "string"} for number in range(60)}
    wide = ToolDefinition("mail__wide", "Send a wide mail", {"type": "object", "properties": properties}, server="mail")
    sends = [ToolDefinition(f"{server}__send", f"Send by {server}", server=server) for server in ("mail", "cal")]
    return Catalog([*sends, wide, ToolDefinition("mail__list", "List the mail", server="mail")])


def test_one_call_with_several_queries_loads_the_best_of_each() -> None:
    session = engine_of().session("a")

    ask(session, "send an email", "list events of a calendar", "pay a bill")

    assert session.discovered == ["send_mail", "list_events", "pay_bill"]
    assert session.state.counters.searches == 3


def test_what_is_only_related_is_named_and_not_loaded_and_runs_all_the_same_when_it_is_called() -> None:
    session = engine_of().session("a")
    result = session.call_sync(SEARCH, {"query": "list events of a calendar day, or one time zone"})

    assert "- list_events(day*) [fits, loaded]" in result.text
    assert "- convert_time(hour*) [related]" in result.text
    assert result.structured == {"tools": ["list_events"], "alsoFound": ["convert_time"]}
    assert session.discovered == ["list_events"]
    assert session.call_sync("convert_time", {"hour": 7}).text == "8"


def test_a_query_that_cannot_be_searched_for_is_an_error_alone_and_a_line_among_others() -> None:
    session = engine_of().session("a")

    with pytest.raises(BadPatternError):
        session.answer({"query": "/(mail/"})
    with pytest.raises(BadQueryError, match="there is no server 'bank'"):
        session.answer({"query": "mail", "server": "bank"})
    text = ask(session, "/(mail/", "send an email")
    assert session.discovered == ["send_mail"]
    assert next(line for line in text.splitlines() if line.startswith('"/(mail/": ')).endswith(".")


def test_selecting_names_what_there_is_not() -> None:
    session = engine_of().session("a")

    told = lines(session, "select:pay_bill,pay_bil,no_such_tool")
    assert "pay_bil (did you mean pay_bill?)" in told[-1]
    assert told[-1].endswith(", no_such_tool.")
    assert session.discovered == ["pay_bill"]


def test_near_names_are_in_reach_and_of_the_server_and_not_of_tools_that_cannot_be_shown() -> None:
    engine = engine_of(catalog=two_servers(), budget=Budget(max_definition_tokens=200))
    every, mail = engine.session("every"), engine.session("mail", deny=["cal__send"])
    query = "select:mail__sent,cal__sent"

    def told(session: Session, asked: str, **arguments: Any) -> str:
        return lines(session, asked, **arguments)[-1].removeprefix("No tool is named ")

    assert told(every, query) == "mail__sent (did you mean mail__send?), cal__sent (did you mean cal__send?)."
    assert told(mail, query) == "mail__sent (did you mean mail__send?), cal__sent."
    assert told(every, query, server="cal") == "mail__sent, cal__sent (did you mean cal__send?)."
    assert told(mail, "select:mail__wid") == "mail__wid."


def test_near_names_are_looked_for_for_the_first_few_missing_names_of_a_call() -> None:
    told = lines(engine_of().session("a"), "select:pay_bila,pay_bilb,pay_bilc", "select:pay_bild,pay_bile,pay_bilf")[-1]

    assert told.count("(did you mean pay_bill?)") == 5
    assert told.endswith("pay_bile (did you mean pay_bill?), pay_bilf.")


def test_a_name_that_several_servers_have_hides_no_missing_one() -> None:
    told = lines(engine_of(catalog=two_servers()).session("a"), "select:send,nope")

    assert told[-1] == "No tool is named nope."
    assert [line.split("(")[0] for line in told if line.startswith("-")] == ["- cal__send", "- mail__send"]


def test_selected_names_beyond_the_limit_are_counted() -> None:
    session = engine_of(catalog=two_servers()).session("a")

    assert lines(session, "select:mail__send,cal__send", limit=1)[1].startswith("1 of 2 tools")
    assert lines(session, "select:send")[1].startswith("1 of 2 tools")
    assert lines(session, "select:mail__send,cal__send")[1].startswith("- mail__send")


@pytest.mark.parametrize("exposure", ["append", "fixed", "deferred", "messages"])
@pytest.mark.parametrize("query", ["mail__send", "`mail__send`", "functions.mail__send", "mail__send(to='Ann')"])
def test_a_full_name_loads_that_tool_alone_in_every_mode(exposure: Any, query: str) -> None:
    engine = engine_of(catalog=two_servers(), exposure=exposure)
    asked, searched = engine.session("a"), engine.session("b")

    ask(asked, query)
    found = [each.name for each in searched.search(query)]

    assert (asked.discovered, searched.discovered) == (["mail__send"], ["mail__send"])
    assert found[0] == "mail__send"
    assert len(found) > 1


def test_a_full_name_that_servers_have_for_a_tool_of_theirs_as_well_loads_the_one_that_has_no_server() -> None:
    catalog = two_servers()
    catalog.add(ToolDefinition("send", "Send anything"))
    asked, searched = engine_of(catalog=catalog).session("a"), engine_of(catalog=catalog).session("b")

    ask(asked, "send")
    found = [each.name for each in searched.search("send")]

    assert (asked.discovered, searched.discovered) == (["send"], ["send"])
    assert found[:3] == ["send", "cal__send", "mail__send"]


def test_a_name_without_its_server_is_no_full_name() -> None:
    session = engine_of(catalog=two_servers()).session("a")

    ask(session, "send")
    assert session.discovered == ["cal__send", "mail__send"]


def test_the_full_name_of_a_tool_that_cannot_be_shown_loads_no_other() -> None:
    engine = engine_of(catalog=two_servers(), budget=Budget(max_definition_tokens=200))
    session = engine.session("a")

    told = lines(session, "mail__wide")
    session.search("mail__wide")

    assert told[-1].endswith("too long to show: mail__wide.")
    assert session.discovered == []


def test_a_strategy_that_is_sent_is_used_though_the_definition_names_none() -> None:
    session = engine_of().session("a")

    ask(session, "^pay_", strategy="regex")
    assert session.discovered == ["pay_bill"]


def test_a_second_search_in_vain_for_the_same_quotes_the_first() -> None:
    session = engine_of().session("a")
    vain = 'Searched in vain before: "erupt a volcano"'

    assert vain not in ask(session, "erupt a volcano")
    assert vain not in ask(session, "erupt a volcano")  # word for word, it says no more than the first time
    assert vain not in ask(session, "tidal wave height")
    assert vain in ask(session, "erupt the volcano now")
    assert vain not in ask(engine_of().session("b"), "erupt the volcano now")


def test_a_session_whose_list_is_fixed_gets_definitions_of_what_is_loaded() -> None:
    session = engine_of(exposure="fixed").session("a")
    before = session.tools("anthropic")

    text = lines(session, "pay a bill", "send an email")

    entries = [json.loads(line) for line in text if line.startswith("{")]
    assert [entry["name"] for entry in entries] == ["pay_bill", "send_mail"]
    assert entries[0]["callWith"] == "callTool"
    assert entries[0]["inputSchema"]["required"] == ["amount"]
    assert session.tools("anthropic") == before
    assert names_in(before) == [SEARCH, "callTool"]


def test_what_has_left_the_list_is_told_once_and_can_be_called_by_its_name() -> None:
    session = engine_of(budget=Budget(max_tools=1, low_water=0), exposure="messages").session("a")
    session.tools("anthropic", model="claude-opus-5")
    for name in ("send_mail", "pay_bill"):
        session.search(f"select:{name}")
        with session.conversation() as conversation:
            conversation.tool_change()
        session.end_turn()
    with session.conversation() as conversation:
        assert conversation.tool_change().removed == ("send_mail",)

    left = "No longer in your tool list, but still callable by exact name: send_mail."
    assert lines(session, "volcano")[-1] == left
    assert left not in ask(session, "volcano")
    assert session.call_sync("send_mail", {"to": "Ann", "text": "Hi"}).text == "sent 'Hi' to Ann"


def test_the_search_tool_keeps_its_bytes_whatever_becomes_of_the_catalog() -> None:
    engine = engine_of(search_hint="It pays bills.")
    session = engine.session("a")
    before = json.dumps(session.tools("openai")[0])
    engine.catalog.add(ToolDefinition("git__log", "Show the log", server="git"))

    assert json.dumps(session.tools("openai")[0]) == before
    assert before.count("It pays bills.") == 1


def test_tools_that_nothing_runs_say_so() -> None:
    engine = engine_of()
    engine.catalog.add(ToolDefinition("erupt_volcano", "Let a volcano erupt"))

    text = ask(engine.session("a"), "let the volcano erupt", "send an email")

    assert "- erupt_volcano() [fits, loaded, not runnable here]" in text
    assert "- send_mail(to*, text*) [fits, loaded]" in text


def test_more_that_fits_than_is_shown_is_counted() -> None:
    tools = [Tool(ToolDefinition(f"log_{n:02}", "Show the log"), as_tools(FUNCTIONS)[0].callback) for n in range(60)]
    options = SessionOptions(pass_through=PassThrough(max_tools=0))
    session = ToolSearch(Catalog(tools[:12]), encoder=None, options=options).session("a")

    assert lines(session, "show the log")[1].startswith("5 of 12 tools")
    assert session.discovered == ["log_00", "log_01", "log_02"]
    more = ToolSearch(Catalog(tools), encoder=None, options=options).session("a")
    assert lines(more, "show the log")[1].startswith("5 of 50 or more")


# Which servers there are


def of_servers(count: int) -> Session:
    tools = [ToolDefinition(f"s{n:02}__go", "Go", server=f"s{n:02}") for n in range(count)]
    catalog = Catalog()
    catalog.sync("them", map(Tool, tools), purposes={"s00": "Goes anywhere. And back.", "s01": "Goes\nhome"})
    return ToolSearch(catalog, encoder=None, options=SessionOptions(pass_through=PassThrough(max_tools=0))).session("a")


def test_servers_are_listed_with_what_they_are_for_if_asked_for() -> None:
    session = of_servers(3)

    assert lines(session, "servers:") == [
        "Tools come from these servers:",
        "- s00 (1): Goes anywhere.",
        "- s01 (1): Goes home",
        "- s02 (1)",
    ]
    assert session.state.counters.searches == 0


def test_servers_are_listed_where_nothing_fits_and_a_cut_list_says_how_many_more_there_are() -> None:
    session = of_servers(120)

    assert "Tools come from these servers:" not in ask(session, "go", "volcano")
    told = lines(session, "volcano")[-1]
    assert told.startswith("Tools come from these servers: s00, s01")
    assert told.endswith("s78, s79 and 20 more (the query servers:TEXT lists those with TEXT in their name)")
    assert "Tools come from these servers:" not in ask(session, "tidal wave")  # told once
    assert lines(session, "servers:")[-1] == f"And from these: {', '.join(sorted(f's{n:02}' for n in range(120))[40:])}"


def test_of_too_many_servers_for_an_answer_the_rest_is_counted_and_can_be_got_at() -> None:
    session = of_servers(2_000)

    text = ask(session, "servers:")
    assert text.startswith("Tools come from these servers: s00, s01, s02")
    assert "s108 and 1900 more (the query servers:TEXT lists those with TEXT in their name)" in text
    assert lines(session, "servers:S199")[1:] == ["- s199 (1)", *(f"- s199{n} (1)" for n in range(10))]


def test_tools_of_no_server_are_named_as_such_beside_the_servers() -> None:
    session = of_servers(2)
    session._engine.catalog.sync("ours", [Tool(ToolDefinition(f"own{n}", "Go")) for n in range(3)])

    assert lines(session, "servers:")[-1].startswith("3 tools have")
    assert lines(session, "volcano")[-1].startswith("3 tools have")


def test_a_server_out_of_reach_is_not_listed() -> None:
    engine = of_servers(3)._engine
    assert isinstance(engine, ToolSearch)

    assert "s01" not in ask(engine.session("b", deny=["server:s01"]), "servers:")


DOWN, NEW = UpstreamState.DOWN, UpstreamState.STARTING


def with_health(**health: ServerHealth) -> ToolSearch:
    engine = of_servers(3)._engine
    assert isinstance(engine, ToolSearch)
    engine.catalog.ask_health(lambda: health)
    return engine


def test_the_list_of_servers_says_which_cannot_be_reached_and_which_are_not_known_yet() -> None:
    health = {"s01": ServerHealth(DOWN, is_listed=True), "stripe": ServerHealth(UpstreamState.NEEDS_LOGIN, False)}
    session = with_health(**health).session("a")

    assert lines(session, "servers:") == [
        "Tools come from these servers:",
        "- s00 (1): Goes anywhere.",
        "- s01 (1, not reachable): Goes home",
        "- s02 (1)",
        "Not searched, since their tools are not known yet: stripe (waiting for a person to sign in).",
    ]
    assert lines(session, "volcano")[2:] == lines(session, "servers:")
    assert len(lines(session, "tidal wave")) == 3  # the list is told once, what was not searched each time

    health["s01"] = ServerHealth(UpstreamState.READY, is_listed=True)
    changed = with_health(**health).session("a")
    assert "- s01 (1): Goes home" in lines(changed, "servers:")


def test_the_list_of_servers_is_given_again_for_another_server_and_not_for_another_state() -> None:
    session, health = of_servers(3), dict[str, ServerHealth]()
    assert isinstance(session._engine, ToolSearch)
    session._engine.catalog.ask_health(lambda: health)

    assert "Tools come from these servers:" in ask(session, "volcano")
    health["s01"] = ServerHealth(DOWN, is_listed=True)
    assert "Tools come from these servers:" not in ask(session, "tidal wave")
    session._engine.catalog.add(ToolDefinition("s03__go", "Go", server="s03"))
    assert "Tools come from these servers:" in ask(session, "solar eclipse")


def test_a_long_list_of_servers_has_their_states_too() -> None:
    session = of_servers(120)
    assert isinstance(session._engine, ToolSearch)
    session._engine.catalog.ask_health(lambda: {"s01": ServerHealth(DOWN, is_listed=True)})

    assert "s00, s01 (not reachable), s02" in lines(session, "volcano")[-1]


def test_an_answer_says_what_calls_of_found_tools_meet_and_names_only_servers_whose_tools_come_soon() -> None:
    health = {
        "s00": ServerHealth(DOWN, is_listed=True),
        "later": ServerHealth(NEW, False),
        "off": ServerHealth(DOWN, False),
    }
    session = with_health(**health).session("a")

    assert lines(session, "select:s00__go")[-2:] == [
        "The server s00 is not reachable; a call tries to reach it once more.",
        "Not searched, since their tools are not known yet: later (starting).",
    ]


def test_servers_that_were_not_searched_are_counted_from_the_21st_and_leave_the_answer_its_tools() -> None:
    session = with_health(**{f"n{n:03}": ServerHealth(NEW, is_listed=False) for n in range(300)}).session("a")

    told = lines(session, "go")
    assert told[-1].startswith("Not searched, since their tools are not known yet: n000 (starting), n001 (starting)")
    assert told[-1].endswith("n019 (starting) and 280 more.")
    assert any("s00__go" in line for line in told[:-1])


def test_the_states_of_servers_out_of_reach_are_not_told() -> None:
    health = {"s01": ServerHealth(DOWN, is_listed=True), "stripe": ServerHealth(DOWN, is_listed=False)}
    session = with_health(**health).session("a", deny=["server:s01", "server:stripe"])

    told = ask(session, "servers:")
    assert "s01" not in told
    assert "stripe" not in told
    with pytest.raises(BadQueryError, match="there is no server 'stripe'"):
        session.answer({"queries": ["pay", "refund"], "server": "stripe"})


def test_who_searches_a_server_whose_tools_are_not_known_is_told_why() -> None:
    session = with_health(stripe=ServerHealth(DOWN, is_listed=False)).session("a")

    with pytest.raises(BadQueryError, match=r"of the server stripe are not known yet, since it is not reachable$"):
        session.answer({"queries": ["pay", "refund"], "server": "stripe"})


def test_a_catalog_without_servers_lists_none() -> None:
    session = engine_of().session("a")

    assert ask(session, "servers:").startswith("No tool here")
    assert "server." not in ask(session, "volcano")
