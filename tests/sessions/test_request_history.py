"""What the messages of a request hold of tools, by a counter that counts words."""

from collections.abc import Sequence

import pytest

from toolsearch.sessions.savings import FOUND_BEFOREHAND, history_tokens, revealed_in
from toolsearch.sessions.sent import SentTools
from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.definition import ToolDefinition
from toolsearch.wire.capabilities import Endpoint, RevealMode
from toolsearch.wire.messages import AssistantMessage, Message, ToolChangeMessage, ToolMessage, UserMessage

SEARCH = "toolSearchTool"
MAIL, BILL, TRIP = (ToolDefinition(name) for name in ("mail", "bill", "trip"))


class Words:
    estimate = True

    def count(self, text: str) -> int:
        return len(text.split())


def answer(*names: str, text: str = "found these three words", is_error: bool = False) -> ToolMessage:
    content = ({"type": "text", "text": text},)
    return ToolMessage((ToolResult("1", SEARCH, content, {"tools": list(names)}, is_error=is_error),))


def len_of_name(definition: ToolDefinition) -> int:
    return len(definition.name)


def tokens(messages: Sequence[Message], *deferred: ToolDefinition) -> int:
    return history_tokens(
        messages, Words(), tokens_of=lambda _: 100, deferred={definition.name: definition for definition in deferred}
    )


ASKED = AssistantMessage("", (ToolCall("1", SEARCH, "send a mail"), ToolCall("2", "mail", "not counted at all")))
OTHER = ToolMessage((ToolResult("2", "mail", ({"type": "text", "text": "sent it"},)),))


def test_only_searches_their_answers_and_added_definitions_are_counted() -> None:
    assert tokens([UserMessage("Write to Ann."), ASKED, answer("mail"), OTHER]) == 3 + 4
    assert tokens([ASKED, answer("mail"), ToolChangeMessage((MAIL, BILL), ("trip",))]) == 3 + 4 + 200


def test_an_answer_that_loads_tools_is_counted_by_their_definitions() -> None:
    assert tokens([ASKED, answer("mail", "bill")], MAIL, BILL) == 3 + 200
    assert tokens([ASKED, answer("gone")], MAIL) == 3 + 4
    assert tokens([ASKED, answer("mail", is_error=True)], MAIL) == 3 + 4


def test_what_an_answer_says_besides_what_it_loads_is_counted() -> None:
    content = ({"type": "text", "text": "Loaded: mail."}, {"type": "text", "text": "Found as well: bill"})
    told = ToolMessage((ToolResult("1", SEARCH, content, structured={"tools": ["mail"]}),))

    assert tokens([ASKED, told], MAIL) == 3 + 100 + 4
    assert tokens([ASKED, told]) == 3 + 2 + 4


@pytest.mark.parametrize(
    ("mode", "names"), [("messages", {"bill"}), ("deferred", {"mail"}), ("append", set()), ("fixed", {"mail"})]
)
def test_what_reveals_a_tool_depends_on_the_mode(mode: RevealMode, names: set[str]) -> None:
    messages = [ASKED, answer("mail"), answer("trip", is_error=True), ToolChangeMessage((BILL,), ("trip",))]
    assert revealed_in(messages, ["mail", "bill", "trip"], mode) == names
    assert revealed_in(messages, ["other"], mode) == set()


def test_an_answer_that_was_read_back_as_text_tells_of_the_tools_whose_names_it_has() -> None:
    read_back = ToolMessage((ToolResult("1", SEARCH, ({"type": "text", "text": "bill: pays it"},)),))
    beforehand = UserMessage(f"{FOUND_BEFOREHAND}\ntrip: books it")

    assert revealed_in([read_back, beforehand, UserMessage("mail")], ["mail", "bill", "trip"], "fixed") == {
        "bill",
        "trip",
    }
    assert tokens([beforehand, UserMessage("[toolSearchTool is nice]")]) == len(beforehand.text.split())


@pytest.mark.parametrize("mode", ["messages", "deferred"])
def test_what_is_listed_again_comes_last_and_is_neither_deferred_nor_revealed_any_more(mode: RevealMode) -> None:
    sent = SentTools()
    sent.begin(Endpoint("anthropic"), mode, 0, [MAIL], [BILL, TRIP] if mode == "deferred" else [])
    if mode == "deferred":
        sent.note_answer(["bill"], len_of_name)
    else:
        sent.change_to([BILL], (), len_of_name)

    assert [sent.relist(["bill", "mail", "unknown"]), sent.relist(["bill"])] == [True, False]

    assert sent.tool_list().listed == (MAIL, BILL)
    assert sent.tool_list().deferred == ((TRIP,) if mode == "deferred" else ())
    assert list(sent.now.visible) == ["mail", "bill"]
