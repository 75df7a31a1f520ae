"""Tool search as an advisor: a tool loop in which a model first sees only a search tool, and then the tools found."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast, get_args

from toolsearch.access.principals import LOCAL, Principal, require_principal
from toolsearch.access.reach import Reach
from toolsearch.calling.manager import ToolCallingManager
from toolsearch.catalog.catalog import Catalog
from toolsearch.catalog.requests_file import file_list
from toolsearch.chat.advisor import (
    CONVERSATION_ID,
    LAST_STEP,
    PRINCIPAL,
    REACH,
    TOOL_LOOP_ORDER,
    Chain,
    ChatRequest,
    LastStep,
)
from toolsearch.chat.model import ChatModel, Prompt, with_suffix
from toolsearch.chat.tool_calling import ToolCallingAdvisor, wants_tools
from toolsearch.chat.tool_search_engines import RequestEngines
from toolsearch.chat.tool_search_turn import SearchTurn, TurnSession
from toolsearch.discovery.discovered_tools import Budget
from toolsearch.engine import ToolSearch
from toolsearch.errors import BadSettingError, DuplicateToolError
from toolsearch.option_values import identity, name_list
from toolsearch.session import note_results
from toolsearch.sessions.options import SessionOptions
from toolsearch.sessions.port import ToolScope
from toolsearch.sessions.sent import OWN_TOOLS
from toolsearch.sessions.state import SessionState
from toolsearch.sessions.store import SessionStore
from toolsearch.sessions.tool_lists import too_many_to_defer
from toolsearch.telemetry import Telemetry
from toolsearch.threads import search_threads
from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.definition import Tool
from toolsearch.tools.naming import TOOL_NAME
from toolsearch.tools.providers import tools_by_name
from toolsearch.wire.answers import ChatResponse
from toolsearch.wire.capabilities import Endpoint, RevealSetting, capabilities_of
from toolsearch.wire.messages import Message, UserMessage
from toolsearch_indexes.encoders.opening import AUTO
from toolsearch_indexes.encoders.protocol import Encoder
from toolsearch_indexes.queries import Strategy
from toolsearch_indexes.reader import Reader
from toolsearch_indexes.tool_index import ToolIndex
from toolsearch_indexes.vector_cache import VectorCache

DEFAULT_SYSTEM_SUFFIX = (
    f"You may have more tools than you see in your tool list: {TOOL_NAME} finds them. If no tool in the list does a "
    "step, search for one before you say that it cannot be done."
)
_Asked = TypeVar("_Asked")

_TURN = "toolsearch.turn"  # the context key of the running turn


class ToolSearchAdvisor(ToolCallingAdvisor):
    """Replaces the plain `ToolCallingAdvisor`. The parameters *manager* to *max_rounds* are the same.

    Searches go through the catalog of *engine*; the tools of a request are then always shown. Without an engine,
    searches go through the tools of the request. They are indexed once for all conversations with the same tools.
    *strategy*, *encoder*, *reader*, *requests* and *requests_files* are those of `ToolSearch`, and *sessions* is the
    store of sessions, with its eviction strategy. *index* makes a `ToolIndex` of your own for each set of tools, as its
    class does. A catalog of a few tools is shown whole.

    Discovered tools are kept in the conversation's session and not read from its messages, so any memory will do. The
    session's id is in the context of a request under *session_id_key*; without it, a request with tools is refused with
    BadSettingError. To narrow what a conversation may see, put a `Reach` into the context of each of its requests, as
    ``reach``; without one it keeps what its session had, or sees everything if that was evicted. If there is more than
    one principal, put the `Principal` there as ``principal``: its reach bounds the conversation in any case, and nobody
    else can continue it.

    limit          tools in one answer unless the model asks for another number; by default the limit of *options*
    system_suffix  appended to the system message if there are tools to search; "" for none
    accumulate     whether the model keeps what all its searches found; else what the last ones found that found
                   something, and the provider's cache is lost with each. So the mode is one that can take tools back:
                   "append", or "messages" where they can. Raises BadSettingError, in the request, if the model has none
    options        the behaviour of sessions; by default that of *engine*, if there is one
    budget         limits of a conversation between turns; by default those of *options*
    telemetry      records the searches of engines made here; *engine* has its own
    pins           names of tools that are searched but always shown. Raises UnknownToolError if one is out of reach
    search_first   whether the user's words are searched for before the model is asked
    mode           how found tools reach the model; unless it is "auto", it replaces `SessionOptions.exposure`
    """

    def __init__(
        self,
        engine: ToolSearch | None = None,
        *,
        limit: int | None = None,
        system_suffix: str = DEFAULT_SYSTEM_SUFFIX,
        accumulate: bool = True,
        search_first: bool = False,
        session_id_key: str = CONVERSATION_ID,
        options: SessionOptions | None = None,
        budget: Budget | None = None,
        pins: Collection[str] = (),
        mode: RevealSetting = "auto",
        strategy: Strategy = "auto",
        encoder: Encoder | str | Path | None = AUTO,
        reader: Reader | str | Path | None = AUTO,
        index: Callable[[], ToolIndex] | None = None,
        requests: bool = True,
        requests_files: Iterable[str | Path] = (),
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
        files = file_list(requests_files)
        ranks_its_own = strategy != "auto" or encoder != AUTO or reader != AUTO or index is not None
        if engine is not None and (ranks_its_own or not requests or files or sessions is not None):
            raise BadSettingError(
                "strategy, encoder, reader, index, requests, requests_files and sessions are options of the engine; "
                "give them to the engine"
            )
        if index is not None and not callable(index):
            raise BadSettingError(
                f"index must be a function or class that makes an index, not an index; got a {type(index).__name__}"
            )
        if not session_id_key.strip():
            raise BadSettingError("session_id_key must name the context key of the conversation's id; it is blank")
        self._options = _options(options or (engine.options if engine else SessionOptions()), limit, budget, mode)
        self._engine = engine
        self._clock = engine.clock if engine else time.time
        self.sessions = _sessions(engine, sessions, self._options)
        self.notes: list[str] = []
        self._system_suffix = system_suffix.strip()
        self._accumulate = accumulate
        self._search_first = search_first
        self._session_id_key = session_id_key
        self._pins = name_list(pins, "pins")
        cache = VectorCache()

        def indexed(catalog: Catalog) -> ToolSearch:
            return ToolSearch(
                catalog,
                strategy=strategy,
                encoder=encoder,
                reader=reader,
                index=index() if index is not None else None,
                requests=requests,
                requests_files=files,
                sessions=self.sessions,
                options=self._options,
                telemetry=telemetry,
                cache=cache,
            )

        self._engines = RequestEngines(indexed)
        self._running: Counter[str] = Counter()  # session id -> number of running turns
        self._lock = threading.Lock()

    def evict_session(self, session_id: str) -> bool:
        """Forget a conversation's session; return whether there was one. A turn that is running goes on to its end."""
        return self.sessions.evict(session_id)

    # The steps of the loop

    async def initialize(self, request: ChatRequest, chain: Chain) -> ChatRequest:
        own = tools_by_name(request.prompt.options.tools)
        _refuse_reserved(own)
        if not own and not (self._engine and (len(self._engine.catalog) or self._engine.catalog.contents)):
            return request
        session_id = self._session_id(request)
        is_alone = self._enter(session_id)
        try:
            turn = await search_threads.run(
                partial(self._open, session_id, own, request, chain.model, is_alone=is_alone)
            )
        except BaseException:
            self._leave(session_id)
            raise
        messages = request.prompt.messages
        if self._system_suffix and turn.has_search:
            messages = with_suffix(messages, self._system_suffix)
        context = {**request.context, _TURN: turn, LAST_STEP: _last_step(turn)}
        return ChatRequest(replace(request.prompt, messages=messages), context)

    async def opening(self, request: ChatRequest) -> Sequence[Message]:
        turn = _turn_of(request)
        return turn.opening(request.prompt.messages) if turn else ()

    async def before_round(self, request: ChatRequest) -> ChatRequest:
        turn = _turn_of(request)
        if turn is None:
            return request
        options = await _in_search_thread(turn, turn.options, request.prompt.options)
        return replace(request, prompt=replace(request.prompt, options=options))

    def scope(self, request: ChatRequest) -> ToolScope:
        turn = _turn_of(request)
        return turn.scope() if turn else super().scope(request)

    def calls_to_run(self, request: ChatRequest, calls: Sequence[ToolCall]) -> Sequence[ToolCall]:
        turn = _turn_of(request)
        return turn.calls_to_run(calls) if turn else calls

    async def after_round(self, request: ChatRequest, response: ChatResponse) -> ChatResponse:
        turn = _turn_of(request)
        if turn is not None:
            turn.session.note_usage(response.usage.input_tokens)
        return response

    async def after_calls(
        self, request: ChatRequest, calls: Sequence[ToolCall], results: Sequence[ToolResult]
    ) -> Sequence[Message]:
        turn = _turn_of(request)
        if turn is None:
            return ()
        note_results(turn.session, calls, results)
        if not self._accumulate:
            turn.session.forget_earlier_finds()
        change = turn.change(results)
        await turn.session.written()
        return change

    async def finalize(self, request: ChatRequest) -> None:
        turn = _turn_of(request)
        if turn is not None and self._leave(turn.session.id):
            turn.session.end_turn()
            await turn.session.written()

    # The turns of a session. Tools are evicted between turns, and never while another turn is running.

    def _enter(self, session_id: str) -> bool:
        """Note that a turn begins; return whether no other is running."""
        with self._lock:
            self._running[session_id] += 1
            return self._running[session_id] == 1

    def _leave(self, session_id: str) -> bool:
        """Note that a turn has ended; return whether no other is running."""
        with self._lock:
            self._running[session_id] -= 1
            if self._running[session_id]:
                return False
            del self._running[session_id]
            return True

    # Opening a turn

    def _session_id(self, request: ChatRequest) -> str:
        given = request.context.get(self._session_id_key)
        return identity(
            given, f"tool search needs the conversation's id in the request's context as {self._session_id_key!r}; it"
        )

    def _open(
        self, session_id: str, own: Mapping[str, Tool], request: ChatRequest, model: ChatModel, *, is_alone: bool
    ) -> SearchTurn:
        reach, principal = _reach_of(request), require_principal(request.context.get(PRINCIPAL, LOCAL))
        endpoint = _endpoint(model, request.prompt)
        options = self._options if self._accumulate else _taking_back(self._options, endpoint)
        session = self._begin(session_id, own, reach, principal, options)
        session.admit(reach, self._pins)
        if is_alone:
            session.begin_turn()
        attached: Mapping[str, Tool] = own if self._engine else {}
        _check_names(attached, session)
        session.save()  # saved now, so that a restart cannot bring back a wider reach
        turn = SearchTurn(session, endpoint, attached, {} if self._engine else own)
        choice = request.prompt.options.tool_choice
        turn.begin(choice if choice is not None and choice not in attached else "", self._said(request.prompt.messages))
        if self._search_first:
            turn.search_first(request.prompt.messages)
        self._note_if_too_many(turn)
        return turn

    def _said(self, messages: Sequence[Message]) -> str:
        """The user's words, if tools may be anticipated for them: the same words are not searched for twice."""
        last = messages[-1]
        return last.text if isinstance(last, UserMessage) and not self._search_first else ""

    def _begin(
        self,
        session_id: str,
        own: Mapping[str, Tool],
        reach: Reach | None,
        principal: Principal,
        options: SessionOptions,
    ) -> TurnSession:
        budget = options.budget
        state = self.sessions.get_or_create(
            session_id,
            lambda: SessionState.new(session_id, clock=self._clock, reach=reach, budget=budget, principal=principal.id),
            owner=principal.id,
            may_replace=reach is not None,
        )

        def opened(engine: ToolSearch) -> TurnSession:
            session = TurnSession(engine, state, principal, options)
            session.lists_shrink = not self._accumulate
            session.runs = () if self._engine else {name for name, tool in own.items() if tool.is_callable}
            return session

        return opened(self._engine) if self._engine else self._engines.open(own, state, opened)

    def _note_if_too_many(self, turn: SearchTurn) -> None:
        bound = capabilities_of(turn.endpoint).max_deferred
        if bound is None or turn.session.state.sent.now.mode != "deferred" or turn.session.reach_size <= bound:
            return
        note = too_many_to_defer(bound)  # the engine has logged this note already
        if note not in self.notes:
            self.notes.append(note)


