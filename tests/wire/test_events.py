"""Server-sent events, held against the decoder of an official SDK."""

import json
import re
from collections.abc import Iterable
from itertools import accumulate
from typing import cast

import pytest
from anthropic._streaming import SSEDecoder
from hypothesis import given
from hypothesis import strategies as st

from toolsearch.errors import ChatModelError
from toolsearch.wire import events
from toolsearch.wire.events import Event, EventReader


def read(pieces: Iterable[bytes]) -> tuple[list[Event], bytes]:
    """Return the events, and the bytes after the last of them."""
    reader, came = EventReader(), list(pieces)
    found = [event for piece in came for event in reader.add(piece)]
    return found, b"".join(came)[sum(len(event.raw) for event in found) :]


def pieces_of(stream: bytes, sizes: list[int]) -> list[bytes]:
    ends = [*accumulate(sizes), len(stream)]
    return [stream[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]


LINES = st.sampled_from(
    ["event: a", "event:b", "data: 1", "data:2", "data:  é\u2028x", "data", ": ping", "id: 3", "retry: 9", "x", "", ""]
)
ENDS = st.sampled_from(["\n", "\r\n", "\r"])
SIZES = st.lists(st.integers(0, 9), max_size=40)


@given(st.lists(st.tuples(LINES, ENDS), max_size=30), SIZES)
def test_events_are_read_as_the_sdk_reads_them_however_the_bytes_are_cut(
    lines: list[tuple[str, str]], sizes: list[int]
) -> None:
    stream = "".join(f"{line}{end}" for line, end in lines).encode()

    found, rest = read(pieces_of(stream, sizes))

    whole = stream.removesuffix(rest)
    expected = [(each.event or "", each.data) for each in SSEDecoder().iter_bytes(iter([whole])) if each.data]
    assert [(event.name, event.data) for event in found if event.data] == expected
    assert b"".join(event.raw for event in found) + rest == stream


@given(st.lists(st.sampled_from([b"\r", b"\n", b"x", b"data: y"]), max_size=20), SIZES)
def test_no_byte_is_lost(parts: list[bytes], sizes: list[int]) -> None:
    stream = b"".join(parts)

    found, rest = read(pieces_of(stream, sizes))

    assert b"".join(event.written() for event in found) + rest == stream


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_an_event_is_given_with_its_last_byte(end: str) -> None:
    reader = EventReader()

    assert reader.add(f"event: a{end}data: 1{end}".encode()) == []
    assert [event.data for event in reader.add(end[:1].encode())] == ["1"]


def test_a_comment_alone_is_an_event_without_data() -> None:
    assert read([b": ping\n\n"])[0] == [Event("", "", b": ping\n\n")]


def test_a_mark_of_the_byte_order_is_skipped() -> None:
    assert [event.data for event in read([b"\xef\xbb\xbfdata: 1\n\n"])[0]] == ["1"]


@given(st.text("ab", max_size=3), st.dictionaries(st.text(max_size=3), st.text() | st.floats(allow_nan=False)))
def test_an_event_that_is_made_is_read_back(name: str, data: dict[str, object]) -> None:
    made = Event.made(name, data)

    (found,), rest = read([made.written()])

    assert (found.name, json.loads(found.data), rest) == (name, data, b"")


def test_a_lone_surrogate_is_written_as_an_escape() -> None:
    lone = cast("str", json.loads('"\\ud800"'))

    (found,), _ = read([Event.made("a", {"text": lone}).written()])

    assert json.loads(found.data) == {"text": lone}


def test_data_of_several_lines_cannot_add_fields() -> None:
    assert Event("a", "1\nevent: b\r2").written() == b"event: a\ndata: 1\ndata: event: b\ndata: 2\n\n"


def test_an_event_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MOST_EVENT_BYTES", 10)
    reader = EventReader()
    reader.add(b"data: 1234")

    with pytest.raises(ChatModelError, match="an event of more than 10 bytes"):
        reader.add(b"5")


def test_a_long_event_in_small_pieces_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search for the end of the event never starts from its beginning again."""
    started: list[int] = []
    end: re.Pattern[bytes] = vars(events)["_EVENT_END"]

    class Searched:
        def search(self, rest: bytearray, begin: int) -> object:
            started.append(len(rest) - begin)
            return end.search(rest, begin)

    monkeypatch.setattr(events, "_EVENT_END", Searched())
    read([b"data: 1"] * 1_000)

    assert max(started) == len(b"data: 1") + 3
