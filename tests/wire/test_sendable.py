"""What of a conversation an endpoint takes, by the table of capabilities."""

import pytest

from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.definition import ToolDefinition
from toolsearch.wire.capabilities import Capabilities, Endpoint, capabilities_of
from toolsearch.wire.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolChangeMessage,
    ToolMessage,
    UserMessage,
)
from toolsearch.wire.sendable import sendable

NEW = capabilities_of(Endpoint("anthropic", "claude-opus-5"))
OLD = capabilities_of(Endpoint("anthropic", "claude-opus-4-5"))
GPT = capabilities_of(Endpoint("openai-responses", "gpt-5.6"))
UNKNOWN_CHAT = capabilities_of(Endpoint("openai", "llama-5", "other"))

ADD, NOW = ToolDefinition("add"), ToolDefinition("now")
USER, ANSWER = UserMessage("Hi."), AssistantMessage("Yes.")
ASKED = AssistantMessage("", (ToolCall("1", "now", "{}"),))
RESULT = ToolMessage((ToolResult("1", "now", ()),))
FIRST, SECOND, LATE = SystemMessage("Be brief."), SystemMessage("Be kind."), SystemMessage("It is late.")


@pytest.mark.parametrize("known", [NEW, GPT])
def test_system_messages_stay_where_the_model_takes_them(known: Capabilities) -> None:
    messages: list[Message] = [FIRST, SECOND, USER, LATE, ANSWER]

    assert sendable(messages, known) == messages


@pytest.mark.parametrize("known", [OLD, UNKNOWN_CHAT])
def test_elsewhere_the_first_are_one_and_later_ones_are_the_users_and_none_moves_to_the_front(
    known: Capabilities,
) -> None:
    late = UserMessage("<system>\nIt is late.\n</system>")

    assert sendable([FIRST, SECOND, USER, LATE, ANSWER, LATE], known) == [
        SystemMessage("Be brief.\n\nBe kind."), USER, late, ANSWER, late,
    ]  # fmt: skip
    assert sendable([USER, LATE], known) == [USER, late]
    assert sendable([SystemMessage(""), USER], known) == [USER]


@pytest.mark.parametrize("known", [NEW, OLD, GPT, UNKNOWN_CHAT])
def test_nothing_stands_between_calls_and_their_results(known: Capabilities) -> None:
    late = LATE if known.system_in_place else UserMessage("<system>\nIt is late.\n</system>")

    assert sendable([USER, ASKED, LATE, USER, RESULT, ANSWER], known) == [USER, ASKED, RESULT, late, USER, ANSWER]
    assert sendable([ASKED, LATE, ANSWER, RESULT], known) == [ASKED, late, ANSWER, RESULT]
    assert sendable([ASKED, LATE], known) == [ASKED, late]


def change(*added: ToolDefinition, removed: tuple[str, ...] = ()) -> ToolChangeMessage:
    return ToolChangeMessage(added, removed)


def test_a_tool_is_added_once_and_what_the_request_lists_is_there_already() -> None:
    messages = [USER, change(ADD, NOW), ANSWER, change(NOW)]

    assert sendable(messages, NEW) == [USER, change(ADD, NOW), ANSWER]
    assert sendable(messages, NEW, listed=["add"]) == [USER, change(NOW), ANSWER]
    assert sendable(messages, GPT, listed=["add", "now"]) == [USER, ANSWER]
    assert sendable(messages, NEW, deferred=["add", "now"]) == [USER, change(ADD, NOW), ANSWER]


def test_a_tool_that_the_request_does_not_define_is_never_withdrawn() -> None:
    """The API refuses the request: such as one whose memory has dropped the message that added the tool."""
    gone = change(removed=("add", "now"))

    assert sendable([USER, gone], NEW) == [USER]
    assert sendable([USER, gone], NEW, listed=["now"]) == [USER, change(removed=("now",))]
    assert sendable([USER, change(ADD), ANSWER, gone], NEW)[-1] == change(removed=("add",))
    assert sendable([USER, gone], NEW, deferred=["add"]) == [USER, change(removed=("add",))]


def test_a_withdrawn_tool_can_be_added_again_and_is_not_withdrawn_twice() -> None:
    out, back = change(removed=("add",)), change(ADD)
    messages = [USER, out, ANSWER, out, back, ANSWER, out]

    assert sendable(messages, NEW, listed=["add"]) == [USER, out, ANSWER, back, ANSWER, out]


def test_tools_are_not_withdrawn_where_no_message_can() -> None:
    assert sendable([USER, change(ADD), ANSWER, change(NOW, removed=("add",))], GPT) == [
        USER, change(ADD), ANSWER, change(NOW),
    ]  # fmt: skip


@pytest.mark.parametrize("known", [OLD, UNKNOWN_CHAT])
def test_models_whose_messages_cannot_change_tools_are_told_of_none(known: Capabilities) -> None:
    assert sendable([USER, change(ADD, removed=("now",)), ANSWER], known, listed=["now"]) == [USER, ANSWER]


@pytest.mark.parametrize("known", [NEW, OLD, GPT, UNKNOWN_CHAT])
def test_a_conversation_that_grows_is_sent_again_as_it_was(known: Capabilities) -> None:
    messages = [
        *[FIRST, USER, ASKED, change(ADD), RESULT, LATE, ASKED, RESULT, change(NOW, removed=("add",)), ANSWER],
        *[USER, change(ADD), LATE, ANSWER, change(removed=("now",)), USER, ANSWER],
    ]
    whole = sendable(messages, known)

    for end in (2, 6, 9, 13, 16):  # where a request ends
        assert whole[: len(sent := sendable(messages[:end], known))] == sent
