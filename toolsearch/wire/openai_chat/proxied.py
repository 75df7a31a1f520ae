"""Chat Completions through a proxy. See `toolsearch.wire.proxied`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from toolsearch.documents.json_values import as_list, as_object, is_list, is_object
from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.wire.carried import CarriedCall, CarriedRound, answer_of, carried_call, write_carrier
from toolsearch.wire.events import Event
from toolsearch.wire.openai_chat.messages import read_call, why_unfinished_choice, write_calls
from toolsearch.wire.openai_chat.restored import BETWEEN, assistant, is_indexed, own_result, restored
from toolsearch.wire.proxied import Continuation, History, ToClient
from toolsearch.wire.proxied_parts import compact, error_body, objects, read_object, summed

__all__ = ["CONTINUATION", "ENTRIES", "PATH", "error_body", "open_reply", "restored"]

PATH: Final = "/v1/chat/completions"
ENTRIES: Final = "messages"
CONTINUATION: Final[Continuation | None] = None

_IDENTITY: Final = ("id", "created", "model")
_DONE: Final = "[DONE]"
_FOR_CALLS: Final = ("tool_calls", "function_call")  # finish reasons


def open_reply(held: Collection[str], to_client: ToClient, history: History) -> ChatReply:
    return ChatReply(held, to_client, history)


def _joined(pieces: Sequence[Json]) -> Json:
    if all(isinstance(piece, str) for piece in pieces):
        return "".join(pieces)
    return [item for piece in pieces for item in piece] if all(map(is_list, pieces)) else pieces[-1]


def _size(value: Json) -> int:
    if isinstance(value, str):
        return len(value)
    return 1 + max(item["index"] for item in value) if is_indexed(value) else 0


class _Call:
    """A call that comes in pieces."""

    def __init__(self, key: int) -> None:
        self.key = key
        self.id = ""
        self.name = ""
        self._pieces: list[JsonObject] = []

    def add(self, piece: JsonObject) -> None:
        called = _function(piece) or as_object(piece.get("custom")) or {}
        self.id = self.id or str(piece.get("id") or "")
        self.name = self.name or str(called.get("name") or "")
        self._pieces.append(piece)

    def entry(self, position: int) -> dict[str, Json]:
        """The whole call. One without an id gets ``call_<position>``, as elsewhere in this package."""
        whole = {"id": f"call_{position}", "type": "function", **_whole(self._pieces)}
        if is_object(function := whole.get("function")):
            whole["function"] = {"name": "", "arguments": "", **function}
        return whole


def _function(entry: JsonObject) -> JsonObject | None:
    return as_object(entry.get("function"))


def _whole(pieces: Sequence[JsonObject]) -> dict[str, Json]:
    """Join the pieces of a call: what the model writes is appended, and of what endpoints repeat the first counts."""
    values: dict[str, list[Json]] = {}
    for piece in pieces:
        for key, value in piece.items():
            if value is not None and value != "" and key != "index":
                values.setdefault(key, []).append(value)
    whole: dict[str, Json] = {}
    for key, parts in values.items():
        if key in ("function", "custom"):
            whole[key] = _whole(list(filter(is_object, parts)))
        elif key in ("arguments", "input"):
            whole[key] = "".join(part if isinstance(part, str) else compact(part) for part in parts)
        else:
            whole[key] = parts[0]
    return whole


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What becomes of a call: it is *own*, or the client gets it as *given*."""

    place: int
    entry: dict[str, Json]
    own: ToolCall | None = None
    given: dict[str, Json] = field(default_factory=dict[str, Any])

    @property
    def extra(self) -> dict[str, Json]:
        """The fields of the endpoint's own."""
        return {key: value for key, value in self.entry.items() if key not in ("id", "type", "function")}


