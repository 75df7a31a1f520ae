"""Reads what users have logged of their own conversations: requests, messages or items of any of the model APIs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from toolsearch.bench.turns import conversation_of, said_by_user, text_of
from toolsearch.bench.workload import Conversation
from toolsearch.documents.json_values import as_object, is_list
from toolsearch.errors import BadArgumentsError
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.wire.arguments import arguments_object
from toolsearch.wire.conversations import (
    entries_of,
    entries_of_reply,
    format_of,
    is_entry,
    is_request,
    read_conversation,
)
from toolsearch.wire.formats import WireFormat
from toolsearch.wire.messages import AssistantMessage, Message, ToolMessage, UserMessage

_WRAPPED_IN: Final = ("request", "body", "params", "message")  # of logs, files of batches, and Claude Code
_REPLIES: Final = ("response", "reply")
_BLANK: Final = " \t\r\n\ufeff"  # a mark of the byte order, too, with which some editors begin a file


@dataclass(frozen=True, slots=True)
class Skipped:
    """What could not be read: where it stands, such as "line 12", and why. Nothing of what it says is repeated."""

    place: str
    why: str


@dataclass(frozen=True, slots=True)
class Transcript:
    """The conversations of a log, in the order in which they begin, and what of it could not be read."""

    conversations: tuple[Conversation, ...]
    skipped: tuple[Skipped, ...] = ()


def read_transcript(text: str) -> Transcript:
    """Return the conversations in *text*: one JSON document, or JSONL with one on each line.

    A document, or a line, is a request of Anthropic's Messages, OpenAI's Chat Completions or Responses, perhaps with
    its reply beside it; a list of messages; or one message or item. Single messages are one conversation. A request
    that goes on with an earlier one, as each round of a loop does, is the same conversation.
    """
    log = _Log()
    for entry in _entries(text):
        log.add(entry)
    return log.transcript()


@dataclass(frozen=True, slots=True)
class _Entry:
    """*number* is the place among the others, from 1. *value* is None for what is no JSON, or ``null``."""

    number: int
    place: str
    value: Json


def _entries(text: str) -> Iterator[_Entry]:
    whole = _parsed(text)
    if is_list(whole):
        for number, item in enumerate(whole, 1):
            yield _Entry(number, f"item {number}", item)
    elif whole is not None:
        yield _Entry(1, "the document", whole)
    else:
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip(_BLANK):
                yield _Entry(number, f"line {number}", _parsed(line))


def _parsed(text: str) -> Json | None:
    try:
        return json.loads(text.strip(_BLANK))
    except (ValueError, RecursionError):
        return None


class _Log:
    """Collects what the entries of a log say."""

    def __init__(self) -> None:
        self._skipped: dict[int, Skipped] = {}  # by the entry's number, as messages are read after all else
        self._conversations: list[list[Message]] = []  # in the order in which they begin
        self._ends: dict[bytes, int] = {}  # which of them has come to which end, as a digest of all that was said
        self._singles: list[_Entry] = []
        self._place_of_singles = 0

    def add(self, entry: _Entry) -> None:
        held = _conversation_in(entry.value)
        if held is not None:
            self._keep(self._read(entry, *held))
        elif (single := _unwrapped(entry.value)) is not None and is_entry(single):
            if not self._singles:
                self._place_of_singles = len(self._conversations)
            self._singles.append(replace(entry, value=single))
        elif entry.value is None:
            self._skip(entry, "it is not JSON")
        else:
            self._skip(entry, "it is neither a request, nor a message, nor a list of messages")

    def transcript(self) -> Transcript:
        self._conversations.insert(self._place_of_singles, self._read_singles())
        conversations = [conversation_of(messages) for messages in self._conversations]
        skipped = [self._skipped[number] for number in sorted(self._skipped)]
        return Transcript(tuple(each for each in conversations if each.turns), tuple(skipped))

    def _skip(self, entry: _Entry, why: str) -> None:
        self._skipped[entry.number] = Skipped(entry.place, why)

    def _read(self, entry: _Entry, entries: Sequence[Json], request: JsonObject) -> list[Message]:
        wire_format = format_of(entries, request)
        try:
            return read_conversation(entries, request, wire_format)
        except BadArgumentsError:  # whose message may quote what it refuses
            self._skip(entry, f"its messages are not all in the format {wire_format!r}")
            return []

    def _read_singles(self) -> list[Message]:
        """One conversation, without what cannot be read of it."""
        wire_format = format_of([single.value for single in self._singles], {})
        readable: list[Json] = []
        for single in self._singles:
            if _is_readable(single.value, wire_format):
                readable.append(single.value)
            else:
                self._skip(single, f"it is no message in the format {wire_format!r}, as others are")
        return read_conversation(readable, {}, wire_format)

    def _keep(self, messages: list[Message]) -> None:
        """As a conversation of its own, or instead of the one that it goes on with."""
        digests = _digests(messages)
        if not digests:
            return
        earlier = next((digest for digest in reversed(digests) if digest in self._ends), None)
        if earlier is None:
            number = len(self._conversations)
            self._conversations.append(messages)
        else:
            number = self._ends.pop(earlier)
            self._conversations[number] = messages
        self._ends[digests[-1]] = number


def _conversation_in(value: Json) -> tuple[list[Json], JsonObject] | None:
    """The entries of the conversation that *value* holds whole, and the request that they are from."""
    if is_list(value):
        return value, {}
    fields = as_object(value)
    request = fields if fields is None or is_request(fields) else _unwrapped(fields)
    if fields is None or request is None or not is_request(request):
        return None
    replies = [entry for key in _REPLIES for entry in entries_of_reply(as_object(fields.get(key)) or {})]
    return [*entries_of(request), *replies], request


def _unwrapped(value: Json) -> JsonObject | None:
    """What a line of a log holds beside times and ids; the line itself if there is no such thing."""
    fields = as_object(value)
    if fields is None or "role" in fields:
        return fields
    inner = (as_object(fields.get(key)) for key in _WRAPPED_IN)
    return next((each for each in inner if each is not None), fields)


def _is_readable(entry: Json, wire_format: WireFormat) -> bool:
    try:
        read_conversation([entry], {}, wire_format)
    except BadArgumentsError:
        return False
    return True


def _digests(messages: Iterable[Message]) -> list[bytes]:
    """For each message, a digest of what was said up to it. What the system says may tell the time, and counts not."""
    digest = hashlib.sha256()
    digests: list[bytes] = []
    for message in messages:
        said = _said(message)
        if said is not None:
            digest.update(json.dumps(said, sort_keys=True).encode())
            digests.append(digest.digest())
    return digests


def _said(message: Message) -> list[Json] | None:
    match message:
        case UserMessage():
            return ["user", said_by_user(message)]
        case AssistantMessage():
            calls = [[call.id, call.name, arguments_object(call)] for call in message.tool_calls]
            return ["assistant", message.text, calls]
        case ToolMessage():
            return ["results", [[result.call_id, text_of(result.content)] for result in message.results]]
        case _:
            return None
