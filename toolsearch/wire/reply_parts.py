"""The parts of a model's reply: its calls, their arguments as text or as an object, and whether the reply has finished.

Every format uses them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn, Protocol, TypeAlias, cast, runtime_checkable

from toolsearch.errors import BadArgumentsError
from toolsearch.tools.calls import ToolCall
from toolsearch.tools.json_types import Json, JsonObject

ReadCall: TypeAlias = Callable[[JsonObject, int], ToolCall | None]  # takes an item and its position, which starts at 1

_ACCEPTED = (
    "an OpenAI ChatCompletion, its message or its tool_calls; an OpenAI Response or its output; "
    "an Anthropic Message or its content; a LangChain AIMessage or its tool_calls; {'name': ..., 'arguments': ...}; "
    "a ToolCall; or a list of the last two"
)

_ARGUMENTS = frozenset({"args", "arguments", "input", "parameters"})  # keys of the arguments of a call

_PROVIDERS_OWN = frozenset(  # calls that the provider runs itself or needs approved
    {"mcp_approval_request", "mcp_call", "mcp_tool_use", "server_tool_call", "server_tool_use"}
)


@dataclass(frozen=True, slots=True)
class ReplyItems:
    """Calls, the items beside them, and the reason why the reply has not finished, if it gives one."""

    items: Sequence[object] = ()
    unfinished: str = ""


@runtime_checkable
class _Dumpable(Protocol):
    """An object of an SDK. All SDKs use pydantic, so none of them has to be imported."""

    def model_dump(self, *, warnings: bool) -> object: ...


def plain(value: object) -> object:
    return value.model_dump(warnings=False) if isinstance(value, _Dumpable) else value


def mapping(value: object) -> JsonObject | None:
    """The fields of *value*, an SDK's object or a plain mapping; None if it has none."""
    fields = plain(value)
    return cast("JsonObject", fields) if isinstance(fields, Mapping) else None


def list_in(fields: JsonObject, key: str) -> Sequence[object]:
    value = fields[key]
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        refuse_reply(f"a reply whose {key!r} is a {type(value).__name__}")
    return cast("Sequence[object]", value)


def call_in(fields: JsonObject, call_id: object, arguments_key: str, position: int) -> ToolCall:
    """Return the call in *fields*; without an id it is ``call_<position>``."""
    name = fields.get("name")
    if not isinstance(name, str) or not name:
        refuse_reply(f"an item without a tool's name (number {position})")
    arguments = fields.get(arguments_key)
    if arguments is None:
        arguments = ""
    elif not isinstance(arguments, str | Mapping):
        arguments = json.dumps(arguments)  # keeps the call readable; running it fails, and the other calls still run
    given = cast("str | JsonObject", arguments)
    return ToolCall(f"call_{position}" if call_id is None else str(call_id), name, given)


def calls_among(items: Iterable[object], read_call: ReadCall) -> list[ToolCall]:
    """Return the calls that *read_call* finds among *items*, in their order; every other item must have a type.

    Raises BadArgumentsError for an item that looks like a call of another shape.
    """
    calls: list[ToolCall] = []
    for position, item in enumerate(items, 1):
        fields = item_fields(item)
        call = read_call(fields, position)
        if call is not None:
            calls.append(call)
        elif not stands_beside_calls(fields, position):
            refuse_reply(f"item number {position}, which has no type")
    return calls


def item_fields(item: object) -> JsonObject:
    fields = mapping(item)
    if fields is None:
        refuse_reply(f"a list with a {type(item).__name__} in it")
    return fields


def stands_beside_calls(item: JsonObject, position: int) -> bool:
    """Whether *item*, which no format reads as a call, is an item of another kind; if not, it is a plain call.

    A call of an unknown shape must not be skipped as if it were text, nor run without its arguments. So it is refused.
    """
    kind = item.get("type")
    if (isinstance(kind, str) and kind in _PROVIDERS_OWN) or (kind is None and "arguments" in item):
        return kind is not None
    unread = _ARGUMENTS & item.keys()
    if "name" in item and unread:
        shape = "no type" if kind is None else f"the type {kind!r:.60}"
        refuse_reply(f"item number {position}, which has {shape}, a name and {min(unread)!r}")
    return isinstance(kind, str)


def refuse_reply(what: str) -> NoReturn:
    raise BadArgumentsError(f"cannot find tool calls in {what}; pass {_ACCEPTED}")


def arguments_text(call: ToolCall) -> str:
    return call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)


def arguments_object(call: ToolCall) -> dict[str, Json]:
    """Arguments for APIs that take only objects. If a model wrote something else, even half an object, it is put into
    one.
    """
    arguments = call.arguments
    if not isinstance(arguments, str):
        return dict(arguments)
    try:
        parsed: object = json.loads(arguments or "{}")
    except ValueError:
        parsed = None
    return cast("dict[str, Json]", parsed) if isinstance(parsed, dict) else {"arguments": arguments}


NO_REASON: Final = "no finish reason"
REFUSAL: Final = "refusal"  # finish reason of a model that refuses in words; its calls are not run


# Finish reasons in lower case, and the keys that hold them, in APIs, frameworks and their model classes.
_FINISHED: Final = frozenset(
    {"complete", "completed", "end_turn", "function_call", "stop", "tool_call", "tool_calls", "tool_use"}
)

_KEYS: Final = ("finish_reason", "stop_reason", "stopReason", "done_reason", "status")
_MAX_REASON = 60  # characters kept of a reason that the endpoint wrote


def why_unfinished(reason: object, finished: Collection[str]) -> str:
    """Return "" if *reason*, why the reply ended, is among *finished*, else the reason itself."""
    if not isinstance(reason, str) or not reason:
        return NO_REASON
    return "" if reason in finished else reason[:_MAX_REASON]


def cut_off(reason: object) -> str:
    """Like `why_unfinished`, for the finish reasons of any API or framework."""
    return why_unfinished(reason.lower() if isinstance(reason, str) else reason, _FINISHED)


def cut_off_by(metadata: Mapping[str, object]) -> str:
    """Like `cut_off`, for the metadata that a framework keeps of a reply; "" without a finish reason, as in tests'
    fakes.
    """
    return next((cut_off(metadata[key]) for key in _KEYS if key in metadata), "")
