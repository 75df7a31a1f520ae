"""A session in one unit of work: read once, worked with in memory, written once."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from toolsearch.access.principals import LOCAL, Principal
from toolsearch.access.reach import Reach
from toolsearch.discovery.answers import AnsweredQuery
from toolsearch.discovery.call_tools import READ_SKILL_TOOL
from toolsearch.discovery.exposure import APPEND, SESSION_EXPOSURES, Exposure, ExposurePolicy
from toolsearch.discovery.search_tool import SearchArguments, names_of, search_tool_definition
from toolsearch.discovery.view import View
from toolsearch.errors import UndiscoveredToolError, UnknownToolError
from toolsearch.option_values import name_list
from toolsearch.sessions.answering import Found, answered_in, answers_in, load_in, search_in
from toolsearch.sessions.anticipation import anticipated_in
from toolsearch.sessions.host import ConversationHost
from toolsearch.sessions.options import SessionOptions
from toolsearch.sessions.savings import Savings, count_request, count_searches, savings_of
from toolsearch.sessions.sent import ToolList
from toolsearch.sessions.state import SessionState
from toolsearch.sessions.store import Settle
from toolsearch.sessions.tool_lists import loadable_in, mode_of, next_change, next_list
from toolsearch.threads import in_thread
from toolsearch.tools.definition import Tool, ToolDefinition
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.naming import READ_SKILL, TOOL_NAME
from toolsearch.tools.results import ToolOutput
from toolsearch.wire.capabilities import Endpoint, capabilities_of
from toolsearch.wire.formats import WireFormat
from toolsearch.wire.messages import Message, ToolChangeMessage
from toolsearch.wire.native_search import NativeSearch
from toolsearch_indexes.queries import Strategy

logger = logging.getLogger(__name__)


class Conversation:
    """A session's state, and the operations on it. Only `save` and `written` read or write the store.

    The state is held: a session that is evicted meanwhile lasts until the end of the work. Simultaneous work on a
    session shares its state, so that tools found by one are seen by all at once.
    """

    def __init__(
        self,
        host: ConversationHost,
        state: SessionState,
        principal: Principal = LOCAL,
        options: SessionOptions | None = None,
    ) -> None:
        """*options* replace those of *host*. The session's own budget, if any, replaces both."""
        self.state = state
        self.principal = principal
        self.host = host
        self.options = options or host.options
        if state.budget is not None:
            self.options = replace(self.options, budget=state.budget)
        self.runs: Collection[str] = ()  # names of tools that the catalog alone cannot run
        self.lists_shrink = False  # whether a list in append mode loses tools that are no longer discovered
        self._searched: Exposure | None = None
        self._view: tuple[Reach, View] | None = None
        self._used: list[str] = []  # called tools; they are learnt from when the session is saved

    @property
    def id(self) -> str:
        return self.state.id

    @property
    def reach(self) -> Reach:
        """The reach that the session was opened with, limited to its principal's."""
        return self.state.reach & self.principal.reach

    @property
    def view(self) -> View:
        """The view of the catalog through the reach. It is looked up once, and again if the reach has changed."""
        reach = self.state.reach
        if self._view is None or self._view[0] is not reach:
            self._view = reach, self.host.view(self.reach)
        return self._view[1]

    @property
    def discovered(self) -> list[str]:
        """The names of the discovered tools, in the order of discovery."""
        return list(self.state.discovered.tools)

    def save(self) -> None:
        """Learn from the calls, write the changes, and go on with the session as it is then."""
        used, self._used = self._used, []
        for name in used:
            if self.host.usage:
                self.host.usage.called(self.principal.id, self.id, name)
        self.state = self.host.sessions.save(self.state, settle_for(self.host))

    async def written(self) -> None:
        """As `save`, but in a thread unless everything is in memory, so that no event loop waits."""
        await (in_thread(self.save) if self._used else self.host.sessions.run(self.save))

    # The tools that the model is shown

    def admit(self, reach: Reach | None, pins: Collection[str]) -> None:
        """Apply the arguments of an opening: a new reach drops the tools that it does not cover, and pins are shown.

        Raises UnknownToolError if one of *pins* is not in reach, and then changes nothing. An earlier pin is hidden for
        as long as it is out of reach.
        """
        asked = self.state.reach if reach is None else reach
        view, pins = self.host.view(asked & self.principal.reach), name_list(pins, "pins")
        for name in pins:
            view.get(name)
        if asked != self.state.reach:
            self.state.reach = asked
        self._view = self.state.reach, view
        discovered = self.state.discovered
        discovered.drop([name for name in discovered.tools if not view.allows(name)])
        discovered.pins |= frozenset(pins)
        missing = [self.shown_tool(name) for name in sorted(discovered.pins) if name not in discovered]
        self.add([tool for tool in missing if tool is not None])

    @property
    def exposure(self) -> Exposure:
        """How the tools in reach are shown at the moment."""
        return ExposurePolicy(self.options.pass_through, self._searched or self._exposure_sent()).exposure(self.view)

    def _exposure_sent(self) -> Exposure:
        """The way in which found tools reach the model: that of the current list, or that of the settings without a
        list.
        """
        sent, asked = self.state.sent.now, self.state.exposure or self.options.exposure
        if sent.endpoint is not None:
            return SESSION_EXPOSURES[sent.mode]
        return APPEND if asked == "auto" else SESSION_EXPOSURES[asked]

    def show_as(self, searched: Exposure) -> None:
        """Choose how tools are shown where they have to be searched for. By default that is as the model's list is."""
        self._searched = searched

    def shown(self) -> list[Tool]:
        """The search tool, without a callback, and the discovered tools. If the catalog is shown whole, all tools, and
        the search tool only for skills.

        This changes nothing: removed tools are only left out here, and `drop_gone` forgets them.
        """
        if not self.exposure.is_searched:
            return [*(map(Tool, self.own_definitions()) if self.reads_skills else ()), *self.shown_tools()]
        tools = map(self.shown_tool, self.discovered)
        return [*map(Tool, self.own_definitions()), *(tool for tool in tools if tool is not None)]

    @property
    def reads_skills(self) -> bool:
        """Whether the model gets ``readSkill``: once it has it, it keeps it, so that no skill that leaves changes the
        list.
        """
        return self.view.has_skills or READ_SKILL in self.state.sent.now.visible

    def own_definitions(self) -> list[ToolDefinition]:
        """The search tool's, and that of ``readSkill`` if there are skills."""
        return [self.search_definition(), *([READ_SKILL_TOOL] if self.reads_skills else [])]

    def tool_list(self, endpoint: Endpoint) -> ToolList:
        """The tools of the next request to *endpoint*.

        It continues the list of the request before, unless the model is another one, or, in "append", the provider's
        cache has gone cold. Tools that this caller may not see are left out, even if another caller was sent them and
        the cache is lost. Raises BadSettingError if the endpoint does not support the exposure.
        """
        search, ledger = self.search_definition(), self.state.sent
        is_listed = TOOL_NAME in ledger.now.listed
        if is_listed and ledger.append([search], named_in=self.named_in) and ledger.now.requested_s is not None:
            ledger.note_break()
        return next_list(self, endpoint).within(self.principal.reach, search)

    def tool_change(self) -> ToolChangeMessage:
        """The tool changes for a message after the results. They count as said from here on."""
        return next_change(self)

    def is_for(self, wire_format: WireFormat) -> bool:
        """Whether the model's list is in *wire_format*, so that messages in that format can change it."""
        endpoint = self.state.sent.now.endpoint
        return endpoint is not None and endpoint.wire_format == wire_format

    def loadable(self, names: Iterable[str]) -> list[str]:
        """The *names* that the model can call by name after the answer to a search that found them.

        The others are run by ``callTool``, because the list does not change or has reached its limit.
        """
        return loadable_in(self, names)

    def take_left(self) -> list[str]:
        """The names of the tools that have left the model's list since the last call, and can still be called by their
        exact names.
        """
        can_be_called = self.options.expand_undiscovered
        return [name for name in self.state.sent.take_left() if can_be_called and self.view.allows(name)]

    def compacted(self) -> None:
        """Note that earlier messages were dropped or rewritten: the next list begins anew, and breaks no cache."""
        self.state.sent.compact()
        self.state.counters.history_tokens = self.state.counters.skill_tokens = 0

    def native_search(self) -> NativeSearch | None:
        """The deferred tools that answers may refer to; None unless tools are deferred."""
        sent = self.state.sent.now
        if sent.mode != "deferred":
            return None
        referred, deferred = sent.all_referred(), sent.deferred_by_name
        return NativeSearch({name: each for name, each in deferred.items() if name in referred}, bool(deferred))

    def note_loaded(self, names: Iterable[str]) -> None:
        """Note that the answer to a search has loaded *names*. It contained the definitions of those that the model
        cannot call by name.
        """
        names = list(names)
        loadable = self.loadable(names)
        told = [name for name in names if name not in loadable]
        self.state.sent.note_answer(loadable, self.view.tokens_of, told=told)

    def note_history_cut(self) -> None:
        """As `compacted`, for messages that a memory has dropped together with the tools that they revealed."""
        self.state.sent.note_history_cut()
        self.compacted()

    def list_choice(self, name: str) -> bool:
        """Put a tool that the model is forced to call into the list, if it is in reach, since APIs require that. Return
        whether the list has it.

        This breaks an existing prompt cache. If the model binds its thoughts to the list, a list that was sent stays as
        it is, since each later request would be refused.
        """
        ledger, tool = self.state.sent, self.shown_tool(name)
        sent = ledger.now
        if tool is None or name in sent.listed:
            return name in sent.listed
        if sent.requested_s is not None and sent.endpoint and capabilities_of(sent.endpoint).binds_thinking:
            return False
        is_other = ledger.relist([name]) or ledger.append([tool.definition])
        if is_other and ledger.now.requested_s is not None:
            ledger.note_break()
        return True

    def drop_gone(self) -> None:
        """Forget discovered tools that no caller can be shown any more: they have left the catalog or the session's
        reach, or are too long. Tools that only this caller does not reach are kept.
        """
        hidden = [name for name in self.discovered if self.shown_tool(name) is None]
        if hidden:
            view = self.host.view(self.state.reach)
            self.state.discovered.drop([name for name in hidden if self._shown_in(view, name) is None])

    def resolve(self, name: str) -> Tool:
        """As `ToolScope.resolve`; the search tool gets its callback with the reply that calls it."""
        if name == TOOL_NAME:
            return Tool(self.search_definition())
        tool = self.require_in_reach(name)
        if tool.definition.kind == "tool" and name not in self.state.discovered and self.exposure.is_searched:
            if not self.options.expand_undiscovered and not self.state.sent.now.has_shown(name):
                raise UndiscoveredToolError(name)
            self.expand(name)
        return tool  # unshortened, since arguments are validated by its schema

    def require_in_reach(self, name: str) -> Tool:
        """Return the tool, skill, prompt or resource *name*. Raises UnknownToolError, with *is_gone* if the model was
        sent it before.
        """
        if self.state.sent.now.has_sent(name) and self.view.find_entry(name) is None:
            raise UnknownToolError(name, is_gone=True)
        return self.view.get_entry(name)

    def expand(self, name: str) -> None:
        """Show the tool *name* from now on, if it is in reach."""
        tool = self.shown_tool(name)
        if tool is not None and name not in self.state.discovered:
            self.add([tool])

    # Searches

    def search(
        self, query: str, *, limit: int | None = None, strategy: Strategy | None = None, server: str | None = None
    ) -> Found:
        """Search within reach, and show the tools found. For a tool's full name, only that tool is shown."""
        return search_in(self, query, limit=limit, strategy=strategy, server=server)

    def answers(self, asked: SearchArguments) -> list[AnsweredQuery]:
        """Search as a call of the search tool does: load the tools that are clearly meant, and only name the others."""
        return answers_in(self, asked)

    def load(self, names: Collection[str]) -> None:
        """Show the tools that a search has found, if they are in reach, from now on."""
        self.add(load_in(self, names))

    def answer(self, arguments: Mapping[str, Json]) -> ToolOutput:
        """The answer of ``toolSearchTool`` to a call with *arguments*: a text, and the structured content ``{"tools":
        names}`` with the loaded tools.

        Tools that were found but not loaded are under ``alsoFound``, and tools that are too long to be shown under
        ``refused``. Both are missing if they would be empty.
        """
        return answered_in(self, arguments).output

    # Turns and figures

    def begin_turn(self) -> list[str]:
        """Evict the tools that were idle for longer than the budget's TTL. Return those in reach, in append order."""
        return self._in_reach(self.state.discovered.begin_turn())

    def anticipate(self, said: str, endpoint: Endpoint | None = None) -> list[str]:
        """Show the tools that the user's words surely ask for, before the model is asked; return their names.

        *endpoint* is the destination of the next request, by default that of the last one. If its messages can add
        tools, the next `tool_change` has them, from the first request on, so that all conversations begin with the same
        list. Otherwise they are in the first list.
        """
        endpoint = endpoint or self.state.sent.now.endpoint
        if not self.options.anticipate or not said.strip() or endpoint is None:
            return []
        mode = mode_of(self, endpoint)
        if mode == "messages":
            self.tool_list(endpoint)
        with self.host.telemetry.anticipation():
            names = anticipated_in(self, said, mode)
            self.load(names)
        self.state.anticipated.update(names)
        self.state.counters.anticipated += len(names)
        return names

    def end_turn(self) -> list[str]:
        """Evict the tools that were idle for too long or are over the budget. Return those in reach, in append
        order.
        """
        self.drop_gone()
        evicted = self.state.discovered.end_turn()
        logger.debug("session %s: the turn has ended, %d tools are evicted", self.id, len(evicted))
        return self._in_reach(evicted)

    def note_request(self, messages: Sequence[Message] | None = None) -> None:
        """Count a model request. *messages* are the messages that it contains; None means the whole conversation."""
        self.drop_gone()
        tokens = count_request(self, messages)
        logger.debug("session %s: a request with %d tokens of tools", self.id, tokens)

    def note_usage(self, input_tokens: int) -> None:
        """Note the length of the last request by the provider's own count: the price of breaking its cache.

        0 means unknown.
        """
        if input_tokens:
            self.state.sent.note_prompt(input_tokens)

    def note_call(self, name: str, *, is_error: bool) -> None:
        """Count a finished call of any tool but the search tool, and note that the tool was used."""
        state, host = self.state, self.host
        state.discovered.touch(name)
        state.counters.calls += 1
        state.counters.failed_calls += is_error
        host.telemetry.used(name in state.unused, is_anticipated=name in state.anticipated)
        state.unused.discard(name)
        state.counters.anticipated_calls += name in state.anticipated
        state.anticipated.discard(name)
        if host.usage and not is_error:
            self._used.append(name)

    def note_searches(self, searches: Sequence[tuple[JsonObject | str, str]], *, is_search_round: bool) -> None:
        """Count the tokens of the search tool's calls in one reply: the arguments and the answer of each.

        *is_search_round* says that the reply did nothing else, so that only the search needs the next request.
        """
        count_searches(self, searches, is_search_round=is_search_round)

    def savings(self) -> Savings:
        """The cost of the session so far. The first call counts every definition of the catalog."""
        return savings_of(self)

    def add(self, tools: Collection[Tool]) -> None:
        """Let *tools* be discovered."""
        if tools:
            self.state.discovered.add({tool.name: self.view.tokens_of(tool.definition) for tool in tools})

    def _in_reach(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if self.view.allows(name)]

    def shown_tools(self) -> list[Tool]:
        """All tools in reach, by name, as models are shown them."""
        return [tool for name in self.view.names if (tool := self.shown_tool(name)) is not None]

    def shown_tool(self, name: str) -> Tool | None:
        """The tool *name* as models are shown it; None if it is too long or out of reach."""
        return self._shown_in(self.view, name)

    def shown_entry(self, name: str) -> Tool | None:
        """Like `shown_tool`, and every skill, prompt or resource in reach."""
        entry = self.view.find_entry(name)
        return self.shown_tool(name) if entry is not None and entry.definition.kind == "tool" else entry

    def _shown_in(self, view: View, name: str) -> Tool | None:
        tool = view.find(name)
        if tool is None:
            return None
        shown = self.host.definitions.of(tool.definition, self.options.budget.definition_tokens).definition
        if shown is None or shown is tool.definition:
            return tool if shown else None
        return replace(tool, definition=shown)

    def search_definition(self) -> ToolDefinition:
        """The search tool's; the same for the whole session, once the model was sent it. Only another reach changes it,
        so that it names no server beyond that.
        """
        sent = self.state.sent.now
        known = sent.listed.get(TOOL_NAME)
        if known is not None and sent.named_in in ("", self.named_in):
            return known
        options = self.options
        return search_tool_definition(
            default_limit=options.limit,
            max_limit=options.max_limit,
            hint=options.search_hint,
            subject=names_of(self.view.servers) if options.name_servers else "",
        )

    @property
    def named_in(self) -> str:
        """The reach whose servers a new definition of the search tool names; "" if it names none."""
        return str(self.reach) if self.options.name_servers else ""


def settle_for(host: ConversationHost) -> Settle:
    """Return the function that applies reach and budget to a state after another process's work was merged into it.

    The reach is the session's. Tools beyond one caller's reach are hidden from that caller, and stay for others.
    """

    def settle(state: SessionState) -> None:
        view = host.view(state.reach)
        state.discovered.drop([name for name in state.discovered.tools if not view.allows(name)])
        state.discovered.keep_budget()

    return settle
