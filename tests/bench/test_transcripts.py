"""What users have logged of their own conversations, as turns."""

import json
from typing import Any

import pytest

from toolsearch.bench.conversations import Dialogue, Step, Turn, Use
from toolsearch.bench.logs import Skipped, Transcript, read_transcript

ASKED = "Is it warmer in Oslo or in Rome?"
OSLO = Use("weather", {"city": "Oslo"}, "4 degrees")
ROME = Use("weather", {"city": "Rome"}, "19 degrees")
TURN = Turn(ASKED, (Step((OSLO, ROME), "I look it up."),), "In Rome.")

ANTHROPIC: list[dict[str, Any]] = [
    {"role": "user", "content": ASKED},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "Two cities.", "signature": "c2ln"},
            {"type": "text", "text": "I look it up."},
            {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Oslo"}},
            {"type": "tool_use", "id": "t2", "name": "weather", "input": {"city": "Rome"}},
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": "4 degrees"},
            {"type": "tool_result", "tool_use_id": "t2", "content": [{"type": "text", "text": "19 degrees"}]},
        ],
    },
    {"role": "assistant", "content": [{"type": "text", "text": "In Rome."}]},
]
CHAT: list[dict[str, Any]] = [
    {"role": "user", "content": ASKED},
    {
        "role": "assistant",
        "content": "I look it up.",
        "tool_calls": [
            {"id": "t1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}},
            {"id": "t2", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}},
        ],
    },
    {"role": "tool", "tool_call_id": "t2", "content": "19 degrees"},
    {"role": "tool", "tool_call_id": "t1", "content": "4 degrees"},
    {"role": "assistant", "content": "In Rome."},
]
RESPONSES: list[dict[str, Any]] = [
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": ASKED}]},
    {"type": "reasoning", "id": "r1", "summary": [], "encrypted_content": "c2Vj"},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look it up."}]},
    {"type": "function_call", "call_id": "t1", "name": "weather", "arguments": '{"city": "Oslo"}'},
    {"type": "function_call", "call_id": "t2", "name": "weather", "arguments": '{"city": "Rome"}'},
    {"type": "function_call_output", "call_id": "t1", "output": "4 degrees"},
    {"type": "function_call_output", "call_id": "t2", "output": "19 degrees"},
    {"role": "assistant", "content": "In Rome."},
]
FORMATS = pytest.mark.parametrize("entries", [ANTHROPIC, CHAT, RESPONSES], ids=["anthropic", "chat", "responses"])


