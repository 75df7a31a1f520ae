"""What a model was sent, where two processes serve one conversation."""

import json
from typing import Any

import pytest

from tests.kit.clock import Clock
from toolsearch import Budget, Session, SessionStore, ToolDefinition, ToolSearch
from toolsearch.sessions.sent import Sent, SentTools
from toolsearch.sessions.state import SessionState, merge
from toolsearch.storage.memory import InMemorySessionPersistence
from toolsearch.wire.capabilities import Endpoint, RevealMode

A, B, C, D = (ToolDefinition(name) for name in "abcd")
OPENAI, CLAUDE = Endpoint("openai"), Endpoint("anthropic", "claude-opus-5")


def sent(mode: RevealMode = "append", *listed: ToolDefinition, **more: Any) -> Sent:
    given: dict[str, Any] = {"endpoint": CLAUDE if mode == "messages" else OPENAI, "begun_s": 1.0, **more}
    return Sent(mode=mode, listed={each.name: each for each in listed}, **given)


def merged(ours: Sent, base: Sent, theirs: Sent) -> Sent:
    states = []
    for each in (ours, base, theirs):
        state = SessionState.new("s", clock=Clock())
        state.sent.now = each
        states.append(state)
    merge(*states)
    result: Sent = states[0].sent.now
    return result


def test_a_list_to_which_both_have_added_goes_on_as_the_last_request_had_it() -> None:
    base = sent("append", A, requested_s=1.0, breaks=1, break_tokens=100)
    ours = sent("append", A, B, requested_s=2.0, breaks=2, break_tokens=150)
    theirs = sent("append", A, C, requested_s=3.0, breaks=2, break_tokens=170)

    for one, other in ((ours, theirs), (theirs, ours)):
        result = merged(one, base, other)
        assert (list(result.listed), result.requested_s) == (["a", "c", "b"], 3.0)
        assert (result.breaks, result.break_tokens) == (3, 220)


def test_a_search_tool_that_one_has_added_brings_along_the_reach_whose_servers_it_names() -> None:
    search = ToolDefinition("toolSearchTool")
    base = sent("append", A, named_in="all", requested_s=1.0)
    ours = sent("append", A, B, named_in="all", requested_s=3.0)
    theirs = sent("append", A, search, named_in="some", requested_s=2.0)

    for one, other in ((ours, theirs), (theirs, ours)):
        result = merged(one, base, other)
        assert (list(result.listed), result.named_in) == (["a", "b", "toolSearchTool"], "some")


def test_what_messages_of_both_have_added_and_withdrawn_counts() -> None:
    base = sent("messages", A, revealed={"b": B}, revealed_tokens=10, removed=frozenset("b"), requested_s=1.0)
    ours = sent("messages", A, revealed={"b": B, "c": C}, revealed_tokens=30, requested_s=2.0)
    theirs = sent(
        "messages", A, revealed={"b": B, "d": D}, revealed_tokens=25, removed=frozenset("ba"), requested_s=3.0
    )

    for one, other in ((ours, theirs), (theirs, ours)):
        result = merged(one, base, other)
        assert list(result.visible) == ["b", "d", "c"]
        assert (result.removed, result.revealed_tokens) == ({"a"}, 45)


def test_a_list_that_one_has_begun_goes_on_and_so_does_a_compaction() -> None:
    base = sent("append", A, B, requested_s=1.0)
    went_on = sent("append", A, B, C, requested_s=5.0, breaks=1)
    begun = sent("append", B, begun_s=2.0, requested_s=2.0)
    compacted = Sent()

    for other in (begun, compacted):
        assert list(merged(went_on, base, other).listed) == list(other.listed)
        assert list(merged(other, base, went_on).listed) == list(other.listed)
        assert merged(other, base, went_on).breaks == 1


def test_of_two_lists_that_were_begun_at_once_the_one_goes_on_that_was_requested_last() -> None:
    one, other = sent("append", A, begun_s=2.0, requested_s=2.0), sent("append", B, begun_s=3.0, requested_s=3.0)
    for ours, theirs in ((one, other), (other, one)):
        assert list(merged(ours, Sent(), theirs).listed) == ["b"]


def test_a_list_that_begins_anew_for_the_same_model_is_another_one() -> None:
    base = sent("append", A, requested_s=1.0)
    ours, theirs = SentTools(base), SentTools(base)
    ours.begin(OPENAI, "append", 5.0, [B])
    theirs.append([C])

    assert list(merged(ours.now, base, theirs.now).listed) == ["b"]


@pytest.mark.parametrize("model", ["claude-opus-5", "claude-sonnet-4-5", ""])
def test_processes_that_take_turns_hand_out_one_list_byte_for_byte(model: str, clock: Clock) -> None:
    kept = InMemorySessionPersistence()

    def process() -> ToolSearch:
        tools = [ToolDefinition(f"tool_{i}", f"Does thing {i}") for i in range(20)]
        return ToolSearch(tools, encoder=None, sessions=SessionStore(persistence=kept, budget=Budget()), clock=clock)

    engines, lists = (process(), process()), set[str]()
    for turn in range(6):
        clock.now_s += 1
        session: Session = engines[turn % 2].session("s")
        lists.add(json.dumps(session.request("anthropic", model=model)["tools"]))
        call = {"type": "tool_use", "id": "1", "name": "toolSearchTool", "input": {"query": f"select:tool_{turn}"}}
        session.execute_sync({"role": "assistant", "content": [call], "stop_reason": "tool_use"})

    assert len(lists) == 1
    assert engines[0].session("s").discovered == [f"tool_{turn}" for turn in range(6)]
    assert engines[0].session("s").savings().cache_breaks == 0
