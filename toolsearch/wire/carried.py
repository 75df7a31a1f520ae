"""Hidden rounds of a reply, carried by the id of a call that the client runs and sends back.

Clients keep ids word for word, in the call and in its result. Most of them drop or rewrite anything else that a proxy
could add to a reply.
"""

from __future__ import annotations

import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Final, NamedTuple, TypeAlias

from pydantic import Field, TypeAdapter, ValidationError

from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.naming import READ_SKILL, TOOL_NAME
from toolsearch.wire.content import result_as_text
from toolsearch.wire.native_search import found_names
from toolsearch.wire.proxied_parts import compact, read_object
from toolsearch.wire.reply_parts import arguments_text

_MARK: Final = "_ts_"  # between the id that the model gave and what the id carries
_LONGEST: Final = 1_500  # characters that an id may carry
_LONGEST_EXACT: Final = 6_000  # the same where a history that is not exact would be refused
_LARGEST: Final = 64 * 1024  # bytes of JSON; compressed data that holds more is refused
_MOST_ROUNDS: Final = 6  # that an id may carry; no reply has more
_MOST_CALLS: Final = 32  # in these rounds
_MOST_NAMES: Final = 100  # that a search has found
_LARGEST_HISTORY: Final = 16_000_000  # characters that one request may restore; no model reads as many
_LEAST: Final = 1_000  # characters that each reading of an id counts at least
_RAN: Final = "It ran, and its result was read then."
_READ: Final = "It was read then. Read it again if you still need it."
_FAILED: Final = "Error: It failed, and the reason was read then."


@dataclass(frozen=True, slots=True)
class OwnAnswer:
    """The answer to a call that the proxy runs.

    text    words. They follow the results if the answer loads tools
    loaded  entries of the tools that it loads in the API's own way, by name
    """

    text: str
    loaded: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])


AnswerToSearch: TypeAlias = Callable[[Sequence[str]], OwnAnswer]
"""As in `History`."""


class CarriedCall(NamedTuple):
    """A call that the proxy ran.

    place   its index among the parts of its round
    answer  the names that a search found; else the text of the result, None if it is too long to be carried
    extra   other fields of the call, such as signatures, which the API wants back
    """

    place: Annotated[int, Field(ge=0, lt=1_000_000)]
    id: str
    name: str
    arguments: str
    answer: Annotated[list[str], Field(max_length=_MOST_NAMES)] | str | None
    is_error: bool
    extra: dict[str, Json]

    @property
    def found(self) -> tuple[str, ...]:
        """The names that a search found."""
        return tuple(self.answer) if isinstance(self.answer, list) else ()


class CarriedRound(NamedTuple):
    """A round of the model and the calls in it that the proxy ran.

    sizes  how much of what the client was shown belongs to this round: the number of parts of each kind. The last
           round has all that the others leave
    """

    sizes: dict[str, int]
    calls: list[CarriedCall]

    @property
    def is_exact(self) -> bool:
        """Whether the model's calls can be restored with the results that it read."""
        return bool(self.calls) and all(call.answer is not None for call in self.calls)


@dataclass(frozen=True, slots=True)
class Carrier:
    """An id as the model gave it, and the rounds that the client's id carries."""

    id: str
    rounds: list[CarriedRound]


_SHAPE: TypeAdapter[list[CarriedRound]] = TypeAdapter(Annotated[list[CarriedRound], Field(max_length=_MOST_ROUNDS)])


def carried_call(place: int, call: ToolCall, result: ToolResult, extra: JsonObject | None = None) -> CarriedCall:
    answer = found_names(result) if _is_search(result) else result_as_text(result)
    return CarriedCall(place, call.id, call.name, arguments_text(call), answer, result.is_error, dict(extra or {}))


def answer_of(result: ToolResult, answer_to_search: AnswerToSearch) -> OwnAnswer:
    """The answer that the model reads to a call that has just run, with *result*."""
    return answer_to_search(found_names(result)) if _is_search(result) else OwnAnswer(result_as_text(result))


def carried_answer(call: CarriedCall, answer_to_search: AnswerToSearch) -> OwnAnswer:
    """The answer that the model has read to a carried call."""
    if isinstance(call.answer, list):
        return answer_to_search(call.answer)
    if call.answer is None:
        return OwnAnswer(_FAILED if call.is_error else _READ if call.name == READ_SKILL else _RAN)
    return OwnAnswer(call.answer)


def _is_search(result: ToolResult) -> bool:
    return result.name == TOOL_NAME and not result.is_error


