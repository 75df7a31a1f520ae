"""A conversation of 30 turns over 2,000 tools breaks no provider's prompt cache, and no provider refuses any of it."""

from pathlib import Path

import pytest

from tests.kit.conversation import Conversation, play
from tests.kit.conversation.script import TURNS, expected_runs, expected_searches
from tests.kit.loopback import LoopbackApi

UNBROKEN = [
    Conversation("anthropic", "claude-opus-5-5"),
    Conversation("anthropic", "claude-opus-5-5", "deferred", turns=TURNS[:6]),  # 2,000 tools in each request take long
    Conversation("anthropic", "claude-opus-5-5", "fixed", turns=TURNS[:12]),
    Conversation("anthropic", "claude-haiku-5-5", turns=TURNS[:12]),
    Conversation("anthropic", "claude-haiku-4-5", turns=TURNS[:6]),
    Conversation("anthropic", "a-model-nobody-knows", turns=TURNS[:12]),
    Conversation("openai-responses", "gpt-5.6"),
    Conversation("openai-responses", "gpt-5.6", "deferred", turns=TURNS[:12]),
    Conversation("openai-responses", "gpt-5.6", "fixed", turns=TURNS[:12]),
    Conversation("openai-responses", "gpt-5.1", turns=TURNS[:12]),
    Conversation("openai", "gpt-5.1", "fixed"),
]
APPENDED = [
    Conversation("anthropic", "claude-haiku-4-5", "append"),
    Conversation("openai-responses", "gpt-5.6", "append"),
    Conversation("openai-responses", "a-model-nobody-knows"),
    Conversation("openai", "gpt-5.1"),
]


ANTICIPATED = [
    Conversation("anthropic", "claude-opus-5-5", anticipates=True),
    Conversation("anthropic", "claude-opus-5-5", "fixed", anticipates=True, turns=TURNS[:6]),
    Conversation("openai-responses", "gpt-5.6", anticipates=True),
    Conversation("openai-responses", "gpt-5.6", "deferred", anticipates=True, turns=TURNS[:6]),
]


TYPED = [
    Conversation(conversation.format, conversation.model, conversation.exposure, is_typed=True, turns=TURNS[:6])
    for conversation in (*UNBROKEN[:2], UNBROKEN[5], APPENDED[-1], *UNBROKEN[6:9])
]


def named(conversation: Conversation) -> str:
    return f"{conversation.format}-{conversation.model}-{conversation.exposure}"


@pytest.mark.parametrize("conversation", UNBROKEN, ids=named)
async def test_no_prefix_is_broken(conversation: Conversation, api: LoopbackApi, tmp_path: Path) -> None:
    played = await play(conversation, api, tmp_path)

    assert api.refusals == []
    assert played.ran == expected_runs(conversation.turns)
    assert played.searches == expected_searches(conversation.turns)
    assert played.evicted > 0 or conversation.turns != TURNS  # fewer turns find too little
    assert [use.read for use in played.uses] == [use.readable for use in played.uses]
    assert played.breaks == 0


@pytest.mark.parametrize("conversation", ANTICIPATED, ids=named)
async def test_what_is_anticipated_breaks_no_prefix(
    conversation: Conversation, api: LoopbackApi, tmp_path: Path
) -> None:
    played = await play(conversation, api, tmp_path)

    assert api.refusals == []
    assert played.ran == expected_runs(conversation.turns)
    assert (played.anticipated > 0) is (conversation.exposure == "auto")
    assert [use.read for use in played.uses] == [use.readable for use in played.uses]
    assert played.breaks == 0


async def test_what_is_anticipated_before_the_first_request_breaks_no_more_than_a_search_does(
    api: LoopbackApi, tmp_path: Path
) -> None:
    """Each break is one of a search, of which the first turn now needs none."""
    conversation = Conversation("openai", "gpt-5.1", anticipates=True)
    played = await play(conversation, api, tmp_path)

    assert (api.refusals, played.anticipated) == ([], 1)
    assert played.ran == expected_runs(conversation.turns)
    assert played.uses[1].read == played.uses[1].readable


@pytest.mark.parametrize("conversation", APPENDED, ids=named)
async def test_a_growing_list_is_refused_by_nobody(
    conversation: Conversation, api: LoopbackApi, tmp_path: Path
) -> None:
    """Breaks are counted one by one, as the provider sees them."""
    played = await play(conversation, api, tmp_path)

    assert api.refusals == []
    assert played.ran == expected_runs(conversation.turns)
    assert played.searches == expected_searches(conversation.turns)
    assert played.evicted > 0
    assert played.breaks == sum(use.read < use.readable for use in played.uses)


@pytest.mark.parametrize("conversation", TYPED, ids=named)
async def test_a_request_is_splatted_into_the_call_of_the_sdk(
    conversation: Conversation, api: LoopbackApi, tmp_path: Path
) -> None:
    played = await play(conversation, api, tmp_path)

    assert api.refusals == []
    assert played.ran == expected_runs(conversation.turns)
    assert played.searches == expected_searches(conversation.turns)


def test_the_conversation_is_as_long_as_it_has_to_be() -> None:
    in_vain = 1
    assert (len(TURNS), expected_searches(TURNS) - in_vain) == (30, 12)
    assert [turn.event for turn in TURNS if turn.event] == [
        "server goes away",
        "restart",
        "definition changes",
        "pause",
    ]