class _Round:
    """What the model has said in one round."""

    def __init__(self) -> None:
        self.finish_reason: Json = None
        self.is_whole = False
        self.usage: JsonObject | None = None
        self.said: dict[str, list[Json]] = {}
        self.calls: list[_Call] = []
        self.waiting: list[tuple[Event, JsonObject, JsonObject]] = []  # with what came, and what of it the client gets
        self.outcomes: list[_Outcome] | None = None
        self.is_given = False
        self._by_key: dict[int, _Call] = {}

    def call(self, piece: JsonObject, position: int) -> _Call:
        """The call that *piece* belongs to. Some endpoints send whole calls without an index, or give parallel calls
        the same index, so a new id means a new call.
        """
        index = piece.get("index")
        key = index if isinstance(index, int) else position
        call = self._by_key.get(key)
        call_id = str(piece.get("id") or "")
        if call is None or (call_id and call.id and call_id != call.id):
            call = self._by_key[key] = _Call(key)
            self.calls.append(call)
        return call

    def fields(self) -> dict[str, Json]:
        values = {key: _joined(pieces) for key, pieces in self.said.items() if pieces}
        return {key: value for key, value in values.items() if value}

    @property
    def unfinished(self) -> str:
        return why_unfinished_choice(self.finish_reason, is_refused=bool(self.fields().get("refusal")))


