"""Skills in a session: how a model finds them beside tools and reads them, and what it never gets of them."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.kit.session_tools import ALWAYS_SEARCH, FORMATS, FUNCTIONS, SEARCH, names_in
from tests.kit.skills import skill_text, write_skill
from toolsearch import (
    Budget,
    Catalog,
    Deny,
    PassThrough,
    Session,
    SessionOptions,
    SessionStore,
    Tool,
    ToolCall,
    ToolCallingManager,
    ToolContext,
    ToolDefinition,
    ToolSearch,
)
from toolsearch.catalog.sources.skills import SkillsSource
from toolsearch.documents.skills import SKILL_FILE
from toolsearch.storage.memory import InMemorySessionPersistence
from toolsearch.tools.definition import ToolMetadata
from toolsearch.tools.results import ToolOutput, text_block
from toolsearch.wire.capabilities import Endpoint, RevealMode

READ, CALL = "readSkill", "callTool"
BILLS = "office__bills"
STEPS = "\n".join(f"{number}. Step of the number {number}." for number in range(1, 41))
WAYS: list[tuple[RevealMode, str, str]] = [
    ("append", "openai", "gpt-5.1"),
    ("messages", "anthropic", "claude-opus-5-5"),
    ("deferred", "anthropic", "claude-opus-5-5"),
    ("fixed", "openai", "gpt-5.1"),
]


def office(
    tmp_path: Path, *, frontmatter: str = "", body: str = STEPS, files: Mapping[str, str | bytes] | None = None
) -> Path:
    """A folder with a skill for paying bills."""
    about = "How to pay a bill with money: limits, and who approves it"
    folder = tmp_path / "office"
    text = skill_text("bills", f'"{about}"', more=frontmatter, body=body)
    write_skill(folder, "bills", files={SKILL_FILE: text, "limits.md": "At most 500.", **(files or {})})
    return folder


def entries_of(folder: Path) -> list[Tool]:
    return list(SkillsSource(folder).load().tools)


Opened = Callable[..., Session]


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    """Opens a session over four tools and the skill of the office."""

    def opens(
        *,
        skills: Sequence[Tool] | None = None,
        manager: ToolCallingManager | None = None,
        reach: Any = None,
        **more: Any,
    ) -> Session:
        folder = tmp_path / "office"
        skills = entries_of(folder if folder.exists() else office(tmp_path)) if skills is None else skills
        catalog = Catalog.from_functions(FUNCTIONS)
        catalog.add(*skills)
        options = SessionOptions(**{"pass_through": ALWAYS_SEARCH, **more})
        engine = ToolSearch(catalog, encoder=None, options=options, manager=manager)
        return engine.session("a", **(reach or {}))

    return opens


def asked(session: Session, name: str, /, **arguments: Any) -> Any:
    return asyncio.run(session.call(name, arguments))


def search(session: Session, *queries: str, **more: Any) -> Any:
    return asked(session, SEARCH, queries=list(queries), **more)


# The list


@pytest.mark.parametrize(("mode", "wire_format", "model"), WAYS)
def test_the_tool_that_reads_skills_follows_the_search_tool_where_there_are_skills(
    mode: RevealMode, wire_format: Any, model: str, opened: Opened
) -> None:
    without = opened(exposure=mode, reach={"deny": ["kind:skill"]}).tools(wire_format, model=model)
    names = names_in(opened(exposure=mode).tools(wire_format, model=model))
    assert names[:2] == [SEARCH, READ]
    assert [name for name in names if name != READ] == names_in(without)


def test_a_list_without_skills_in_reach_is_that_of_a_catalog_without_skills(opened: Opened) -> None:
    for wire_format in FORMATS:
        bare = opened(skills=[]).tools(wire_format)
        assert opened(reach={"deny": ["kind:skill"]}).tools(wire_format) == bare


def test_a_catalog_that_is_shown_whole_gets_a_search_for_its_skills(opened: Opened) -> None:
    whole = PassThrough(max_tools=10)
    assert SEARCH not in names_in(opened(skills=[], pass_through=whole).tools())
    session = opened(pass_through=whole)
    assert names_in(session.tools())[:3] == [SEARCH, READ, "convert_time"]
    assert search(session, "how to pay a bill").structured == {"tools": ["pay_bill"], "skills": [BILLS]}


def test_a_skill_that_leaves_changes_no_list_and_can_no_longer_be_read(opened: Opened) -> None:
    for mode, wire_format, model in WAYS:
        session = opened(exposure=mode)
        before = session.tools(wire_format, model=model)  # type: ignore[arg-type]
        session._engine.catalog.remove(BILLS)
        assert session.tools(wire_format, model=model) == before  # type: ignore[arg-type]
        assert asked(session, READ, name=BILLS).is_error
        assert session.savings().cache_breaks == 0


def test_a_skill_that_comes_later_is_read_by_what_the_list_has(tmp_path: Path, opened: Opened) -> None:
    skills = entries_of(office(tmp_path))
    for mode, wire_format, model in WAYS:
        session = opened(skills=[], exposure=mode)
        before = names_in(session.tools(wire_format, model=model))  # type: ignore[arg-type]
        session._engine.catalog.add(*skills)
        text = search(session, "how to pay a bill").text
        after = names_in(session.tools(wire_format, model=model))  # type: ignore[arg-type]
        assert after[: len(before)] == before
        if mode in ("fixed", "deferred"):
            assert (READ in after, f"read it with {CALL}" in text) == (False, True)
            assert "Step of the number 9." in asked(session, CALL, name=BILLS).text
        else:
            with session.conversation() as conversation:
                added = [each.name for each in conversation.tool_change().added]
            assert READ in [*after, *added]
            assert f"read it with {READ}" in text


@pytest.mark.parametrize("has_skills", [False, True])
def test_a_list_has_as_many_tools_as_the_api_takes(has_skills: bool, tmp_path: Path) -> None:
    catalog = Catalog(ToolDefinition(f"tool_{number}", "Does it.") for number in range(200))
    catalog.add(*(entries_of(office(tmp_path)) if has_skills else ()))
    options = SessionOptions(
        pass_through=ALWAYS_SEARCH, exposure="append", max_limit=200, budget=Budget(max_tools=None, max_sent_tools=None)
    )
    session = ToolSearch(catalog, encoder=None, options=options).session("a")
    before = session.tools("openai", model="gpt-5.1")
    session.search("select:" + ",".join(f"tool_{number}" for number in range(125 + (not has_skills))), limit=200)
    assert len(session.tools("openai", model="gpt-5.1")) == 127  # and room for the call tool
    assert len(before) == 1 + has_skills


def test_a_list_that_may_shrink_keeps_the_tool_that_reads_skills(opened: Opened) -> None:
    session, endpoint = opened(exposure="append"), Endpoint("openai", "gpt-5.1")
    with session.conversation() as conversation:
        conversation.lists_shrink = True
        before = conversation.tool_list(endpoint)
        conversation.note_request()
        session._engine.catalog.remove(BILLS)
        assert conversation.tool_list(endpoint) == before
    assert session.savings().cache_breaks == 0


# The answer


def test_a_skill_stands_beside_the_tools_that_the_same_search_finds_without_it(opened: Opened) -> None:
    bare, beside = opened(skills=[]), opened()
    for query in ("pay a bill", "send an email", "convert a time zone"):
        tools, both = search(bare, query).structured, search(beside, query).structured
        assert {key: names for key, names in both.items() if key != "skills"} == tools
    assert search(beside, "pay a bill").structured["skills"] == [BILLS]


def test_the_answer_says_what_a_skill_is_and_how_it_is_read(opened: Opened) -> None:
    text = search(opened(exposure="append"), "pay a bill with money").text
    hint, *lines = text.splitlines()
    assert f"it with {READ}, by its 'name'" in hint
    assert lines == [
        "- pay_bill(amount*) [fits, loaded]: Pay a bill with money.",
        f"- {BILLS} [skill, likely]: How to pay a bill with money: limits, and who approves it",
    ]


def test_an_answer_without_a_skill_has_no_word_of_skills(opened: Opened) -> None:
    for mode, _, _ in WAYS:
        beside = search(opened(exposure=mode), "send an email message").text
        assert beside == search(opened(exposure=mode, skills=[]), "send an email message").text


@pytest.mark.parametrize("query", [f"select:{BILLS}", "select:bills", "/bills/", BILLS])
def test_a_skill_is_found_by_its_name_and_never_loaded(query: str, opened: Opened) -> None:
    session = opened()
    assert search(session, query).structured["skills"] == [BILLS]
    assert BILLS not in session.discovered


def test_a_name_like_a_skills_is_answered_with_the_skill(opened: Opened) -> None:
    assert f"did you mean {BILLS}?" in search(opened(), "select:office__bils").text


def test_the_list_of_servers_counts_skills(opened: Opened) -> None:
    assert "- office (1 skill)" in search(opened(), "servers:").text


def test_many_skills_leave_the_tools_their_places(tmp_path: Path, opened: Opened) -> None:
    folder = tmp_path / "more"
    for number in range(30):
        write_skill(folder, f"pay-bill-{number}", f"How to pay a bill of the number {number}")
    found = search(opened(skills=entries_of(folder)), "pay a bill", limit=1).structured
    assert (found["tools"], len(found["skills"])) == (["pay_bill"], 2)


def test_the_next_skill_is_named_after_one_that_fits_and_not_where_only_tools_do(
    tmp_path: Path, opened: Opened
) -> None:
    folder = tmp_path / "more"
    write_skill(folder, "instalments", "How to settle an overdue invoice by instalments")
    write_skill(folder, "overdue", "What to do with an overdue letter of a library")
    write_skill(folder, "holidays", "Plan holidays, and say in an automatic answer who gets a message meanwhile")
    session = opened(skills=entries_of(folder))
    answer = search(session, "settle an overdue invoice by instalments")
    assert answer.structured["skills"] == ["more__instalments", "more__overdue"]
    assert "- more__overdue [skill, related]" in answer.text
    assert search(session, "send an email message", kinds=["skill"]).structured["skills"] == ["more__holidays"]
    assert "skills" not in search(session, "send an email message").structured


def test_skills_that_fit_better_than_every_tool_hide_none(tmp_path: Path, opened: Opened) -> None:
    folder = tmp_path / "more"
    for number in range(60):
        write_skill(folder, f"settle-{number}", "How to settle an overdue invoice by instalments with a bill")
    found = search(opened(skills=entries_of(folder)), "settle an overdue invoice by instalments with a bill").structured
    assert len(found["skills"]) == 2
    assert "pay_bill" in [*found["tools"], *found.get("alsoFound", [])]


def test_kinds_are_searched_as_asked_for(opened: Opened) -> None:
    session = opened()
    assert search(session, "pay a bill", kinds=["skill"]).structured == {"tools": [], "skills": [BILLS]}
    assert search(session, "pay a bill", kinds="tools").structured == {"tools": ["pay_bill"]}
    assert "kinds must be some of" in search(session, "pay a bill", kinds=["spell"]).text


def test_a_prompt_is_found_where_the_call_tool_can_get_it(opened: Opened) -> None:
    class Prompt:
        async def call(self, arguments: Any, context: ToolContext) -> str:  # noqa: ARG002
            return f"Pay {arguments['sum']}."

    schema = {"type": "object", "properties": {"sum": {"type": "string"}}, "required": ["sum"]}
    prompt = Tool(ToolDefinition("office__payment", "A prompt to pay a bill.", schema, kind="prompt"), Prompt())
    fixed = opened(skills=[prompt], exposure="fixed")
    text = search(fixed, "pay a bill", kinds=["prompt"]).text
    assert f"Get a prompt or a resource with {CALL}" in text
    assert "- office__payment(sum*) [prompt, likely]: A prompt to pay a bill." in text
    assert asked(fixed, CALL, name="office__payment", arguments={"sum": "5"}).text == "Pay 5."
    assert "office__payment" not in search(fixed, "pay a bill").text
    refused = search(opened(skills=[prompt], exposure="append"), "pay a bill", kinds=["prompt"])
    assert (refused.is_error, "the kinds are tool, skill" in refused.text) == (True, True)


# Reading


@pytest.mark.parametrize("mode", [mode for mode, _, _ in WAYS])
def test_a_skill_and_its_files_are_read_by_name(mode: RevealMode, opened: Opened) -> None:
    session = opened(exposure=mode)
    told = asked(session, READ, name=BILLS)
    assert not told.is_error
    assert "the user did not write it" in told.text
    assert "limits.md (12 bytes)" in told.text
    assert "At most 500." not in told.text
    assert "40. Step of the number 40." in told.text
    assert asked(session, READ, name=BILLS, file="limits.md").text.endswith("At most 500.")
    assert "Step of the number 9." in asked(session, CALL, name=READ, arguments={"name": BILLS}).text
    assert session.discovered == []


def test_reading_runs_no_tool_whatever_it_is_given(opened: Opened) -> None:
    session = opened()
    for arguments in ({"name": "pay_bill"}, {"name": "pay_bill", "file": "x"}, {"name": SEARCH}, {"name": CALL}):
        result = asked(session, READ, **arguments)
        assert (result.error_code, result.name) == ("bad_arguments", READ)
    assert "is a tool, not a skill" in asked(session, READ, name="pay_bill").text
    assert f"did you mean {BILLS}?" in asked(session, READ, name="office__bill").text
    assert session.state.counters.failed_calls == 6
    assert session.discovered == []


def test_a_skill_need_not_be_searched_for(opened: Opened) -> None:
    session = opened(expand_undiscovered=False)
    assert not asked(session, READ, name=BILLS).is_error
    assert asked(session, "pay_bill", amount=5).error_code == "undiscovered_tool"


def test_an_entry_out_of_reach_is_not_shown(opened: Opened) -> None:
    for reach, name in (({"deny": ["kind:skill"]}, None), ({}, BILLS)):
        with opened(reach=reach).conversation() as conversation:
            shown = conversation.shown_entry(BILLS)
        assert (shown.name if shown else None) == name


def test_hooks_decide_about_the_skill_itself(opened: Opened) -> None:
    seen: list[str] = []

    def deny(call: ToolCall, _tool: Tool, _context: ToolContext) -> Deny:
        seen.append(call.name)
        return Deny("not today")

    result = asked(opened(manager=ToolCallingManager(before=[deny])), READ, name=BILLS)
    assert (seen, result.error_code) == ([BILLS], "call_denied")


@pytest.mark.parametrize(("mode", "wire_format", "model"), WAYS)
def test_no_word_of_a_skill_out_of_reach_reaches_a_model(
    mode: RevealMode, wire_format: Any, model: str, opened: Opened
) -> None:
    session = opened(exposure=mode, reach={"deny": ["server:office"]})
    session.tools(wire_format, model=model)
    answers = [
        *(
            search(session, query)
            for query in ("how to pay a bill, limits, who approves", f"select:{BILLS}", "/bills/")
        ),
        search(session, "servers:"),
        search(session, "who approves", kinds=["skill"]),
        asked(session, READ, name=BILLS),
        asked(session, READ, name="office__bils"),
        asked(session, READ, name=BILLS, file="limits.md"),
        asked(session, CALL, name=BILLS),
        asked(session, BILLS),
    ]
    for answer in answers:
        told = f"{answer.text}{answer.structured}".replace(f"'{BILLS}'", "").replace(f"named {BILLS}.", "")
        assert not [word for word in (BILLS, "approves it", "At most 500", "Step of") if word in told], answer


def test_a_reach_that_narrows_before_the_reading_begins_counts(opened: Opened) -> None:
    def narrows(_call: ToolCall, _tool: Tool, _context: ToolContext) -> None:
        session._engine.catalog.remove(BILLS)

    async def before(call: ToolCall, tool: Tool, context: ToolContext) -> Any:
        from toolsearch import Allow

        narrows(call, tool, context)
        return Allow()

    session = opened(manager=ToolCallingManager(before=[before]))
    assert asked(session, READ, name=BILLS).error_code == "unknown_tool"


# The budget


def budget(**more: Any) -> dict[str, Any]:
    return {"budget": Budget(**more)}


def test_a_long_text_is_cut_at_a_line_and_can_be_read_on(opened: Opened) -> None:
    session = opened(**budget(max_skill_page_tokens=100))
    read, file = list[str](), ""
    while file is not None:
        *_, text, note = (block["text"] for block in asked(session, READ, name=BILLS, file=file).content)
        read.append(text)
        file = note.partition('read on with the file "')[2].partition('"')[0] or None
    assert "[These are the lines 1 to " in asked(session, READ, name=BILLS).content[-1]["text"]
    assert len(read) > 3
    assert "\n".join(read).partition("---\n")[2].partition("---\n")[2] == f"{STEPS}\n"


def test_a_line_that_fills_more_than_a_page_is_cut(tmp_path: Path, opened: Opened) -> None:
    skills = entries_of(office(tmp_path, files={"long.txt": "word " * 50_000 + "\nend"}))
    session = opened(skills=skills, **budget(max_skill_page_tokens=50))
    first = asked(session, READ, name=BILLS, file="long.txt").text
    assert "[the line of 250,000 characters is cut here]" in first
    assert 'read on with the file "long.txt:2"' in first
    assert "end" in asked(session, READ, name=BILLS, file="long.txt:2").text
    assert "long.txt has 2 lines" in asked(session, READ, name=BILLS, file="long.txt:9").text


def test_a_text_that_fits_is_given_word_for_word(opened: Opened) -> None:
    _, text = asked(opened(**budget(max_skill_page_tokens=None, max_skill_tokens=None)), READ, name=BILLS).content
    assert text["text"].endswith(f"{STEPS}\n")


def test_all_skills_together_are_bounded_until_the_history_is_compacted(opened: Opened) -> None:
    session = opened(**budget(max_skill_tokens=700))
    assert not asked(session, READ, name=BILLS).is_error
    again = asked(session, READ, name=BILLS)
    assert (again.error_code, "read a shorter file" in again.text) == ("call_denied", True)
    assert not asked(session, READ, name=BILLS, file="limits.md").is_error
    session.compacted()
    assert not asked(session, READ, name=BILLS).is_error


def test_bytes_count_by_the_length_of_their_base64_and_are_refused_where_they_are_too_many(
    tmp_path: Path, opened: Opened
) -> None:
    skills = entries_of(office(tmp_path, files={"logo.png": b"\xff" * 3_000}))

    def read(**more: Any) -> Any:
        session = opened(skills=skills, **budget(**more))
        return [asked(session, READ, name=BILLS, file="logo.png") for _ in range(2)]

    assert [each.is_error for each in read()] == [False, False]
    assert [each.is_error for each in read(max_skill_page_tokens=None, max_skill_tokens=None)] == [False, False]
    first, second = read(max_skill_tokens=1_500)
    assert (first.is_error, second.error_code) == (False, "call_denied")
    assert {each.error_code for each in read(max_skill_page_tokens=999)} == {"call_denied"}
    assert "its bytes would take 1,000 tokens; at most 999" in read(max_skill_page_tokens=999)[0].text


def test_nothing_is_read_once_the_budget_is_used_up(opened: Opened) -> None:
    reads: list[str] = []

    class Reading:
        async def call(self, arguments: Any, context: ToolContext) -> str:  # noqa: ARG002
            reads.append("read")
            return "word " * 10

    definition = ToolDefinition("office__bills", "How to pay a bill.", kind="skill")
    session = opened(skills=[Tool(definition, Reading())], **budget(max_skill_tokens=11))
    assert not asked(session, READ, name=BILLS).is_error
    assert asked(session, READ, name=BILLS).error_code == "call_denied"
    assert reads == ["read"]


def test_what_was_read_counts_on_in_another_process(opened: Opened, tmp_path: Path) -> None:
    kept = InMemorySessionPersistence()
    catalog = Catalog.from_functions(FUNCTIONS)
    catalog.add(*entries_of(office(tmp_path)))
    options = SessionOptions(pass_through=ALWAYS_SEARCH, **budget(max_skill_tokens=700))
    engines = [
        ToolSearch(catalog, encoder=None, options=options, sessions=SessionStore(persistence=kept)) for _ in range(2)
    ]
    assert [asked(engine.session("a"), READ, name=BILLS).is_error for engine in engines] == [False, True]


# The tools that a skill asks for


@pytest.mark.parametrize("named", ["pay_bill send_mail", "pay_bill, send_mail", "[pay_bill, send_mail]"])
def test_reading_a_skill_loads_the_tools_that_it_names(named: str, tmp_path: Path, opened: Opened) -> None:
    skills = entries_of(office(tmp_path, frontmatter=f"allowed-tools: {named}\n"))
    session = opened(skills=skills, exposure="append")
    before = session.tools()
    told = asked(session, READ, name=BILLS).text
    assert told.endswith("[In your tool list for it: pay_bill, send_mail]")
    after = session.tools()
    assert (after[: len(before)], names_in(after[len(before) :])) == (before, ["pay_bill", "send_mail"])


def test_a_message_adds_them_where_messages_can(tmp_path: Path, opened: Opened) -> None:
    skills = entries_of(office(tmp_path, frontmatter="allowed-tools: pay_bill\n"))
    session = opened(skills=skills)
    before = session.tools("anthropic", model="claude-opus-5-5")
    reply = {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": READ, "input": {"name": BILLS}}]}
    _, change = session.execute_sync(reply)
    assert "pay_bill" in str(change)
    assert session.tools("anthropic", model="claude-opus-5-5") == before


@pytest.mark.parametrize("mode", ["deferred", "fixed"])
def test_where_no_list_can_grow_the_model_is_told_how_to_have_them(
    mode: RevealMode, tmp_path: Path, opened: Opened
) -> None:
    skills = entries_of(office(tmp_path, frontmatter="allowed-tools: pay_bill send_mail\n"))
    session = opened(skills=skills, exposure=mode)
    session.tools("anthropic", model="claude-opus-5-5")
    assert "the query select:pay_bill,send_mail]" in asked(session, READ, name=BILLS).text
    assert session.discovered == []


def test_a_skill_never_widens_the_reach(tmp_path: Path, opened: Opened) -> None:
    skills = entries_of(office(tmp_path, frontmatter="allowed-tools: pay_bill send_mail nothing\n"))
    session = opened(skills=skills, reach={"deny": ["pay_bill"]})
    assert "[In your tool list for it: send_mail]" in asked(session, READ, name=BILLS).text
    assert session.discovered == ["send_mail"]
    assert asked(session, "pay_bill", amount=5).error_code == "unknown_tool"
    fixed = opened(skills=skills, reach={"deny": ["pay_bill"]}, exposure="fixed")
    fixed.tools()
    assert "the query select:send_mail]" in asked(fixed, READ, name=BILLS).text


def test_a_skill_makes_no_tool_leave(tmp_path: Path, opened: Opened) -> None:
    skills = entries_of(office(tmp_path, frontmatter="allowed-tools: pay_bill send_mail list_events\n"))
    session = opened(skills=skills, **budget(max_tools=2))
    search(session, "select:convert_time")
    asked(session, READ, name=BILLS)
    session.end_turn()
    assert session.discovered == ["convert_time", "pay_bill"]


def test_only_a_folder_of_skills_says_that_a_skill_may_ask_for_tools(tmp_path: Path, opened: Opened) -> None:
    """A skill of a server has no such mark, nor any other sign of its server once its catalog was stored."""
    (entry,) = entries_of(office(tmp_path, frontmatter="allowed-tools: pay_bill\n"))
    of_server = replace(entry, metadata=ToolMetadata())
    shown_in_a_toolset = replace(entry, original=entry.definition)
    for skill, loaded in ((of_server, []), (entry, ["pay_bill"]), (shown_in_a_toolset, ["pay_bill"])):
        session = opened(skills=[skill])
        assert not asked(session, READ, name=BILLS).is_error
        assert session.discovered == loaded


def test_a_skill_of_a_folder_asks_for_its_tools_after_its_catalog_was_stored(tmp_path: Path) -> None:
    catalog = Catalog.from_functions(FUNCTIONS)
    folder = office(tmp_path, frontmatter="allowed-tools: pay_bill\n")
    catalog.load(f"skills:{folder}")
    ToolSearch(catalog, index_dir=tmp_path / "index", encoder=None).close()
    options = SessionOptions(pass_through=ALWAYS_SEARCH)
    with ToolSearch.open(tmp_path / "index", options=options) as engine:
        session = engine.session("a")
        assert not asked(session, READ, name=BILLS).is_error
        assert session.discovered == ["pay_bill"]


def test_a_further_file_asks_for_no_tools(tmp_path: Path, opened: Opened) -> None:
    more = {"notes.md": skill_text("notes", more="allowed-tools: pay_bill\n")}
    session = opened(skills=entries_of(office(tmp_path, files=more)))
    asked(session, READ, name=BILLS, file="notes.md")
    assert session.discovered == []


def test_a_skill_that_fails_loads_nothing(opened: Opened) -> None:
    class Failing:
        async def call(self, arguments: Any, context: ToolContext) -> ToolOutput:  # noqa: ARG002
            text = skill_text("bills", more="allowed-tools: pay_bill\n")
            return ToolOutput((text_block(text),), is_error=True)

    session = opened(skills=[Tool(ToolDefinition(BILLS, "How to pay a bill.", kind="skill"), Failing())])
    assert asked(session, READ, name=BILLS).is_error
    assert session.discovered == []