def write_carrier(call_id: str, rounds: Sequence[CarriedRound], *, is_exact: bool = False) -> str:
    """The id that the client gets, with as much of *rounds* as fits. *is_exact* allows a longer id.

    An id that could not be read back, since the model's holds the mark, carries nothing.
    """
    if not any(each.calls for each in rounds):
        return call_id
    for less in _ever_less(list(rounds)):
        data = urlsafe_b64encode(zlib.compress(compact(less).encode(), 9)).decode().rstrip("=")
        written = f"{call_id}{_MARK}{data}"
        is_short = len(data) <= (_LONGEST_EXACT if is_exact else _LONGEST)
        if is_short and read_carrier(written) == Carrier(call_id, less):
            return written
    return call_id


def read_carrier(written: Json) -> Carrier | None:
    """Read an id that the client sent back; None if it carries nothing, or nothing that can be read."""
    opened = _opened(written)
    return None if opened is None else _carrier(*opened)


class Carriers:
    """Reads what the ids in the history of one request carry.

    A forged id is short and may stand for much. So no more is restored than a model could read: ids after that stay as
    they are.
    """

    def __init__(self, answer_to_search: AnswerToSearch) -> None:
        self._answer_to_search = answer_to_search
        self._left = _LARGEST_HISTORY
        self._known: dict[str, tuple[int, Carrier | None]] = {}  # with what each reading counts

    def read(self, written: Json) -> Carrier | None:
        """See `read_carrier`."""
        if self._left <= 0 or not isinstance(written, str) or _MARK not in written:
            return None
        if written not in self._known:  # a call and its result have the same id
            opened = _opened(written)
            self._known[written] = (0, None) if opened is None else (max(len(opened[1]), _LEAST), _carrier(*opened))
        size, carrier = self._known[written]
        self._left -= size
        return carrier

    def with_model_ids(self, fields: JsonObject, *keys: str) -> JsonObject:
        """Return *fields* with the ids that the model gave under *keys*, in the place of those that carry something."""
        ids = {key: carrier.id for key in keys if (carrier := self.read(fields.get(key))) is not None}
        return {**fields, **ids} if ids else fields

    def answer(self, call: CarriedCall) -> OwnAnswer:
        """See `carried_answer`."""
        answer = carried_answer(call if self._left > 0 else call._replace(answer=None), self._answer_to_search)
        self._left -= len(answer.text)
        return answer


def size_in(kinds: Sequence[str], sizes: Mapping[str, int], begin: int = 0) -> int:
    """How many of the parts of these *kinds*, from *begin* on, belong to a round of *sizes*.

    A client may have dropped parts or joined some: what is missing shifts nothing in the rounds after.
    """
    left = dict(sizes)
    for place in range(begin, len(kinds)):
        if left.get(kinds[place], 0) < 1:
            return place - begin
        left[kinds[place]] -= 1
    return len(kinds) - begin


def _ever_less(rounds: list[CarriedRound]) -> Iterator[list[CarriedRound]]:
    """Long results go first, then searches from the oldest on, then the arguments of the operator's calls."""
    yield rounds
    rounds = [each._replace(calls=list(map(_without_text, each.calls))) for each in rounds]
    yield rounds
    for number, each in enumerate(rounds):
        rounds[number] = each._replace(calls=[call for call in each.calls if not isinstance(call.answer, list)])
        yield rounds
    yield [each._replace(calls=list(map(_without_arguments, each.calls))) for each in rounds]
    yield [each._replace(calls=[]) for each in rounds]


def _without_text(call: CarriedCall) -> CarriedCall:
    return call._replace(answer=None) if isinstance(call.answer, str) else call


def _without_arguments(call: CarriedCall) -> CarriedCall:
    """Only the name that ``callTool`` was given is kept."""
    name = (read_object(call.arguments) or {}).get("name")
    return call._replace(arguments=compact({"name": name} if isinstance(name, str) else {}), extra={})


def _opened(written: Json) -> tuple[str, bytes] | None:
    """The model's id, and the JSON that *written* carries."""
    call_id, mark, data = written.partition(_MARK) if isinstance(written, str) else ("", "", "")
    if not mark or len(data) > _LONGEST_EXACT:
        return None
    try:
        return call_id, _unpacked(urlsafe_b64decode(data + "=" * (-len(data) % 4)))
    except (ValueError, zlib.error):
        return None


def _carrier(call_id: str, unpacked: bytes) -> Carrier | None:
    try:
        carrier = Carrier(call_id, _SHAPE.validate_json(unpacked))
    except ValidationError:
        return None
    return carrier if sum(len(each.calls) for each in carrier.rounds) <= _MOST_CALLS else None


def _unpacked(data: bytes) -> bytes:
    unpacking = zlib.decompressobj()
    unpacked = unpacking.decompress(data, _LARGEST)
    if not unpacking.eof:
        raise ValueError("the data is cut off, or holds too much")
    return unpacked
