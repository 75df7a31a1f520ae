"""A session: what one conversation sees, has discovered, and runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from toolsearch.access.reach import Reach
from toolsearch.calling.limits import TurnCounter
from toolsearch.calling.manager import ToolCallingManager
from toolsearch.calling.result import ToolResult
from toolsearch.calling.wire import ToolCall, parse_tool_calls, render_results
from toolsearch.catalog.catalog import Catalog
from toolsearch.discovery.discovered import Budget
from toolsearch.discovery.exposure import PassThrough, render_tools
from toolsearch.discovery.search_tool import (
    TOOL_NAME,
    SearchArguments,
    refused_note,
    render_answer,
    search_tool_definition,
)
from toolsearch.discovery.shown import ShownDefinitions
from toolsearch.discovery.view import View
from toolsearch.errors import BadSettingError, UndiscoveredToolError
from toolsearch.option_values import name_list
from toolsearch.sessions.port import ToolScope
from toolsearch.sessions.state import SessionState
from toolsearch.sessions.store import SessionStore
from toolsearch.sessions.usage.log import UsageLog
from toolsearch.sessions.usage.vocabulary import Vocabulary
from toolsearch.telemetry import Telemetry
from toolsearch.threads import search_threads
from toolsearch.tokens import TokenCounter, count_json
from toolsearch.tools.blocks import text_block
from toolsearch.tools.definition import NO_PARAMETERS, Tool, ToolContext, ToolDefinition, ToolReference
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.output import ToolOutput

logger = logging.getLogger(__name__)

_CALL_HINT = "They are in your tool list from now on; call them by name."


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """How every session of an engine behaves.

    limit, max_limit     tools in one answer of the search tool: unless the model says otherwise, and at most
    min_score            what scores less is not found, by any search of the engine; scores are from 0 to 1
    answer_tokens        what one answer may take
    budget               what a session may hold between turns
    pass_through         the catalogs that are shown whole
    expand_undiscovered  run a tool in reach that the model calls without having searched for it; else refuse
    """

    limit: int = 5
    max_limit: int = 10
    min_score: float = 0.0
    answer_tokens: int = 800
    budget: Budget = Budget()  # noqa: RUF009  frozen
    pass_through: PassThrough = PassThrough()  # noqa: RUF009  frozen
    expand_undiscovered: bool = True

    def __post_init__(self) -> None:
        if not 0 <= self.min_score <= 1:
            raise BadSettingError(f"min_score must be from 0 to 1; got {self.min_score}")


class SessionHost(Protocol):
    """What a session needs of the engine that it belongs to."""

    @property
    def catalog(self) -> Catalog: ...
    @property
    def sessions(self) -> SessionStore: ...
    @property
    def options(self) -> SessionOptions: ...
    @property
    def manager(self) -> ToolCallingManager: ...
    @property
    def counter(self) -> TokenCounter: ...
    @property
    def definitions(self) -> ShownDefinitions: ...
    @property
    def telemetry(self) -> Telemetry: ...
    @property
    def usage(self) -> UsageLog | None: ...
    @property
    def vocabulary(self) -> Vocabulary: ...
    @property
    def strategies(self) -> tuple[str, ...]:
        """Those that a search can name, the default first."""
        ...

    def view(self, reach: Reach, server: str | None = None) -> View: ...

    def search(
        self,
        query: str,
        *,
        limit: int,
        strategy: str | None,
        reach: Reach | None,
        server: str | None,
        tenant: str | None,
    ) -> list[ToolReference]: ...


@dataclass(frozen=True, slots=True)
class Savings:
    """What a session's requests cost in tool tokens, and what they would have cost with every definition in each.

    sent_tokens      the lists of tools, and the searches and their answers, sent again with each request as history is
    written_tokens   what the model wrote to search
    all_tools_tokens every definition in reach, once per request but for those that only a search made necessary

    Not counted, on either side: the rest of the conversation, which the extra requests of searches send once more, and
    the provider's prompt cache, which makes what is sent again cheaper. *cache_breaks* says how often a list of tools
    changed other than at its end.
    """

    requests: int
    search_rounds: int
    sent_tokens: int
    written_tokens: int
    all_tools_tokens: int
    cache_breaks: int
    is_estimate: bool

    @property
    def saved_tokens(self) -> int:
        return self.all_tools_tokens - self.sent_tokens - self.written_tokens

    @property
    def saved_share(self) -> float:
        """Below 0 if searching cost more than it saved."""
        return self.saved_tokens / self.all_tools_tokens if self.all_tools_tokens else 0.0


@dataclass(frozen=True, slots=True)
class Found:
    """What a search has found: what the model is shown of it, and the names of what it cannot be shown."""

    shown: list[ToolReference]
    refused: tuple[str, ...]


class Session:
    """One conversation over a shared catalog. Made by `ToolSearch.session`.

    In each model request send `tools`; hand the reply to `execute` and append what it returns; when the model has
    answered the user, call `end_turn`, which is when tools are evicted. The session's state lives in the engine's
    store: once that has evicted it, every method raises UnknownSessionError.
    """

    def __init__(self, engine: SessionHost, session_id: str, *, options: SessionOptions | None = None) -> None:
        """*options* stand in for those of the engine."""
        self.id = session_id
        self._engine = engine
        self._own_options = options
        self._turn = TurnCounter()

    def admit(self, state: SessionState, reach: Reach | None, pins: Collection[str]) -> None:
        """Apply what the session was opened with: a new reach drops what it no longer covers, pins are shown.

        Raises UnknownToolError for one of *pins* that is not in reach, and changes nothing. An earlier pin that no
        longer is, is not shown for that long.
        """
        view, pins = self._engine.view(state.reach if reach is None else reach), name_list(pins, "pins")
        for name in pins:
            view.get(name)
        if reach is not None:
            state.reach = reach
        state.discovered.drop([name for name in state.discovered.tools if not view.allows(name)])
        state.discovered.pins |= frozenset(pins)
        missing = [self._shown_tool(view, name) for name in sorted(state.pins) if name not in state.discovered]
        if shown := [tool.definition for tool in missing if tool is not None]:
            state.discovered.add({definition.name: view.tokens_of(definition) for definition in shown})
        self._engine.sessions.save(state)  # so that no restart brings back a wider reach

    @property
    def state(self) -> SessionState:
        return self._engine.sessions.get(self.id)

    @property
    def discovered(self) -> list[str]:
        """The names of the discovered tools, in the order in which they came."""
        return list(self.state.discovered.tools)

    def tools(self, format: str = "openai") -> list[dict[str, Any]]:  # noqa: A002  the SDKs' word
        """Return the tools for one model request, in *format*: openai, openai-responses, anthropic or mcp.

        ``toolSearchTool`` first, then what was discovered, in that order; as long as nothing was evicted, each list
        begins with the one before, byte for byte. A catalog of a few tools is given whole, by name, without a search
        tool. Call it once for each request: that is what `savings` counts.
        """
        tools = render_tools([tool.definition for tool in self.shown()], format)
        self.note_request()
        return tools

    def shown(self) -> list[Tool]:
        """Return what `tools` renders; nothing is counted. The search tool comes without a callback: see `scope`."""
        return self._shown(self.state)

    @property
    def is_passed_through(self) -> bool:
        """Whether the catalog in reach is so small that it is shown whole, and not searched."""
        return self._passes_through(self._engine.view(self.state.reach))

    def note_request(self) -> None:
        """Count a model request with the tools that are `shown` now."""
        state = self.state
        counters, view = state.counters, self._engine.view(state.reach)
        shown = self._shown(state)
        sent_tokens = sum(view.tokens_of(tool.definition) for tool in shown) + counters.history_tokens
        counters.requests += 1
        counters.sent_tokens += sent_tokens
        logger.debug("session %s: a request with %d tools, %d tokens", self.id, len(shown), sent_tokens)
        if self._engine.telemetry.has_metrics:
            self._engine.telemetry.tokens(sent=sent_tokens, saved=view.estimated_tokens - sent_tokens)

    def search(
        self,
        query: str,
        *,
        limit: int | None = None,
        strategy: str | None = None,
        server: str | None = None,
    ) -> list[ToolReference]:
        """Search as `ToolSearch.search` does, within reach, and expand what is found into this session.

        What the budget lets nobody be shown is left out; `ToolSearch.notes` says of what tool and why.
        """
        return self._find(query, limit=limit, strategy=strategy, server=server).shown

    def _find(self, query: str, *, limit: int | None, strategy: str | None, server: str | None) -> Found:
        state = self.state
        limit = self._options.limit if limit is None else limit
        found = self._engine.search(
            query, limit=limit, strategy=strategy, reach=state.reach, server=server, tenant=state.tenant
        )
        if self._engine.usage and (strategy or self._engine.strategies[0]) != "regex":
            terms = self._engine.vocabulary.terms_of(query)
            self._engine.usage.discovered(state.tenant, self.id, terms, [reference.name for reference in found])
        view = self._engine.view(state.reach)
        tools = {reference.name: self._shown_tool(view, reference.name) for reference in found}
        definitions = [tool.definition for tool in tools.values() if tool is not None]
        new = {definition.name for definition in definitions if definition.name not in state.discovered}
        state.unused |= new
        self._engine.telemetry.discovered(len(new))
        state.discovered.add({definition.name: view.tokens_of(definition) for definition in definitions})
        state.counters.searches += 1
        state.counters.empty_searches += not found
        self._engine.sessions.save(state)
        shown = [reference for reference in found if tools[reference.name] is not None]
        return Found(shown, tuple(name for name, tool in tools.items() if tool is None and view.allows(name)))

    async def call(
        self,
        name: str,
        arguments: JsonObject | str = "",
        *,
        context: Mapping[str, Any] | None = None,
        turn: TurnCounter | None = None,
    ) -> ToolResult:
        """Run one tool, ``toolSearchTool`` included; a failure is a result with `is_error`.

        *context* is what the tool's `ToolContext` holds; no model sees it. For *turn* see `execute`.
        """
        return (await self._run([ToolCall("call_1", name, arguments)], context, turn))[0]

    async def execute(
        self, reply: object, *, context: Mapping[str, Any] | None = None, turn: TurnCounter | None = None
    ) -> list[dict[str, Any]]:
        """Run the tool calls of a model's reply and return the messages to append to the conversation, in its format.

        *reply* is what `parse_tool_calls` takes: a reply of the OpenAI or Anthropic SDK, or its tool calls. Without
        calls there is nothing to append.

        What limits the calls of a turn goes over all its replies: the session counts them until `end_turn` or
        `begin_turn`, as long as it is in memory. *turn* is a count of your own, which you carry along, in its place.
        """
        wire_format, calls = parse_tool_calls(reply)
        return render_results(await self._run(calls, context, turn), wire_format)

    def begin_turn(self) -> list[str]:
        """Say that the user has spoken again; return the tools that had been idle for longer than the budget's TTL.

        Not needed without a TTL. With one, what went cold while the user was away is not sent once more.
        """
        state = self.state
        evicted = state.discovered.begin_turn()
        self._turn = TurnCounter()
        self._engine.sessions.save(state)
        return list(evicted)

    def end_turn(self) -> list[str]:
        """Say that the model has answered the user; return the tools that were evicted for it, in append order."""
        state = self.state
        evicted = state.discovered.end_turn()
        logger.debug("session %s: the turn has ended, %d tools are evicted", self.id, len(evicted))
        self._turn = TurnCounter()
        self._engine.sessions.save(state)
        return list(evicted)

    def savings(self) -> Savings:
        """What the session has cost so far. The first time, every definition of the catalog is counted."""
        state = self.state
        counters = state.counters
        return Savings(
            requests=counters.requests,
            search_rounds=counters.search_rounds,
            sent_tokens=counters.sent_tokens,
            written_tokens=counters.written_tokens,
            all_tools_tokens=max(0, counters.requests - counters.search_rounds) * self._engine.view(state.reach).tokens,
            cache_breaks=state.discovered.cache_breaks,
            is_estimate=self._engine.counter.estimate,
        )

    @property
    def _options(self) -> SessionOptions:
        return self._own_options or self._engine.options

    def _shown(self, state: SessionState) -> list[Tool]:
        view = self._engine.view(state.reach)
        if self._passes_through(view):
            return self._shown_tools(view)
        tools = {name: self._shown_tool(view, name) for name in state.discovered.tools}
        state.discovered.drop([name for name, tool in tools.items() if tool is None])
        return [Tool(self._search_definition(view)), *(tool for tool in tools.values() if tool is not None)]

    def _shown_tools(self, view: View) -> list[Tool]:
        """All tools in reach, by name, as models are shown them."""
        return [tool for name in view.names if (tool := self._shown_tool(view, name)) is not None]

    def _shown_tool(self, view: View, name: str) -> Tool | None:
        """The tool *name* as models are shown it; None if they are not, since it is too long or out of reach."""
        tool = view.find(name)
        if tool is None:
            return None
        shown = self._engine.definitions.of(tool.definition, self._options.budget.definition_tokens).definition
        if shown is None or shown is tool.definition:
            return tool if shown else None
        return replace(tool, definition=shown)

    def _passes_through(self, view: View) -> bool:
        rule = self._options.pass_through
        count = len(view.names)
        return rule.covers(tools=count, tokens=0) and rule.covers(tools=count, tokens=view.tokens)

    def _search_definition(self, view: View) -> ToolDefinition:
        options = self._options
        return search_tool_definition(
            view.servers,
            strategies=self._engine.strategies,
            default_limit=options.limit,
            max_limit=options.max_limit,
        )

    async def _run(
        self, calls: Sequence[ToolCall], context: Mapping[str, Any] | None, turn: TurnCounter | None
    ) -> list[ToolResult]:
        state = self.state
        turn = self._turn if turn is None else turn
        results = await self._engine.manager.execute(calls, _Scope(self, state), context=context, turn=turn)
        self._note_results(state, calls, results)
        return results

    def scope(self) -> ToolScope:
        """Return the session as a calling manager sees it, for the calls of one reply."""
        return _Scope(self, self.state)

    def note_results(self, calls: Sequence[ToolCall], results: Sequence[ToolResult]) -> None:
        """Count one reply's *calls* that ran in this session's `scope`, and save it. `execute` and `call` do this."""
        self._note_results(self.state, calls, results)

    def _note_results(self, state: SessionState, calls: Sequence[ToolCall], results: Sequence[ToolResult]) -> None:
        counters, counter = state.counters, self._engine.counter
        searches, written_before = 0, counters.written_tokens
        for call, result in zip(calls, results, strict=True):
            if call.name == TOOL_NAME:
                searches += 1
                text = call.arguments
                written = counter.count(text) if isinstance(text, str) else count_json(text, counter)
                counters.written_tokens += written
                counters.history_tokens += written + counter.count(result.text)
            else:
                counters.calls += 1
                counters.failed_calls += result.is_error
                if self._engine.usage and not result.is_error:
                    self._engine.usage.called(state.tenant, self.id, call.name)
        is_search_round = bool(calls) and searches == len(calls)
        counters.search_rounds += is_search_round
        self._measure(state, calls, counters.written_tokens - written_before, is_search_round=is_search_round)
        self._engine.sessions.save(state)

    def _measure(
        self, state: SessionState, calls: Sequence[ToolCall], written_tokens: int, *, is_search_round: bool
    ) -> None:
        telemetry = self._engine.telemetry
        used = state.unused & {call.name for call in calls}
        state.unused -= used
        telemetry.used(len(used))
        if telemetry.has_metrics and (written_tokens or is_search_round):
            # A request that only a search made necessary would have sent no definitions at all.
            all_tools_tokens = self._engine.view(state.reach).estimated_tokens if is_search_round else 0
            telemetry.tokens(saved=-written_tokens - all_tools_tokens)

    def answer(self, arguments: Mapping[str, Json]) -> ToolOutput:
        """What ``toolSearchTool`` answers a call with *arguments*: the text, and as structured ``{"tools": names}``.

        Names of what was found and is too long to be shown are under ``refused``, if there are any.
        """
        options = self._options
        asked = SearchArguments.parse(
            arguments,
            default_limit=options.limit,
            max_limit=options.max_limit,
            servers=self._engine.view(self.state.reach).servers,
        )
        before = set(self.state.discovered.tools)
        found = self._find(asked.query, limit=asked.limit, strategy=asked.strategy, server=asked.server)
        names = [reference.name for reference in found.shown]
        text = render_answer(
            found.shown,
            call_hint=_CALL_HINT,
            token_cap=options.answer_tokens,
            counter=self._engine.counter,
            newly_loaded=[name for name in names if name not in before],
            already_loaded=[name for name in names if name in before],
            note="\n".join(filter(None, [asked.note, refused_note(found.refused)])),
        )
        refused = {"refused": list(found.refused)} if found.refused else {}
        return ToolOutput((text_block(text),), structured={"tools": names, **refused})

    def resolve(self, name: str) -> Tool:
        """As `ToolScope.resolve`; the search tool gets its callback with the reply that calls it."""
        state = self.state
        view = self._engine.view(state.reach)
        if name == TOOL_NAME:
            return Tool(self._search_definition(view))
        tool = view.get(name)
        if name not in state.discovered and not self._passes_through(view):
            if not self._options.expand_undiscovered:
                raise UndiscoveredToolError(name)
            shown = self._shown_tool(view, name)
            if shown is not None:
                state.discovered.add({name: view.tokens_of(shown.definition)})
        return tool  # the whole of it, for arguments are validated by its schema


@dataclass(frozen=True, slots=True)
class _Scope:
    """A session as the calling manager sees it. Its state is held, for the session may be evicted during a call."""

    session: Session
    state: SessionState
    searching: asyncio.Lock = field(default_factory=asyncio.Lock)

    def resolve(self, name: str) -> Tool:
        tool = self.session.resolve(name)
        if name != TOOL_NAME:
            return tool
        # SearchArguments is the one judge of what models send, and takes more than the schema asks of them.
        definition = replace(tool.definition, input_schema=NO_PARAMETERS)
        return replace(tool, definition=definition, callback=_SearchCallback(self.session, self.searching))

    def begin_call(self, name: str) -> None:
        self.state.discovered.begin_call(name)

    def end_call(self, name: str) -> None:
        self.state.discovered.end_call(name)


@dataclass(frozen=True, slots=True)
class _SearchCallback:
    """Searches of one reply run one after the other: what they find has to be listed in the same order every time."""

    session: Session
    searching: asyncio.Lock

    async def call(self, arguments: JsonObject, context: ToolContext) -> ToolOutput:  # noqa: ARG002  nothing of it is needed
        async with self.searching:
            return await search_threads.run(self.session.answer, arguments)