def request(entries: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {"model": "m", ("input" if entries[0].get("type") else "messages"): entries, **more}


def read(*lines: Any) -> Transcript:
    """A log with one of *lines* on each."""
    return read_transcript("\n".join(json.dumps(line) for line in lines))


def read_one(*lines: Any) -> Dialogue:
    transcript = read(*lines)
    (conversation,) = transcript.conversations
    assert transcript.skipped == ()
    return conversation


@FORMATS
def test_a_request_is_a_conversation(entries: list[dict[str, Any]]) -> None:
    assert read_one(request(entries)) == Dialogue((TURN,))


@FORMATS
def test_a_document_is_read_over_many_lines_too(entries: list[dict[str, Any]]) -> None:
    expected = Transcript((Dialogue((TURN,)),))

    assert read_transcript(json.dumps(request(entries), indent=2)) == expected
    assert read_transcript(json.dumps([request(entries)], indent=2)) == expected
    assert read_transcript(json.dumps(entries, indent=2)) == expected


@FORMATS
def test_a_message_on_each_line_is_one_conversation(entries: list[dict[str, Any]]) -> None:
    assert read_one(*entries) == Dialogue((TURN,))


@FORMATS
def test_a_list_of_messages_on_each_line_is_a_conversation_each(entries: list[dict[str, Any]]) -> None:
    transcript = read(entries[:1], [{"role": "user", "content": "And in Bergen?"}])

    assert transcript.conversations == (Dialogue((Turn(ASKED),)), Dialogue((Turn("And in Bergen?"),)))


@pytest.mark.parametrize(
    ("logged", "system"),
    [
        (request(ANTHROPIC, system=[{"type": "text", "text": "Be brief."}]), "Be brief."),
        (request([{"role": "system", "content": "Be brief."}, *CHAT]), "Be brief."),
        (request([{"role": "developer", "content": "Be brief."}, *CHAT]), "Be brief."),
        (request(RESPONSES, instructions="Be brief."), "Be brief."),
    ],
)
def test_what_the_system_says_is_kept(logged: dict[str, Any], system: str) -> None:
    assert read_one(logged) == Dialogue((TURN,), system)


def test_a_prompt_may_be_a_text_alone() -> None:
    assert read_one({"model": "gpt-5", "input": "Good morning"}) == Dialogue((Turn("Good morning"),))


@pytest.mark.parametrize("wrapper", ["request", "body", "params"])
def test_a_request_is_found_beside_what_else_a_log_says(wrapper: str) -> None:
    line = {"custom_id": "7", "time": "2026-11-23", wrapper: request(CHAT)}

    assert read_one(line) == Dialogue((TURN,))


@pytest.mark.parametrize(
    ("logged", "reply"),
    [
        (request(ANTHROPIC[:-1]), {"type": "message", "id": "msg_1", **ANTHROPIC[-1], "stop_reason": "end_turn"}),
        (request(CHAT[:-1]), {"object": "chat.completion", "choices": [{"index": 0, "message": CHAT[-1]}]}),
        (request(RESPONSES[:-1]), {"object": "response", "output": RESPONSES[-1:]}),
    ],
    ids=["anthropic", "chat", "responses"],
)
def test_a_reply_beside_its_request_belongs_to_the_conversation(logged: dict[str, Any], reply: dict[str, Any]) -> None:
    assert read_one({"request": logged, "response": reply}) == Dialogue((TURN,))
    assert read_one({**logged, "response": reply}) == Dialogue((TURN,))


def test_lines_of_claude_code_are_one_conversation() -> None:
    """Each part of a reply has a line of its own there, and so has each result."""
    thinking, text, oslo, rome = ANTHROPIC[1]["content"]
    first, second = ANTHROPIC[2]["content"]
    lines = [
        {"type": "user", "uuid": "1", "message": ANTHROPIC[0]},
        *(
            {"type": "assistant", "message": {"id": "msg_1", "type": "message", "role": "assistant", "content": [part]}}
            for part in (thinking, text, oslo, rome)
        ),
        *({"type": "user", "message": {"role": "user", "content": [part]}} for part in (first, second)),
        {"type": "assistant", "message": {"id": "msg_2", "type": "message", **ANTHROPIC[3]}},
    ]

    assert read_one(*lines) == Dialogue((TURN,))


@FORMATS
def test_the_rounds_of_a_loop_are_one_conversation(entries: list[dict[str, Any]]) -> None:
    """Logged twice as one of them was tried again, with another system text and a mark that has moved."""
    ends = {id(ANTHROPIC): (1, 3, 3, 4), id(CHAT): (1, 4, 4, 5), id(RESPONSES): (1, 7, 7, 8)}[id(entries)]

    assert read_one(*(request(entries[:end]) for end in ends)) == Dialogue((TURN,))


def test_a_mark_for_the_cache_makes_no_other_conversation() -> None:
    marked = {"role": "user", "content": [{"type": "text", "text": ASKED, "cache_control": {"type": "ephemeral"}}]}

    assert read_one(request([marked]), request(ANTHROPIC, system="It is 9:41.")) == Dialogue((TURN,), "It is 9:41.")


def test_conversations_are_told_apart_however_their_rounds_are_mixed() -> None:
    other = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hello!"}]
    lines = [request(CHAT[:1]), request(other[:1]), request(CHAT[:4]), request(other), request(CHAT)]

    assert read(*lines) == Transcript((Dialogue((TURN,)), Dialogue((Turn("Hello", (), "Hello!"),))))


def test_two_conversations_that_begin_alike_are_two() -> None:
    """The second begins once the first has gone on."""
    answers = [[{"role": "user", "content": "Hi"}, {"role": "assistant", "content": said}] for said in ("One", "Two")]
    lines = [request(answers[0][:1]), request(answers[0]), request(answers[1][:1]), request(answers[1])]

    assert read(*lines).conversations == (
        Dialogue((Turn("Hi", (), "One"),)),
        Dialogue((Turn("Hi", (), "Two"),)),
    )


def test_a_user_who_speaks_again_begins_a_turn() -> None:
    more = [{"role": "user", "content": "Thanks."}, {"role": "assistant", "content": "Gladly."}]

    assert read_one(request([*CHAT, *more])) == Dialogue((TURN, Turn("Thanks.", (), "Gladly.")))


def test_what_the_user_says_in_a_row_is_said_once() -> None:
    said = [{"role": "user", "content": "One."}, {"role": "user", "content": "Two."}]

    assert read_one(request(said)) == Dialogue((Turn("One.\nTwo."),))


def test_a_call_without_a_result_has_none() -> None:
    assert read_one(request(CHAT[:3])).turns == (
        Turn(ASKED, (Step((Use("weather", {"city": "Oslo"}), ROME), "I look it up."),)),
    )


def test_a_result_that_nobody_has_asked_for_is_left_out() -> None:
    stray = {"role": "tool", "tool_call_id": "t9", "content": "stray"}

    assert read_one(request([*CHAT[:4], stray, CHAT[4]])) == Dialogue((TURN,))


def calls(*ids: str) -> dict[str, Any]:
    made = [{"id": call_id, "function": {"name": f"tool_{call_id}", "arguments": ""}} for call_id in ids]
    return {"role": "assistant", "content": None, "tool_calls": made}


def result(call_id: str, said: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": said}


def test_results_belong_to_the_last_call_of_their_id() -> None:
    """Some endpoints number the calls of each reply anew, and not every call has a result."""
    go_on = {"role": "user", "content": "Go on."}
    entries = [go_on, calls("1", "2"), go_on, calls("1", "2"), result("1", "a"), calls("2"), result("2", "b")]

    first, second = read_one(request(entries)).turns
    assert first.steps == (Step((Use("tool_1", {}), Use("tool_2", {}))),)
    assert second.steps == (Step((Use("tool_1", {}, "a"), Use("tool_2", {}))), Step((Use("tool_2", {}, "b"),)))


def test_results_of_one_id_go_to_its_calls_in_turn() -> None:
    entries = [calls("1", "1"), result("1", "a"), result("1", "b")]

    assert read_one(request(entries)).turns[0].steps == (Step((Use("tool_1", {}, "a"), Use("tool_1", {}, "b"))),)


def test_what_is_no_text_is_named() -> None:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}}
    entries = [{"role": "user", "content": [picture, {"type": "text", "text": "What is it?"}]}]

    (turn,) = read_one(request(entries)).turns
    assert turn.user.startswith("[image (image/png, 3 bytes) left out: ")
    assert turn.user.endswith("]\nWhat is it?")


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}},
        {"type": "input_image", "image_url": "data:image/png;base64,QUJD"},
    ],
)
def test_the_parts_of_a_message_tell_its_format(part: dict[str, Any]) -> None:
    (turn,) = read_one({"role": "user", "content": [part]}).turns

    assert turn.user.startswith("[image (image/png, 3 bytes) left out: ")


