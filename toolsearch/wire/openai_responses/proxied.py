"""Responses through a proxy; see `toolsearch.wire.proxied`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from toolsearch.documents.json_values import as_object
from toolsearch.tools.calls import ToolCall, ToolResult, marked_unfinished
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.results import text_block
from toolsearch.wire.carried import CarriedCall, CarriedRound, answer_of, carried_call, write_carrier
from toolsearch.wire.events import UNSENT, Event
from toolsearch.wire.openai_responses.messages import SEARCH_CALL, read_call, reply_items
from toolsearch.wire.openai_responses.restored import OwnOutputs, carries_rounds, client_call, own_call, restored
from toolsearch.wire.proxied import Continuation, History, Stored, ToClient
from toolsearch.wire.proxied_parts import ReplyOfRounds, error_body, objects, read_object, summed

__all__ = ["CONTINUATION", "ENTRIES", "PATH", "ResponsesReply", "error_body", "open_reply", "restored"]

PATH: Final = "/v1/responses"
ENTRIES: Final = "input"
CONTINUATION: Final[Continuation | None] = Continuation(
    "previous_response_id", ("background", "conversation"), "previous_response_not_found", carries_rounds
)

_CALL: Final = "function_call"
_MESSAGE: Final = "message"
_ADDED: Final = "response.output_item.added"
_DONE: Final = "response.output_item.done"
_ARGUMENTS_DELTA: Final = "response.function_call_arguments.delta"
_ARGUMENTS_DONE: Final = "response.function_call_arguments.done"
_BEGINNINGS: Final = ("response.created", "response.queued", "response.in_progress")
_ENDS: Mapping[str, str] = {f"response.{status}": status for status in ("completed", "incomplete", "failed")}
_FOR_CLIENTS: Final = frozenset(  # types of items that wait for an answer of the client
    {
        _CALL,
        "apply_patch_call",
        "computer_call",
        "custom_tool_call",
        "local_shell_call",
        "mcp_approval_request",
        "shell_call",
    }
)


def open_reply(held: Collection[str], to_client: ToClient, history: History) -> ResponsesReply:
    return ResponsesReply(held, to_client, history)


@dataclass(slots=True)
class _Item:
    """An item of the model's reply.

    given    the call that the client gets for a held one
    renamed  the ids that the client gets for the model's
    number   its place in the client's reply; None if the client has not been given it
    own      the call, if the proxy runs it
    """

    value: dict[str, Json]
    is_held: bool
    given: dict[str, Json] | None = None
    renamed: dict[str, Json] = field(default_factory=dict[str, Json])
    number: int | None = None
    is_closed: bool = False
    own: ToolCall | None = None
    pieces: list[str] = field(default_factory=list[str])  # of the arguments of a held call

    @property
    def is_for_client(self) -> bool:
        return (self.given is not None or not self.is_held) and _is_for_client(self.value)

    @property
    def shown(self) -> dict[str, Json]:
        return {**(self.given or self.value), **self.renamed}

    @property
    def extra(self) -> dict[str, Json]:
        """The fields of an own call that the API wants back."""
        return {"id": self.value["id"]} if self.value.get("id") else {}


@dataclass(slots=True)
class _Round:
    """What the model has sent in one round.

    response  its last form
    waiting   the events from the first call on, with their data
    ending    the event that ends it, with its data, and those that came after
    answered  the own calls, with their answers
    """

    items: dict[int, _Item] = field(default_factory=dict[int, _Item])
    response: JsonObject = field(default_factory=dict[str, Json])
    waiting: list[tuple[Event, JsonObject]] = field(default_factory=list[tuple[Event, JsonObject]])
    ending: list[tuple[Event, JsonObject]] = field(default_factory=list[tuple[Event, JsonObject]])
    answered: list[CarriedCall] = field(default_factory=list[CarriedCall])
    is_whole: bool = False

    @property
    def in_order(self) -> list[_Item]:
        return [self.items[index] for index in sorted(self.items)]

    @property
    def own(self) -> list[tuple[_Item, ToolCall]]:
        return [(item, item.own) for item in self.in_order if item.own is not None]

    @property
    def own_calls(self) -> list[ToolCall]:
        said = reply_items({**self.response, "output": [item.value for item in self.in_order]})
        return marked_unfinished([call for _, call in self.own], said.unfinished if said else "")

    def index_of(self, value: JsonObject, position: int) -> int:
        """The index of the item that is at *position* of the whole response: of the streamed item with its id."""
        item_id = str(value.get("id") or "")
        by_id = {str(item.value["id"]): index for index, item in self.items.items() if item.value.get("id")}
        index = by_id.get(item_id, position)
        is_another = index in self.items and str(self.items[index].value.get("id") or "") != item_id
        return 1 + max(self.items) if is_another and item_id else index

    @property
    def sizes(self) -> dict[str, int]:
        return Counter(str(item.value.get("type")) for item in self.items.values() if not item.is_held)

    def carried(self, results: Sequence[ToolResult]) -> list[CarriedCall]:
        places = {id(item): place for place, item in enumerate(self.in_order)}
        pairs = zip(self.own, results, strict=True)
        return [carried_call(places[id(item)], call, result, item.extra) for (item, call), result in pairs]

    @property
    def broken_off(self) -> list[CarriedCall]:
        """The own calls of a reply that was cut off, so that none of them has run."""
        text = text_block("The reply was cut off, and the call did not run.")
        return self.carried([ToolResult(call.id, call.name, (text,), is_error=True) for _, call in self.own])


class ResponsesReply(ReplyOfRounds[_Round]):
    """One response to a client. See `Reply`."""

    def __init__(self, held: Collection[str], to_client: ToClient, history: History) -> None:
        self._held, self._to_client, self._history = held, to_client, history
        super().__init__(_Round())
        self._hidden: list[CarriedRound] = []  # not carried yet
        self._given: dict[int, dict[str, Json]] = {}  # the items of the client's reply, by place
        self._first: JsonObject = {}  # the response that the first round began with
        self._last_number = -1  # of the events that the client was sent

    def add_event(self, event: Event) -> list[Event]:
        data = read_object(event.data) or {}
        kind = str(data.get("type", event.name))
        if kind in _ENDS:
            response = as_object(data.get("response")) or {}
            return self._end_round({"status": _ENDS[kind], **response}, event, data)
        if kind in _BEGINNINGS:
            return self._begin(event, data)
        if kind == "error":
            self._has_failed = True
        if event.data and self._round.is_whole:
            self._round.ending.append((event, data))
            return []
        item = self._add_to_item(kind, data)
        if event.data and (self._round.waiting or (item is not None and self._held and _is_for_client(item.value))):
            self._round.waiting.append((event, data))
            return []
        return [self._written(event, data)]

    def add_whole(self, reply: dict[str, Json]) -> None:
        own_id = {"id": reply["id"]} if "id" in reply else {}  # by which the API continues it
        self._first = {**(self._first or reply), **own_id}
        self._end_round(reply, UNSENT, {})

    @property
    def has_client_calls(self) -> bool:
        return any(item.is_for_client for item in self._round.items.values())

    def next_entries(self, results: Sequence[ToolResult]) -> list[dict[str, Json]]:
        calls = [(item, item.own) for item in self._round.in_order]
        said = [item.value if own is None else own_call(own, item.extra, self._history) for item, own in calls]
        outputs = OwnOutputs(self._history)
        for (_, call), result in zip(self._round.own, results, strict=True):
            outputs.add(call.id, call.name, answer_of(result, self._history.answer_to_search))
        return [*said, *outputs.items, *outputs.beside]

    def end_round(self, results: Sequence[ToolResult]) -> list[Event]:
        self._is_changed = True
        calls = self._round.answered = self._round.carried(results)
        events = self._release(calls)
        if not self.has_client_calls:
            self._hidden.append(CarriedRound(self._round.sizes, calls))
        self._rounds.append(_Round())
        return events

    def end(self) -> list[Event]:
        events = self._release(self._round.broken_off)
        return [*events, *(self._last_event(event, data) for event, data in self._last.ending)]

    def fail(self, message: str) -> list[Event]:
        if self._has_failed:
            return []
        self._has_failed = True
        error: dict[str, Json] = {"code": "server_error", "message": message}
        if not self._first:
            return [self._made("error", {**error, "param": None})]
        failed = {**self._first, "status": "failed", "error": error, "output": self._output, "usage": self._total}
        return [self._made("response.failed", {"response": failed})]

    def body(self) -> dict[str, Json]:
        self._release(self._round.broken_off)
        last = self._last.response
        return self._as_one(last) if self._is_changed else dict(last)

    @property
    def stored(self) -> Stored | None:
        last, given_id = self._last, self._first.get("id")
        last_id = last.response.get("id")
        if not isinstance(given_id, str) or not isinstance(last_id, str) or last.response.get("store") is False:
            return None
        return Stored(given_id, last_id, last.answered or last.broken_off)

    @property
    def _output(self) -> list[dict[str, Json]]:
        return [self._given[number] for number in sorted(self._given)]

    @property
    def _total(self) -> Json:
        total: Json = None
        for each in self._rounds:
            total = summed(total, each.response.get("usage"))
        return total

    def _begin(self, event: Event, data: JsonObject) -> list[Event]:
        if len(self._rounds) > 1:
            return []
        self._first = as_object(data.get("response")) or {}
        return [self._numbered(event, data, data)]

    def _end_round(self, response: JsonObject, event: Event, data: JsonObject) -> list[Event]:
        """A response ends with all its items, so those that have not been streamed are taken from there."""
        for position, value in enumerate(objects(response.get("output"))):
            index = self._round.index_of(value, position)
            item = self._round.items.get(index)
            if item is None or (item.is_held and not item.is_closed):
                self._close(index, value)
            elif not item.is_held:
                item.value = value
                if item.number is not None:
                    self._given[item.number] = item.shown
        for index, item in list(self._round.items.items()):
            if item.is_held and not item.is_closed:
                self._close(index, {"status": "incomplete"})
        self._round.response, self._round.is_whole = response, True
        self._round.ending.append((event, data))
        return []

    def _add_to_item(self, kind: str, data: JsonObject) -> _Item | None:
        """The item that an event is about, with what the event adds to it."""
        index, value = data.get("output_index"), as_object(data.get("item"))
        if not isinstance(index, int):
            return None
        if kind == _ADDED and value is not None:
            self._open(index, value)
        if (item := self._round.items.get(index)) is None:
            return None
        if kind == _ARGUMENTS_DELTA and item.is_held:
            item.pieces.append(str(data.get("delta") or ""))
        elif kind == _DONE and value is not None:
            self._close(index, value)
        return item

    def _open(self, index: int, value: JsonObject) -> _Item:
        is_call = value.get("type") == _CALL and not value.get("namespace")  # nothing of ours is in a namespace
        is_search = self._history.has_native_search and _is_clients_search(value)
        is_held = is_search or (is_call and str(value.get("name")) in self._held)
        self._is_changed |= is_held
        item = self._round.items[index] = _Item(dict(value), is_held)
        if self._hidden and value.get("type") == _MESSAGE and value.get("id"):
            item.renamed = {"id": self._carrier(value["id"], [])}
        return item

    def _close(self, index: int, value: JsonObject) -> None:
        """Take a whole item, and find out whose call it is if it is held."""
        item = self._round.items.get(index) or self._open(index, value)
        item.is_closed = True
        if not item.is_held:
            item.value = dict(value)
            return
        begun: JsonObject = {key: item.value[key] for key in ("type", "name", "execution") if key in item.value}
        item.value |= {"status": "completed", **value, **begun}
        item.value["arguments"] = item.value.get("arguments") or "".join(item.pieces)
        call = read_call(item.value, index + 1)
        given = None if call is None or call.unfinished else self._to_client(call)
        if given is None:
            item.own = call
        else:
            item.given = {**item.value, **client_call(given)}

    def _release(self, beside: list[CarriedCall] | None = None) -> list[Event]:
        """What has waited, without the proxy's calls. The client's first call carries those *beside* it."""
        calls = [item for item in self._round.in_order if item.is_for_client and item.value.get("call_id")]
        if calls:
            calls[0].renamed = {"call_id": self._carrier(calls[0].value["call_id"], beside or [])}
        waiting, self._round.waiting = self._round.waiting, []
        events: list[Event] = []
        for event, data in waiting:
            item = self._item_of(data)
            if item is None or not item.is_held:
                events.append(self._written(event, data))
                continue
            events += self._give(item)
        for item in self._round.in_order:  # some come only with the end of the response
            events += self._give(item)
        return events

    def _carrier(self, item_id: Json, beside: list[CarriedCall]) -> str:
        """Reasoning is refused without the item that followed it, so the history has to be exact."""
        return write_carrier(str(item_id), [*self._hidden, CarriedRound({}, beside)], is_exact=True)

    def _item_of(self, data: JsonObject) -> _Item | None:
        index = data.get("output_index")
        return self._round.items.get(index) if isinstance(index, int) else None

    def _written(self, event: Event, data: JsonObject) -> Event:
        """The *event* for the client; it keeps its bytes if its numbers and its ids are the same."""
        index, item = data.get("output_index"), self._item_of(data)
        if item is None or not isinstance(index, int):
            return self._numbered(event, data, data)
        if item.number is None:
            item.number = self._next_place if self._is_changed else index
        self._given[item.number] = item.shown
        sent = {**data, "output_index": item.number}
        if value := as_object(data.get("item")):
            sent["item"] = {**value, **item.renamed}
        if "item_id" in data:
            sent["item_id"] = item.renamed.get("id", data["item_id"])
        return self._numbered(event, data, sent)

    @property
    def _next_place(self) -> int:
        return 1 + max(self._given, default=-1)

    def _give(self, item: _Item) -> list[Event]:
        """Give the client an item that it has not been given. The events are those of a call that is made here."""
        if item.number is not None or (item.is_held and item.given is None):
            return []
        item.number = self._next_place
        call = self._given[item.number] = item.shown
        if not item.is_held:
            return []
        of_item = {"item_id": call.get("id")}
        kinds: list[tuple[str, JsonObject]] = [
            (_ADDED, {"item": {**call, "status": "in_progress", "arguments": ""}}),
            (_ARGUMENTS_DELTA, {**of_item, "delta": call["arguments"]}),
            (_ARGUMENTS_DONE, {**of_item, "name": call["name"], "arguments": call["arguments"]}),
            (_DONE, {"item": call}),
        ]
        return [self._made(kind, {"output_index": item.number, **data}) for kind, data in kinds]

    def _last_event(self, event: Event, data: JsonObject) -> Event:
        response = as_object(data.get("response"))
        sent = {**data, "response": self._as_one(response)} if self._is_changed and response is not None else data
        return self._numbered(event, data, sent)

    def _as_one(self, response: JsonObject) -> dict[str, Json]:
        """The last *response* as the one that the client gets."""
        begun = {key: self._first[key] for key in ("id", "created_at", "model") if key in self._first}
        total = self._total
        return {**response, **begun, "output": self._output, **({} if total is None else {"usage": total})}

    def _made(self, kind: str, data: JsonObject) -> Event:
        self._last_number += 1
        return Event.made(kind, {"type": kind, "sequence_number": self._last_number, **data})

    def _numbered(self, event: Event, data: JsonObject, sent: JsonObject) -> Event:
        """Return *event* itself if the client gets the *data* as they came."""
        number = data.get("sequence_number")
        if isinstance(number, int):
            self._last_number = self._last_number + 1 if self._is_changed else number
            sent = {**sent, "sequence_number": self._last_number}
        return event if sent == data else Event.made(event.name, sent)


def _is_for_client(item: JsonObject) -> bool:
    kind = str(item.get("type"))
    return kind in _FOR_CLIENTS or _is_clients_search(item)


def _is_clients_search(item: JsonObject) -> bool:
    """Whether *item* is the API's own search that its client runs."""
    return item.get("type") == SEARCH_CALL and item.get("execution") == "client"
