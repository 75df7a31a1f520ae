"""A request in play: the list and the conversation that go to the model, made of the client's body alone."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import takewhile
from typing import Any, Final, TypeAlias

from toolsearch.access.reach import Reach
from toolsearch.discovery.call_tools import CALL_TOOLS, READ_SKILL_TOOL, inner_call
from toolsearch.discovery.exposure import SESSION_EXPOSURES
from toolsearch.discovery.view import View
from toolsearch.documents.json_values import as_object, as_texts, is_object
from toolsearch.proxy.body import Body, list_text
from toolsearch.proxy.known_replies import Continued
from toolsearch.proxy.tools import ToolList
from toolsearch.proxy.unchanged import PassUnchangedError
from toolsearch.sessions.conversation import Conversation
from toolsearch.tokens import HeuristicTokenCounter, definition_tokens
from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.definition import Tool, ToolDefinition
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.naming import CALL_TOOL, TOOL_NAME
from toolsearch.wire.capabilities import Cloud, Endpoint, RevealMode, capabilities_of
from toolsearch.wire.carried import OwnAnswer
from toolsearch.wire.formats import (
    CHOICE,
    WireFormat,
    chosen_names,
    has_cache_mark,
    is_answer,
    render_change,
    render_definition,
    render_tool_list,
    said_in,
    text_in,
    with_cache_mark,
    without_force,
)
from toolsearch.wire.messages import ToolChangeMessage
from toolsearch.wire.native_search import found_names, loaded_text
from toolsearch.wire.proxied import Found, History, ProxiedWire
from toolsearch.wire.proxied_parts import compact
from toolsearch.wire.sendable_tools import own_arguments

_OWN_TOOLS: Final = 2  # the search tool and the call tool; readSkill is there only for skills
_FEWEST_REQUESTS: Final = 2  # of a conversation that calls a tool: for the call, and after it
# Fields that answers repeat from the request, with defaults.
_REPEATED: Final = {"tools": "[]", CHOICE: '"auto"'}
_MOST_UNSURE: Final = 2  # tools that a search names although it is not sure of any
_FREE: Final = (None, "auto", "required", "any")  # choices of any tool
Texts: TypeAlias = list[str]


@dataclass(frozen=True, slots=True)
class Target:
    """Where a request goes, and how it is written."""

    wire_format: WireFormat
    wire: ProxiedWire
    cloud: Cloud = ""


class Request:
    """What the model is sent for one request of a client, and what its searches find.

    mode       how found tools reach the model
    held       names of tools whose calls do not reach the client as they are
    revealed   names of the tools that it is shown by now, of those that were held back
    held_back_count  number of tools that the model is not shown at first
    is_free    whether the model need not call a tool any more: it has called one of the operator's, or too many
    """

    def __init__(self, target: Target, body: Body, tools: ToolList, continued: Continued | None = None) -> None:
        """Make the request, which may search. Raises PassUnchangedError if the request is not changed.

        continued  the stored reply that it continues
        """
        self.target, self._body, self._tools, self._continued = target, body, tools, continued
        self._known = capabilities_of(Endpoint(target.wire_format, str(body.get("model") or ""), target.cloud))
        self.mode: RevealMode = self._way_to_reveal()
        if not tools.named and not self._known.tools_on_chat and body.get("reasoning_effort") != "none":
            raise PassUnchangedError("the model takes no functions while it reasons, and the client has none")
        entries = self._client_entries()
        opening = list(
            takewhile(lambda fields: not is_answer(fields), (as_object(value) or {} for value, _ in entries))
        )
        kept = self._kept(_system_text(body, opening))
        reach = _without(tuple(name for name in kept if name in tools.named))
        view = tools.engine.view(reach)
        self.is_whole = continued is None and self._is_whole(view, kept, opening)
        is_first = continued is None and not self.is_whole and self.mode != "messages"
        surely = self._asked_first(reach, entries) if is_first else []
        self.listed = self._listed(kept, surely, view.names)
        clients = tuple(name for name in self.listed if name in tools.named)
        self._reach = reach if self.is_whole else _without(clients)  # the operator's run here, listed or not
        held_back = set(view.names).difference(self.listed)
        self.held_back_count = len(held_back)
        self._deferred: Collection[str] = held_back if self.mode == "deferred" else ()
        shown = () if continued is None or continued.mode != self.mode else continued.revealed
        self._loaded = {*shown}  # deferred tools that answers have loaded
        self.revealed = [*surely, *shown]
        self._sent: Texts = []
        self._is_as_sent = True
        self.is_free = False
        self._pending: list[str] = []
        self._announced = {*self.listed, *self.revealed}
        self._read(entries)
        if self.is_whole and not tools.operator and not tools.has_skills and self._is_as_sent:
            own = "beside the client's own tool search, " if tools.has_search else ""
            raise PassUnchangedError(f"{own}the tools are too few to be searched")

    # What goes upstream

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers that the way of revealing tools needs."""
        return self._known.headers.get(self.mode, {})

    def content(self) -> bytes:
        """The body that goes to the model now."""
        wire, body = self.target.wire, self._body
        values = {"tools": list_text(self.listed_texts)}
        if self._continued is not None and wire.CONTINUATION is not None:
            values[wire.CONTINUATION.parameter] = compact(self._continued.stored.id)
        if self.is_free:
            freed = without_force(body.get(CHOICE))
            values |= {} if freed is None else {CHOICE: compact(freed)}
        if not self._is_as_sent or self._pending:
            values[wire.ENTRIES] = list_text([*self._sent, *self._change()])
        return body.replaced(values)

    def add(self, entries: Iterable[JsonObject], results: Sequence[ToolResult]) -> None:
        """Continue the conversation by *entries*, the model's answer and the *results* of its calls."""
        self._begin_answer()
        self._is_as_sent = False
        self._sent += map(compact, entries)
        self.is_free = self.is_free or any(result.name in self._tools.operator for result in results)
        for result in results:
            self._reveal(found_names(result))

    # The calls of the model

    @cached_property
    def history(self) -> History:
        """How the conversation with the model is written."""
        return History(
            self._called_by_call_tool,
            self._answer,
            self._known.binds_thinking,
            self._tools.full_names,
            has_native_search=self.mode == "deferred",
            unanswered=None if self._continued is None else self._continued.stored.unanswered,
        )

    @property
    def held(self) -> Collection[str]:
        return {*(each.name for each in self._own), *self._tools.operator, *self._tools.full_names.values()}

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
        conversation = self._tools.conversation(self._reach)
        conversation.show_as(SESSION_EXPOSURES[self.mode])
        return conversation

    def as_shown(self, result: ToolResult) -> ToolResult:
        """The *result* of a search as the names that it found, from which a later request can make its answer again."""
        if result.name != TOOL_NAME:
            return result
        structured = as_object(result.structured) or {}
        skills, others = as_texts(structured.get("skills")), as_texts(structured.get("alsoFound"))
        names = [*skills, *found_names(result)] or others[:_MOST_UNSURE]
        return replace(result, content=(), structured={"tools": list(names)}, is_error=False, error_code=None)

    @property
    def tokens_saved(self) -> int:
        """An estimate: the tokens of the tools that are not in the list."""
        return 0 if self.is_whole else self._tools.engine.view(_without(tuple(self.listed))).estimated_tokens

    @property
    def all_tools_tokens(self) -> int:
        """An estimate: the tokens of all tools that can be searched."""
        return self._tools.engine.view(Reach()).estimated_tokens

    @property
    def sent_tokens(self) -> int:
        """An estimate: the tokens of the tools that the model is sent now, in the list and as they were found."""
        found = sum(map(self._tools.remembered.tokens, set(self.revealed).difference(self.listed)))
        return self.all_tools_tokens - self.tokens_saved + found + (0 if self.is_whole else self._own_tokens)

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

    # The list

    def _way_to_reveal(self) -> RevealMode:
        """How found tools reach the model: the best way that its API takes beside the client's own tools."""
        tools, most = self._tools, self._known.max_deferred
        is_room = most is None or len(tools.others) + len(tools.named) + len(tools.operator) + _OWN_TOOLS <= most
        refused = set[RevealMode]({"append"}) if is_room and not tools.has_search else {"append", "deferred"}
        return next(mode for mode in self._known.modes if mode not in refused)

    @cached_property
    def _own(self) -> Sequence[ToolDefinition]:
        return self._own_beside(is_whole=self.is_whole)

    def _own_beside(self, *, is_whole: bool) -> Sequence[ToolDefinition]:
        """The proxy's own tools in a list. Beside tools that are all listed, only skills need any."""
        skills = [READ_SKILL_TOOL] if self._tools.has_skills else []
        if is_whole and not skills:
            return []
        calls = [CALL_TOOLS[CALL_TOOL]] if self.mode == "fixed" and not is_whole else []
        return [self._tools.search_definition, *skills, *calls]

    @cached_property
    def listed_texts(self) -> Texts:
        named, operator = self._tools.named, self._tools.operator
        own = [operator[name].definition for name in self.listed if name not in named and name in operator]
        rendered: list[Any] = [*self._tools.rendered.of(own), *self._rendered_own()]
        kept = [name for name in self.listed if name in named]
        if not has_cache_mark(named[name].entry for name in kept):
            rendered = with_cache_mark(rendered, self._tools.marked)
        every: Mapping[str, str] = self._tools.deferred if self._deferred else {}
        deferred = [text for name, text in every.items() if name in self._deferred]
        return [*self._tools.others, *self._tools.written(kept), *map(compact, rendered), *deferred]

    def _rendered_own(self) -> Sequence[JsonObject]:
        """The entries of the proxy's own tools. Beside deferred tools, the search may be the API's own."""
        if not self.history.has_native_search:
            return self._tools.rendered.of(self._own)
        return [render_tool_list([each], [each], self.target.wire_format)[0] for each in self._own]

    @cached_property
    def _own_tokens(self) -> int:
        own = self._own_beside(is_whole=False)
        return sum(definition_tokens(definition, HeuristicTokenCounter()) for definition in own)

    def _is_whole(self, view: View, kept: Sequence[str], opening: Sequence[JsonObject]) -> bool:
        """Whether the tools in *view* are listed as well: they are few, or a search costs more than it saves."""
        rule, most = self._tools.engine.options.pass_through, self._known.max_tools
        if most is not None and len(self._tools.others) + len(kept) + len(view.names) > most:
            return False
        return view.is_shown_whole(rule) or (rule.max_tools > 0 and self._is_dearer(view, kept, opening))

    def _is_dearer(self, view: View, kept: Iterable[str], opening: Iterable[JsonObject]) -> bool:
        """Whether a conversation with one call costs more with a search, which is one request more.

        It counts the first request, so that the answer is the same in all requests of a conversation.
        """
        said = [self._body.get("system"), self._body.get("instructions"), *(each.get("content") for each in opening)]
        listed = self._tools.written(name for name in kept if name in self._tools.named)
        rest = HeuristicTokenCounter().count("\n".join([*map(text_in, said), *self._tools.others, *listed]))
        return _FEWEST_REQUESTS * (rest + view.estimated_tokens) < (_FEWEST_REQUESTS + 1) * (rest + self._own_tokens)

    def _kept(self, system: str) -> list[str]:
        """The tools that are always in the list, by name: the chosen ones first if there is no room for all."""
        tools = self._tools
        chosen = tools.chosen(chosen_names({CHOICE: self._body.get(CHOICE)}))
        kept = sorted(tools.kept(system).difference(chosen))
        room = self._room
        if room is not None and len(chosen) > room:
            raise PassUnchangedError("the request chooses more tools than the model API takes")
        return sorted([*chosen, *kept][:room])

    @property
    def _room(self) -> int | None:
        """How many tools the list can hold beside those that are in it anyway."""
        most = self._known.max_tools
        return None if most is None else max(0, most - _OWN_TOOLS - self._tools.has_skills - len(self._tools.others))

    def _listed(self, kept: Sequence[str], surely: Iterable[str], in_reach: Sequence[str]) -> list[str]:
        more = in_reach if self.is_whole else surely
        before = () if self._continued is None else self._continued.listed
        known = [name for name in before if name in self._tools.named or name in self._tools.operator]
        listed = list(dict.fromkeys([*known, *kept, *sorted(set(more).difference(kept))]))
        return listed if self.is_whole else listed[: self._room]

    def _asked_first(self, reach: Reach, entries: Sequence[tuple[Json, str]]) -> list[str]:
        """The tools that the client asks for before the model's first answer."""
        names: dict[str, None] = {}
        for value, _ in entries:
            fields = as_object(value) or {}
            if is_answer(fields):
                break
            names |= dict.fromkeys(self._asked_for(reach, fields))
        return list(names)

    def _asked_for(self, reach: Reach, fields: JsonObject) -> Sequence[str]:
        said = said_in(fields)
        return self._tools.remembered.surely_asked(reach, said) if said else ()

    # The conversation

    def _client_entries(self) -> list[tuple[Json, str]]:
        key = self.target.wire.ENTRIES
        said = self._body.get(key)
        if isinstance(said, str):
            text = self._body.written(self._body.parts[key])
            return [({"role": "user", "content": said}, f'{{"role":"user","content":{text}}}')]
        return self._body.items(key)

    def _read(self, entries: Sequence[tuple[Json, str]]) -> None:
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
            elif self.mode == "messages" and not self.is_whole:
                self._reveal(self._asked_for(self._reach, fields))
            self._sent.append(text)

    def _begin_answer(self) -> None:
        """Tell the model of new tools right before its next answer."""
        if self._pending:
            self._sent += self._change()
            self._announced.update(self._pending)
            self._pending, self._is_as_sent = [], False

    @cached_property
    def _called_by_call_tool(self) -> Collection[str]:
        if self.is_whole or self.mode != "fixed":
            return ()
        return {*self._tools.named, *self._tools.operator}.difference(self.listed)

    def _reveal(self, names: Iterable[str]) -> None:
        for name in names:
            if name in self._announced or name in self._pending or self.conversation.shown_tool(name) is None:
                continue
            if name not in self.revealed:
                self.revealed.append(name)
            if self.mode == "messages":
                self._pending.append(name)

    def _change(self) -> Texts:
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
        shown = [name for name in names if self.conversation.shown_entry(name) is not None]
        skills = tuple(filter(self.find_skill, shown))
        tools = [name for name in shown if name not in skills]
        if not tools or self.mode == "fixed":
            return OwnAnswer(self._tools.remembered.answer(self._reach, tuple(shown)))
        own = self._tools.named
        loaded = [name for name in tools if name in self._deferred and name not in self._loaded]
        self._loaded.update(loaded)
        callable_names = [own[name].dotted_name if name in own else name for name in tools if name not in loaded]
        texts = [loaded_text(callable_names)] if callable_names else []
        texts += [self._tools.remembered.answer(self._reach, skills)] if skills else []
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


@lru_cache(256)
def _without(names: tuple[str, ...]) -> Reach:
    return Reach.parse(deny=sorted(names))


def _system_text(body: Body, opening: Iterable[JsonObject]) -> str:
    """The words of the application before the first answer, wherever the format has them."""
    said = (fields.get("content") for fields in opening if fields.get("role") in ("system", "developer"))
    return "\n".join(map(text_in, [body.get("system"), body.get("instructions"), *said]))
