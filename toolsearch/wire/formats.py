"""Finds the module of a format, and reads and writes tools, results and conversations in it.

Providers cache a prompt from its beginning, so the parts of a request are in the order in which the model reads them.
Parts that only the API reads are left out: cache marks, ids and states of items, and definitions that nothing refers
to.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, Protocol, TypeAlias

from toolsearch.documents.json_values import as_list, as_object, is_object
from toolsearch.errors import BadSettingError
from toolsearch.tools.calls import ToolResult
from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.wire import anthropic, mcp, openai_chat, openai_responses
from toolsearch.wire.messages import Message, ToolChangeMessage
from toolsearch.wire.native_search import NativeSearch
from toolsearch.wire.request_parts import PromptPart, ToPlain, itself_if_plain

WireFormat: TypeAlias = Literal["openai", "openai-responses", "anthropic", "mcp"]


class WireModule(Protocol):
    """What the module of every format has.

    Those of model APIs also write and read calls, conversations, tool choices and answers, by functions of equal names.
    Reading a written value gives an equal value, except for parts that the format has no field for; each module names
    them.
    """

    def write_tool(self, definition: ToolDefinition, plain: ToPlain = ...) -> dict[str, Any]:
        """Return *definition* as one entry of a request's tool list; the caller may change its top level."""
        ...

    def read_tool(self, entry: JsonObject) -> ToolDefinition:
        """Return the definition in *entry*. Raises BadToolError, with the reason, if it defines no tool."""
        ...

    def write_results(
        self, results: Sequence[ToolResult], native_search: NativeSearch | None = None
    ) -> list[dict[str, Json]]:
        """Return the entries to append to the conversation, or, for MCP, the answers to the calls."""
        ...

    def write_change(self, change: ToolChangeMessage) -> list[dict[str, Json]]:
        """Return the entries to append to the conversation after results; ``[]`` if the format has no such message."""
        ...


_MODULES: Mapping[str, WireModule] = {
    "openai": openai_chat,
    "openai-responses": openai_responses,
    "anthropic": anthropic,
    "mcp": mcp,
}

_DEFERRING: Mapping[str, Callable[[Iterable[ToolDefinition], Iterable[ToolDefinition]], list[dict[str, Any]]]] = {
    "openai-responses": openai_responses.write_tool_list,
    "anthropic": anthropic.write_tool_list,
}

TOOL_FORMATS = tuple(_MODULES)


def wire_module(wire_format: str) -> WireModule:
    """Return the module of *wire_format*. Raises BadSettingError if there is none."""
    module = _MODULES.get(wire_format)
    if module is None:
        raise BadSettingError(f"no tool format {wire_format!r}; there are {', '.join(map(repr, TOOL_FORMATS))}")
    return module


def render_definition(definition: ToolDefinition, wire_format: str) -> dict[str, Any]:
    """Return *definition* as one entry of a request's tool list; equal definitions give equal bytes of JSON.

    *wire_format* is "openai" (chat completions), "openai-responses", "anthropic" or "mcp"; another one raises
    BadSettingError. The result is the caller's to change.
    """
    return wire_module(wire_format).write_tool(definition)


def render_tools(definitions: Iterable[ToolDefinition], wire_format: WireFormat) -> list[dict[str, Any]]:
    """Render each as `render_definition` does, in the given order."""
    write_tool = wire_module(wire_format).write_tool
    return [write_tool(definition) for definition in definitions]


def render_tool_list(
    listed: Iterable[ToolDefinition],
    deferred: Collection[ToolDefinition],
    wire_format: WireFormat,
    kept: RenderedTools | None = None,
) -> list[dict[str, Any]]:
    """Render *listed* and the request's entries for *deferred*, which the model reads only once an answer loads them.

    Anthropic is sent the deferred tools with a mark. OpenAI's Responses is sent none of them, because the answers hold
    them, but there ``toolSearchTool`` becomes the API's own search. The other formats have no place for them.

    *kept* holds rendered tools of that format. Without it each request copies thousands of schemas; with it the caller
    must not change the entries.
    """
    if kept is not None and kept.wire_format == wire_format:
        return [*render_tools(listed, wire_format), *map(dict, kept.of(deferred))]
    write_list = _DEFERRING.get(wire_format)
    return render_tools(listed, wire_format) if write_list is None else write_list(listed, deferred)