@pytest.mark.parametrize("own", [calls("1"), result("1", "a")])
def test_a_part_of_an_unknown_kind_does_not_hide_the_format(own: dict[str, Any]) -> None:
    """It would be Anthropic's, as nobody else has as many kinds."""
    film = {"role": "user", "content": [{"type": "video_url", "video_url": {"url": "https://example.com/a.mp4"}}]}

    transcript = read(request([film, {"role": "developer", "content": "Be brief."}, own]))

    assert [conversation.system for conversation in transcript.conversations] == ["Be brief."]


@pytest.mark.parametrize(
    "logged", [{"input": CHAT[:1], "instructions": "Hm."}, {"messages": CHAT[:1], "system": "Hm."}]
)
def test_what_stands_beside_the_messages_tells_the_format_too(logged: dict[str, Any]) -> None:
    assert read_one(logged) == Dialogue((Turn(ASKED),), "Hm.")


def test_arguments_that_are_no_object_are_put_into_one() -> None:
    function = {"name": "add", "arguments": '{"half": '}
    entries = [{"role": "assistant", "content": None, "tool_calls": [{"id": "a", "function": function}]}]

    assert read_one(request(entries)).turns == (Turn("", (Step((Use("add", {"arguments": '{"half": '}),)),)),)


def test_a_line_that_cannot_be_read_is_told_of_and_skipped() -> None:
    lines = [
        json.dumps(request(CHAT)),
        '{"messages": [{"role": "user", "content": "cut o',
        "",
        '"hunter2"',
        '{"level": "info", "token": "hunter2"}',
        json.dumps({"messages": [{"role": "hunter2", "content": "hunter2"}]}),
        json.dumps({"messages": ["hunter2"]}),
        "[" * 100_000,
        json.dumps(request([{"role": "user", "content": "Hello"}])),
    ]

    assert read_transcript("\n".join(lines)) == Transcript(
        (Dialogue((TURN,)), Dialogue((Turn("Hello"),))),
        (
            Skipped("line 2", "it is not JSON"),
            Skipped("line 4", "it is neither a request, nor a message, nor a list of messages"),
            Skipped("line 5", "it is neither a request, nor a message, nor a list of messages"),
            Skipped("line 6", "its messages are not all in the format 'openai'"),
            Skipped("line 7", "its messages are not all in the format 'openai'"),
            Skipped("line 8", "it is not JSON"),
        ),
    )


