"""What one definition may cost a model, by whatever way it comes into a request."""

import asyncio
import json
import logging
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsearch import (
    Budget,
    Catalog,
    PassThrough,
    Reach,
    Session,
    SessionOptions,
    SessionStore,
    SqliteSessionPersistence,
    Tool,
    ToolDefinition,
    ToolSearch,
)
from toolsearch.chat import ChatClient, ChatOptions, ScriptedModel, ToolSearchAdvisor
from toolsearch.chat.models.scripted import scripted_calls
from toolsearch.discovery.shown import ShownDefinitions, shortened
from toolsearch.discovery.view import ViewCache
from toolsearch.errors import BadSettingError
from toolsearch.tokens import O200kTokenCounter, count_json, definition_tokens
from toolsearch.tools.function_tools import tool_from_function
from toolsearch.wire.capabilities import Endpoint
from toolsearch.wire.formats import TOOL_FORMATS, render_definition

MAX = 500
SEARCH = "toolSearchTool"
COUNTER = O200kTokenCounter()
HUGE = "Send an email. " + "word other thing, " * 35_000  # more than 100,000 tokens


class Letters:
    """A token is a character; what it counted is kept."""

    estimate = False

    def __init__(self) -> None:
        self.longest = 0

    def count(self, text: str) -> int:
        self.longest = max(self.longest, len(text))
        return len(text)


def send_mail(to: str) -> str:
    """Send an email."""
    return f"sent to {to}"


def huge_tool() -> Tool:
    return tool_from_function(send_mail, description=HUGE)


def wide_schema(parameters: int, **each: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {f"parameter_{i}": {"type": "string", **each} for i in range(parameters)}}


def engine_of(*tools: Tool | ToolDefinition, sessions: SessionStore | None = None, **options: Any) -> ToolSearch:
    chosen = SessionOptions(
        **{
            "pass_through": PassThrough(max_tools=0),
            "exposure": "append",
            "budget": Budget(max_definition_tokens=MAX),
            **options,
        }
    )
    return ToolSearch(Catalog(tools), encoder=None, sessions=sessions, options=chosen)


def by_search(engine: ToolSearch) -> Session:
    session = engine.session("a")
    assert [found.name for found in session.search("send an email")] == ["send_mail"]
    return session


def by_select(engine: ToolSearch) -> Session:
    session = engine.session("a")
    asyncio.run(session.call(SEARCH, {"query": "select:send_mail"}))
    return session


def by_pin(engine: ToolSearch) -> Session:
    return engine.session("a", pins=["send_mail"])


def by_its_name(engine: ToolSearch) -> Session:
    session = engine.session("a")
    assert asyncio.run(session.call("send_mail", {"to": "Ann"})).text == "sent to Ann"
    return session


@pytest.mark.parametrize("way", [by_search, by_select, by_pin, by_its_name])
def test_a_huge_definition_costs_no_more_than_one_may_however_it_comes_into_the_list(
    way: Any, caplog: pytest.LogCaptureFixture
) -> None:
    engine = engine_of(huge_tool())
    with caplog.at_level(logging.WARNING):
        session = way(engine)
    for wire_format in TOOL_FORMATS:
        entry = session.tools(format=wire_format)[1]
        assert count_json(entry, COUNTER) <= MAX + 20  # the format's own keys
        assert "Send an email. word other thing," in json.dumps(entry)
        assert "has 630,015 characters]" in json.dumps(entry)
    assert MAX * 0.9 < session.state.discovered.tokens <= MAX
    session.end_turn()
    session.end_turn()
    assert session.state.discovered.tokens <= MAX
    note = "the tool 'send_mail' is not shown whole: its description of 630,015 characters is cut"
    assert engine.notes == [note]
    assert caplog.text.count(note) == 1


def test_the_answer_of_a_search_is_as_short_as_ever() -> None:
    engine = engine_of(huge_tool(), answer_tokens=200)
    answer = asyncio.run(engine.session("a").call(SEARCH, {"query": "send an email"}))
    assert COUNTER.count(answer.text) <= 200


def test_a_catalog_that_is_shown_whole_is_shortened_too() -> None:
    engine = engine_of(huge_tool(), pass_through=PassThrough(max_tokens=10_000_000))
    (entry,) = engine.session("a").tools(format="anthropic", model="claude-opus-4-1")
    assert count_json(entry, COUNTER) <= MAX + 20


def test_one_definition_takes_no_more_than_the_whole_budget() -> None:
    """A default of 8,000 tokens would let one tool take more than all of them may."""
    engine = engine_of(huge_tool(), budget=Budget(max_tokens=300))
    assert by_search(engine).state.discovered.tokens <= 300
    assert Budget(max_tokens=None, max_definition_tokens=None).definition_tokens is None
    assert Budget(max_tokens=None).definition_tokens == 8_000
    with pytest.raises(BadSettingError, match="max_definition_tokens must be above 0"):
        Budget(max_definition_tokens=0)


def test_without_a_bound_a_definition_is_shown_as_it_is() -> None:
    engine = engine_of(huge_tool(), budget=Budget(max_tokens=None, max_definition_tokens=None))
    assert by_search(engine).shown()[1].definition.description == HUGE
    assert engine.notes == []


