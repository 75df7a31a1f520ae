"""A request in play: the body that goes to the model, and what its searches find."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import takewhile
from typing import Final, TypeAlias

from toolsearch.discovery.call_tools import inner_call
from toolsearch.discovery.exposure import SESSION_EXPOSURES
from toolsearch.documents.json_values import as_object, is_object
from toolsearch.proxy.body import Body, list_text
from toolsearch.proxy.known_replies import Continued
from toolsearch.proxy.listing import Listing, Target
from toolsearch.proxy.tools import ToolList
from toolsearch.proxy.unchanged import PassUnchangedError
from toolsearch.sessions.conversation import Conversation
from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.definition import Tool
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.wire.carried import OwnAnswer
from toolsearch.wire.formats import CHOICE, chosen_names, is_answer, render_change, render_definition, without_force
from toolsearch.wire.messages import ToolChangeMessage
from toolsearch.wire.native_search import found_names, loaded_text
from toolsearch.wire.proxied import Found, History
from toolsearch.wire.proxied_parts import compact
from toolsearch.wire.sendable_tools import own_arguments

_FREE: Final = (None, "auto", "required", "any")  # choices of any tool
# Fields that answers repeat from the request, with defaults.
_REPEATED: Final = {"tools": "[]", CHOICE: '"auto"'}
Entries: TypeAlias = list[tuple[Json, str | slice]]


class Request:
    """What the model is sent for one request of a client, and what its searches find.

    listing   the tools that the model is shown from the start
    revealed  names of the tools that it is shown by now, of those that were held back
    is_free   whether the model need not call a tool any more: it has called one of the operator's, or too many
    """

    def __init__(self, target: Target, body: Body, tools: ToolList, continued: Continued | None = None) -> None:
        """Make the request, which may search. Raises PassUnchangedError if the request is not changed.

        continued  the stored reply that it continues
        """
        entries = _conversation(body, target.wire.ENTRIES)
        self.target, self._tools, self._continued = target, tools, continued
        self._body = body.without_value(target.wire.ENTRIES)  # the conversation is read only here
        fields = (as_object(value) or {} for value, _ in entries)
        opening = list(takewhile(lambda each: not is_answer(each), fields))
        self.listing = Listing(target, self._body, tools, opening, continued)
        if not tools.named and not self.listing.api.tools_on_chat and body.get("reasoning_effort") != "none":
            raise PassUnchangedError("the model takes no functions while it reasons, and the client has none")
        shown = () if continued is None or continued.mode != self.listing.mode else continued.revealed
        self._loaded = {*shown}  # deferred tools that answers have loaded
        self.revealed = [*self.listing.asked, *shown]
        self._announced = {*self.listing.names, *self.revealed}
        self.listing.opening = ()  # it is read only for the names
        self._pending: list[str] = []
        self._sent: list[str | slice] = []  # texts, and the places of those in the body
        self._is_as_sent = True
        self.is_free = False
        self._read(entries)
        if self.listing.is_whole and not tools.operator and not tools.has_skills and self._is_as_sent:
            own = "beside the client's own tool search, " if tools.has_search else ""
            raise PassUnchangedError(f"{own}the tools are too few to be searched")

    # What goes upstream

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers that the way of revealing tools needs."""
        return self.listing.api.headers.get(self.listing.mode, {})

    def content(self) -> bytes:
        """The body that goes to the model now."""
        values = {"tools": list_text(self.listing.texts)}
        if self._continued is not None and (continuation := self.target.wire.CONTINUATION) is not None:
            values[continuation.parameter] = compact(self._continued.stored.id)
        if self.is_free and (freed := without_force(self._body.get(CHOICE))) is not None:
            values[CHOICE] = compact(freed)
        if not self._is_as_sent or self._pending:
            sent = [self._body.text[each] if isinstance(each, slice) else each for each in self._sent]
            values[self.target.wire.ENTRIES] = list_text([*sent, *self._change()])
        return self._body.replaced(values)

    def add(self, entries: Iterable[JsonObject], results: Sequence[ToolResult]) -> None:
        """Continue the conversation by *entries*, the model's answer and the *results* of its calls."""
        self._begin_answer()
        self._is_as_sent = False
        self._sent += map(compact, entries)
        self.is_free = self.is_free or any(result.name in self._tools.operator for result in results)
        for result in results:
            self._reveal(found_names(result))

    # The calls of the model

    @property
    def history(self) -> History:
        """How the conversation with the model is written. It is not kept here, since it holds the request."""
        return History(
            self._called_by_call_tool,
            self._answer,
            self.listing.api.binds_thinking,
            self._tools.full_names,
            has_native_search=self.listing.mode == "deferred",
            unanswered=None if self._continued is None else self._continued.stored.unanswered,
        )

    @property
    def held(self) -> Collection[str]:
        """The names of tools whose calls do not reach the client as they are."""
        return {*(each.name for each in self.listing.own), *self._tools.operator, *self._tools.full_names.values()}

    def may_call(self, name: str) -> bool:
        """Whether the client's choice leaves the model the tool *name*. A choice that is not known leaves only those
        that it names.
        """
        choice = self._body.get(CHOICE)
        kind = str(choice.get("type")) if is_object(choice) else choice
        return kind in _FREE or name in chosen_names({CHOICE: choice})

    def to_client(self, call: ToolCall) -> ToolCall | None:
        """The client's call: one of the call tool, or one by the full name that the model has read of a tool in a
        namespace.
        """
        inner = inner_call(call, self.find_skill)
        tool = self._tools.named.get(inner.name)
        is_direct = inner is call
        if tool is None or not (tool.namespace if is_direct else inner.name in self._called_by_call_tool):
            return None
        arguments = own_arguments(tool.definition.input_schema, inner.parsed_arguments)
        is_as_sent = arguments == inner.parsed_arguments
        written = call.arguments if is_direct else _as_written(call)
        return replace(inner, name=tool.dotted_name, arguments=(written if is_as_sent else "") or arguments)

    def find_skill(self, name: str) -> Tool | None:
        """The operator's skill of that name."""
        entry = self.conversation.view.find_entry(name)
        return entry if entry is not None and entry.is_skill else None

    @cached_property
    def conversation(self) -> Conversation:
        """The tools that the proxy runs for this request."""
        conversation = self._tools.conversation(self.listing.reach)
        conversation.show_as(SESSION_EXPOSURES[self.listing.mode])
        return conversation

    def as_listed(self, text: str) -> str:
        """The *text* of an answer or of an event. One that repeats the tools and the choice repeats the client's."""
        if '"tools"' not in text or (body := Body.read(text.encode(errors="surrogatepass"))) is None:
            return text
        if is_object(body.get("response")):
            return body.replaced({"response": self.as_listed(body.written(body.parts["response"]))}).decode()
        if body.get("tools"):
            continuation = self.target.wire.CONTINUATION
            repeated = _REPEATED if continuation is None else {**_REPEATED, continuation.parameter: "null"}
            own = {key: self._body.written_at(key, default) for key, default in repeated.items()}
            return body.replaced({key: own[key] for key in own if key in body.parts}).decode()
        return text

    # The conversation

    def _read(self, entries: Entries) -> None:
        """Write the conversation as the model knows it."""
        parts = self.target.wire.restored([value for value, _ in entries], self.history)
        self._is_as_sent = parts == list(range(len(entries)))
        for part in parts:
            if isinstance(part, Found):
                self._reveal(part.names)
                continue
            value, text = entries[part] if isinstance(part, int) else (part, compact(part))
            fields = as_object(value) or {}
            if is_answer(fields):
                self._begin_answer()
            elif self.listing.mode == "messages" and not self.listing.is_whole:
                self._reveal(self.listing.asked_in(fields, self.listing.reach))
            self._sent.append(text)

    def _begin_answer(self) -> None:
        """Tell the model of new tools right before its next answer."""
        if self._pending:
            self._sent += self._change()
            self._announced.update(self._pending)
            self._pending, self._is_as_sent = [], False

    @cached_property
    def _called_by_call_tool(self) -> Collection[str]:
        if self.listing.is_whole or self.listing.mode != "fixed":
            return ()
        return {*self._tools.named, *self._tools.operator}.difference(self.listing.names)

    def _reveal(self, names: Iterable[str]) -> None:
        for name in names:
            if name in self._announced or name in self._pending or self.conversation.shown_tool(name) is None:
                continue
            if name not in self.revealed:
                self.revealed.append(name)
            if self.listing.mode == "messages":
                self._pending.append(name)

    def _change(self) -> list[str]:
        """The message that adds the tools that the model is not told of yet: the client's as it has written them."""
        known = {name: tool for name in self._pending if (tool := self.conversation.shown_tool(name)) is not None}
        own = self._tools.added(known)
        added = [tool.definition for name, tool in known.items() if name in own or name not in self._tools.named]
        texts = list(map(compact, render_change(ToolChangeMessage(tuple(added)), self.target.wire_format)))
        for name, entry in own.items():
            written = compact(render_definition(known[name].definition, self.target.wire_format))
            if not any(written in text for text in texts):
                raise LookupError(f"the change of tools has no definition of {name!r}")
            texts = [text.replace(written, compact(entry)) for text in texts]
        return texts

    def _answer(self, names: Sequence[str]) -> OwnAnswer:
        """The answer to a search that found *names*. It loads deferred tools that no earlier answer has loaded."""
        mode, reach = self.listing.mode, self.listing.reach
        shown = [name for name in names if self.conversation.shown_entry(name) is not None]
        skills = tuple(filter(self.find_skill, shown))
        tools = [name for name in shown if name not in skills]
        if not tools or mode == "fixed":
            return OwnAnswer(self._tools.remembered.answer(reach, tuple(shown)))
        own, deferred = self._tools.named, self.listing.held_back if mode == "deferred" else ()
        loaded = [name for name in tools if name in deferred and name not in self._loaded]
        self._loaded.update(loaded)
        callable_names = [own[name].dotted_name if name in own else name for name in tools if name not in loaded]
        texts = [loaded_text(callable_names)] if callable_names else []
        texts += [self._tools.remembered.answer(reach, skills)] if skills else []
        return OwnAnswer("\n".join(texts), self._entries(loaded))

    def _entries(self, names: Sequence[str]) -> dict[str, JsonObject]:
        """The definitions of the tools *names*: the client's as it has written them."""
        operator, wire_format = self._tools.operator, self.target.wire_format
        own = {name: render_definition(operator[name].definition, wire_format) for name in names if name in operator}
        return {**self._tools.added(names), **own}


def _as_written(call: ToolCall) -> str:
    """The text of the inner arguments of a call of the call tool; "" if they are not written as an object."""
    body = Body.read(call.arguments.encode(errors="surrogatepass")) if isinstance(call.arguments, str) else None
    part = None if body is None else body.parts.get("arguments")
    return body.written(part) if body is not None and part is not None and is_object(part.value) else ""


def _conversation(body: Body, key: str) -> Entries:
    """The conversation under *key*, each entry with its text, or its place in that of *body*."""
    said = body.get(key)
    if isinstance(said, str):
        return [({"role": "user", "content": said}, f'{{"role":"user","content":{body.written_at(key, "")}}}')]
    part = body.parts.get(key)
    return [(item.value, slice(item.start, item.end)) for item in part.items] if part is not None else []
