"""What the model of a played conversation does, and what each way has it read."""

from dataclasses import replace

import pytest

from toolsearch import Catalog, Tool, ToolDefinition, ToolSearch
from toolsearch.bench.conversations import Dialogue, Pace, Step, Turn, Use
from toolsearch.bench.costs import Played, Player
from toolsearch.bench.prompts import PartCounter
from toolsearch.bench.ways import ANTICIPATED, EVERY, FOUND_BEFORE, Clock, WayName, engine_options, way_of, ways_of
from toolsearch.errors import BadSettingError
from toolsearch.sessions import tool_lists
from toolsearch.tokens import HeuristicTokenCounter
from toolsearch.wire.capabilities import Endpoint, capabilities_of
from toolsearch.wire.formats import prompt_module

CHAT = Endpoint("openai", "gpt-5.1")
CLAUDE = Endpoint("anthropic", "claude-haiku-4-5")
TOOLS = [
    Tool(ToolDefinition("send_mail", "Send a letter to somebody.")),
    Tool(ToolDefinition("book_room", "Book a meeting room.")),
    Tool(ToolDefinition("draw_chart", "Draw a chart of numbers.")),
]
SEND = Use("send_mail", {}, "sent", ("write a letter to somebody",))
BOOK = Use("book_room", {}, "booked", ("a meeting room",))


async def played(
    way: WayName,
    *steps: Step,
    turns: int = 1,
    found_before: int = 1,
    endpoint: Endpoint = CHAT,
    said: str = "write a letter",
) -> Played:
    clock = Clock()
    conversation = Dialogue(tuple(Turn(said, steps, "Done.") for _ in range(turns)))
    with ToolSearch(Catalog(TOOLS), encoder=None, **engine_options(clock)) as engine:
        player = Player(endpoint, clock, PartCounter(HeuristicTokenCounter()), Pace(reply_s=1, turn_s=100))
        return await player.play(conversation, way_of(way, engine, endpoint, found_before=found_before))


def calls(played: Played) -> list[list[str]]:
    return [[call.name for call in reply] for reply in played.replies]


def test_only_tools_are_found_before_the_model_is_asked() -> None:
    letters = Tool(ToolDefinition("letters", "Write a letter to somebody, with a greeting and an end.", kind="skill"))
    with ToolSearch(Catalog([*TOOLS, letters]), encoder=None) as engine:
        way = way_of(FOUND_BEFORE, engine, CHAT, found_before=4)
        way.hear("write a letter to somebody, with a greeting and an end")

        assert way.can_call("send_mail")
        assert not way.can_call("letters")


async def test_with_every_definition_nothing_is_searched() -> None:
    result = await played(EVERY, Step((SEND, BOOK)), Step((SEND,)))

    assert calls(result) == [["send_mail", "book_room"], ["send_mail"], []]
    assert [prompt.queries for prompt in result.prompts] == [0, 0, 0]


async def test_what_is_not_known_is_searched_for_at_once_and_only_once() -> None:
    result = await played("append", Step((SEND, BOOK)), turns=2)

    assert calls(result) == [["toolSearchTool"], ["send_mail", "book_room"], [], ["send_mail", "book_room"], []]
    assert result.replies[0][0].arguments == {"queries": ["write a letter to somebody", "a meeting room"]}
    assert [prompt.queries for prompt in result.prompts] == [2, 0, 0, 0, 0]


async def test_where_the_list_does_not_change_a_tool_is_run_by_the_call_tool() -> None:
    result = await played("fixed", Step((SEND,)))

    assert calls(result) == [["toolSearchTool"], ["callTool"], []]
    assert result.replies[1][0].arguments == {"name": "send_mail", "arguments": {}}


async def test_where_tools_are_deferred_one_that_is_only_named_is_loaded_by_its_name() -> None:
    """The search loads the tool that sends letters, and names the one that books rooms."""
    named = Use("book_room", {}, "booked", ("send a letter about a meeting",))
    result = await played("deferred", Step((named,)), endpoint=CLAUDE)

    assert [call.arguments for reply in result.replies[:2] for call in reply] == [
        {"queries": ["send a letter about a meeting"]},
        {"queries": ["select:book_room"]},
    ]
    assert calls(result)[2:] == [["book_room"], []]
    assert result.missed == ()


async def test_what_is_too_much_to_be_deferred_is_run_by_the_call_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    known = replace(capabilities_of(CLAUDE), max_deferred=1)
    monkeypatch.setattr(tool_lists, "capabilities_of", lambda _: known)
    result = await played("deferred", Step((BOOK, SEND)), endpoint=CLAUDE)

    assert calls(result) == [["toolSearchTool"], ["book_room", "callTool"], []]
    assert result.missed == ()


async def test_a_tool_that_is_not_found_is_missed_after_its_last_query() -> None:
    gone = Use("fly_to_moon", {}, "", ("zero gravity", "orbit"))
    result = await played("append", Step((gone, SEND)))

    assert [call.arguments for reply in result.replies[:2] for call in reply] == [
        {"queries": ["zero gravity", "write a letter to somebody"]},
        {"queries": ["orbit"]},
    ]
    assert calls(result)[2:] == [["send_mail"], []]
    assert result.missed == ((0, gone),)


async def test_what_is_found_before_depends_on_the_users_words_alone() -> None:
    result = await played(FOUND_BEFORE, Step((SEND,)), Step((BOOK,)))

    assert calls(result) == [["send_mail"], []]
    assert [use.name for _, use in result.missed] == ["book_room"]


@pytest.mark.parametrize(
    ("endpoint", "has_own_front"), [(CHAT, True), (Endpoint("anthropic", "claude-opus-5-5"), False)]
)
async def test_what_the_user_surely_asks_for_is_not_searched_for(endpoint: Endpoint, has_own_front: bool) -> None:
    """A message adds it, so that the first list is that of all conversations, or else the first list has it."""
    result = await played(ANTICIPATED, Step((SEND,)), endpoint=endpoint, said="Send a letter to somebody.")

    assert calls(result) == [["send_mail"], []]
    assert result.has_own_front is has_own_front


async def test_time_passes_between_requests_and_turns() -> None:
    result = await played(EVERY, Step((SEND,)), turns=2)

    assert [prompt.at_s for prompt in result.prompts] == [0, 1, 101, 102]
    assert [prompt.turn for prompt in result.prompts] == [0, 0, 1, 1]


async def test_each_request_holds_the_one_before_and_what_was_said_since() -> None:
    for way in ways_of(CHAT):
        first, second, *_ = (await played(way, Step((SEND,)))).prompts
        said_first, said_second = first.parts[first.front :], second.parts[second.front :]

        assert said_second[: len(said_first)] == said_first


async def test_a_format_without_conversations_is_refused() -> None:
    with pytest.raises(BadSettingError, match="'mcp' is no format of prompts"):
        prompt_module("mcp")
