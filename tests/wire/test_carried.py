"""What the id of a client's call carries, and what is left out if there is too much."""

import re
import zlib
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.naming import CALL_TOOL, TOOL_NAME
from toolsearch.tools.results import text_block
from toolsearch.wire.anthropic import proxied as messages
from toolsearch.wire.carried import (
    CarriedCall,
    CarriedRound,
    Carrier,
    OwnAnswer,
    carried_answer,
    carried_call,
    read_carrier,
    size_in,
    write_carrier,
)
from toolsearch.wire.openai_chat import proxied as chat
from toolsearch.wire.openai_responses import proxied as responses
from toolsearch.wire.proxied import History, ProxiedWire
from toolsearch.wire.proxied_parts import compact

INCOMPRESSIBLE = "".join(map(chr, range(300, 9_000)))
WIRES = [cast("ProxiedWire", messages), chat, responses]
TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
CALLS = st.builds(
    CarriedCall,
    st.integers(0, 9),
    TEXTS,
    TEXTS,
    TEXTS,
    st.none() | TEXTS | st.lists(TEXTS, max_size=3),
    st.booleans(),
    st.dictionaries(TEXTS, TEXTS, max_size=2),
)
ROUNDS = st.lists(
    st.builds(CarriedRound, st.dictionaries(TEXTS, st.integers(0, 9), max_size=3), st.lists(CALLS, max_size=2)),
    max_size=3,
)


def search(number: int, query: str = "rain", found: str = "weather") -> CarriedCall:
    result = ToolResult(f"c{number}", TOOL_NAME, (), structured={"tools": [found]})
    return carried_call(0, ToolCall(f"c{number}", TOOL_NAME, f'{{"queries":["{query}"]}}'), result)


def operators(text: str, *, arguments: str = "{}", is_error: bool = False) -> CarriedCall:
    called = f'{{"name":"book","arguments":{arguments}}}'
    result = ToolResult("o", "book", (text_block(text),), is_error=is_error)
    return carried_call(0, ToolCall("o", CALL_TOOL, called), result)


def carried(*calls: CarriedCall, is_exact: bool = False) -> list[CarriedRound]:
    """The rounds that come back of some that had one of *calls* each."""
    carrier = read_carrier(
        write_carrier("id", [CarriedRound({"text": 1}, [each]) for each in calls], is_exact=is_exact)
    )
    return [] if carrier is None else carrier.rounds


def joined(names: Sequence[str]) -> OwnAnswer:
    return OwnAnswer(", ".join(names))


@given(ROUNDS, st.booleans())
def test_what_fits_comes_back_as_it_was(rounds: list[CarriedRound], is_exact: bool) -> None:
    written = write_carrier("toolu_1", rounds, is_exact=is_exact)
    carrier = read_carrier(written)

    assert re.fullmatch(r"[a-zA-Z0-9_-]+", written)
    if carrier is None:
        assert (written, any(each.calls for each in rounds)) == ("toolu_1", False)
    else:
        assert (carrier.id, carrier.rounds) == ("toolu_1", rounds)


def test_a_result_that_does_not_fit_is_told_to_have_been_read() -> None:
    ran, failed = (carried(operators(INCOMPRESSIBLE, is_error=failed))[0].calls[0] for failed in (False, True))

    assert carried_answer(ran, joined).text == "It ran, and its result was read then."
    assert carried_answer(failed, joined).text == "Error: It failed, and the reason was read then."
    assert carried_answer(carried(operators("booked"))[0].calls[0], joined).text == "booked"
    assert not carried(operators(INCOMPRESSIBLE))[0].is_exact


def test_an_exact_history_may_need_a_longer_id() -> None:
    text = INCOMPRESSIBLE[:1_200]

    assert carried(operators(text))[0].calls[0].answer is None
    assert carried(operators(text), is_exact=True)[0].calls[0].answer == text


def test_the_oldest_searches_are_left_out_first_and_the_parts_of_their_rounds_stay_apart() -> None:
    long = INCOMPRESSIBLE[:700]
    first, ran, last = carried(search(1, long), operators("booked"), search(2, "snow"))

    assert (first.sizes, first.calls) == ({"text": 1}, [])
    assert [call.id for each in (ran, last) for call in each.calls] == ["o", "c2"]


def test_an_operators_call_whose_arguments_do_not_fit_is_still_told_of() -> None:
    (only,) = carried(operators("booked", arguments=f'{{"a":"{INCOMPRESSIBLE}"}}'))

    assert (only.calls[0].arguments, only.calls[0].answer) == ('{"name":"book"}', None)


def test_an_id_with_nothing_to_carry_or_with_the_mark_stays_the_models() -> None:
    assert write_carrier("c1", []) == "c1"
    assert write_carrier("c1", [CarriedRound({}, [])]) == "c1"
    assert write_carrier("a_ts_b", [CarriedRound({}, [search(1)])]) == "a_ts_b"