def test_a_session_that_comes_back_under_a_lower_bound_is_shortened_as_well(tmp_path: Any) -> None:
    too_long = ToolDefinition("wide", "Send an email", wide_schema(200))
    for budget, expected in ((Budget(), ["send_mail", "wide"]), (Budget(max_definition_tokens=MAX), ["send_mail"])):
        with SqliteSessionPersistence(tmp_path / "sessions") as kept:
            engine = engine_of(huge_tool(), too_long, sessions=SessionStore(persistence=kept), budget=budget)
            session = engine.session("a")
            if budget == Budget():
                session.search("select:send_mail,wide")
            assert [tool.name for tool in session.shown()[1:]] == expected
            bound = budget.definition_tokens or 0
            assert all(definition_tokens(tool.definition, COUNTER) <= bound for tool in session.shown())
            engine.close()


# What cannot be made short enough


def test_a_tool_whose_schema_alone_is_too_long_is_refused_with_a_reason() -> None:
    engine = engine_of(ToolDefinition("wide", "Send an email", wide_schema(200)), ToolDefinition("mail", "An email"))
    session = engine.session("a", pins=["wide"])
    answer = asyncio.run(session.call(SEARCH, {"query": "email"}))
    assert answer.text.splitlines()[-1].endswith("too long to show: wide.")
    assert answer.structured == {"tools": ["mail"], "refused": ["wide"]}
    assert [found.name for found in session.search("select:wide")] == []
    assert session.discovered == ["mail"]
    assert [tool.name for tool in session.shown()] == [SEARCH, "mail"]
    (note,) = engine.notes
    assert "its schema alone" in note
    assert "500 tokens" in note


def test_a_tool_that_is_not_shown_can_still_be_called_by_its_name() -> None:
    wide = Tool(ToolDefinition("send_mail", HUGE, wide_schema(200)), huge_tool().callback)
    session = engine_of(wide).session("a")
    assert asyncio.run(session.call("send_mail", {"to": "Ann"})).text == "sent to Ann"
    assert session.discovered == []


def test_arguments_are_validated_by_the_whole_schema_of_a_shortened_tool() -> None:
    schema = wide_schema(5, description=HUGE[:5_000], maxLength=3)
    engine = engine_of(Tool(ToolDefinition("send_mail", "Send an email", schema), huge_tool().callback))
    session = engine.session("a")
    for _ in range(2):  # before it is discovered, and after
        assert session.resolve("send_mail").definition is engine.catalog.get("send_mail").definition
    assert "description" not in session.shown()[1].definition.input_schema["properties"]["parameter_0"]
    assert asyncio.run(session.call("send_mail", {"parameter_0": "long"})).error_code == "bad_arguments"


# In a chat


@pytest.mark.parametrize("mode", ["deferred", "append"])
@pytest.mark.parametrize("is_own", [False, True])
def test_a_chat_is_shown_no_more_of_a_definition_deferred_or_appended(mode: Any, is_own: bool) -> None:
    tools = [huge_tool(), ToolDefinition("wide", "Send an email", wide_schema(200))]
    catalog, options = Catalog(tools), engine_of().options
    asked = (
        scripted_calls((SEARCH, {"query": "select:send_mail,wide"})),
        scripted_calls(("send_mail", {"to": "Ann"})),
        "done",
    )
    endpoint = Endpoint("anthropic", "claude-haiku-4-5")
    model = ScriptedModel(*asked, native_tool_search=True, endpoint=endpoint)
    if is_own:
        advisor = ToolSearchAdvisor(mode=mode, options=options, encoder=None)
        client = ChatClient(model, tools=[catalog], advisors=[advisor])
    else:
        advisor = ToolSearchAdvisor(ToolSearch(catalog, encoder=None, options=options), mode=mode)
        client = ChatClient(model, advisors=[advisor])
    response = client.prompt("mail Ann").context(conversation_id="a").call_sync()

    assert [result.text for message in response.steps[3:4] for result in message.results] == ["sent to Ann"]  # type: ignore[union-attr]
    for prompt in model.prompts:
        shown = [*prompt.options.tools, *prompt.options.deferred_tools]
        assert all(definition_tokens(each.definition, COUNTER) <= MAX for each in shown)
    names = [each.name for each in (*model.prompts[-1].options.tools, *model.prompts[-1].options.deferred_tools)]
    assert names == [SEARCH, *(["callTool"] if mode == "deferred" else []), "send_mail"]


def test_a_tool_that_the_model_is_made_to_call_is_bounded_too() -> None:
    for forced, expected in (
        (huge_tool(), [SEARCH, "send_mail"]),
        (ToolDefinition("w", "", wide_schema(200)), [SEARCH]),
    ):
        model = ScriptedModel("done")
        client = ChatClient(model, advisors=[ToolSearchAdvisor(engine := engine_of(forced))])
        request = client.prompt("x").context(conversation_id="a").options(ChatOptions(tool_choice=forced.name))
        request.call_sync()
        assert [each.name for each in model.prompts[0].options.tools] == expected
        assert engine.session("a").state.discovered.tokens <= MAX


