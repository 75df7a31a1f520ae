"""Reads users' logs of their own conversations, and makes these playable over a catalog.

A log holds requests, messages or items of any of the model APIs. They become turns with the catalog's names, and with
queries for the called tools.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from toolsearch.bench.conversations import Dialogue, Step, Turn, Use
from toolsearch.discovery.call_tools import CALL_TOOLS
from toolsearch.documents.json_values import as_list, as_object, is_list
from toolsearch.errors import BadArgumentsError
from toolsearch.evaluation.queries import propose_queries
from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.naming import TOOL_NAME
from toolsearch.tools.results import text_block
from toolsearch.wire.content import block_as_text
from toolsearch.wire.formats import (
    WireFormat,
    entries_of,
    entries_of_reply,
    format_of,
    is_entry,
    is_request,
    read_conversation,
)
from toolsearch.wire.messages import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage
from toolsearch.wire.reply_parts import arguments_object


def conversation_of(messages: Iterable[Message]) -> Dialogue:
    """Return *messages* as turns; each begins with a user's message.

    Consecutive replies are one reply, since some logs have each part on a line of its own. The same holds for
    consecutive messages of the user. Results without a call are left out.
    """
    systems: list[str] = []
    turns: list[_GrowingTurn] = []
    for message in messages:
        if isinstance(message, SystemMessage):
            systems.append(message.text)
        elif isinstance(message, UserMessage):
            _add_user(turns, said_by_user(message))
        elif isinstance(message, AssistantMessage):
            _add_model(turns, message)
        elif isinstance(message, ToolMessage):
            for result in message.results:
                _give_back(turns, result)
    return Dialogue(tuple(turn.finished() for turn in turns), "\n\n".join(filter(None, systems)))


def said_by_user(message: UserMessage) -> str:
    return text_of((*message.content, text_block(message.text)))


def text_of(blocks: Iterable[JsonObject]) -> str:
    """The text of *blocks*. Blocks other than text are only named."""
    return "\n".join(filter(None, map(block_as_text, blocks)))


@dataclass(slots=True)
class _GrowingStep:
    texts: list[str]
    calls: list[ToolCall]
    results: dict[int, str] = field(default_factory=dict[int, str])  # place of the call -> its result

    def finished(self) -> Step:
        uses = [
            Use(call.name, arguments_object(call), self.results.get(place, "")) for place, call in enumerate(self.calls)
        ]
        return Step(tuple(uses), "\n".join(self.texts))


@dataclass(slots=True)
class _GrowingTurn:
    users: list[str]
    replies: list[_GrowingStep] = field(default_factory=list[_GrowingStep])

    def finished(self) -> Turn:
        """The turn. The text of a reply without calls is the answer."""
        steps = tuple(reply.finished() for reply in self.replies if reply.calls)
        answers = [text for reply in self.replies if not reply.calls for text in reply.texts]
        return Turn("\n".join(self.users), steps, "\n".join(answers))


def _add_user(turns: list[_GrowingTurn], said: str) -> None:
    if turns and not turns[-1].replies:
        turns[-1].users.append(said)
    else:
        turns.append(_GrowingTurn([said]))


def _add_model(turns: list[_GrowingTurn], message: AssistantMessage) -> None:
    if not turns:
        turns.append(_GrowingTurn([]))
    replies = turns[-1].replies
    if not replies or replies[-1].results:
        replies.append(_GrowingStep([], []))
    replies[-1].texts += [message.text] if message.text else []
    replies[-1].calls += message.tool_calls


def _give_back(turns: list[_GrowingTurn], result: ToolResult) -> None:
    """Give *result* to the last call of that id without a result: some endpoints number the calls of each
    reply anew.
    """
    for turn in reversed(turns):
        for reply in reversed(turn.replies):
            for place, call in enumerate(reply.calls):
                if call.id == result.call_id and place not in reply.results:
                    reply.results[place] = text_of(result.content)
                    return


# Keys that wrap a request in logs, batch files, and Claude Code.
_WRAPPER_KEYS: Final = ("request", "body", "params", "message")
_REPLIES: Final = ("response", "reply")
_LEADING_BLANKS: Final = " \t\r\n\ufeff"  # white space, and the byte order mark that some editors write first


@dataclass(frozen=True, slots=True)
class Skipped:
    """An unreadable part: its place, such as "line 12", and the reason. Its content is not repeated."""

    place: str
    why: str


@dataclass(frozen=True, slots=True)
class Transcript:
    """The conversations of a log, in the order of their beginnings, and the parts that could not be read."""

    conversations: tuple[Dialogue, ...]
    skipped: tuple[Skipped, ...] = ()


def read_transcript(text: str) -> Transcript:
    """Return the conversations in *text*: one JSON document, or JSONL with one on each line.

    A document, or a line, is a request of Anthropic's Messages, OpenAI's Chat Completions or Responses, perhaps with
    its reply beside it; a list of messages; or one message or item. Single messages are one conversation. A request
    that continues an earlier one, as each round of a loop does, belongs to the same conversation.
    """
    log = _Log()
    for entry in _entries(text):
        log.add(entry)
    return log.transcript()


@dataclass(frozen=True, slots=True)
class _Entry:
    """An entry of a log. *number* is its place, from 1. *value* is None if it is ``null`` or not JSON."""

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
            if line.strip(_LEADING_BLANKS):
                yield _Entry(number, f"line {number}", _parsed(line))


def _parsed(text: str) -> Json | None:
    try:
        return json.loads(text.strip(_LEADING_BLANKS))
    except (ValueError, RecursionError):
        return None


class _Log:
    """Collects the contents of the entries of a log."""

    def __init__(self) -> None:
        # Number of the entry -> why it is skipped; messages are read last, so the order differs.
        self._skipped: dict[int, Skipped] = {}
        self._conversations: list[list[Message]] = []  # ordered by their beginnings
        self._ends: dict[bytes, int] = {}  # digest of all that was said -> the conversation that ends there
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
        except BadArgumentsError:  # the message of the error may quote the log
            self._skip(entry, f"its messages are not all in the format {wire_format!r}")
            return []

    def _read_singles(self) -> list[Message]:
        """Return one conversation, without unreadable messages."""
        wire_format = format_of([single.value for single in self._singles], {})
        readable: list[Json] = []
        for single in self._singles:
            if _is_readable(single.value, wire_format):
                readable.append(single.value)
            else:
                self._skip(single, f"it is no message in the format {wire_format!r}, as others are")
        return read_conversation(readable, {}, wire_format)

    def _keep(self, messages: list[Message]) -> None:
        """Keep *messages* as a new conversation, or in place of the conversation that they continue."""
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
    """The content of a line, without times and ids around it; the line itself if it has no such wrapper."""
    fields = as_object(value)
    if fields is None or "role" in fields:
        return fields
    inner = (as_object(fields.get(key)) for key in _WRAPPER_KEYS)
    return next((each for each in inner if each is not None), fields)


def _is_readable(entry: Json, wire_format: WireFormat) -> bool:
    try:
        read_conversation([entry], {}, wire_format)
    except BadArgumentsError:
        return False
    return True


def _digests(messages: Iterable[Message]) -> list[bytes]:
    """For each message, a digest of the conversation up to it. System messages may contain the time, and do
    not count.
    """
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


_CLIENT_PREFIX: Final = "mcp__"  # a prefix that some clients put before the name of each MCP server
_MOST_QUERIES: Final = 2


@dataclass(frozen=True, slots=True)
class Logged:
    """*conversations* are ready to play.

    missing   calls of tools that the catalog lacks, by name; they fail in every way of giving tools
    guessed   calls without a search in the log; their queries are made from the tool's own words
    """

    conversations: tuple[Dialogue, ...]
    missing: Mapping[str, int]
    guessed: int


def logged(conversations: Iterable[Dialogue], definitions: Iterable[ToolDefinition], *, seed: int = 0) -> Logged:
    """Searches in the log become the queries of the calls after them, and are not played themselves."""
    fitter = _Fitter({definition.name: definition for definition in definitions}, seed)
    fitted = tuple(
        replace(each, turns=tuple(fitter.turn(turn) for turn in each.turns)) for each in conversations if each.turns
    )
    return Logged(fitted, dict(sorted(fitter.missing.items())), fitter.guessed)


class _Fitter:
    def __init__(self, definitions: Mapping[str, ToolDefinition], seed: int) -> None:
        self.missing = Counter[str]()
        self.guessed = 0
        self._definitions = definitions
        self._seed = seed
        self._proposed: dict[str, tuple[str, ...]] = {}

    def turn(self, turn: Turn) -> Turn:
        searched: tuple[str, ...] = ()
        steps: list[Step] = []
        for step in turn.steps:
            searched = tuple(query for use in step.calls for query in _queries_in(use)) or searched
            calls = tuple(self._use(_without_gateway(use), searched) for use in step.calls if not _is_search(use))
            if calls:
                steps.append(replace(step, calls=calls))
        return replace(turn, steps=tuple(steps))

    def _use(self, use: Use, searched: Sequence[str]) -> Use:
        name = use.name if use.name in self._definitions else use.name.removeprefix(_CLIENT_PREFIX)
        definition = self._definitions.get(name)
        if definition is None:
            self.missing[use.name] += 1
            return replace(use, queries=tuple(searched))
        self.guessed += not searched
        return replace(use, name=name, queries=tuple(searched) or self._queries_of(definition))

    def _queries_of(self, definition: ToolDefinition) -> tuple[str, ...]:
        queries = self._proposed.get(definition.name)
        if queries is None:
            proposed = propose_queries([definition], _MOST_QUERIES, seed=self._seed)
            texts = [each.text for each in proposed] or [definition.name.replace("_", " ")]
            queries = self._proposed[definition.name] = tuple(texts)
        return queries


def _is_search(use: Use) -> bool:
    return _own_name(use) == TOOL_NAME


def _own_name(use: Use) -> str:
    """Without a gateway's name before it."""
    return use.name.rpartition("__")[2]


def _queries_in(use: Use) -> list[str]:
    if not _is_search(use):
        return []
    asked = [use.arguments.get("query"), *(as_list(use.arguments.get("queries")) or ())]
    return [query for query in asked if isinstance(query, str) and query]


def _without_gateway(use: Use) -> Use:
    """The use of the tool that was called through one of the gateway's tools."""
    name = use.arguments.get("name")
    if _own_name(use) not in CALL_TOOLS or not isinstance(name, str):
        return use
    return replace(use, name=name, arguments=as_object(use.arguments.get("arguments")) or {})
