"""Anthropic's Messages through a proxy. See `toolsearch.wire.proxied`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Final, cast

from toolsearch.documents.json_values import as_list, as_object
from toolsearch.errors import BadArgumentsError
from toolsearch.tools.calls import ToolCall, ToolResult, marked_unfinished, parse_arguments
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.wire.anthropic.messages import CALL, FINISHED, without_empty_texts
from toolsearch.wire.anthropic.requests import THINKING
from toolsearch.wire.anthropic.restored import SEARCH_CALL, OwnAnswers, object_in, own_call, restored, shown
from toolsearch.wire.carried import CarriedCall, CarriedRound, answer_of, carried_call, write_carrier
from toolsearch.wire.events import UNSENT, Event
from toolsearch.wire.proxied import Continuation, History, ToClient
from toolsearch.wire.proxied_parts import ReplyOfRounds, read_object, summed
from toolsearch.wire.reply_parts import why_unfinished

__all__ = ["CONTINUATION", "ENTRIES", "PATH", "MessagesReply", "error_body", "open_reply", "restored"]

PATH: Final = "/v1/messages"
ENTRIES: Final = "messages"
CONTINUATION: Final[Continuation | None] = None

_NO_INPUT: Final[dict[str, Json]] = {"input": {}}

_ERROR_TYPES: Mapping[int, str] = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    422: "invalid_request_error",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}


def error_body(message: str, code: str, status: int) -> JsonObject:
    return {"type": "error", "error": {"type": _ERROR_TYPES.get(status, "api_error"), "message": message, "code": code}}


def open_reply(held: Collection[str], to_client: ToClient, history: History) -> MessagesReply:
    return MessagesReply(held, to_client, history)


@dataclass(slots=True)
class _Block:
    """A block of the model's reply, as it grows.

    is_held  whether it is a call that does not reach the client as it came
    given    the call that the client gets in its stead
    number   place among the blocks of the client's reply; None if the client has not been given the block
    """

    value: dict[str, Json]
    is_held: bool
    given: dict[str, Json] | None = None
    number: int | None = None
    is_closed: bool = False
    _pieces: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    _arguments: list[str] = field(default_factory=list[str])

    def add(self, delta: JsonObject) -> None:
        """Texts grow, citations are collected, and any other value of a delta is set."""
        for key, piece in delta.items():
            if key == "citation":
                self.value["citations"] = [*(self.value.get("citations") or ()), piece]
            elif key == "partial_json":
                self._arguments.append(str(piece))
            elif key != "type" and isinstance(piece, str):
                self._pieces.setdefault(key, []).append(piece)
            elif key != "type":
                self.value[key] = piece

    def close(self) -> None:
        self.is_closed = True
        if any(self._arguments):
            self.value["input"] = object_in("".join(self._arguments))
        for key, pieces in self._pieces.items():
            self.value[key] = f"{self.value.get(key) or ''}{''.join(pieces)}"

    @property
    def is_call(self) -> bool:
        return self.value.get("type") == CALL

    @property
    def is_own(self) -> bool:
        return self.is_held and self.given is None

    @property
    def call(self) -> ToolCall:
        """The call of a held block, with its arguments as far as they have come."""
        given: Json = "".join(self._arguments) or self.value.get("input")
        arguments = cast("str | JsonObject", given) if isinstance(given, str | Mapping) else json.dumps(given)
        return ToolCall(str(self.value.get("id")), str(self.value.get("name")), arguments)


@dataclass(slots=True)
class _Round:
    """What the model has sent in one round.

    waiting  the events from its first call on, with their data
    ending   the events that end its reply, with their data
    """

    blocks: dict[int, _Block] = field(default_factory=dict[int, _Block])
    waiting: list[tuple[Event, JsonObject]] = field(default_factory=list[tuple[Event, JsonObject]])
    ending: list[tuple[Event, JsonObject]] = field(default_factory=list[tuple[Event, JsonObject]])
    usage: dict[str, Json] = field(default_factory=dict[str, Json])
    stop_reason: Json = None
    is_whole: bool = False

    @property
    def own_calls(self) -> list[ToolCall]:
        calls = [
            block.call if block.is_closed else replace(block.call, unfinished="the call has no end")
            for block in self.blocks.values()
            if block.is_own
        ]
        return marked_unfinished(calls, why_unfinished(self.stop_reason, FINISHED))

    @property
    def client_calls(self) -> list[_Block]:
        return [block for block in self.blocks.values() if block.is_call and not block.is_own]

    @property
    def said(self) -> list[dict[str, Json]]:
        """The model's blocks as the API takes them back."""
        return [own_call(block.call) if block.is_own else block.value for block in self._kept]

    def carried(self, results: Sequence[ToolResult]) -> list[CarriedCall]:
        places = [place for place, block in enumerate(self._kept) if block.is_own]
        return [carried_call(*each) for each in zip(places, self.own_calls, results, strict=True)]

    @property
    def _kept(self) -> list[_Block]:
        return [block for block in self.blocks.values() if block.is_own or without_empty_texts([block.value])]

    @property
    def sizes(self) -> dict[str, int]:
        shown_blocks = without_empty_texts(block.value for block in self.blocks.values() if not block.is_own)
        return Counter(str(block.get("type")) for block in shown_blocks)


