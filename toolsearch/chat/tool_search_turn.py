"""One turn with tool search: the tools that the model is shown in each request, and those that it may call.

A turn has a session of its own length, which an eviction or a restart of the session cannot cut short.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from toolsearch.access.principals import LOCAL, Principal
from toolsearch.chat.model import ChatOptions, Prompt
from toolsearch.discovery.call_tools import inner_call
from toolsearch.discovery.exposure import FIXED, SESSION_EXPOSURES
from toolsearch.discovery.search_tool import MAX_QUERY_CHARACTERS
from toolsearch.errors import ToolSearchError, UnknownToolError
from toolsearch.sessions.conversation import Conversation
from toolsearch.sessions.host import ConversationHost
from toolsearch.sessions.options import SessionOptions
from toolsearch.sessions.port import ToolScope
from toolsearch.sessions.savings import FOUND_BEFOREHAND, revealed_in
from toolsearch.sessions.sent import OWN_TOOLS, Sent, ToolList
from toolsearch.sessions.state import SessionState
from toolsearch.sessions.unit_of_work import ConversationScope
from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.definition import Tool, ToolDefinition
from toolsearch.tools.naming import TOOL_NAME, near_names
from toolsearch.wire.capabilities import Endpoint
from toolsearch.wire.messages import Message, ToolChangeMessage, ToolMessage, UserMessage
from toolsearch.wire.native_search import found_names


class TurnSession(Conversation):
    """The session of a turn, which is saved after each reply. A session that was evicted meanwhile lasts until the end
    of the turn. If it was opened again, the turn goes on with the new one and adds its discovered tools.
    """

    def __init__(
        self,
        host: ConversationHost,
        state: SessionState,
        principal: Principal = LOCAL,
        options: SessionOptions | None = None,
    ) -> None:
        super().__init__(host, state, principal, options)
        self._found: set[str] = set()

    def load(self, names: Collection[str]) -> None:
        super().load(names)
        self._found.update(names)

    def forget_earlier_finds(self) -> None:
        """Keep only the discovered tools that searches since the last call found, if they found any."""
        found, self._found = self._found, set()
        if found:
            self.state.discovered.retain(found)

    def find(self, name: str) -> Tool | None:
        """The tool or skill of that name, whole, if it may be found."""
        return self.view.find_entry(name)

    @property
    def reach_size(self) -> int:
        """How many tools may be found."""
        return len(self.view.names)


logger = logging.getLogger(__name__)


@dataclass(eq=False)
class SearchTurn:
    """A turn over *session*, with a model at *endpoint*.

    attached  tools of the request that are always shown and never searched
    searched  tools of the request that are searched; these can run, while the session has only their definitions
    told      tools that this conversation's model knows from its list, messages and answers, with definitions if
              messages can change them. A simultaneous turn of the session has its own
    """

    session: TurnSession
    endpoint: Endpoint
    attached: Mapping[str, Tool]
    searched: Mapping[str, Tool]
    told: dict[str, ToolDefinition | None] = field(default_factory=dict[str, ToolDefinition | None])
    _made: dict[str, Tool] = field(default_factory=dict[str, Tool])
    _listed: set[str] = field(default_factory=set[str])
    _sent_list: ToolList | None = None
    _found_first: list[Message] = field(default_factory=list[Message])

    def begin(self, choice: str = "", said: str = "") -> None:
        """Begin the list of tools, or continue it, with *choice*, a tool that the model has to call. If the list may
        not change, a message describes *choice*. Tools that the user's words *said* surely ask for are in the list or
        in `opening`.

        This takes long if many tools are deferred for the first time.
        """
        if choice:
            self.session.expand(choice)
        self.session.anticipate(said, self.endpoint)
        self.session.tool_list(self.endpoint)
        if choice and not self.session.list_choice(choice):
            self._tell(self._answer(f"select:{choice}"))
        self.told = self._known()

    @property
    def has_search(self) -> bool:
        """Whether the model's list has the search tool."""
        return TOOL_NAME in self._sent.listed

    @property
    def defers(self) -> bool:
        """Whether the list has deferred tools, perhaps thousands."""
        return self._sent.mode == "deferred"

    @property
    def _sent(self) -> Sent:
        return self.session.state.sent.now

    def options(self, options: ChatOptions) -> ChatOptions:
        """Return *options* with the tools of the next request.

        A list that does not grow stays for the whole turn, even if a simultaneous turn of the session begins a new one.
        """
        tools = self.session.tool_list(self.endpoint)
        if self._sent_list is None or self._sent_list.mode != tools.mode or tools.mode == "append":
            self._sent_list = tools
        tools = self._sent_list
        own = [definition for definition in tools.listed if definition.name in OWN_TOOLS]
        others = [definition for definition in tools.listed if definition.name not in OWN_TOOLS]
        listed = [*self._as_tools(own), *self.attached.values(), *self._as_tools(others)]
        self._listed = {tool.name for tool in listed}
        return replace(options, tools=tuple(listed), deferred_tools=tuple(self._as_tools(tools.deferred)))

    def opening(self, messages: Sequence[Message]) -> list[Message]:
        """Messages for the model before it answers *messages*, such as tools found since."""
        return [*self.change(), *self._found_first] if isinstance(messages[-1], UserMessage | ToolMessage) else []

    def search_first(self, messages: Sequence[Message]) -> None:
        """Search for the user's last message before the model is asked. The tools found go into a new list, or into
        `opening`.

        In append mode, a list that was sent does not change.
        """
        said, sent = messages[-1], self._sent
        if not isinstance(said, UserMessage) or not said.text.strip() or not self.has_search:
            return
        if sent.mode == "append" and not self._is_new:
            return
        found = self._answer(said.text)
        names = found_names(found)
        if sent.mode == "deferred" and self._is_new:
            for name in names:
                self.session.list_choice(name)
            self.told = self._known()
        else:
            self._tell(found)

    @property
    def _is_new(self) -> bool:
        """Whether no request was made with the list."""
        return self._sent.requested_s is None

    @property
    def _needs_note(self) -> bool:
        return self._sent.mode in ("fixed", "deferred")

    def _tell(self, found: ToolResult) -> None:
        """Let the message after the user's show the tools found, if neither the list nor a change of it shows them."""
        if found_names(found) and self._needs_note:
            self._found_first.append(UserMessage(f"{FOUND_BEFOREHAND}\n{found.text}"))

    def _answer(self, text: str) -> ToolResult:
        """The answer of the search tool, with definitions if no message can add them."""
        session, mode = self.session, self._sent.mode
        session.show_as(FIXED if self._needs_note else SESSION_EXPOSURES[mode])
        try:
            answer = session.answer({"query": text[:MAX_QUERY_CHARACTERS]})
        except ToolSearchError as error:
            logger.debug("session %s: the user's message cannot be searched for: %s", session.id, error)
            return ToolResult("", TOOL_NAME, (), is_error=True)
        finally:
            session.show_as(SESSION_EXPOSURES[mode])
        return ToolResult("", TOOL_NAME, answer.content, answer.structured)

    def calls_to_run(self, calls: Sequence[ToolCall]) -> Sequence[ToolCall]:
        """The calls that the call tool and ``readSkill`` are asked to make, and all other calls unchanged."""
        return [inner_call(call, self.session.view.find_entry) for call in calls]

    def change(self, results: Sequence[ToolResult] = ()) -> list[Message]:
        """The message about tools after *results*. It counts as said in this conversation from here on."""
        self.session.tool_change()
        if self._sent.mode != "messages":
            known = self._known()
            found = (name for result in results for name in found_names(result))
            self.told |= {name: known[name] for name in found if name in known}
            return []
        told, visible = self.told, self._sent.visible
        self.told = {**visible}
        added = tuple(each for name, each in visible.items() if name not in self.attached and told.get(name) != each)
        removed = tuple(name for name in told if name not in visible and name not in self.attached)
        return [ToolChangeMessage(added, removed)] if added or removed else []

    def to_send(self, prompt: Prompt) -> Prompt:
        """Return the final form of *prompt*, after all additions and omissions.

        If the prompt no longer shows all tools that the model may call, the list of tools begins anew with them. So it
        need not change again when a memory drops more messages. The request is counted.
        """
        options = prompt.options
        if self._forgets(prompt.messages):
            self.session.note_history_cut()
            self._sent_list = None
            # Tools that inner advisors have added.
            others = [tool for tool in options.tools if tool.name not in self._listed]
            options = self.options(options)
            options = replace(options, tools=(*options.tools, *others))
            self.told = self._known()
        self.session.note_request(prompt.messages)
        return replace(prompt, options=options)

    def scope(self) -> ToolScope:
        """Return the tools that the calls of one reply may run."""
        return _TurnScope(ConversationScope(self.session, self.searched), self.attached)

    def _forgets(self, messages: Sequence[Message]) -> bool:
        """Whether tools that the model may still call were revealed by messages that are not among *messages*."""
        sent, discovered = self._sent, set(self.session.discovered)
        told = [name for name in self.told if name not in sent.listed and name in discovered]
        return len(revealed_in(messages, told, sent.mode)) < len(told)

    def _known(self) -> dict[str, ToolDefinition | None]:
        """The tools that the model knows from any of the session's conversations."""
        sent = self._sent
        return {**dict.fromkeys(sent.answered), **sent.visible}

    def _as_tools(self, definitions: Iterable[ToolDefinition]) -> list[Tool]:
        return [self._as_tool(each) for each in definitions if each.name not in self.attached]

    def _as_tool(self, definition: ToolDefinition) -> Tool:
        """The tool as its definition was sent, with the other properties of the request's own searched tool of that
        name.
        """
        made = self._made.get(definition.name)
        if made is None or made.definition is not definition:
            made = self._made[definition.name] = self._made_of(definition)
        return made

    def _made_of(self, definition: ToolDefinition) -> Tool:
        own, known = self.searched.get(definition.name), self.session.find(definition.name)
        if own is None:
            return Tool(definition)
        is_own = known is not None and known.definition is definition
        return own if is_own else replace(own, definition=definition)


@dataclass(frozen=True, slots=True)
class _TurnScope:
    """The session's tools as this request runs them, and the request's own."""

    session: ToolScope
    attached: Mapping[str, Tool]

    def resolve(self, name: str) -> Tool:
        if name in self.attached:
            return self.attached[name]
        try:
            return self.session.resolve(name)
        except UnknownToolError as error:
            if error.is_gone:
                raise
            raise UnknownToolError(name, near=near_names(name, [*self.attached, *error.near])) from None

    def begin_call(self, name: str) -> None:
        self.session.begin_call(name)

    def end_call(self, name: str) -> None:
        self.session.end_call(name)