def test_a_small_set_of_a_requests_own_tools_is_shown_whole_within_reach_and_bound() -> None:
    model = ScriptedModel("done")
    options = SessionOptions(budget=Budget(max_definition_tokens=MAX), pass_through=PassThrough(max_tokens=10_000_000))
    client = ChatClient(
        model,
        tools=[ToolDefinitionProvider(), huge_tool()],
        advisors=[ToolSearchAdvisor(options=options, encoder=None)],
    )
    client.prompt("x").context(conversation_id="a", reach=Reach.parse(deny=["zoo"])).call_sync()
    assert [each.name for each in model.prompts[0].options.tools] == ["mine", "send_mail"]  # in the request's order
    assert all(definition_tokens(each.definition, COUNTER) <= MAX for each in model.prompts[0].options.tools)


class ToolDefinitionProvider:
    def tools(self) -> list[Tool]:
        return [Tool(ToolDefinition("zoo")), Tool(ToolDefinition("mine"))]


# How it is shortened


def test_what_fits_is_shown_as_it_is_and_a_token_more_is_cut() -> None:
    definition = ToolDefinition("t", "word " * 200 + "!")
    exactly = count_json(render_definition(definition, "mcp"), Letters())
    assert shortened(definition, exactly, Letters()).definition is definition
    cut = shortened(definition, exactly - 1, Letters())
    assert cut.definition is not None
    assert cut.definition.description.endswith("has 1,001 characters]")
    assert 0 <= exactly - 1 - count_json(render_definition(cut.definition, "mcp"), Letters()) < 60


def test_an_output_schema_goes_first_and_descriptions_stay() -> None:
    definition = ToolDefinition(
        "t", "Do it.", wide_schema(2, description="What it is."), title="T", output_schema=wide_schema(200),
        annotations={"readOnlyHint": True, "story": "x" * 900},
    )  # fmt: skip
    shown = shortened(definition, MAX, COUNTER).definition
    assert shown == ToolDefinition(
        "t", "Do it.", definition.input_schema, title="T", annotations={"readOnlyHint": True}
    )


def test_descriptions_of_parameters_go_only_where_the_tools_own_is_cut_away_otherwise() -> None:
    schema = {
        "type": "object",
        "properties": {
            "description": {"type": "string", "description": "x " * 900, "default": "d", "enum": ["d"]},
            "list": {"type": "array", "items": {"$ref": "#/$defs/item", "title": "Item"}},
        },
        "required": ["description"],
        "$defs": {"item": {"type": "object", "properties": {"title": {"type": "string"}}, "examples": ["e" * 900]}},
    }
    shown = shortened(ToolDefinition("t", "Do it.", schema), MAX, COUNTER)
    assert shown.definition is not None
    assert shown.definition.description == "Do it."
    assert shown.note.endswith("parameters are left out")
    assert shown.definition.input_schema == {
        "type": "object",
        "properties": {
            "description": {"type": "string", "default": "d", "enum": ["d"]},
            "list": {"type": "array", "items": {"$ref": "#/$defs/item"}},
        },
        "required": ["description"],
        "$defs": {"item": {"type": "object", "properties": {"title": {"type": "string"}}}},
    }


def test_no_long_text_is_ever_counted_to_find_out_that_it_is_too_long() -> None:
    counter = Letters()
    shortened(ToolDefinition("t", HUGE, wide_schema(3, description=HUGE)), 1_000, counter)
    assert counter.longest <= 16 * 1_000 + 2  # quotes
    view = ViewCache(Catalog([huge_tool()]), counter).get(Reach())
    assert view.tokens > 100_000
    assert counter.longest <= 16 * 1_000 + 2


def test_each_definition_is_looked_at_once_and_again_when_it_has_changed() -> None:
    notes: list[str] = []
    shown = ShownDefinitions(COUNTER, notes.append)
    long = ToolDefinition("t", "word " * 2_000)
    assert shown.of(long, MAX).definition is shown.of(long, MAX).definition
    assert len(notes) == 1
    assert shown.of(ToolDefinition("t", "word"), MAX).note == ""
    assert shown.of(long, 5_000).definition is long


_texts = st.text(max_size=30).map(lambda text: text * 40)


@given(
    description=_texts,
    title=st.text(max_size=300),
    properties=st.dictionaries(st.text(max_size=5), st.fixed_dictionaries({}, optional={"description": _texts})),
    max_tokens=st.integers(1, 400),
)
def test_what_is_shown_always_fits_and_takes_the_same_arguments(
    description: str, title: str, properties: Mapping[str, Any], max_tokens: int
) -> None:
    schema = {"type": "object", "properties": properties}
    definition = ToolDefinition("t", description, schema, title=title)
    shown = shortened(definition, max_tokens, COUNTER).definition
    if shown is not None:
        assert count_json(render_definition(shown, "mcp"), COUNTER) <= max_tokens
        assert list(shown.input_schema["properties"]) == list(properties)
        assert shown.description[:1] in description + "["