def read_tool(entry: JsonObject) -> ToolDefinition:
    """Return the definition in *entry*, in any of the formats; the key of the input schema tells them apart.

    Raises BadToolError, with the reason, if it defines no tool.
    """
    fields = openai_chat.tool_fields(entry)
    if fields.get(anthropic.INPUT_SCHEMA) is not None:
        return anthropic.read_tool(fields)
    if fields.get(mcp.INPUT_SCHEMA) is not None:
        return mcp.read_tool(fields)
    return openai_responses.read_tool(fields)


def render_results(
    results: Sequence[ToolResult], wire_format: WireFormat, *, native_search: NativeSearch | None = None
) -> list[dict[str, Json]]:
    """Return the entries to append to the conversation (for "mcp": the answers to the calls), in the results' order.

    With *native_search*, results of ``toolSearchTool`` load tools in the provider's own way: "anthropic" is sent
    references to them, "openai-responses" their definitions; the other formats have no such way. If it holds no tools
    and is not declared, for example because nothing is deferred, these results are written like others. If a format has
    no place for an image or for bytes, a line of text names the omitted content. Raises BadSettingError for an unknown
    format.
    """
    is_native = native_search is not None and (native_search.is_declared or bool(native_search.definitions))
    return wire_module(wire_format).write_results(results, native_search if is_native else None)


def render_change(change: ToolChangeMessage, wire_format: WireFormat) -> list[dict[str, Json]]:
    """Return the entries to append to the conversation, after the results, to change the tools that the model may call.

    ``[]`` for no change, and if the format has no such message. Raises BadSettingError for an unknown format.
    """
    return wire_module(wire_format).write_change(change) if change.added or change.removed else []


class RenderedTools:
    """Definitions in one format, with *extra* in each. Each is written once and reused while it is in use.

    Meant for requests that hold thousands of definitions. The entries are shared with later requests and with the
    definitions, so nobody may change them. At most *max_kept* are kept. Safe to share between threads.
    """

    def __init__(self, wire_format: str, extra: JsonObject, *, max_kept: int = 20_000) -> None:
        self.wire_format = wire_format
        self._write_tool = wire_module(wire_format).write_tool
        self._extra = extra
        self._max_kept = max_kept
        # Id(definition) -> definition, which keeps the id valid, and its entry.
        self._kept: dict[int, tuple[ToolDefinition, JsonObject]] = {}

    def of(self, definitions: Collection[ToolDefinition]) -> list[JsonObject]:
        """Render each as `render_definition` does, in the given order."""
        kept = self._kept
        rendered: list[JsonObject] = []
        for definition in definitions:
            known = kept.get(id(definition))
            if known is None:
                known = definition, {**self._write_tool(definition, itself_if_plain), **self._extra}
                kept[id(definition)] = known
            rendered.append(known[1])
        if len(kept) > self._max_kept:
            self._kept = {}  # dropping all is simpler than finding the unused ones, and rare
        return rendered


Entries: TypeAlias = list[dict[str, Any]]


class PromptModule(Protocol):
    """The functions that the module of every model API has."""

    @property
    def is_own(self) -> Callable[[JsonObject], bool]:
        """Whether an entry of a conversation has a form that only this API uses."""
        ...

    @property
    def read_messages(self) -> Callable[[JsonObject], list[Message]]:
        """The conversation of a request. Raises BadArgumentsError for unreadable parts."""
        ...

    def front_parts(self, tools: Iterable[JsonObject], system: str) -> Iterator[PromptPart]:
        """The parts before the messages: the tools that the model reads, and the system's text, if there is one."""
        ...

    def message_parts(self, messages: Iterable[JsonObject], tools: Iterable[JsonObject]) -> Iterator[PromptPart]:
        """The messages of a request with the list *tools*, including the definitions that they make the model read."""
        ...

    def sendable(self, entries: Iterable[object]) -> list[Any]:
        """Return the *entries* that a loop has collected in the form that the API takes back.

        Parts of a model's answers that the API would refuse are repaired, the same way each time; the rest stays
        unchanged.
        """
        ...

    @property
    def write_messages(self) -> Callable[[Sequence[Message], NativeSearch | None], Mapping[str, Json]]: ...


