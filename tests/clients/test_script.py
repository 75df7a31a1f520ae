"""The scripted model takes the ways that it is shown, and counts those that fail; two tables differ where they do."""

import json

from benchmarks.clients.__main__ import changes
from benchmarks.clients.drivers import AGENTS
from benchmarks.clients.measuring import TIME
from benchmarks.clients.script import Model, found_in
from tests.kit.loopback import Call, Seen, SeenTool

CLAUDE = next(agent for agent in AGENTS if agent.name == "claude-code")
QWEN = next(agent for agent in AGENTS if agent.name == "qwen")
OURS = tuple(f"mcp__toolsearch__{name}" for name in ("toolSearchTool", "callToolRead", "callToolWrite"))
ENTRY = {"name": TIME.name, "callWith": OURS[1], "inputSchema": {"type": "object", "properties": {"timezone": {}}}}
ANSWER = f"Two tools fit.\n{json.dumps(ENTRY)}\n- time__convert_time(time*)"


def seen(*tools: str, results: tuple[str, ...] = (), deferred: tuple[str, ...] = ()) -> Seen:
    listed = [*map(SeenTool, tools), *(SeenTool(name, is_deferred=True) for name in deferred)]
    return Seen(listed, [*results], TIME.prompt, "")


def calls(model: Model, request: Seen) -> list[Call]:
    return list(model(request).calls)


def test_a_listed_tool_is_called_by_its_name() -> None:
    model = Model(CLAUDE, TIME, is_behind=False)

    assert calls(model, seen("mcp__time__get_current_time")) == [Call("mcp__time__get_current_time", TIME.arguments)]
    assert calls(model, seen(results=('{"datetime": "12:00"}',))) == []
    assert (model.is_done, model.failed) == (True, [])


def test_a_found_tool_is_called_as_the_answer_says() -> None:
    model = Model(CLAUDE, TIME, is_behind=True)

    [search] = calls(model, seen(*OURS))
    [call] = calls(model, seen(*OURS, results=(ANSWER,)))

    assert search == Call(OURS[0], {"queries": [TIME.words]})
    assert call == Call(OURS[1], {"name": TIME.name, "arguments": TIME.arguments})


def test_a_call_that_fails_is_counted_and_what_its_error_says_is_done() -> None:
    """An answer that gives no definition says that the tool can be called by its name."""
    model = Model(CLAUDE, TIME, is_behind=True)
    told = ("- time__get_current_time(timezone*) [loaded]", "No such tool", "use callToolWrite", "datetime: 12:00")

    made = [calls(model, seen(*OURS, results=told[:count])) for count in range(len(told) + 1)]

    names = [call.name for each in made for call in each]
    assert names == [OURS[0], "mcp__toolsearch__time__get_current_time", OURS[1], OURS[2]]
    assert [each.name for each in model.failed] == names[1:3]
    assert model.is_done


def test_deferred_tools_are_searched_for_in_words_and_then_by_name() -> None:
    model = Model(CLAUDE, TIME, is_behind=True)
    request = seen("ToolSearch", deferred=OURS)

    [words] = calls(model, request)
    [names] = calls(model, seen("ToolSearch", deferred=OURS, results=("nothing",)))

    assert words == Call("ToolSearch", {"query": TIME.words})
    assert names.name == "ToolSearch"
    assert str(names.arguments["query"]).startswith(f"select:{OURS[0]},{OURS[1]}")  # type: ignore[index]
    assert [made.is_good for made in model.made] == [False, False]


def test_what_an_agent_has_only_found_is_called_through_its_own_tool() -> None:
    model = Model(QWEN, TIME, is_behind=False)

    calls(model, seen("tool_search", "tool_call"))
    [call] = calls(model, seen("tool_search", "tool_call", results=("mcp__time__get_current_time",)))

    assert call == Call("tool_call", {"name": "mcp__time__get_current_time", "arguments": TIME.arguments})


def test_definitions_are_found_in_lines_in_an_object_and_in_a_whole_result() -> None:
    whole = json.dumps({"content": [{"type": "text", "text": ANSWER}], "isError": False})

    assert found_in(ANSWER) == [ENTRY]
    assert found_in(json.dumps({"tools": [ENTRY], "alsoFound": []})) == [ENTRY]
    assert found_in(whole) == [ENTRY]
    assert found_in(whole[:-1] + ', "structuredContent": ' + json.dumps({"tools": [ENTRY]}) + "}") == [ENTRY, ENTRY]


def test_a_changed_figure_is_told_and_seconds_and_a_few_tokens_are_not() -> None:
    task = {"rounds": 3, "tokens": 1_000, "first_s": 2.0}
    old = {"codex": {"version": "1", "tasks": {"time": {"gateway": task}}}, "gone": {"version": "1"}}
    new = {"codex": {"version": "2", "tasks": {"time": {"gateway": {"rounds": 4, "tokens": 1_049, "first_s": 9.0}}}}}

    assert [*changes(old, new)] == [
        "codex: version was 1, and is 2",
        "codex: tasks/time/gateway/rounds was 3, and is 4",
    ]