class MessagesReply(ReplyOfRounds[_Round]):
    """One message to a client. See `Reply`."""

    def __init__(self, held: Collection[str], to_client: ToClient, history: History) -> None:
        self._held, self._to_client, self._history = held, to_client, history
        super().__init__(_Round())
        self._hidden: list[CarriedRound] = []  # not carried yet
        self._given: list[dict[str, Json]] = []  # the blocks of the client's reply
        self._first: JsonObject = {}  # the message that the first round began with
        self._whole: dict[str, Json] = {}  # the reply of the last round, if it is not streamed

    def add_event(self, event: Event) -> list[Event]:
        data = read_object(event.data) or {}
        match data.get("type", event.name):
            case "message_start":
                return self._start(event, data)
            case "content_block_start" | "content_block_delta" | "content_block_stop":
                return self._add_to_block(event, data)
            case "message_delta" | "message_stop":
                self._add_ending(event, data)
                return []
            case "error":
                self._has_failed = True
                return [event]
            case _:
                return self._pass_on(event)

    def add_whole(self, reply: dict[str, Json]) -> None:
        self._whole = reply
        self._start(UNSENT, {"message": reply})
        for index, block in enumerate(as_list(reply.get("content")) or ()):
            self._add_to_block(UNSENT, {"index": index, "type": "content_block_start", "content_block": block})
            self._add_to_block(UNSENT, {"index": index, "type": "content_block_stop"})
        self._add_ending(UNSENT, {"delta": {"stop_reason": reply.get("stop_reason")}})
        self._add_ending(UNSENT, {"type": "message_stop"})

    @property
    def stored(self) -> None:
        """No request of this API continues a reply that is stored."""
        return None

    @property
    def has_client_calls(self) -> bool:
        return bool(self._round.client_calls)

    def next_entries(self, results: Sequence[ToolResult]) -> list[dict[str, Json]]:
        answers = OwnAnswers()
        for each in results:
            answers.add(each.call_id, answer_of(each, self._history.answer_to_search), is_error=each.is_error)
        return [{"role": "assistant", "content": self._round.said}, {"role": "user", "content": answers.before([])}]

    def end_round(self, results: Sequence[ToolResult]) -> list[Event]:
        self._is_changed = True
        calls = self._round.carried(results)
        events = self._release(calls)
        if not self.has_client_calls:
            self._hidden.append(CarriedRound(self._round.sizes, calls))
        self._rounds.append(_Round())
        return events

    def end(self) -> list[Event]:
        events = [*self._show(), *self._release()]
        return [*events, *(self._last_event(event, data) for event, data in self._last.ending)]

    def fail(self, message: str) -> list[Event]:
        has_failed, self._has_failed = self._has_failed, True
        return [] if has_failed else [Event.made("error", error_body(message, "chat_model_error", 502))]

    def body(self) -> dict[str, Json]:
        self._show()
        self._release()
        if not self._is_changed:
            return self._whole
        begun = {key: self._first[key] for key in ("id", "model") if key in self._first}
        end = {"content": self._given, "stop_reason": self._stop_reason, "usage": self._total}
        return self._whole | begun | end

    @property
    def _total(self) -> dict[str, Json]:
        total: Json = reduce(summed, (each.usage for each in self._rounds))
        return dict(as_object(total) or {})

    @property
    def _stop_reason(self) -> Json:
        """A reply whose calls are all hidden has ended, or was cut off if one of them has not run."""
        last = self._last
        if last.stop_reason != CALL or last.client_calls or not self._is_changed:
            return last.stop_reason
        return "max_tokens" if last is self._round else "end_turn"

    def _start(self, event: Event, data: JsonObject) -> list[Event]:
        message = as_object(data.get("message")) or {}
        self._round.usage = dict(as_object(message.get("usage")) or {})
        if len(self._rounds) > 1:
            return []
        self._first = message
        return [event]

    def _add_to_block(self, event: Event, data: JsonObject) -> list[Event]:
        index, value = data.get("index"), as_object(data.get("content_block"))
        if not isinstance(index, int):
            return self._pass_on(event)
        if data.get("type") == "content_block_start" and value is not None:
            self._open(index, value)
        block = self._round.blocks.get(index)
        if block is None:
            return self._pass_on(event)
        if data.get("type") == "content_block_delta":
            block.add(as_object(data.get("delta")) or {})
        elif data.get("type") == "content_block_stop":
            self._close(block)
        if self._round.waiting or (block.is_call and self._held):
            self._round.waiting.append((event, data))
            return []
        return [self._written(event, data, block)]

    def _open(self, index: int, value: JsonObject) -> None:
        is_held = value.get("type") == CALL and str(value.get("name")) in self._held
        self._is_changed |= is_held
        self._round.blocks[index] = _Block(dict(value), is_held)

    def _close(self, block: _Block) -> None:
        """Find out whose call a held one is. Arguments that cannot be read are the proxy's to answer."""
        block.close()
        if not block.is_held:
            return
        try:
            parse_arguments(block.call.arguments)
        except BadArgumentsError:
            return
        if (call := self._to_client(block.call)) is not None:
            block.given = {**block.value, "name": call.name, "input": object_in(call.arguments)}

    def _add_ending(self, event: Event, data: JsonObject) -> None:
        ended = self._round
        ended.ending.append((event, data))
        ended.is_whole |= data.get("type") == "message_stop"
        told = as_object(data.get("delta")) or {}
        ended.stop_reason = told.get("stop_reason") or ended.stop_reason
        counted = as_object(data.get("usage")) or {}
        ended.usage |= {key: count for key, count in counted.items() if count is not None}

    def _pass_on(self, event: Event) -> list[Event]:
        """Events between those that end the model's reply wait with them."""
        if self._round.ending:
            self._round.ending.append((event, {}))
            return []
        return [event]

    def _release(self, beside: list[CarriedCall] | None = None) -> list[Event]:
        """What has waited, without the proxy's calls. The client's first call carries those *beside* it."""
        if self._round.client_calls:
            self._carry([*self._hidden, CarriedRound({}, beside or [])], self._round.client_calls[0])
        waiting, self._round.waiting = self._round.waiting, []
        events: list[Event] = []
        for event, data in waiting:
            block = self._round.blocks[data["index"]]
            if not block.is_held:
                events.append(self._written(event, data, block))
            elif block.given is not None and block.number is None:
                block.number = len(self._given)
                events += self._give(block.given)
        return events

    @property
    def _is_thinking_kept(self) -> bool:
        """Whether the API would refuse the hidden rounds as one message: it takes the thinking of one reply in each."""
        return self._history.binds_thinking or any(kind in each.sizes for each in self._hidden for kind in THINKING)

    def _carry(self, rounds: Sequence[CarriedRound], block: _Block) -> None:
        call_id = str(block.value.get("id"))
        carrier = write_carrier(call_id, rounds, is_exact=self._is_thinking_kept)
        if carrier != call_id:
            block.given = {**(block.given or block.value), "id": carrier}
            self._hidden = []

    def _show(self) -> list[Event]:
        """The blocks that carry the hidden rounds if no call of the client does. Clients drop one that was cut off."""
        last = self._last
        if not self._is_thinking_kept or (last.client_calls and not why_unfinished(last.stop_reason, FINISHED)):
            return []
        hidden, self._hidden = self._hidden, []
        return [event for block in shown([*hidden, CarriedRound({}, [])]) for event in self._give(block)]

    def _give(self, block: dict[str, Json]) -> list[Event]:
        """The events of a block that is made here."""
        number = self._take_number(block)
        begun, deltas = block, list[Event]()
        if block["type"] in (CALL, SEARCH_CALL):
            begun = block | _NO_INPUT
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            deltas = [_event("content_block_delta", number, {"delta": delta})]
        start = _event("content_block_start", number, {"content_block": begun})
        return [start, *deltas, _event("content_block_stop", number, {})]

    def _written(self, event: Event, data: JsonObject, block: _Block) -> Event:
        """The *event* of a block for the client; it keeps its bytes if its number and its id are the same."""
        given = block.given or block.value
        if block.number is None:
            block.number = self._take_number(given)
        written = {**data, "index": block.number}
        if begun := as_object(data.get("content_block")):
            written["content_block"] = {**begun, **({"id": given["id"]} if block.given else {})}
        return event if written == data else Event.made(event.name, written)

    def _take_number(self, block: dict[str, Json]) -> int:
        self._given.append(block)
        return len(self._given) - 1

    def _last_event(self, event: Event, data: JsonObject) -> Event:
        if data.get("type") != "message_delta":
            return event
        written = dict(data)
        if sum(each.is_whole for each in self._rounds) > 1:
            written["usage"] = self._total
        told = as_object(data.get("delta")) or {}
        if told.get("stop_reason") == CALL:
            written["delta"] = {**told, "stop_reason": self._stop_reason}
        return event if written == data else Event.made(event.name, written)


def _event(kind: str, number: int, data: JsonObject) -> Event:
    return Event.made(kind, {"type": kind, "index": number, **data})
