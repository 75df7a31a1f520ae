"""The history that a client of Responses sends back, as the model knows it. See `toolsearch.wire.carried`.

The API refuses reasoning without the item that followed it. So a reply that ends without a call of the client carries
its hidden rounds, too: by the id of its message. Clients that leave out this id leave out those of reasoning as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from toolsearch.documents.json_values import as_object
from toolsearch.tools.calls import ToolCall
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.naming import CALL_TOOL, TOOL_NAME
from toolsearch.wire.carried import CarriedCall, CarriedRound, Carriers, OwnAnswer, read_carrier, size_in
from toolsearch.wire.openai_responses.messages import message_beside, search_output, write_calls
from toolsearch.wire.proxied import Found, History, Restored
from toolsearch.wire.proxied_parts import call_tool_arguments

_REFERENCE: Final = "item_reference"
_REASONING: Final = "reasoning"


def own_call(call: ToolCall, extra: JsonObject, history: History) -> dict[str, Json]:
    """The item of a *call* that the proxy runs, as the model gets it back; *extra* holds its id, if it has one."""
    (item,) = write_calls([call], native_search=history.has_native_search)
    return {**extra, **item, "status": "completed"}


def carries_rounds(item: Json) -> bool:
    """Whether *item* has the id of a client's call that carries hidden rounds."""
    return read_carrier((as_object(item) or {}).get("call_id")) is not None


def client_call(call: ToolCall) -> dict[str, Json]:
    """The item of a *call* that the client gets, whose name may be ``namespace.name``."""
    (item,) = write_calls([call])
    namespace, _, name = call.name.rpartition(".")
    return {**item, "name": name, **({"namespace": namespace} if namespace else {})}


class OwnOutputs:
    """The outputs of calls that the proxy runs, and the messages *beside*, which follow all outputs."""

    def __init__(self, history: History) -> None:
        self._history = history
        self.items: list[dict[str, Json]] = []
        self.beside: list[dict[str, Json]] = []

    def add(self, call_id: str, name: str, answer: OwnAnswer) -> None:
        """*name* is that of the called tool."""
        if name != TOOL_NAME or not self._history.has_native_search:
            self.items.append({"type": "function_call_output", "call_id": call_id, "output": answer.text})
            return
        self.items.append(search_output(call_id, answer.loaded.values()))
        self.beside += [message_beside(answer.text)] if answer.text else []


def restored(entries: Sequence[Json], history: History) -> list[Restored]:
    """Return the conversation as the model knows it. See `ProxiedWire.restored`."""
    conversation = _Conversation(history)
    for place, entry in enumerate(entries):
        conversation.add(place, as_object(entry) or {})
    return conversation.parts()


class _Conversation:
    """Builds a restored conversation, reply by reply. A reply ends with the outputs of its calls."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._carriers = Carriers(history.answer_to_search)
        self._parts: list[Restored] = []
        self._said: list[tuple[int, JsonObject]] = []  # of a reply, with the places of its items
        self._outputs: list[tuple[int, JsonObject]] = []
        self._read: set[str] = set()  # ids that have been read
        self._unanswered = history.unanswered

    def add(self, place: int, item: JsonObject) -> None:
        if str(item.get("type")).endswith("_output"):
            self._outputs.append((place, item))
            return
        is_said = bool(item) and item.get("role", "assistant") == "assistant"
        if self._outputs or not is_said:
            self._end_reply()
        if is_said:
            self._said.append((place, item))
        else:
            self._parts.append(place)

    def parts(self) -> list[Restored]:
        self._end_reply()
        return self._parts

    def _end_reply(self) -> None:
        rest, outputs = self._said, [self._restored(*each) for each in self._outputs]
        *hidden, last = self._rounds() or [CarriedRound({}, [])]
        self._said, self._outputs = [], []
        if self._unanswered is not None:  # the API has stored what the model said
            waiting, self._unanswered = self._unanswered, None
            self._add_answers(waiting, outputs)
            return
        for each in hidden:
            size = size_in([_kind(item) for _, item in rest], each.sizes)
            self._add_round(rest[:size], each.calls)
            rest = rest[size:]
        self._add_round(rest, last.calls, outputs)

    def _rounds(self) -> list[CarriedRound]:
        """The rounds that the reply was made of. Each id carries those before it, and that of a call what stood beside
        it as well. Some clients send a reference in the place of a call, so the ids of outputs are read, too.
        """
        items = [item for _, item in [*self._said, *self._outputs]]
        ids = [str(item.get(key)) for key in ("call_id", "id") for item in items]
        carriers = [carrier for each in ids if each not in self._read and (carrier := self._carriers.read(each))]
        self._read.update(ids)
        return max((carrier.rounds for carrier in carriers), key=len, default=list[CarriedRound]())

    def _add_round(
        self, said: Sequence[tuple[int, JsonObject]], calls: Sequence[CarriedCall], outputs: Sequence[Restored] = ()
    ) -> None:
        while said and not calls and _kind(said[-1][1]) == _REASONING:
            said = said[:-1]  # a call came after it that is not shown
        items = [self._restored(*each) for each in said]
        for call in calls:
            items.insert(call.place, own_call(ToolCall(call.id, call.name, call.arguments), call.extra, self._history))
        self._parts += items
        self._add_answers(calls, outputs)

    def _add_answers(self, calls: Sequence[CarriedCall], outputs: Sequence[Restored]) -> None:
        """Add the answers to own *calls*, and the *outputs* of the client's."""
        own = OwnOutputs(self._history)
        for call in calls:
            own.add(call.id, call.name, self._carriers.answer(call))
        found = [Found(call.found) for call in calls if call.found]
        self._parts += [*own.items, *outputs, *own.beside, *found]

    def _restored(self, place: int, item: JsonObject) -> Restored:
        """The item as the model wrote it, with the model's id, and by ``callTool`` if the model called it so."""
        called = self._carriers.with_model_ids(item, "call_id", "id")
        dotted = f"{item['namespace']}.{item.get('name')}" if item.get("namespace") else str(item.get("name"))
        name = self._history.full_names.get(dotted, dotted)
        if item.get("type") == "function_call" and name in self._history.called_by_call_tool:
            by_call_tool = {"name": CALL_TOOL, "arguments": call_tool_arguments(name, str(item.get("arguments")))}
            called = {key: value for key, value in called.items() if key != "namespace"} | by_call_tool
        return place if called == item else dict(called)


def _kind(item: JsonObject) -> str:
    """The type of an *item*, or of the item that it refers to."""
    kind = str(item.get("type") or "message")
    if kind != _REFERENCE:
        return kind
    prefix = str(item.get("id")).partition("_")[0]
    return {"msg": "message", "rs": _REASONING}.get(prefix, kind)
