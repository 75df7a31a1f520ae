"""Replies of a model that are damaged anywhere: nothing raises, and nothing is changed that is not held."""

import json
import random
from collections.abc import Sequence
from typing import Any

import pytest

from tests.wire.proxied import test_openai_chat as chat
from tests.wire.proxied import test_openai_responses as responses
from tests.wire.proxied.scripts import (
    HELD,
    HISTORY,
    OPERATORS,
    Said,
    by_call_tool,
    kept,
    search,
    to_client,
    written,
)
from toolsearch.documents.json_values import as_list, is_list, is_object
from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.wire.events import Event
from toolsearch.wire.openai_chat import proxied as chat_wire
from toolsearch.wire.openai_responses import proxied as responses_wire
from toolsearch.wire.proxied import ProxiedWire, Reply
from toolsearch.wire.proxied_parts import read_object

ROUNDS = [
    Said("Hm", "t", (search("c1"), by_call_tool("c2", OPERATORS))),
    Said("a", "b", (kept("c3"), search("c4"), by_call_tool("c5"))),
]
JUNK: Sequence[Any] = (None, 3, -1, True, 1.5, "", "x", [], {}, [3], {"a": []}, {"type": [3]}, [{"index": 5}, {}])
DAMAGED = 0.08  # of all values
WIRES = pytest.mark.parametrize(
    ("wire", "api"), [(chat_wire, chat), (responses_wire, responses)], ids=["chat", "responses"]
)


def seeded(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311


def damaged(value: Any, chance: random.Random) -> Any:
    if chance.random() < DAMAGED:
        return chance.choice(JUNK)
    if is_object(value):
        return {key: damaged(each, chance) for key, each in value.items() if chance.random() > DAMAGED / 4}
    return [damaged(each, chance) for each in value] if is_list(value) else value


def damaged_stream(events: Sequence[Event], chance: random.Random) -> list[Event]:
    data: list[dict[str, Any]] = [json.loads(sent.data) if sent.data != "[DONE]" else {} for sent in events]
    texts = [json.dumps({key: damaged(each, chance) for key, each in fields.items()}) for fields in data]
    return [Event(sent.name, text, f"data: {text}\n\n".encode()) for sent, text in zip(events, texts, strict=True)]


def relay(reply: Reply, rounds: Sequence[Sequence[Event]]) -> bytes:
    events: list[Event] = []
    for sent in rounds:
        for event in sent:
            events += reply.add_event(event)
        if not reply.is_whole:
            return written([*events, *reply.fail("it broke off")])
        if not _went_on(reply, events):
            break
    return written([*events, *reply.end()])


def _went_on(reply: Reply, events: list[Event]) -> bool:
    own = reply.own_calls
    if not own or any(call.unfinished for call in own):
        return False
    results = [_failed(call) for call in own]
    is_last = reply.has_client_calls
    json.dumps(reply.next_entries(results))
    events += reply.end_round(results)
    return not is_last


def _failed(call: ToolCall) -> ToolResult:
    return ToolResult(call.id, call.name, (), is_error=True)


@WIRES
@pytest.mark.parametrize("seed", range(40))
def test_a_damaged_stream_raises_nothing(wire: ProxiedWire, api: Any, seed: int) -> None:
    chance = seeded(seed)
    rounds = [damaged_stream(api.streamed(said, number), chance) for number, said in enumerate(ROUNDS, 1)]

    reply = wire.open_reply(HELD, to_client, HISTORY)
    assert relay(reply, rounds)


@WIRES
@pytest.mark.parametrize("seed", range(40))
def test_a_damaged_stream_keeps_its_bytes_if_nothing_is_held(wire: ProxiedWire, api: Any, seed: int) -> None:
    sent = damaged_stream(api.streamed(ROUNDS[1]), seeded(seed))
    relayed = relay(wire.open_reply((), to_client, HISTORY), [sent])

    assert relayed.startswith(written(sent))


@WIRES
@pytest.mark.parametrize("seed", range(40))
def test_a_damaged_body_raises_nothing_and_nor_does_the_history_that_it_becomes(
    wire: ProxiedWire, api: Any, seed: int
) -> None:
    chance = seeded(seed)
    make = chat.completion if api is chat else responses.whole
    reply = wire.open_reply(HELD, to_client, HISTORY)
    for number, said in enumerate(ROUNDS, 1):
        reply.add_whole({key: damaged(each, chance) for key, each in make(said, number).items()})
        if not _went_on(reply, []):
            break
    body = json.loads(json.dumps(reply.body()))

    sent = as_list(body.get("output")) or [as_message(choice) for choice in as_list(body.get("choices")) or ()]
    wire.restored([damaged(each, chance) for each in [*sent, *sent]], HISTORY)


def as_message(choice: Any) -> Any:
    return choice.get("message") if is_object(choice) else choice


def test_half_of_a_pair_that_stands_for_a_character_is_read() -> None:
    """As `json.loads` reads it: some models write one."""
    assert read_object(b'{"a":"\xed\xa0\x80"}') == {"a": "\ud800"}
    assert read_object(b'{"a":"\xff"}') is None
