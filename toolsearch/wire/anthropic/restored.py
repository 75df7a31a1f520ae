"""The history that a client of Messages sends back, as the model knows it. See `toolsearch.wire.carried`.

A reply without a call of the client has no id that could carry its hidden rounds. Where the API refuses thinking whose
history has changed, or the model has thought in one of them, such a reply ends with a search of the API's own kind,
whose id carries them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from toolsearch.documents.json_values import as_list, as_object, is_object
from toolsearch.errors import BadArgumentsError
from toolsearch.tools.calls import ToolCall, parse_arguments
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.naming import CALL_TOOL
from toolsearch.tools.results import text_block
from toolsearch.wire.anthropic.messages import CALL, RESULT, reference, without_empty_texts
from toolsearch.wire.anthropic.requests import THINKING
from toolsearch.wire.carried import CarriedCall, CarriedRound, Carriers, OwnAnswer, size_in, write_carrier
from toolsearch.wire.native_search import write_beside
from toolsearch.wire.proxied import Found, History, Restored
from toolsearch.wire.reply_parts import arguments_text

SEARCH_CALL: Final = "server_tool_use"
_SEARCH_RESULT: Final = "tool_search_tool_result"
_SHOWN_ID: Final = "srvtoolu_toolsearch"


def object_in(arguments: str | JsonObject) -> dict[str, Json]:
    """The API takes only objects. If a model wrote something else, even half an object, it is put into one."""
    try:
        return parse_arguments(arguments)
    except BadArgumentsError:
        return {"arguments": arguments_text(ToolCall("", "", arguments))}


def own_call(call: CarriedCall | ToolCall) -> dict[str, Json]:
    """The block of a *call* that the proxy runs, as the model gets it back."""
    return {"type": CALL, "id": call.id, "name": call.name, "input": object_in(call.arguments)}


class OwnAnswers:
    """The answers to calls that the proxy runs, for one message of the user."""

    def __init__(self) -> None:
        self._results: list[dict[str, Json]] = []
        self._beside: list[dict[str, Json]] = []

    def add(self, call_id: str, answer: OwnAnswer, *, is_error: bool) -> None:
        words = [text_block(answer.text)] if answer.text else []
        loaded = list(map(reference, answer.loaded))  # references stand alone in a result
        self._beside += [text_block(write_beside(answer.text))] if loaded and words else []
        content = loaded or words
        self._results.append({"type": RESULT, "tool_use_id": call_id, "content": content, "is_error": is_error})

    def before(self, said: Sequence[Json]) -> list[Json]:
        """Return the content of a message that also holds *said*, in which results come first."""
        ends = [place for place, block in enumerate(said, 1) if (as_object(block) or {}).get("type") == RESULT]
        end = ends[-1] if ends else 0
        return [*self._results, *said[:end], *self._beside, *said[end:]]

    def __bool__(self) -> bool:
        return bool(self._results)


def shown(rounds: Sequence[CarriedRound]) -> list[dict[str, Json]]:
    """The blocks at the end of a reply whose id carries *rounds*; ``[]`` if there is nothing to carry."""
    shown_id = write_carrier(_SHOWN_ID, rounds, is_exact=True)
    found: dict[str, Json] = {"type": "tool_search_tool_search_result", "tool_references": []}
    blocks: list[dict[str, Json]] = [
        {"type": SEARCH_CALL, "id": shown_id, "name": "tool_search_tool_bm25", "input": {}},
        {"type": _SEARCH_RESULT, "tool_use_id": shown_id, "content": found},
    ]
    return blocks if shown_id != _SHOWN_ID else []


def restored(entries: Sequence[Json], history: History) -> list[Restored]:
    """Return the conversation as the model knows it. See `ProxiedWire.restored`."""
    conversation = _Conversation(history)
    for place, entry in enumerate(entries):
        conversation.add(place, entry)
    return conversation.parts()


class _Conversation:
    """Builds a restored conversation. The answers of a round wait for a user's message, which begins with them."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._carriers = Carriers(history.answer_to_search)
        self._parts: list[Restored] = []
        self._answers = OwnAnswers()
        self._found: dict[str, None] = {}

    def add(self, place: int, entry: Json) -> None:
        fields = as_object(entry) or {}
        content = _items(fields.get("content"))
        if fields.get("role") == "user":
            said = self._answers.before(list(map(self._with_own_id, content)))
            self._answer(place if said == content else {**fields, "content": said})
            return
        self._answer()
        if fields.get("role") == "assistant":
            self._add_reply(place, fields, content)
        else:
            self._parts.append(place)

    def parts(self) -> list[Restored]:
        self._answer()
        return self._parts

    def _answer(self, message: Restored | None = None) -> None:
        """Add the *message* that holds the waiting answers, or one of their own, and what the answers have found."""
        if message is None and self._answers:
            message = {"role": "user", "content": self._answers.before([])}
        self._parts += [] if message is None else [message]
        self._parts += [Found(tuple(self._found))] if self._found else []
        self._answers, self._found = OwnAnswers(), {}

    def _add_reply(self, place: int, fields: JsonObject, content: Sequence[Json]) -> None:
        blocks = [self._as_called(block) for block in content if not _is_shown(block)]
        if blocks == content and not _ends_in_thinking(content):
            self._parts.append(place)
            return
        rest = without_empty_texts(filter(is_object, blocks))
        kinds = [str(block.get("type")) for block in rest]
        rounds = self._rounds_in(content)
        is_exact, begin = True, 0
        for number, each in enumerate(rounds, 1):
            end = len(rest) if number == len(rounds) else begin + size_in(kinds, each.sizes, begin)
            said, begin = rest[begin:end], end
            if self._history.binds_thinking and not is_exact:
                said = [block for block in said if block.get("type") not in THINKING]
            self._add_round(said, fields, each.calls)
            is_exact = is_exact and each.is_exact

    def _add_round(self, said: list[dict[str, Json]], message: JsonObject, calls: Iterable[CarriedCall]) -> None:
        """Add a message of the model. The API refuses thinking at its end, which a call that is not shown leaves."""
        self._answer()
        for call in calls:
            said.insert(call.place, own_call(call))
            self._answers.add(call.id, self._carriers.answer(call), is_error=call.is_error)
            self._found |= dict.fromkeys(call.found)
        while _ends_in_thinking(said):
            said.pop()
        if said:
            self._parts.append({**message, "content": said})

    def _as_called(self, block: Json) -> Json:
        """Return *block* as the model wrote it, with the model's id, and by ``callTool`` if the model called it so."""
        if not is_object(block) or block.get("type") != CALL:
            return block
        called = self._carriers.with_model_ids(block, "id")
        if str(block.get("name")) not in self._history.called_by_call_tool:
            return called
        return {**called, "name": CALL_TOOL, "input": {"name": block["name"], "arguments": block.get("input")}}

    def _with_own_id(self, block: Json) -> Json:
        return self._carriers.with_model_ids(block, "tool_use_id") if is_object(block) else block

    def _rounds_in(self, content: Sequence[Json]) -> list[CarriedRound]:
        """The rounds that a reply was made of. The two blocks that are shown have the same id."""
        blocks = [block for block in content if is_object(block) and (block.get("type") == CALL or _is_shown(block))]
        ids = dict.fromkeys(str(block.get("tool_use_id") or block.get("id")) for block in blocks)
        carriers = filter(None, map(self._carriers.read, ids))
        return [each for carrier in carriers for each in carrier.rounds] or [CarriedRound({}, [])]


def _is_shown(block: Json) -> bool:
    """Whether `shown` has made *block*. Clients may have dropped the other one, and the API refuses one alone."""
    fields = as_object(block) or {}
    id_key = {SEARCH_CALL: "id", _SEARCH_RESULT: "tool_use_id"}.get(str(fields.get("type")))
    return id_key is not None and str(fields.get(id_key)).startswith(_SHOWN_ID)


def _ends_in_thinking(blocks: Sequence[Json]) -> bool:
    return bool(blocks) and (as_object(blocks[-1]) or {}).get("type") in THINKING


def _items(content: Json) -> list[Json]:
    """The blocks of a message, whose content may be a text."""
    if isinstance(content, str):
        return [text_block(content)] if content else []
    return as_list(content) or []
