"""The history that a client of Chat Completions sends back, as the model knows it. See `toolsearch.wire.carried`.

The rounds of a reply are one message to the client, and the calls that the proxy runs are not in it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, TypeGuard

from toolsearch.documents.json_values import as_object, is_list, is_object
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.naming import CALL_TOOL
from toolsearch.wire.carried import CarriedCall, CarriedRound, Carriers, OwnAnswer
from toolsearch.wire.openai_chat.answers import OUTPUT_ONLY
from toolsearch.wire.proxied import Found, History, Restored
from toolsearch.wire.proxied_parts import call_tool_arguments

BETWEEN: Final = "\n\n"  # between the texts of two rounds


def restored(entries: Sequence[Json], history: History) -> list[Restored]:
    """Return the conversation as the model knows it. See `ProxiedWire.restored`."""
    carriers = Carriers(history.answer_to_search)
    conversation: list[Restored] = []
    found: list[Found] = []  # by searches in the message before the results
    for place, entry in enumerate(entries):
        fields = as_object(entry) or {}
        if fields.get("role") != "tool":
            conversation += found
            found = []
        if is_list(fields.get("tool_calls")):
            message = _Restoring(fields, history, carriers)
            conversation += message.before
            conversation += [message.entry if message.entry != fields else place, *message.results]
            found = message.found
        else:
            answered = carriers.with_model_ids(fields, "tool_call_id")
            conversation.append(place if answered == fields else dict(answered))
    return [*conversation, *found]


def assistant(fields: JsonObject, calls: Sequence[JsonObject]) -> dict[str, Json]:
    """The message of a round, as the model gets it back."""
    said = {key: value for key, value in fields.items() if key not in OUTPUT_ONLY}
    return {"role": "assistant", "content": None, **said, "tool_calls": list(calls)}


def own_result(call_id: str, answer: OwnAnswer) -> dict[str, Json]:
    """No answer of this API loads tools."""
    return {"role": "tool", "tool_call_id": call_id, "content": answer.text}


def is_indexed(value: Json) -> TypeGuard[list[dict[str, Json]]]:
    """Whether *value* is a list whose items have numbers, by which clients join the pieces of a stream."""
    return is_list(value) and bool(value) and all(is_object(item) and type(item.get("index")) is int for item in value)


class _Restoring:
    """A message with calls that the client sent back.

    before   the messages of the rounds that its calls carry, with their results
    entry    the message itself
    results  of calls that stood beside the client's
    """

    def __init__(self, message: JsonObject, history: History, carriers: Carriers) -> None:
        self.before: list[Restored] = []
        self._carriers = carriers
        calls: list[Json] = []
        rounds: list[CarriedRound] = []
        for call in message["tool_calls"]:
            carrier = carriers.read((as_object(call) or {}).get("id"))
            rounds = rounds or ([] if carrier is None else carrier.rounds)  # the first one has all
            called = call if carrier is None else {**call, "id": carrier.id}
            calls.append(_as_called(called, history.called_by_call_tool))
        *hidden, last = rounds or [CarriedRound({}, [])]
        cut = _Cut(message)
        for each in hidden:
            self._add_hidden(cut.take(each.sizes), each.calls)
        for call in last.calls:
            calls.insert(call.place, _entry_of(call))
        self.entry: dict[str, Json] = {**cut.rest(), "tool_calls": calls}
        self.results, self.found = self._answers(last.calls)

    def _add_hidden(self, fields: JsonObject, calls: Sequence[CarriedCall]) -> None:
        message = assistant(fields, list(map(_entry_of, calls)))
        results, found = self._answers(calls)
        if not calls:
            del message["tool_calls"]
        self.before += [message, *results, *found] if calls or fields.get("content") else []

    def _answers(self, calls: Iterable[CarriedCall]) -> tuple[list[dict[str, Json]], list[Found]]:
        answers = [(call.id, self._carriers.answer(call)) for call in calls]
        results = [own_result(call_id, answer) for call_id, answer in answers]
        return results, [Found(call.found) for call in calls if call.found]


class _Cut:
    """Cuts the fields of a client's message into those of the rounds that it was made of."""

    def __init__(self, message: JsonObject) -> None:
        self._message = message
        self._taken: dict[str, int] = {}  # what has been cut off, by field

    def take(self, sizes: Mapping[str, int]) -> dict[str, Json]:
        return {key: part for key, size in sizes.items() if (part := self._part(key, size))}

    def rest(self) -> dict[str, Json]:
        rest = dict(self._message)
        for key in self._taken:
            rest[key] = self._part(key, None) or None
        return {
            key: value for key, value in rest.items() if value is not None or key not in self._taken or key == "content"
        }

    def _part(self, key: str, size: int | None) -> Json:
        value, begin = self._message.get(key), self._taken.get(key, 0)
        if isinstance(value, str):
            if key == "content" and begin and value.startswith(BETWEEN, begin):
                begin += len(BETWEEN)
            part: Json = value[begin:] if size is None else value[begin : begin + size]
        elif is_indexed(value):
            end = None if size is None else begin + size
            part = [
                {**item, "index": item["index"] - begin}
                for item in value
                if item["index"] >= begin and (end is None or item["index"] < end)
            ]
        else:
            return None
        if size:
            self._taken[key] = begin + size
        return part


def _entry_of(call: CarriedCall) -> dict[str, Json]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function, **call.extra}


def _as_called(call: Json, by_call_tool: Collection[str]) -> Json:
    """The call as the model made it."""
    fields = as_object(call) or {}
    function = as_object(fields.get("function")) or {}
    name, arguments = function.get("name"), function.get("arguments")
    if not isinstance(name, str) or name not in by_call_tool or not isinstance(arguments, str):
        return call
    return {**fields, "function": {**function, "name": CALL_TOOL, "arguments": call_tool_arguments(name, arguments)}}
