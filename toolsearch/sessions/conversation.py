"""A session in one unit of work: read once, worked with in memory, written once."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from toolsearch.access.principals import LOCAL, Principal
from toolsearch.access.reach import Reach
from toolsearch.discovery.call_tools import CALL_TOOL, CALL_TOOLS
from toolsearch.discovery.exposure import APPEND, SESSION_EXPOSURES, Exposure, ExposurePolicy
from toolsearch.discovery.search_tool import search_tool_definition
from toolsearch.discovery.view import View
from toolsearch.errors import BadSettingError, UndiscoveredToolError
from toolsearch.option_values import name_list
from toolsearch.sessions.answering import Found, answer_in, search_in
from toolsearch.sessions.host import ConversationHost
from toolsearch.sessions.options import SessionOptions
from toolsearch.sessions.request_history import history_tokens
from toolsearch.sessions.savings import Savings
from toolsearch.sessions.sent import ToolList
from toolsearch.sessions.state import SessionState
from toolsearch.sessions.store import Settle
from toolsearch.threads import in_thread
from toolsearch.tokens import count_json
from toolsearch.tools.definition import Tool, ToolDefinition
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.naming import TOOL_NAME
from toolsearch.tools.output import ToolOutput
from toolsearch.wire.capabilities import Capabilities, Endpoint, RevealMode, capabilities_of
from toolsearch.wire.messages import Message, ToolChangeMessage
from toolsearch.wire.native_search import NativeSearch
from toolsearch_indexes.strategies import Strategy

logger = logging.getLogger(__name__)


class Conversation:
    """A session's state, and what can be done with it. Nothing here reads or writes but `save` and `written`.

    The state is held: a session that is evicted meanwhile lasts until the end of the work. All that work on a session
    at the same time share its state, so that each sees at once what the others have found.
    """

    def __init__(
        self,
        host: ConversationHost,
        state: SessionState,
        principal: Principal = LOCAL,
        options: SessionOptions | None = None,
    ) -> None:
        """*options* stand in for those of *host*."""
        self.state = state
        self.principal = principal
        self.host = host
        self.options = options or host.options
        self._policy = ExposurePolicy(self.options.pass_through, APPEND)
        self._view: tuple[Reach, View] | None = None
        self._used: list[str] = []  # called tools, to be learnt from when the session is saved

    @property
    def id(self) -> str:
        return self.state.id

    @property
    def reach(self) -> Reach:
        """What the session was opened with, as far as its principal reaches."""
        return self.state.reach & self.principal.reach

    @property
    def view(self) -> View:
        """Of the catalog, through the reach. Looked up once, and again if the reach has changed."""
        reach = self.state.reach
        if self._view is None or self._view[0] is not reach:
            self._view = reach, self.host.view(self.reach)
        return self._view[1]

    @property
    def discovered(self) -> list[str]:
        """The names of the discovered tools, in the order in which they came."""
        return list(self.state.discovered.tools)

    def save(self) -> None:
        """Write what has changed, and go on with the session as it is then. What was called is learnt from first."""
        used, self._used = self._used, []
        for name in used:
            if self.host.usage:
                self.host.usage.called(self.principal.id, self.id, name)
        self.state = self.host.sessions.save(self.state, settle_for(self.host, self.principal))

    async def written(self) -> None:
        """As `save`: in a thread, unless all of it is in memory, so that no loop waits."""
        await (in_thread(self.save) if self._used else self.host.sessions.run(self.save))

    # What it sees

    def admit(self, reach: Reach | None, pins: Collection[str]) -> None:
        """Apply what the session is opened with: a new reach drops the tools that it does not cover, and pins are
        shown.

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
        return self._policy.exposure(self.view)

    def show_as(self, searched: Exposure) -> None:
        """Choose how tools are shown where they have to be searched for. By default found tools are appended."""
        self._policy = ExposurePolicy(self.options.pass_through, searched)

    def shown(self) -> list[Tool]:
        """The search tool, without a callback, and the discovered tools; or all tools, if the catalog is shown whole.

        This changes nothing: tools that are gone are only left out, and `drop_gone` drops them.
        """
        if not self.exposure.is_searched:
            return self._shown_tools()
        tools = map(self.shown_tool, self.discovered)
        return [Tool(self._search_definition()), *(tool for tool in tools if tool is not None)]

    def tool_list(self, endpoint: Endpoint) -> ToolList:
        """What the next request to *endpoint* says of tools.

        It goes on with the list of the request before, but for one that is appended to, unless it is for another model.
        """
        known, sent, now_s = capabilities_of(endpoint), self.state.sent, self.host.clock()
        mode = self._mode(known)
        self.show_as(SESSION_EXPOSURES[mode])
        is_warm = sent.is_warm(now_s, known.cache_s)
        if not sent.is_begun(endpoint, mode) or (mode == "append" and not is_warm):
            sent.begin(endpoint, mode, *self._first_list(mode, known.max_deferred))
        elif mode == "append" and sent.append(tool.definition for tool in self.shown()):
            sent.note_break()
        return sent.tool_list()

    def _mode(self, known: Capabilities) -> RevealMode:
        asked = self.options.exposure
        if asked == "auto":
            return known.modes[0]
        if asked not in known.modes:
            raise BadSettingError(
                f"this model does not take the exposure {asked!r}; use one of {', '.join(known.modes)}"
            )
        return asked

    def _first_list(self, mode: RevealMode, max_deferred: int) -> tuple[list[ToolDefinition], list[ToolDefinition]]:
        """The tools that a new list begins with, and those that it defers."""
        shown = [tool.definition for tool in self.shown()]
        if mode in ("append", "messages"):
            return shown, []
        own = [self._search_definition(), CALL_TOOLS[CALL_TOOL]]
        always = [each for each in shown if each.name != TOOL_NAME and (mode == "deferred" or self._is_pinned(each))]
        if mode == "fixed" or not self.exposure.is_searched:
            return [*own, *always], []
        listed = {each.name for each in always}
        others = [tool.definition for tool in self._shown_tools() if tool.name not in listed]
        return [*own, *always], others[:max_deferred]

    def _is_pinned(self, definition: ToolDefinition) -> bool:
        return not self.exposure.is_searched or definition.name in self.state.pins

    def tool_change(self) -> ToolChangeMessage:
        """What a message after the results has to say of tools; from here on, it counts as said."""
        sent = self.state.sent
        if sent.endpoint is None or sent.mode != "messages":
            return ToolChangeMessage()
        wanted = [tool.definition for tool in map(self.shown_tool, self.discovered) if tool is not None]
        return sent.change_to(wanted, may_remove=capabilities_of(sent.endpoint).removals)

    def native_search(self) -> NativeSearch | None:
        """What answers may refer to, where tools are deferred."""
        sent = self.state.sent
        if sent.mode != "deferred":
            return None
        return NativeSearch(sent.deferred)

    def note_loaded(self, names: Iterable[str]) -> None:
        """Note that the answer to a search has named *names*: where tools are deferred, that loads them."""
        self.state.sent.load(names)

    def list_again(self, names: Iterable[str]) -> None:
        """Put *names* into the list of the next request, since its messages do not reveal them any more."""
        sent = self.state.sent
        sent.history_cuts += sent.relist(names)

    def list_choice(self, name: str) -> None:
        """Put a tool that the model is made to call into the list, if it is in reach: no API takes a choice of another.

        That breaks the prompt cache, if there is one by now.
        """
        sent, tool = self.state.sent, self.shown_tool(name)
        if tool is None or any(each.name == name for each in sent.listed):
            return
        if not sent.relist([name]):
            sent.append([tool.definition])
        if sent.requested_s is not None:
            sent.note_break()

    def drop_gone(self) -> None:
        """Forget discovered tools that cannot be shown any more: they have left the catalog or the reach, or are too
        long.
        """
        self.state.discovered.drop([name for name in self.discovered if self.shown_tool(name) is None])

    def resolve(self, name: str) -> Tool:
        """As `ToolScope.resolve`; the search tool gets its callback with the reply that calls it."""
        if name == TOOL_NAME:
            return Tool(self._search_definition())
        tool = self.view.get(name)
        if name not in self.state.discovered and self.exposure.is_searched:
            if not self.options.expand_undiscovered:
                raise UndiscoveredToolError(name)
            self.expand(name)
        return tool  # unshortened, since arguments are validated by its schema

    def expand(self, name: str) -> None:
        """Show the tool *name* from now on, if it is in reach."""
        tool = self.shown_tool(name)
        if tool is not None and name not in self.state.discovered:
            self.add([tool])

    # Searches

    def search(
        self, query: str, *, limit: int | None = None, strategy: Strategy | None = None, server: str | None = None
    ) -> Found:
        """Search within reach, and expand what is found."""
        return search_in(self, query, limit=limit, strategy=strategy, server=server)

    def answer(self, arguments: Mapping[str, Json]) -> ToolOutput:
        """What ``toolSearchTool`` answers a call with *arguments*: the text, and as structured ``{"tools": names}``.

        Names of what was found and is too long to be shown are under ``refused``, if there are any.
        """
        return answer_in(self, arguments)

    # Turns and figures

    def begin_turn(self) -> list[str]:
        """Evict what has been idle for longer than the budget's TTL; return it in append order."""
        return list(self.state.discovered.begin_turn())

    def end_turn(self) -> list[str]:
        """Evict what has been idle for too long or is over the budget; return it in append order."""
        self.drop_gone()
        evicted = self.state.discovered.end_turn()
        logger.debug("session %s: the turn has ended, %d tools are evicted", self.id, len(evicted))
        return list(evicted)

    def note_request(self, messages: Sequence[Message] | None = None) -> None:
        """Count a model request. *messages* are the conversation as the request holds it; None: all that was said."""
        self.drop_gone()
        counters, sent = self.state.counters, self.state.sent
        sent_tokens = sum(map(self.view.tokens_of, self._definitions_sent(messages)))
        sent_tokens += counters.history_tokens if messages is None else self._history_tokens(messages)
        counters.requests += 1
        counters.sent_tokens += sent_tokens
        sent.note_request(self.host.clock(), sent_tokens)
        logger.debug("session %s: a request with %d tokens of tools", self.id, sent_tokens)
        if self.host.telemetry.has_metrics:
            self.host.telemetry.tokens(sent=sent_tokens, saved=self.view.estimated_tokens - sent_tokens)

    def _definitions_sent(self, messages: Sequence[Message] | None) -> Collection[ToolDefinition]:
        sent = self.state.sent
        if sent.endpoint is None:
            return [tool.definition for tool in self.shown()]
        return sent.visible.values() if messages is None else sent.listed

    def _history_tokens(self, messages: Sequence[Message]) -> int:
        return history_tokens(
            messages, self.host.counter, tokens_of=self.view.tokens_of, deferred=self.state.sent.deferred
        )

    def note_call(self, name: str, *, is_error: bool) -> None:
        """Count a finished call of any tool but the search tool, and note that the tool was used."""
        state, host = self.state, self.host
        state.discovered.touch(name)
        state.counters.calls += 1
        state.counters.failed_calls += is_error
        host.telemetry.used(name in state.unused)
        state.unused.discard(name)
        if host.usage and not is_error:
            self._used.append(name)

    def note_searches(self, searches: Sequence[tuple[JsonObject | str, str]], *, is_search_round: bool) -> None:
        """Count what the search tool's calls in one reply took: the arguments and the answer of each.

        *is_search_round* says that the reply did nothing else, so that the next request is there for them only.
        """
        counters, counter, written_tokens = self.state.counters, self.host.counter, 0
        for arguments, answer in searches:
            written = counter.count(arguments) if isinstance(arguments, str) else count_json(arguments, counter)
            written_tokens += written
            counters.history_tokens += written + counter.count(answer)
        counters.written_tokens += written_tokens
        counters.search_rounds += is_search_round
        if self.host.telemetry.has_metrics and (written_tokens or is_search_round):
            # A request that only a search made necessary would have sent no definitions at all.
            all_tools_tokens = self.view.estimated_tokens if is_search_round else 0
            self.host.telemetry.tokens(saved=-written_tokens - all_tools_tokens)

    def savings(self) -> Savings:
        """What the session has cost so far. The first time, every definition of the catalog is counted."""
        counters = self.state.counters
        return Savings(
            requests=counters.requests,
            search_rounds=counters.search_rounds,
            sent_tokens=counters.sent_tokens,
            written_tokens=counters.written_tokens,
            all_tools_tokens=max(0, counters.requests - counters.search_rounds) * self.view.tokens,
            cache_breaks=self.state.discovered.cache_breaks,
            is_estimate=self.host.counter.estimate,
        )

    def add(self, tools: Collection[Tool]) -> None:
        """Let *tools* be discovered."""
        if tools:
            self.state.discovered.add({tool.name: self.view.tokens_of(tool.definition) for tool in tools})

    def _shown_tools(self) -> list[Tool]:
        """All tools in reach, by name, as models are shown them."""
        return [tool for name in self.view.names if (tool := self.shown_tool(name)) is not None]

    def shown_tool(self, name: str) -> Tool | None:
        """The tool *name* as models are shown it; None if they are not, since it is too long or out of reach."""
        tool = self.view.find(name)
        if tool is None:
            return None
        shown = self.host.definitions.of(tool.definition, self.options.budget.definition_tokens).definition
        if shown is None or shown is tool.definition:
            return tool if shown else None
        return replace(tool, definition=shown)

    def _search_definition(self) -> ToolDefinition:
        options, strategies = self.options, self.host.strategies
        return search_tool_definition(
            self.view.servers, strategies=strategies, default_limit=options.limit, max_limit=options.max_limit
        )


def settle_for(host: ConversationHost, principal: Principal) -> Settle:
    """Make the function that applies reach and budget to a state after another process's work was merged into it."""

    def settle(state: SessionState) -> None:
        view = host.view(state.reach & principal.reach)
        state.discovered.drop([name for name in state.discovered.tools if not view.allows(name)])
        state.discovered.keep_budget()

    return settle
