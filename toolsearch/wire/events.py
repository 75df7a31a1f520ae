"""Server-sent events, as model APIs stream them: read from bytes, and written.

Source: the section "Server-sent events" of the HTML standard, html.spec.whatwg.org. Nobody here reconnects, so the
fields ``id`` and ``retry`` are not read.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Final

from toolsearch.errors import ChatModelError
from toolsearch.tools.json_types import JsonObject

MOST_EVENT_BYTES: Final = 32 * 1024 * 1024  # that are kept at once; the largest events are those that hold pictures
_LINE_END = re.compile(r"\r\n|\r|\n")
_EVENT_END = re.compile(rb"(?:\r\n|\n|\r(?!\n))(?:\r\n|\n|\r)")
_LONGEST_END = 4


@dataclass(frozen=True, slots=True)
class Event:
    """One event. *raw* are the bytes that it came with, blank line included; b"" for one that is made here."""

    name: str
    data: str
    raw: bytes = b""

    @classmethod
    def made(cls, name: str, data: JsonObject) -> Event:
        return cls(name, json.dumps(data, ensure_ascii=False, separators=(",", ":")))

    def written(self) -> bytes:
        """A lone surrogate, which UTF-8 cannot hold, becomes the escape that JSON has for it."""
        name = f"event: {self.name}\n" if self.name else ""
        data = "".join(f"data: {line}\n" for line in _LINE_END.split(self.data))
        return self.raw or f"{name}{data}\n".encode(errors="backslashreplace")


UNSENT: Final = Event("", "")  # stands for each event of a reply that is not streamed


class EventReader:
    """Takes the bytes of a stream in pieces of any size. Line ends may be LF, CR LF or CR, and lines may be comments.

    The raw bytes of all events, joined, are the bytes of the stream up to the end of its last complete event.
    """

    def __init__(self) -> None:
        self._rest = bytearray()

    def add(self, piece: bytes) -> list[Event]:
        """Return the events that are complete now; an event of comments alone, such as a ping, has no data.

        Raises ChatModelError if an event is larger than MOST_EVENT_BYTES.
        """
        seen = max(len(self._rest) - _LONGEST_END + 1, 0)  # an end may have begun in the pieces before
        self._rest += piece
        events: list[Event] = []
        begin = 0
        while end := _EVENT_END.search(self._rest, seen):
            events.append(_read(bytes(self._rest[begin : end.end()])))
            begin = seen = end.end()
        del self._rest[:begin]
        require_size(len(self._rest), "an event")
        return events

    @property
    def rest(self) -> bytes:
        """The bytes after the last complete event: the part of an event that a stream broke off in."""
        return bytes(self._rest)


def require_size(size: int, what: str) -> None:
    """Raises ChatModelError if *size*, the bytes of *what* that a model has sent, is more than is kept."""
    if size > MOST_EVENT_BYTES:
        raise ChatModelError(f"the model sent {what} of more than {MOST_EVENT_BYTES:,} bytes; ask again")


def _read(raw: bytes) -> Event:
    name, data = "", list[str]()
    for line in _LINE_END.split(raw.decode(errors="replace").removeprefix("\ufeff")):
        field, _, value = line.partition(":")
        if field == "event":
            name = value.removeprefix(" ")
        elif field == "data":
            data.append(value.removeprefix(" "))
    return Event(name, "\n".join(data), raw)
