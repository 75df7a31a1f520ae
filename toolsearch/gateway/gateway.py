"""The gateway, put together: servers on one side, callers on the other. Knows nothing of transports."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from toolsearch.access.principals import Grant
from toolsearch.access.reach import Reach
from toolsearch.calling.hooks import AfterCall, BeforeCall
from toolsearch.calling.pipeline import CallOutcome
from toolsearch.calling.schema_validator import load_validator
from toolsearch.engine import ToolSearch
from toolsearch.errors import BadSettingError
from toolsearch.gateway.approvals.decisions import Decisions
from toolsearch.gateway.approvals.questions import ApprovalQuestions
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.config_file import ConfigFile
from toolsearch.gateway.exposure.surface import SearchOutcome, Surface
from toolsearch.gateway.list_costs import ListCosts, tidy
from toolsearch.gateway.overrides import overrides_of
from toolsearch.gateway.proxy.calls import ClientCall, ClientCalls, mcp_answer
from toolsearch.gateway.proxy.content import ContentProxy, Subscriptions
from toolsearch.gateway.proxy.entries import Entries
from toolsearch.gateway.proxy.relay import Relay, SeenLinks
from toolsearch.gateway.proxy.repeats import RepeatGuard
from toolsearch.gateway.proxy.skills import file_contents
from toolsearch.gateway.proxy.suspended_calls import StateSeal
from toolsearch.gateway.proxy.tasks import Tasks
from toolsearch.gateway.registry import HowToApprove, Registry, ServerTools, by_command
from toolsearch.gateway.servers import Servers, UpstreamFactory
from toolsearch.gateway.settings import GatewayConfig, GatewaySettings, ResultTreatment
from toolsearch.gateway.status import (
    CANCELLED,
    INTERNAL_ERROR,
    CallEnd,
    CallEndListener,
    GatewayObserver,
    GatewayStatus,
    Ledger,
    ServerRow,
)
from toolsearch.gateway.trust.gate import PinGate, make_gate
from toolsearch.gateway.trust.held_results import HeldResults
from toolsearch.gateway.trust.results import Results
from toolsearch.gateway.trust.verdicts import ToolGate
from toolsearch.gateway.user_reach import UserReach
from toolsearch.sessions.usage import UsageLog
from toolsearch.storage.pins import PinPersistence
from toolsearch.storage.sqlite.stores import SqliteUsageStore
from toolsearch.telemetry import Telemetry
from toolsearch.threads import search_threads
from toolsearch.tokens import count_json
from toolsearch.tools.json_types import JsonObject
from toolsearch.upstreams.actor import UpstreamActor
from toolsearch.upstreams.interface import Downstream, ServerHealth, Upstream
from toolsearch.upstreams.per_user import PerUserUpstream
from toolsearch.wire.mcp.eras import Era, state_in
from toolsearch.wire.mcp.requests import call_params
from toolsearch.wire.mcp.tasks import follows_tasks
from toolsearch.wiring import build_engine

if TYPE_CHECKING:
    from toolsearch.gateway.audit import GatewayAudit
    from toolsearch.gateway.proxy.tool_rates import ToolRates

USAGE_FILE: Final = "usage.db"  # file in the state folder
_FIRST_USE_S = 10.0  # seconds after the start; clients wait a minute for a search or a call


class Gateway:
    """The tools of a catalog and of MCP servers, for callers who reach it in any way: by MCP, by HTTP or in a program.

    Each request comes with its `Caller`, which says who asks, in which session, and by which protocol. `make_server`
    puts an MCP server around it. Enter it as an async context manager before using it, and leave it in the same event
    loop. Leaving it stops all servers.

    upstreams     makes the object that keeps one server running
    engine        the engine to search with, if its catalog holds other tools too; its creator closes it
    gate          judges the servers' listings; asked every *trust_poll_s* seconds whether its verdicts may have changed
    pins          where the gate keeps approvals, if not in the state folder; its creator closes it
    before, after hooks around each call of a tool
    observer      told of each list, search and call as it ends
    approving     tells callers how a person approves an entry
    audit         in place of what *config* says of an audit
    rates         counts calls by principal and tool in place of what *config* limits
    file          where *config* was read; its changes are followed, at the same pace as the gate's
    asks_gate     also ask the gate before each request to a server, because other processes may withdraw approvals
    """

    def __init__(
        self,
        config: GatewayConfig,
        *,
        upstreams: UpstreamFactory = UpstreamActor,
        gate: ToolGate | None = None,
        pins: PinPersistence | None = None,
        engine: ToolSearch | None = None,
        before: Sequence[BeforeCall] = (),
        after: Sequence[AfterCall] = (),
        telemetry: Telemetry | None = None,
        clock: Callable[[], float] = time.monotonic,
        trust_poll_s: float = 2.0,
        observer: GatewayObserver | None = None,
        asks_gate: bool = False,
        approving: HowToApprove = by_command,
        file: ConfigFile | None = None,
        rates: ToolRates | None = None,
        audit: GatewayAudit | None = None,
    ) -> None:
        self.config = config
        self.file = file
        self._file_poll_s = trust_poll_s
        self._observer = observer
        self._clock = clock
        self._started_s = clock()
        self._closing = AsyncExitStack()  # closes what is made last first
        settings = config.settings
        self._audit = audit or _audit_of(settings)
        if self._audit is not None:
            self._closing.push_async_callback(self._audit.aclose)
        usage = None
        if settings.usage and engine is None:
            usage = _usage_store(settings.state_folder)
            self._closing.callback(usage.close)
        self.engine = engine or build_engine(
            settings.engine_settings,
            (),
            telemetry=telemetry,
            usage=UsageLog(usage) if usage else None,
        )
        if engine is None:
            self._closing.callback(self.engine.close)
        self._gate = make_gate(config, pins) if gate is None else gate
        if gate is None:
            self._closing.callback(self._gate.close)
        self.pins = self._gate.store if isinstance(self._gate, PinGate) else None  # None if nothing is ever held
        self.registry = Registry(
            self.engine.catalog, self._gate, settings.rules.reach, approving, overrides_of(settings)
        )
        self.ledger = Ledger(clock)
        self._tidying: asyncio.Future[None] | None = None
        self.servers = Servers(
            config.upstreams,
            self.registry,
            self._gate,
            upstreams,
            clock=clock,
            trust_poll_s=trust_poll_s,
            on_listed=self._server_listed,
            on_updated=self._updated,
            on_removed=self._forget_server,
            on_login=lambda grant, server: self.note(grant.principal.id, "log in", server, server=server),
        )
        self._closing.push_async_callback(self.servers.aclose)
        self._session_listeners: list[Callable[[str], None]] = []
        self.upstreams: Mapping[str, Upstream] = self.servers.upstreams
        self.per_user: Mapping[str, PerUserUpstream] = self.servers.per_user
        self.logins = self.servers.logins
        self.user_reach = UserReach(self.registry, self.per_user, settings.reached_at)
        self.first_listings = self.servers.first_listings
        self._costs = ListCosts(self.engine, self.registry, self.ledger, self.first_listings, observer)
        self.surface = Surface(
            self.engine,
            self.registry,
            settings.exposure,
            is_complete=lambda: self.first_listings.is_complete,
        )
        self._closing.callback(self.engine.catalog.ask_health(self._server_health))
        links = SeenLinks()
        seal = StateSeal(os.urandom(32), clock)  # the key is random, so only this process accepts its states
        self.held_results = HeldResults(self.note, clock)
        self.decisions = Decisions(self.registry, self.pins, self.servers.review)
        self._approval_questions = ApprovalQuestions(self.decisions, seal)
        self.relay = Relay(
            self.upstreams,
            seal,
            links,
            results=Results(self._treatment_of),
            held=self.held_results,
            before=self.servers.follow_decisions if asks_gate else None,
            reached_at=self.user_reach.reached_at,
            telemetry=self.engine.telemetry,
        )
        self.entries = Entries(self.registry, self.relay, self.engine.counter)
        self.subscriptions = Subscriptions(self.upstreams)
        self._calls = ClientCalls(
            self.engine,
            self.registry,
            self.entries,
            self.surface.sessions,
            before=before,
            after=after,
            repeats=_repeats_of(settings, clock),
            rates=rates or _rates_of(settings, self.engine, clock),
            audit=self._audit,
            clock=clock,
        )
        self.content = ContentProxy(self.registry, self.relay, links, self._calls.count_content)
        self.tasks = Tasks(lambda caller, name: self._calls.may_know(self.seen_by(caller), name))
        self._end_listeners: list[CallEndListener] = [self.ledger.called]
        self._end_listeners += [self._audit.ended] if self._audit is not None else []
        self._end_listeners += [observer.called] if observer is not None else []
        for each in (self.subscriptions, self.relay, self._approval_questions, self.tasks, self._costs):
            self._closing.push_async_callback(each.aclose)

    async def __aenter__(self) -> Self:
        self.servers.start()
        if self.file is not None:
            following = asyncio.create_task(self.file.follow(self.reconfigure, self._file_poll_s))
            self._closing.push_async_callback(asyncio.wait, [following])
            self._closing.callback(self.file.stop)  # a server that is being replaced would be left running otherwise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Stop all servers and background work."""
        await self._closing.aclose()

    def _treatment_of(self, server: str) -> ResultTreatment:
        return self.config.settings.treatment_of(server)

    async def note(self, who: str, action: str, subject: str, *, server: str = "") -> None:
        """Record in the audit, if there is one, what is about to be done and is no call. Raises StorageError: it must
        not be done then.
        """
        if self._audit is not None:
            await self._audit.note(who, action, subject, server=server)

    async def reconfigure(self, config: GatewayConfig) -> None:
        """Change to *config* while running. Servers whose settings are equal are left alone, and so are those that were
        added by `Servers.add`.

        Raises BadSettingError, and changes nothing, if it differs in what is only read at the start, or if a running
        server could not be used as it is written now.
        """
        before, settings = self.config, config.settings
        if names := before.settings.needing_restart(settings):
            raise BadSettingError(f"restart for: {', '.join(names)}")
        running = [each.name for each in before.upstreams]
        for refusal in config.refused:
            if refusal.name in running:
                raise BadSettingError(f"the running server {refusal.name!r} could not be used: {refusal.reason}")
        if changes := before.changes(config):
            await self.note("", "change configuration", ", ".join(changes))
        # What goes has to go first: other rules may allow what a server has that is about to be removed.
        await self.servers.keep(config.upstreams, of=running)
        if (settings.rules, settings.servers) != (before.settings.rules, before.settings.servers):
            await self.registry.change_rules(settings.rules.reach, overrides_of(settings))
            await self.servers.review()
        for each in config.upstreams:
            await self.servers.update(each)
        self._change_limits(before.settings, settings)
        self.config = config

    def _change_limits(self, before: GatewaySettings, settings: GatewaySettings) -> None:
        if settings.limits.of_repeats != before.limits.of_repeats:
            self._calls.repeats = _repeats_of(settings, self._clock)
        if self._calls.rates is not None:
            self._calls.rates.change(settings.limits.rates)
        else:
            self._calls.rates = _rates_of(settings, self.engine, self._clock)

    def seen_by(self, caller: Caller) -> Caller:
        """*caller*, whose reach ends at what per-user servers list to it."""
        return replace(caller, user_reach=self.user_reach) if self.per_user else caller

    def reach_of(self, grant: Grant) -> Reach:
        """The reach of *grant*, which ends at what per-user servers list to it."""
        return (self.user_reach.principal(grant) if self.per_user else grant.principal).reach

    def _server_health(self) -> dict[str, ServerHealth]:
        """The health of the servers of which the rules allow tools."""
        return {
            name: ServerHealth(each.status().state, name in self.registry.listings)
            for name, each in list(self.upstreams.items())
            if self.registry.rules.allows_server(name)
        }

    async def list_tools(self, caller: Caller) -> list[dict[str, Any]]:
        """The list of *caller*; see `Surface.entries`. Soon after the start it waits a little for servers that are
        starting. It waits longer for a list of every tool, since many clients list once.
        """
        await self.user_reach.listed(caller, self.config.settings.exposure.first_list_wait_s)
        await (self.settled() if self.surface.lists_every_tool(caller) else self.lists_settled())
        caller = self.seen_by(caller)
        entries, shown_tokens = await search_threads.run(self._list, caller)
        await self._costs.listed(caller, entries, shown_tokens)
        return entries

    async def search(self, caller: Caller, arguments: Mapping[str, Any]) -> SearchOutcome:
        """See `Surface.search`."""
        await self.user_reach.listed(caller, _FIRST_USE_S)
        await self.settled()
        caller, started_s = self.seen_by(caller), self._clock()
        found, written, tokens = await search_threads.run(
            self._search, caller, arguments, await self.user_reach.invitations(caller)
        )
        self.ledger.searched(
            caller,
            "; ".join(each.query for each in found.queries),
            found.found,
            seconds=self._clock() - started_s,
            written_tokens=written,
            answer_tokens=tokens,
            list_changed=found.list_changed,
        )
        if self._observer is not None:
            self._observer.searched(caller, found.queries, written_tokens=written, answer_tokens=tokens)
        self._wake_for(caller, found)
        if self.ledger.searches == 1:  # the first search has built the index
            self._tidying = asyncio.get_running_loop().run_in_executor(None, tidy)
        return found

    async def call(self, caller: Caller, params: Mapping[str, Any], downstream: Downstream) -> dict[str, Any]:
        """Answer ``tools/call`` with *params* as the client sent them; see `mcp_answer`.

        A client that follows tasks may get one in place of the result; see `Tasks.begin`.
        """
        caller = self.seen_by(caller)
        call = self._calls.read(caller, params, downstream)

        async def answer(client: Downstream) -> dict[str, Any]:
            made = replace(call, downstream=client)
            if made.call.name in self.registry.held or state_in(params) is not None:
                asked = await self._approval_questions.put(made)
                if asked.result is not None:
                    return asked.result
                made = self._calls.read(caller.again(), asked.params, client)
            return mcp_answer(made, await self._completed(made))

        if not follows_tasks(caller.era, caller.capabilities, params):
            return await answer(downstream)
        is_wanted = caller.era is Era.LEGACY
        return await self.tasks.begin(caller, call.call.name, downstream, answer, is_wanted=is_wanted)

    async def run(self, caller: Caller, name: str, arguments: JsonObject, downstream: Downstream) -> CallOutcome:
        """Call a tool for a client that does not speak MCP; see `ClientCalls.complete`."""
        return await self._completed(self._calls.read(self.seen_by(caller), call_params(name, arguments), downstream))

    async def read_resource(self, caller: Caller, params: Mapping[str, Any], downstream: Downstream) -> dict[str, Any]:
        """Answer ``resources/read``; raises as `ContentProxy.read`.

        A file of a skill is read by a call of the skill, with the same checks, hooks, limits and reports.
        """
        uri, caller = params["uri"], self.seen_by(caller)
        found = self.content.file_of_skill(caller, uri)
        if found is None:
            return await self.content.read(caller, params, downstream)
        asked = {key: value for key, value in params.items() if key != "uri"}
        asked |= call_params(found.entry.name, {"file": found.file.path})
        call = replace(self._calls.read(caller, asked, downstream), is_for_program=True)
        outcome = await self._completed(call)
        if outcome.is_pending and outcome.raw is not None:
            return dict(outcome.raw)
        return file_contents(uri, found, outcome)

    async def _completed(self, call: ClientCall) -> CallOutcome:
        caller, name, started_s = call.caller, call.call.name, self._clock()
        if (tool := call.tool) is None:
            await self.user_reach.listed(caller, _FIRST_USE_S)
            await self.settled()
            unseen = await self.user_reach.unseen_of(caller, name)
            call = self._calls.again(call)
            caller, tool = call.caller, call.tool
            call = call if tool is not None else replace(call, fault=call.fault or unseen)
        definition = tool.definition if tool is not None else None
        try:
            outcome = await self._calls.complete(call)
        except BaseException as error:
            code = CANCELLED if isinstance(error, asyncio.CancelledError) else INTERNAL_ERROR
            self._ended(caller, CallEnd(name, definition, code=code, seconds=self._clock() - started_s))
            raise
        end = CallEnd.of(name, definition, outcome, self._clock() - started_s)
        for noted in self._ended(caller, end):
            await noted
        if tool is not None and not (end.is_pending or end.is_handed_back):
            await self.surface.sessions.note_call(caller, name, is_error=end.is_failed)
        return outcome

    def on_call_end(self, listener: CallEndListener) -> None:
        """Call *listener* with each request of a call as it ends, also those that have to be continued."""
        self._end_listeners.append(listener)

    def _ended(self, caller: Caller, end: CallEnd) -> list[asyncio.Future[None]]:
        return [noted for listener in self._end_listeners if (noted := listener(caller, end)) is not None]

    def on_session_change(self, listener: Callable[[str], None]) -> None:
        """Call *listener* with each session that `session_changed` reports."""
        self._session_listeners.append(listener)

    def session_changed(self, session: str) -> None:
        """Report that somebody else has changed the found or pinned tools of *session*, so that its clients are told.

        To be called in the gateway's event loop; returns at once.
        """
        for listener in self._session_listeners:
            listener(session)

    def _wake_for(self, caller: Caller, found: SearchOutcome) -> None:
        """Start the server of the best tool while the model reads the answer, because that tool is the most likely to
        be called next; or that of the best skill, if no tool fits.
        """
        names = [*(each["name"] for each in found.structured.get("tools", ())), *filter(self._is_skill, found.found)]
        tool = self.registry.find_entry(names[0]) if names else None
        server = self.upstreams.get(tool.origin.server) if tool is not None and tool.origin is not None else None
        if server is not None:
            server.of(caller.grant).wake()

    def _is_skill(self, name: str) -> bool:
        entry = self.registry.find_entry(name)
        return entry is not None and entry.is_skill

    @property
    def approvals(self) -> int | None:
        """The version of the decisions by which everything is judged now; None while some are not applied yet."""
        judged = self.servers.judged
        return judged if judged == self._gate.version() else None

    def status(self) -> GatewayStatus:
        rows = [self._row(upstream) for upstream in self.upstreams.values()]
        return GatewayStatus(
            self.config.origin,
            uptime_s=self._clock() - self._started_s,
            servers=tuple(rows),
            sessions=self.ledger.sessions,
            searches=self.ledger.last_searches,
            lists=self.ledger.lists,
            search_count=self.ledger.searches,
            calls=self.ledger.calls,
            failed_calls=self.ledger.failed_calls,
            shown_tokens=self.ledger.shown_tokens,
            written_tokens=self.ledger.written_tokens,
            all_tools_tokens=self.ledger.all_tools_tokens,
            tokens_are_estimate=self._costs.wire.is_estimate,
            warnings=(*self._problems(), *self.config.notices, *self.engine.notes),
            held_results=tuple(each.id for each in self.held_results.waiting()),
        )

    def _problems(self) -> list[str]:
        return [self.file.problem] if self.file is not None and self.file.problem else []

    def _row(self, upstream: Upstream) -> ServerRow:
        tools = self.registry.servers.get(upstream.name, ServerTools())
        return ServerRow(
            upstream.status(),
            len(tools.admitted),
            self._costs.of_server(upstream.name),
            skills=sum(each.is_skill for each in tools.entries),
            held=tools.held,
            refused=tools.refused,
            ruled_out=tools.ruled_out,
            warnings=tools.warnings,
        )

    def _list(self, caller: Caller) -> tuple[list[dict[str, Any]], int]:
        """The list of *caller*, and its cost in tokens."""
        entries = self.surface.entries(caller)
        return entries, self._costs.wire.of_list(entries)

    def _search(
        self, caller: Caller, arguments: Mapping[str, Any], invitations: Sequence[str]
    ) -> tuple[SearchOutcome, int, int]:
        """The outcome of the search, the tokens that the model wrote for it, and the tokens of the answer."""
        found = self.surface.search(caller, arguments, invitations)
        return found, count_json(dict(arguments), self.engine.counter), self._costs.wire.of_text(found.text)

    async def lists_settled(self) -> None:
        """Wait until lists are complete, but not for long: known clients give up if the first list takes 10 s.

        Clients are told of tools that come later.
        """
        await self.first_listings.wait(self.config.settings.exposure.first_list_wait_s)

    async def settled(self) -> None:
        """In the first seconds after the start, wait until every server has listed its tools or failed to."""
        await self.first_listings.wait(_FIRST_USE_S)

    async def _server_listed(self, server: str) -> None:
        self.subscriptions.renew(server)
        await self._costs.count_server(server)
        await asyncio.to_thread(load_validator)  # the validator is loaded now because there are tools to call

    def _updated(self, server: str, uri: str, owner: str) -> None:
        self.subscriptions.updated(server, uri, owner)

    def _forget_server(self, server: str) -> None:
        self._costs.forget_server(server)
        self.held_results.forget(server)
        self.subscriptions.drop(server)


def _repeats_of(settings: GatewaySettings, clock: Callable[[], float]) -> RepeatGuard | None:
    limits = settings.limits.of_repeats
    return None if limits is None else RepeatGuard(limits, max_sessions=settings.http.max_sessions, clock=clock)


def _rates_of(settings: GatewaySettings, engine: ToolSearch, clock: Callable[[], float]) -> ToolRates | None:
    if not settings.limits.rates:
        return None
    from toolsearch.gateway.proxy.tool_rates import ToolRates

    return ToolRates(settings.limits.rates, engine.counter, clock)


def _audit_of(settings: GatewaySettings) -> GatewayAudit | None:
    if settings.audit is None:
        return None
    from toolsearch.gateway.audit import GatewayAudit

    return GatewayAudit.of(settings.audit, settings.state_folder)


def _usage_store(state_folder: Path) -> SqliteUsageStore:
    state_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return SqliteUsageStore(state_folder / USAGE_FILE)