def test_one_message_that_cannot_be_read_leaves_the_others() -> None:
    bad = {"role": "assistant", "tool_calls": [{"id": "t1", "function": {"arguments": "hunter2"}}]}

    transcript = read(CHAT[0], bad, *CHAT[1:])

    assert transcript.conversations == (Dialogue((TURN,)),)
    assert transcript.skipped == (Skipped("line 2", "it is no message in the format 'openai', as others are"),)


def test_what_is_skipped_is_told_in_the_order_of_the_lines() -> None:
    """Though messages are read once all of them are there."""
    lines = [json.dumps(CHAT[0]), '{"role": "assistant", "tool_calls": 1}', "cut o"]

    assert [skipped.place for skipped in read_transcript("\n".join(lines)).skipped] == ["line 2", "line 3"]


def test_conversations_come_in_the_order_in_which_they_begin() -> None:
    said = [{"role": "user", "content": text} for text in ("One", "Two", "Three", "Four")]

    transcript = read(request(said[:1]), said[1], request(said[2:3]), said[3])

    assert [conversation.turns[0].user for conversation in transcript.conversations] == ["One", "Two\nFour", "Three"]


@pytest.mark.parametrize("text", ["", "\n \n", "\ufeff", "null", "[]", "{}", "[[]]"])
def test_a_log_of_nothing_holds_nothing(text: str) -> None:
    assert read_transcript(text).conversations == ()


def test_a_mark_of_the_byte_order_is_passed_over() -> None:
    assert read_transcript("\ufeff" + json.dumps(request(CHAT)) + "\r\n").conversations == (Dialogue((TURN,)),)


BESIDE = "toolSearchTool: - weather_of_tomorrow() [fits]"


@pytest.mark.parametrize(
    "entries",
    [
        [
            {"role": "user", "content": ASKED},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "s", "name": "toolSearchTool", "input": {}}]},
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "s",
                        "content": [{"type": "tool_reference", "tool_name": "weather"}],
                    },
                    {"type": "text", "text": BESIDE},
                ],
            },
            *ANTHROPIC[1:],
        ],
        [
            {"role": "user", "content": ASKED, "type": "message"},
            {"type": "tool_search_call", "call_id": "s", "execution": "client", "arguments": {}},
            {"type": "tool_search_output", "call_id": "s", "execution": "client", "status": "completed", "tools": []},
            {"type": "message", "role": "developer", "content": BESIDE},
            *RESPONSES[1:],
        ],
    ],
    ids=["anthropic", "responses"],
)
def test_what_is_said_beside_a_native_search_is_no_word_of_the_user_or_of_the_application(
    entries: list[dict[str, Any]],
) -> None:
    (read,) = read_transcript("\n".join(map(json.dumps, entries))).conversations

    assert read.system == ""
    assert [turn.user for turn in read.turns] == [ASKED]
    assert [[use.name for use in step.calls] for step in read.turns[0].steps] == [
        ["toolSearchTool"], ["weather", "weather"]
    ]  # fmt: skip
