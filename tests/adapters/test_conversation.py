"""What adapters share: the exposure by the model's name, the turn, and what a model reads of a result."""

import pytest

from tests.kit.session_tools import SEARCH, engine_of
from toolsearch import SessionOptions, ToolSearch
from toolsearch.adapters.conversation import listed, next_turn, suit_model, text_and_images
from toolsearch.tools.calls import ToolResult


@pytest.mark.parametrize(
    ("model", "by_list", "announced"),
    [
        (None, None, None),
        ("", None, None),
        ("gpt-5.6", None, None),
        ("a-model-nobody-knows", None, None),
        ("claude-opus-4-8", "fixed", None),
        ("claude-sonnet-5", "fixed", "fixed"),
        ("anthropic/claude-opus-4-8", "fixed", "fixed"),  # a router, which may not know the additions
    ],
)
def test_the_list_of_a_claude_stays_unless_new_tools_are_announced(
    model: object, by_list: str | None, announced: str | None
) -> None:
    engine = ToolSearch([])

    assert suit_model(engine.session("a"), model).state.exposure == by_list
    assert suit_model(engine.session("b"), model, announces=True).state.exposure == announced


def test_an_exposure_that_was_chosen_stays() -> None:
    by_engine = ToolSearch([], options=SessionOptions(exposure="append")).session("a")
    by_session = ToolSearch([]).session("a", exposure="append")

    assert suit_model(by_engine, "claude-sonnet-5").state.exposure is None
    assert suit_model(by_session, "claude-sonnet-5").state.exposure == "append"


def test_the_calls_of_a_turn_are_counted_anew_in_the_next_one() -> None:
    def now() -> str:
        """Say what time it is."""
        return "noon"

    session = ToolSearch([now], encoder=None).session("a")
    for _ in range(3):
        session.call_sync("now")
    assert session.call_sync("now").is_error

    next_turn(session)

    assert session.call_sync("now").text == "noon"


def test_the_first_list_of_a_framework_has_what_the_users_words_surely_ask_for() -> None:
    session = engine_of().session("a")

    assert [each.name for each in listed(session, "Send an email message.")] == [SEARCH, "send_mail"]
    assert [each.name for each in listed(session, "List the events of the calendar.")] == [SEARCH, "send_mail"]


@pytest.mark.parametrize("said", [None, ["Send an email message.", b"a picture"]])
def test_nothing_is_anticipated_for_what_is_not_a_text(said: object) -> None:
    assert [each.name for each in listed(engine_of().session("a"), said)] == [SEARCH]


def test_texts_and_images_are_told_apart_and_all_else_is_named() -> None:
    image = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    sound = {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}
    result = ToolResult("1", "draw", ({"type": "text", "text": "a dot"}, image, sound))

    text, images = text_and_images(result)

    assert text == "a dot\n[audio (audio/wav, 3 bytes) left out: it cannot be sent here as text]"
    assert images == [("image/png", "aGk=")]
