"""Tool search as an advisor: the tool loop in which a model sees one search tool, and then what it finds with it."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast, get_args

from toolsearch.access.principals import LOCAL, Principal, require_principal
from toolsearch.access.reach import Reach
from toolsearch.calling.manager import ToolCallingManager
from toolsearch.catalog.catalog import Catalog
from toolsearch.chat.advisor import CONVERSATION_ID, PRINCIPAL, REACH, TOOL_LOOP_ORDER, Chain, ChatRequest
from toolsearch.chat.model import ChatModel
from toolsearch.chat.tool_calling import ToolCallingAdvisor, wants_tools
from toolsearch.chat.tool_search_engines import RequestEngines
from toolsearch.chat.tool_search_prompt import DEFAULT_SYSTEM_SUFFIX, with_suffix
from toolsearch.chat.tool_search_session import TurnSession
from toolsearch.chat.tool_search_turn import SearchTurn
from toolsearch.discovery.discovered import Budget
from toolsearch.discovery.exposure import APPEND, DEFERRED, Exposure
from toolsearch.engine import ToolSearch
from toolsearch.errors import BadSettingError, DuplicateToolError
from toolsearch.option_values import identity, name_list
from toolsearch.session import note_results
from toolsearch.sessions.options import SessionOptions
from toolsearch.sessions.port import ToolScope
from toolsearch.sessions.state import SessionState
from toolsearch.sessions.store import SessionStore
from toolsearch.telemetry import Telemetry
from toolsearch.threads import search_threads
from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.definition import Tool
from toolsearch.tools.naming import TOOL_NAME
from toolsearch.tools.providers import tools_by_name
from toolsearch.wire.answers import ChatResponse
from toolsearch_indexes.encoders.opening import BUILT_IN
from toolsearch_indexes.encoders.protocol import Encoder
from toolsearch_indexes.strategies import Strategy
from toolsearch_indexes.vector_cache import VectorCache

logger = logging.getLogger(__name__)

Mode: TypeAlias = Literal["auto", "native", "append"]

_MAX_DEFERRED = 10_000  # tools that the providers take in one request
_TURN = "toolsearch.turn"  # the context key of the running turn


class ToolSearchAdvisor(ToolCallingAdvisor):
    """Takes the place of the plain `ToolCallingAdvisor`, with which it shares *manager* to *max_rounds*.

    What is searched is the catalog of *engine*; the tools of a request are then always shown. Without an engine it is
    the tools of the request themselves, indexed once for all conversations that bring the same: *strategy* and
    *encoder* are those of `ToolSearch`, *sessions* is where sessions are kept, with its eviction strategy. A catalog of
    a few tools is shown whole.

    What a conversation has discovered is kept in its session, not read out of its messages, so any memory will do. The
    session's id is in the context of a request under *session_id_key*; without it, a request with tools is refused
    with BadSettingError. To narrow what a conversation may see, put a `Reach` into the context of each of its requests,
    as ``reach``; without one it keeps what its session had, or sees everything if that was evicted. Where there is more
    than one principal, put the `Principal` there as ``principal``: what it reaches bounds the conversation in any case,
    and nobody else can go on with it.

    limit          tools in one answer unless the model says otherwise; by default what *options* say
    system_suffix  appended to the system message where tools are searched for; "" for none
    accumulate     whether what was discovered stays; else only what the last searches found that found something
    options        how sessions behave; by default as in *engine*, if there is one
    budget         what a conversation may hold between turns; by default that of *options*
    telemetry      what records the searches of engines made here; that of *engine* records its own
    pins           names of tools that are searched but always shown. Raises UnknownToolError if one is out of reach
    mode           "native" tells the model of all tools as deferred and lets answers load them, which keeps its prompt
                   cache, and is an error with a model that cannot; "append" adds what was found to the tools of the
                   next request; "auto" is native where the model can. Over 10,000 tools are never deferred: `notes`
                   says so
    """

    def __init__(
        self,
        engine: ToolSearch | None = None,
        *,
        limit: int | None = None,
        system_suffix: str = DEFAULT_SYSTEM_SUFFIX,
        accumulate: bool = True,
        session_id_key: str = CONVERSATION_ID,
        options: SessionOptions | None = None,
        budget: Budget | None = None,
        pins: Collection[str] = (),
        mode: Mode = "auto",
        strategy: Strategy = "auto",
        encoder: Encoder | str | Path | None = BUILT_IN,
        sessions: SessionStore | None = None,
        telemetry: Telemetry | None = None,
        manager: ToolCallingManager | None = None,
        order: int = TOOL_LOOP_ORDER,
        conversation_history: bool = True,
        eligibility: Callable[[ChatResponse], bool] = wants_tools,
        max_rounds: int = 100,
    ) -> None:
        super().__init__(
            manager or (engine.manager if engine else None),
            order=order,
            conversation_history=conversation_history,
            eligibility=eligibility,
            max_rounds=max_rounds,
        )
        if engine is not None and (strategy != "auto" or encoder != BUILT_IN or sessions is not None):
            raise BadSettingError("strategy, encoder and sessions are the engine's: give them to it, not here")
        if mode not in get_args(Mode):
            raise BadSettingError(f"unknown mode {mode!r}; use one of {', '.join(get_args(Mode))}")
        if not session_id_key.strip():
            raise BadSettingError("session_id_key must name the context key of the conversation's id; it is blank")
        self._options = _options(options or (engine.options if engine else SessionOptions()), limit, budget)
        self._engine = engine
        self._clock = engine.clock if engine else time.time
        self.sessions = _sessions(engine, sessions, self._options)
        self.notes: list[str] = []
        self._system_suffix = system_suffix.strip()
        self._accumulate = accumulate
        self._session_id_key = session_id_key
        self._pins = name_list(pins, "pins")
        self._mode = mode
        cache = VectorCache()

        def indexed(catalog: Catalog) -> ToolSearch:
            return ToolSearch(
                catalog,
                strategy=strategy,
                encoder=encoder,
                sessions=self.sessions,
                options=self._options,
                telemetry=telemetry,
                cache=cache,
            )

        self._engines = RequestEngines(indexed)
        self._running: Counter[str] = Counter()  # turns, by session
        self._lock = threading.Lock()

    def evict_session(self, session_id: str) -> bool:
        """Forget a conversation's session; return whether there was one. A turn that is running goes on to its end."""
        return self.sessions.evict(session_id)

    # The steps of the loop

    async def initialize(self, request: ChatRequest, chain: Chain) -> ChatRequest:
        own = tools_by_name(request.prompt.options.tools)
        _refuse_reserved(own.get(TOOL_NAME))
        if not own and not (self._engine and len(self._engine.catalog)):
            return request
        session_id = self._session_id(request)
        turn = await search_threads.run(self._open, session_id, own, request, chain.model)
        with self._lock:
            self._running[session_id] += 1
        messages = request.prompt.messages
        if self._system_suffix and turn.session.exposure.is_searched:
            messages = with_suffix(messages, self._system_suffix)
        return ChatRequest(replace(request.prompt, messages=messages), {**request.context, _TURN: turn})

    async def before_round(self, request: ChatRequest) -> ChatRequest:
        turn = _turn_of(request)
        if turn is None:
            return request
        options = request.prompt.options
        is_deferred = turn.session.exposure == DEFERRED
        asked = await search_threads.run(turn.ask, options) if is_deferred else turn.ask(options)
        return replace(request, prompt=replace(request.prompt, options=asked))

    def scope(self, request: ChatRequest) -> ToolScope:
        turn = _turn_of(request)
        return turn.scope() if turn else super().scope(request)

    async def after_calls(self, request: ChatRequest, calls: Sequence[ToolCall], results: Sequence[ToolResult]) -> None:
        turn = _turn_of(request)
        if turn is not None:
            note_results(turn.session, calls, results)
            if not self._accumulate:
                turn.session.forget_earlier_finds()
            await turn.session.written()

    async def finalize(self, request: ChatRequest) -> None:
        turn = _turn_of(request)
        if turn is None:
            return
        session_id = turn.session.id
        with self._lock:
            self._running[session_id] -= 1
            is_last = not self._running[session_id]
            if is_last:
                del self._running[session_id]
        if is_last:  # the end of a turn evicts tools, which must not happen to another request of the session
            turn.session.end_turn()
            await turn.session.written()

    # Opening a turn

    def _session_id(self, request: ChatRequest) -> str:
        given = request.context.get(self._session_id_key)
        return identity(
            given, f"tool search needs the conversation's id in the request's context as {self._session_id_key!r}; it"
        )

    def _open(self, session_id: str, own: Mapping[str, Tool], request: ChatRequest, model: ChatModel) -> SearchTurn:
        reach, principal = _reach_of(request), require_principal(request.context.get(PRINCIPAL, LOCAL))
        session = self._begin(session_id, own, reach, principal)
        session.admit(reach, self._pins)
        attached: Mapping[str, Tool] = own if self._engine else {}
        _check_names(attached, session)
        choice = request.prompt.options.tool_choice
        if choice is not None and choice not in attached:
            session.expand(choice)  # a choice that is not in the list would be refused
        searched: Mapping[str, Tool] = {} if self._engine else own
        session.save()  # so that no restart brings back a wider reach
        session.show_as(self._exposure(model, session))
        if session.exposure == DEFERRED:
            session.in_reach()  # the first time, each definition is measured; here that holds up nobody
        return SearchTurn(session, attached, searched, choice=choice or "")

    def _begin(
        self, session_id: str, own: Mapping[str, Tool], reach: Reach | None, principal: Principal
    ) -> TurnSession:
        budget = self._options.budget
        state = self.sessions.get_or_create(
            session_id,
            lambda: SessionState.new(session_id, clock=self._clock, reach=reach, budget=budget, principal=principal.id),
            owner=principal.id,
            may_replace=reach is not None,
        )

        def opened(engine: ToolSearch) -> TurnSession:
            return TurnSession(engine, state, principal, self._options)

        return opened(self._engine) if self._engine else self._engines.open(own, state, opened)

    def _exposure(self, model: ChatModel, session: TurnSession) -> Exposure:
        """How tools are shown where they are searched for."""
        if self._mode == "append" or (self._mode == "auto" and not model.native_tool_search):
            return APPEND
        if not model.native_tool_search:
            raise BadSettingError(
                f"this {model.provider} model cannot load tools in the midst of a conversation; use the mode 'auto'"
            )
        if session.reach_size > _MAX_DEFERRED:
            self._note(f"the catalog has over {_MAX_DEFERRED:,} tools, more than a model can defer: they are appended")
            return APPEND
        return DEFERRED

    def _note(self, note: str) -> None:
        if note not in self.notes:
            logger.warning(note)
            self.notes.append(note)


