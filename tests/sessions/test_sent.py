"""What is kept of what a model was sent: what each change leaves as it was, and what begins anew."""

from dataclasses import replace
from typing import Any

from toolsearch import ToolDefinition
from toolsearch.discovery.search_tool import TOOL_NAME
from toolsearch.sessions.sent import Sent, SentTools
from toolsearch.wire.capabilities import Endpoint

A, B, C, D, E = (ToolDefinition(name) for name in "abcde")
SEARCH = ToolDefinition(TOOL_NAME)
CLAUDE, OPENAI = Endpoint("anthropic", "claude-opus-5"), Endpoint("openai")
FULL = Sent(
    endpoint=CLAUDE,
    mode="messages",
    begun_s=1.0,
    listed={TOOL_NAME: SEARCH, "a": A, "b": B},
    deferred=(D,),
    revealed={"c": C},
    removed=frozenset("b"),
    answered=frozenset("e"),
    referred={"x": None},
    left=("y",),
    revealed_tokens=30,
    requested_s=2.0,
    request_tokens=40,
    prompt_tokens=50,
    breaks=1,
    break_tokens=60,
    history_cuts=1,
)


def ten(_: ToolDefinition) -> int:
    return 10


def test_a_list_that_begins_keeps_the_figures_and_names_what_has_left() -> None:
    """Of a, b and c, b was withdrawn before, and c is in the new list, too."""
    sent = SentTools(FULL)
    sent.begin(OPENAI, "append", 9.0, [C], [E])

    assert sent.now == Sent(
        endpoint=OPENAI,
        mode="append",
        begun_s=9.0,
        listed={"c": C},
        deferred=(E,),
        referred={"x": None},
        left=("y", "a"),
        request_tokens=40,
        prompt_tokens=50,
        breaks=1,
        break_tokens=60,
        history_cuts=1,
    )


def test_what_answers_referred_to_stays_known_when_a_list_begins_or_the_history_is_compacted() -> None:
    begun, compacted = (SentTools(replace(FULL, mode="deferred")) for _ in range(2))
    begun.begin(CLAUDE, "deferred", 9.0, [SEARCH])
    compacted.compact()

    assert begun.now.referred == compacted.now.referred == {"x": None, "c": C}
    assert all(begun.now.has_sent(name) for name in ("x", "c", TOOL_NAME))


def test_after_a_compaction_nothing_counts_as_sent_but_what_it_has_cost() -> None:
    sent = SentTools(FULL)
    sent.compact()

    assert sent.now == Sent(
        mode="messages", begun_s=1.0, referred={"x": None}, breaks=1, break_tokens=60, history_cuts=1
    )


def test_a_message_adds_what_is_wanted_and_withdraws_only_what_may_go() -> None:
    sent = SentTools(FULL)
    change = sent.change_to([B, E], removable=["a", TOOL_NAME], count=ten)

    assert (change.added, change.removed) == ((B, E), ("a",))
    assert sent.now == replace(
        FULL, revealed={"c": C, "b": B, "e": E}, removed=frozenset("a"), left=("y", "a"), revealed_tokens=50
    )
    assert list(sent.now.visible) == [TOOL_NAME, "b", "c", "e"]


def test_a_definition_that_has_changed_is_withdrawn_and_has_not_left() -> None:
    sent = SentTools(FULL)
    changed = ToolDefinition("c", "otherwise")

    assert sent.change_to([changed], ["c"], ten).removed == ("c",)
    assert (sent.now.removed, sent.now.left) == ({"b", "c"}, ("y",))
    assert sent.change_to([changed], ["c"], ten).added == (changed,)


def test_what_has_left_is_told_once_and_not_if_it_has_come_back() -> None:
    sent = SentTools(replace(FULL, left=("a", "y", "b")))

    assert sent.take_left() == ("y", "b")
    assert sent.take_left() == ()


def test_an_answer_reveals_what_is_deferred_once_and_counts_it() -> None:
    sent = SentTools(FULL)
    for told in ("f", "g"):
        sent.note_answer(["d", "unknown"], ten, told=[told])

    assert sent.now == replace(FULL, revealed={"c": C, "d": D}, answered=frozenset("efg"), revealed_tokens=40)


def test_what_is_listed_again_leaves_its_other_places_and_what_is_listed_already_stays() -> None:
    sent = SentTools(FULL)

    assert sent.relist(["c", "a", "d", "unknown"])
    assert list(sent.now.listed) == [TOOL_NAME, "a", "b", "c", "d"]
    assert (sent.now.revealed, sent.now.deferred) == ({}, ())
    assert not SentTools(replace(FULL, revealed={"a": A})).relist(["a"])


def test_what_the_model_has_read_and_what_the_conversation_names() -> None:
    shown = [name for name in ("a", "b", "c", "d", "e", "x") if FULL.has_shown(name)]
    named = [name for name in ("a", "b", "c", "d", "e", "x", "y") if FULL.has_sent(name)]

    assert (shown, named) == (["a", "c", "e"], ["a", "b", "c", "e", "x"])


def test_a_list_is_whole_if_it_began_without_the_search_tool() -> None:
    whole: list[Any] = [replace(FULL, listed={"a": A}), FULL, Sent()]

    assert [each.is_whole for each in whole] == [True, False, False]


def test_a_cache_is_warm_for_less_than_it_lasts() -> None:
    assert [FULL.is_warm(now_s, 300.0) for now_s in (301.0, 302.0)] == [True, False]
    assert not Sent().is_warm(0.0, 300.0)