MODULES: Final[Mapping[WireFormat, PromptModule]] = {
    "openai-responses": openai_responses,
    "openai": openai_chat,
    "anthropic": anthropic,
}


def prompt_module(wire_format: str) -> PromptModule:
    """Return the module of *wire_format*. Raises BadSettingError for "mcp", whose requests are no prompts."""
    for known, module in MODULES.items():
        if known == wire_format:
            return module
    raise BadSettingError(f"{wire_format!r} is no format of prompts; there are {', '.join(map(repr, MODULES))}")


def render_messages(
    messages: Sequence[Message], wire_format: str, *, native_search: NativeSearch | None = None
) -> Entries:
    """Return the entries to append to a conversation for *messages*. The system's text has a place of its own.

    With *native_search*, searches are the provider's own if it has them.
    """
    (entries,) = prompt_module(wire_format).write_messages(messages, native_search).values()
    return list(entries)


def sendable_messages(entries: Iterable[object], wire_format: WireFormat) -> list[Any]:
    """Return a conversation that a loop has collected, *entries* in the format's own shape, in the form that the API
    takes back.

    APIs refuse some of their own models' answers when these are sent back, such as an answer without content. These are
    repaired the same way in each request, whether or not your loop keeps the result; the rest stays unchanged. Raises
    BadSettingError for "mcp", whose requests are no prompts.
    """
    return prompt_module(wire_format).sendable(entries)


def as_reply(entries: Entries, wire_format: str) -> object:
    """Make the entries of one reply into an argument of `parse_tool_calls`: a list if a reply consists of several
    items.
    """
    return entries if wire_format == "openai-responses" else entries[0]


_ITEMS: Final = "input"  # key of the conversation in a request of Responses
_MESSAGES: Final = "messages"  # key of the conversation in requests of the other formats


def is_request(value: JsonObject) -> bool:
    """Whether *value* is a request of a model API: an object that holds a conversation."""
    return isinstance(value.get(_MESSAGES), list) or isinstance(value.get(_ITEMS), list | str)


def is_entry(value: JsonObject) -> bool:
    """Whether *value* is one entry of a conversation: a message, or an item of Responses."""
    return "role" in value or openai_responses.is_own(value)


def entries_of(request: JsonObject) -> list[Json]:
    """The conversation that *request* holds."""
    held = request.get(_ITEMS, request.get(_MESSAGES))
    return [{"role": "user", "content": held}] if isinstance(held, str) else as_list(held) or []


def entries_of_reply(reply: JsonObject) -> list[Json]:
    """Return the entries that *reply* adds to the conversation; ``[]`` if it is none of the three kinds."""
    choices, output = as_list(reply.get("choices")), as_list(reply.get("output"))
    if output is not None:
        return output
    if choices is not None:
        said = [(as_object(choice) or {}).get("message") for choice in choices[:1]]
        return [message for message in said if is_object(message)]
    return [reply] if "role" in reply else []


def format_of(entries: Sequence[Json], request: JsonObject) -> WireFormat:
    """Find the format of *entries* of *request*; if several formats would write them alike, any of these."""
    for wire_format, module in MODULES.items():
        if any(is_object(entry) and module.is_own(entry) for entry in entries):
            return wire_format
    if _ITEMS in request:
        return "openai-responses"
    return "anthropic" if "system" in request else "openai"