def _options(options: SessionOptions, limit: int | None, budget: Budget | None) -> SessionOptions:
    options = replace(options, limit=limit) if limit is not None else options
    return replace(options, budget=budget) if budget is not None else options


def _sessions(engine: ToolSearch | None, sessions: SessionStore | None, options: SessionOptions) -> SessionStore:
    if engine is not None:
        return engine.sessions
    return sessions or SessionStore(budget=options.budget)


def _refuse_reserved(tool: Tool | None) -> None:
    if tool is not None:
        raise DuplicateToolError(TOOL_NAME, first="tool search itself", second=tool.source or "the application")


def _check_names(attached: Mapping[str, Tool], session: TurnSession) -> None:
    """Raise DuplicateToolError where a model could not tell two tools apart."""
    for name, tool in attached.items():
        found = session.find(name)
        if found is not None and found.definition != tool.definition:
            raise DuplicateToolError(name, first=found.source or "the catalog", second=tool.source or "the request")


def _reach_of(request: ChatRequest) -> Reach | None:
    reach: object = request.context.get(REACH)
    if reach is None or isinstance(reach, Reach):
        return reach
    raise BadSettingError(f"{REACH!r} in the request's context must be a Reach, not a {type(reach).__name__}")


def _turn_of(request: ChatRequest) -> SearchTurn | None:
    context: Mapping[str, Any] = request.context
    return cast("SearchTurn | None", context.get(_TURN))