def _options(options: SessionOptions, limit: int | None, budget: Budget | None, mode: RevealSetting) -> SessionOptions:
    if mode not in get_args(RevealSetting):
        known = ", ".join(get_args(RevealSetting))
        raise BadSettingError(f"unknown mode {mode!r}; use one of {known}; 'native' is 'messages' or 'deferred' now")
    options = replace(options, limit=limit) if limit is not None else options
    options = replace(options, budget=budget) if budget is not None else options
    return options if mode == "auto" else replace(options, exposure=mode)


def _taking_back(options: SessionOptions, endpoint: Endpoint) -> SessionOptions:
    """*options* with a mode in which the model loses tools that it was shown before."""
    known, asked = capabilities_of(endpoint), options.exposure
    can = [mode for mode in known.modes if mode == "append" or (mode == "messages" and known.removals)]
    if not can or asked not in ("auto", *can):
        raise BadSettingError(
            f"accumulate=False takes tools away from the model, but the mode {asked!r} cannot do so;"
            f" use {' or '.join(map(repr, can)) or 'accumulate=True'}"
        )
    return replace(options, exposure=can[0] if asked == "auto" else asked)


def _sessions(engine: ToolSearch | None, sessions: SessionStore | None, options: SessionOptions) -> SessionStore:
    if engine is not None:
        return engine.sessions
    return sessions or SessionStore(budget=options.budget)


def _refuse_reserved(own: Mapping[str, Tool]) -> None:
    for name in OWN_TOOLS:
        if name in own:
            raise DuplicateToolError(name, first="tool search itself", second=own[name].source or "the application")


def _endpoint(model: ChatModel, prompt: Prompt) -> Endpoint:
    """The destination of the request. A model from another library may not have one."""
    said: object = getattr(model, "endpoint", None)
    endpoint = said if isinstance(said, Endpoint) else Endpoint(model.provider)
    return replace(endpoint, model=prompt.options.model) if prompt.options.model else endpoint


def _last_step(turn: SearchTurn) -> LastStep:
    async def send(prompt: Prompt) -> Prompt:
        return await _in_search_thread(turn, turn.to_send, prompt)

    return send


async def _in_search_thread(turn: SearchTurn, step: Callable[[_Asked], _Asked], asked: _Asked) -> _Asked:
    """Take a *step* of *turn*, in another thread if it may go through thousands of deferred tools."""
    return await search_threads.run(step, asked) if turn.defers else step(asked)


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