class ChatReply:
    """See `Reply`. Where a client gets other calls than the model made, it gets each as a whole."""

    def __init__(self, held: Collection[str], to_client: ToClient, history: History) -> None:
        self._held, self._to_client, self._history = held, to_client, history
        self._round = _Round()
        self._is_over = False  # the round has ended, and the next event begins another
        self._rounds: list[CarriedRound] = []  # hidden so far
        self._sizes: dict[str, int] = {}  # what the client got in them, by field
        self._usage_before: Json = None
        self._identity: dict[str, Json] = {}
        self._has_role = False
        self._has_failed = False
        self._is_changed = False
        self._ending: list[Event] = []
        self._body: dict[str, Json] = {}
        self._message: dict[str, Json] = {}

    def add_event(self, event: Event) -> list[Event]:
        self._begin()
        chunk = read_object(event.data)
        if chunk is None or not is_list(chunk.get("choices")):
            self._has_failed = self._has_failed or (chunk is not None and "error" in chunk)
            self._round.is_whole |= event.data == _DONE  # some endpoints give no reason, and then no call runs
            return self._kept(event) if self._round.is_whole and event.data else [event]
        sent = self._for_client(chunk, "delta")
        if self._round.is_whole:
            if self._is_untouched:
                return self._kept(event)
            sent, end = _split(sent)
            self._kept(*self._changed(event, chunk, end))
        if self._held and self._round.calls:
            self._round.waiting.append((event, chunk, sent))
            return []
        return self._changed(event, chunk, sent)

    def add_whole(self, reply: dict[str, Json]) -> None:
        self._begin()
        sent = self._for_client(reply, "message") if is_list(reply.get("choices")) else reply
        self._round.is_whole = True
        self._is_changed |= not self._is_untouched
        self._body = sent if self._is_changed else reply
        for choice in _first(self._body, "message"):
            self._message = _merged(self._message, choice["message"])

    @property
    def is_whole(self) -> bool:
        return self._round.is_whole and not self._is_over

    @property
    def own_calls(self) -> list[ToolCall]:
        return [outcome.own for outcome in self._outcomes() if outcome.own is not None]

    @property
    def has_client_calls(self) -> bool:
        return "function_call" in self._round.said or any(each.given for each in self._outcomes())

    def next_entries(self, results: Sequence[ToolResult]) -> list[dict[str, Json]]:
        entries = [outcome.entry for outcome in self._outcomes()]
        answers = [(each.call_id, answer_of(each, self._history.answer_to_search)) for each in results]
        return [assistant(self._round.fields(), entries), *(own_result(*each) for each in answers)]

    def end_round(self, results: Sequence[ToolResult]) -> list[Event]:
        own = [(each, each.own) for each in self._outcomes() if each.own is not None]
        pairs = zip(own, results, strict=True)
        carried = [carried_call(each.place, call, result, each.extra) for (each, call), result in pairs]
        events = self._release(carried)
        if not self.has_client_calls:
            sizes = {key: size for key, value in self._round.fields().items() if (size := _size(value))}
            self._rounds.append(CarriedRound(sizes, carried))
            self._sizes = {key: self._sizes.get(key, 0) + sizes.get(key, 0) for key in {**self._sizes, **sizes}}
        self._usage_before = summed(self._usage_before, self._round.usage)
        self._is_over = self._is_changed = True
        return events

    def end(self) -> list[Event]:
        events = self._release()
        if not self._is_changed:
            return [*events, *self._ending]
        ending = [self._truly_ended(event) for event in self._ending]
        return [*events, *ending, *([] if any(event.data == _DONE for event in ending) else [Event("", _DONE)])]

    def fail(self, message: str) -> list[Event]:
        if self._has_failed:
            return []
        return [Event.made("", error_body(message, "chat_model_error", 502)), Event("", _DONE)]

    def body(self) -> dict[str, Json]:
        self._release()
        if not self._is_changed:
            return self._body
        choices = [
            {**choice, "message": self._message, "finish_reason": self._finish_reason(choice.get("finish_reason"))}
            for choice in _first(self._body, "message")
        ]
        return {**self._body, "choices": choices}

    @property
    def is_changed(self) -> bool:
        return self._is_changed

    @property
    def stored(self) -> None:
        """No request of this API continues a reply that is stored."""
        return None

    def _begin(self) -> None:
        if self._is_over:
            self._round, self._is_over, self._ending = _Round(), False, []

    @property
    def _is_untouched(self) -> bool:
        return not self._rounds and not any(call.name in self._held for call in self._round.calls)

    def _for_client(self, reply: JsonObject, key: str) -> dict[str, Json]:
        """Return the whole *reply*, or a chunk, as the client gets it; *key* holds what the model said."""
        self._identity = {name: reply[name] for name in _IDENTITY if reply.get(name)} | self._identity
        sent = {**reply, "choices": [self._choice(choice, key) for choice in reply["choices"]]}
        if is_object(reply.get("usage")):
            self._round.usage = reply["usage"]
            sent["usage"] = summed(self._usage_before, reply["usage"])
        return {**sent, **self._identity} if self._rounds else sent

    def _choice(self, choice: Json, key: str) -> Json:
        """Only the first choice is changed: requests for several are not for a proxy."""
        if not is_object(choice) or choice.get("index"):
            return choice
        if choice.get("finish_reason"):
            self._round.finish_reason, self._round.is_whole = choice["finish_reason"], True
        return {**choice, key: self._said(choice[key])} if is_object(choice.get(key)) else choice

    def _said(self, delta: JsonObject) -> dict[str, Json]:
        sent = dict(delta)
        if delta.get("role"):
            if self._has_role and self._rounds:
                del sent["role"]
            self._has_role = True
        for key, value in delta.items():
            if key not in ("role", "tool_calls") and value is not None:
                sent[key] = self._said_in(key, value)
        if self._held and is_list(delta.get("tool_calls")):
            self._add_calls(sent.pop("tool_calls"))
        return sent

    def _said_in(self, key: str, value: Json) -> Json:
        before = self._sizes.get(key, 0)
        pieces = self._round.said.setdefault(key, [])
        is_first = not any(pieces)
        pieces.append(value)
        if before and key == "content" and is_first and value and isinstance(value, str):
            return BETWEEN + value
        if before and is_indexed(value):
            return [{**item, "index": item["index"] + before} for item in value]
        return value

    def _add_calls(self, pieces: Sequence[Json]) -> None:
        for position, piece in enumerate(pieces):
            if is_object(piece):
                self._round.call(piece, position).add(piece)

    def _outcomes(self) -> list[_Outcome]:
        """What becomes of the calls, once the round is whole."""
        if not self._round.is_whole:
            return []
        if self._round.outcomes is None:
            calls = enumerate(self._round.calls)
            self._round.outcomes = [self._outcome(place, call) for place, call in calls if call.name]
        return self._round.outcomes

    def _outcome(self, place: int, waiting: _Call) -> _Outcome:
        entry = waiting.entry(place + 1)
        call = read_call(entry, place + 1) if waiting.name in self._held else None
        if call is None:
            return _Outcome(place, entry, given=entry)
        call = replace(call, unfinished=self._round.unfinished)
        given = self._to_client(call)
        if given is None:
            return _Outcome(place, entry, own=call)
        return _Outcome(place, entry, given={**entry, **write_calls([given])[0]})

    def _release(self, beside: Sequence[CarriedCall] = ()) -> list[Event]:
        """What has waited, without the proxy's calls. The client's first call carries the rounds and those *beside*."""
        waiting, self._round.waiting = self._round.waiting, []
        if self._is_untouched:
            return [event for event, _, _ in waiting]
        events = [out for each in waiting for out in self._changed(*each)]
        given = [] if self._round.is_given else [each.given for each in self._outcomes() if each.given]
        self._round.is_given = True
        if given:
            rounds = [*self._rounds, CarriedRound({}, list(beside))]
            given[0] = {**given[0], "id": write_carrier(given[0]["id"], rounds)}
            self._message["tool_calls"] = given
        return [*events, *(self._chunk({"index": number, **call}) for number, call in enumerate(given))]

    def _chunk(self, call: JsonObject) -> Event:
        choice = {"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}
        return Event.made("", {"object": "chat.completion.chunk", **self._identity, "choices": [choice]})

    def _kept(self, *events: Event) -> list[Event]:
        self._ending += events
        return []

    def _changed(self, event: Event, chunk: JsonObject, sent: JsonObject) -> list[Event]:
        """Return *event* itself if the client gets the *chunk* as it came, and none if nothing is left of it."""
        if sent == chunk:
            return [event]
        self._is_changed = True
        return [Event.made(event.name, sent)] if _says_something(sent) else []

    def _truly_ended(self, event: Event) -> Event:
        chunk = read_object(event.data) or {}
        choices = [
            {**choice, "finish_reason": self._finish_reason(choice.get("finish_reason"))}
            for choice in objects(chunk.get("choices"))
        ]
        is_same = choices == chunk.get("choices", [])
        return event if is_same else Event.made(event.name, {**chunk, "choices": choices})

    def _finish_reason(self, reason: Json) -> Json:
        """A reply whose calls are all hidden has stopped: clients fail if they are promised calls and get none."""
        return "stop" if reason in _FOR_CALLS and not self.has_client_calls else reason


def _first(reply: JsonObject, key: str) -> list[JsonObject]:
    choices = as_list(reply.get("choices")) or ()
    return [
        choice for choice in choices if is_object(choice) and not choice.get("index") and is_object(choice.get(key))
    ]


def _merged(before: JsonObject, message: JsonObject) -> dict[str, Json]:
    """The message of all rounds: what each of them said, one after another."""
    said = {key: value for key, value in message.items() if value is not None}
    joined = {key: _joined([before[key], value]) for key, value in said.items() if before.get(key) is not None}
    return {**message, **before, **said, **joined}


def _split(chunk: JsonObject) -> tuple[dict[str, Json], dict[str, Json]]:
    """Split a chunk that ends a message: what it says, and how it ends."""
    choices = objects(chunk["choices"])
    said = {**chunk, "choices": [{**choice, "finish_reason": None} for choice in choices]}
    said.pop("usage", None)
    return said, {**chunk, "choices": [{**choice, "delta": {}, "logprobs": None} for choice in choices]}


def _says_something(chunk: JsonObject) -> bool:
    return is_object(chunk.get("usage")) or any(
        choice.get("finish_reason") or choice.get("logprobs") or any((as_object(choice.get("delta")) or {}).values())
        for choice in objects(chunk["choices"])
    )