def read_conversation(entries: Sequence[Json], request: JsonObject, wire_format: WireFormat) -> list[Message]:
    """Return *entries* as messages, after the other messages of *request*, such as its system text. Definitions in them
    are not read.

    Raises BadArgumentsError for unreadable parts.
    """
    key = _ITEMS if wire_format == "openai-responses" else _MESSAGES
    return MODULES[wire_format].read_messages({**request, key: entries})


_MOST_SAID: Final = 2_000  # characters of one message; the question stands at the end of a long message


def text_in(content: Any) -> str:
    """The text of a message to a model API, whose *content* is a text or a list of blocks."""
    blocks = as_list(content)
    texts = [content] if blocks is None else [(as_object(block) or {}).get("text") for block in blocks]
    return "\n".join(text for text in texts if isinstance(text, str)).strip()


_NOTES: Final = ("system-reminder", "environment_context")  # tags of what programs add to their users' words


def said_in(entry: Mapping[str, Any]) -> str:
    """The words of the user in *entry*, as far as they are searched for; "" if it is not the user's."""
    if entry.get("role") != "user":
        return ""
    said = text_in(entry.get("content"))
    for tag in _NOTES:
        said = _without(said, f"<{tag}>", f"</{tag}>")
    return said.strip()[-_MOST_SAID:]


def _without(text: str, opening: str, closing: str) -> str:
    """Return *text* without all that stands from an *opening* to the next *closing*."""
    pieces, at = list[str](), 0
    while (start := text.find(opening, at)) >= 0 and (end := text.find(closing, start)) >= 0:
        pieces.append(text[at:start])
        at = end + len(closing)
    return "".join([*pieces, text[at:]])


def is_answer(entry: Mapping[str, Any]) -> bool:
    """Whether *entry* is the model's. In Responses, an answer has several items."""
    return entry.get("role") == "assistant" or str(entry.get("type")).endswith(("reasoning", "_call"))


_NAMES = re.compile(r'"name": "([\w-]+)"')


def are_deferred(entries: Iterable[Any]) -> bool:
    """Whether the provider's own tool search can find some of *entries*."""
    return any('"defer_loading": true' in json.dumps(entry, default=str) for entry in entries)


def names_in(value: Any) -> list[str]:
    """Every value of a key "name" in *value*, of tools and other things, in order."""
    return _NAMES.findall(json.dumps(value, default=str))


CHOICE: Final = "tool_choice"  # key of the choice of tools in a request


def chosen_names(request: Mapping[str, Any]) -> list[str]:
    """The tools that the model has to call, or has to choose from."""
    return names_in(request.get(CHOICE))


def without_force(choice: Json) -> Json:
    """Return *choice* of tools for a model that has made the call that it had to make; None if nothing has to change.

    It may call more of the tools that it could choose from, but no other than the only one that it was made to call.
    """
    if not is_object(choice):
        return "auto" if choice == "required" else None
    match choice.get("type"):
        case "any":
            return {**choice, "type": "auto"}
        case "tool":
            return {"type": "none"}
        case "function":
            return "none"
        case "allowed_tools":
            inner = choice.get("allowed_tools")  # of Chat Completions
            free: JsonObject = {"allowed_tools": {**inner, "mode": "auto"}} if is_object(inner) else {"mode": "auto"}
            return {**choice, **free}
        case _:
            return None


_MARK: Final = "cache_control"


def has_cache_mark(entries: Iterable[Any]) -> bool:
    return any(_MARK in entry for entry in entries)


def without_cache_mark(entry: JsonObject) -> dict[str, Json]:
    return {key: value for key, value in entry.items() if key != _MARK}


def with_cache_mark(kept: Sequence[Any], entries: Iterable[Any]) -> list[Any]:
    """Return *kept*, with the last cache mark of *entries* on its last entry: the provider caches the prompt up to
    there.

    If an entry of *kept* has a mark of its own, it keeps it and none is added.
    """
    marks = [entry[_MARK] for entry in entries if _MARK in entry]
    if not kept or not marks or has_cache_mark(kept):
        return list(kept)
    return [*kept[:-1], {**kept[-1], _MARK: marks[-1]}]