def test_parts_that_are_missing_or_joined_shift_nothing_in_later_rounds() -> None:
    sizes = {"thinking": 1, "text": 2}

    assert size_in(["thinking", "text", "text", "thinking", "text"], sizes) == 3
    assert size_in(["text", "thinking", "text"], sizes) == 3
    assert size_in(["thinking", "text", "thinking"], sizes) == 2
    assert size_in(["text", "text", "text"], sizes) == 2
    assert size_in(["tool_use"], sizes) == 0


def forged(data: bytes) -> str:
    return "c1_ts_" + urlsafe_b64encode(zlib.compress(data, 9)).decode().rstrip("=")


@pytest.mark.parametrize(
    "unreadable",
    [
        "c1_ts_",
        "c1_ts_!!!",
        "c1_ts_é",
        "c1_ts_" + "A" * 7_000,
        forged(b"[" * 10_000),
        forged(b" " * 100_000 + b"[]"),
        forged(b'[[{},[[0,"a",3,"b",[],false,{}]]]]'),
        forged(b'[[{},[[-1,"a","b","c","d",false,{}]]]]'),
        forged(b'[[{},[[%d,"a","b","c","d",false,{}]]]]' % (10**30)),
        forged(b"[]")[:-4],
    ],
)
def test_an_id_that_cannot_be_read_stays_as_it_is(unreadable: str) -> None:
    assert read_carrier(unreadable) is None
    for wire in WIRES:
        entries = client_entries(unreadable)
        assert wire.restored(entries, HISTORY) == list(range(len(entries)))


@pytest.mark.parametrize("sizes", [{"text": -1}, {"content": 10**30, "text": 10**30}, {"tool_use": 9, "": 1}])
@pytest.mark.parametrize("place", [0, 99_999])
def test_a_forged_place_or_size_stays_within_its_reply(sizes: dict[str, int], place: int) -> None:
    calls = [[search(number)._replace(place=place)] for number in (1, 2)]
    written = write_carrier("id", [CarriedRound(sizes, calls[0]), CarriedRound({}, calls[1])])
    for wire in WIRES:
        entries = client_entries(written)
        first, *_, last = wire.restored(entries, HISTORY)
        assert (first, last) == (0, len(entries) - 1)


HISTORY = History((), joined)


def client_entries(call_id: str) -> list[dict[str, Any]]:
    """A conversation that is read as one of any format, with a call of this id."""
    call: dict[str, Any] = {"type": "tool_use", "id": call_id, "name": "bash", "input": {}}
    return [
        {"role": "user", "content": "Hi."},
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "So."}, call],
            "tool_calls": [{"id": call_id, "type": "function", "function": {"name": "bash", "arguments": "{}"}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call_id, "content": ""}]},
        {"role": "tool", "tool_call_id": call_id, "content": ""},
        {"type": "function_call", "call_id": call_id, "name": "bash", "arguments": "{}"},
        {"type": "function_call_output", "call_id": call_id, "output": ""},
        {"role": "user", "content": "And now?"},
    ]


NAMES = [f"tool_{number}" for number in range(12)]


def test_an_id_carries_no_more_rounds_and_calls_than_a_reply_has() -> None:
    many = [search(1)._replace(answer=NAMES) for _ in range(280)]
    for rounds in ([CarriedRound({}, many)], [CarriedRound({"text": 1}, many[:1])] * 7):
        assert read_carrier(forged(compact(rounds).encode())) is None
        assert read_carrier(write_carrier("id", rounds)) in (None, Carrier("id", [CarriedRound({}, [])]))


def test_forged_ids_restore_no_more_than_a_model_could_read() -> None:
    calls = [search(number)._replace(answer=NAMES) for number in range(30)]
    ids = [write_carrier(f"id{number}", [CarriedRound({}, calls)]) for number in range(400)]
    entries = [entry for each in ids for entry in client_entries(each)]
    for wire in WIRES:
        assert len(compact(entries)) < 1_000_000
        restored = wire.restored(entries, History((), lambda names: OwnAnswer(1_000 * "".join(names))))
        assert len(compact([each for each in restored if isinstance(each, dict)])) < 20_000_000


def test_the_work_for_one_reply_grows_with_its_length_alone() -> None:
    """The blocks of the reply are looked at once, not once for each of its rounds."""
    looked_at = 0

    class Counted(list[Any]):
        def __getitem__(self, place: Any) -> Any:
            nonlocal looked_at
            looked_at += 1
            return list[Any].__getitem__(self, place)

    kinds, begin = Counted(["text"] * 1_000), 0
    for _ in range(1_000):
        begin += size_in(kinds, {"text": 1}, begin)
    assert begin == 1_000
    assert looked_at < 5_000
