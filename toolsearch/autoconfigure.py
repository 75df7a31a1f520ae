"""From settings to the objects that they describe: what an application gets without wiring anything itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from toolsearch.calling.failures import DefaultToolExecutionErrorProcessor
from toolsearch.calling.hooks import AfterCall, BeforeCall
from toolsearch.calling.limits import CallLimits
from toolsearch.calling.manager import ToolCallingManager
from toolsearch.calling.resolvers import ToolCallbackResolver
from toolsearch.catalog.catalog import Catalog
from toolsearch.chat.advisor import Advisor
from toolsearch.chat.client import ChatClient
from toolsearch.chat.model import ChatModel
from toolsearch.chat.telemetry_model import TelemetryModel
from toolsearch.chat.tool_calling import ToolCallingAdvisor
from toolsearch.chat.tool_search import ToolSearchAdvisor
from toolsearch.chat.tool_search_prompt import DEFAULT_SYSTEM_SUFFIX
from toolsearch.discovery.discovered import Budget
from toolsearch.discovery.pass_through import PassThrough
from toolsearch.engine import ToolSearch
from toolsearch.sessions.eviction import (
    CompositeEvictionStrategy,
    EvictionStrategy,
    LruEvictionStrategy,
    TtlEvictionStrategy,
)
from toolsearch.sessions.options import SessionOptions
from toolsearch.sessions.store import SessionStore
from toolsearch.settings import IndexSettings, Settings
from toolsearch.storage.sessions import SessionPersistence
from toolsearch.telemetry import Telemetry

__all__ = [
    "build_client",
    "build_engine",
    "build_eviction",
    "build_manager",
    "build_session_options",
    "build_sessions",
    "build_telemetry",
    "build_tool_advisor",
]


def build_telemetry(settings: Settings) -> Telemetry:
    """Record to OpenTelemetry's global providers."""
    return Telemetry(capture_content=settings.telemetry.include_content)


def build_manager(
    settings: Settings,
    *,
    before: Sequence[BeforeCall] = (),
    after: Sequence[AfterCall] = (),
    telemetry: Telemetry | None = None,
) -> ToolCallingManager:
    calling, limits = settings.calling, settings.limits
    return ToolCallingManager(
        limits=CallLimits(
            per_tool=limits.per_tool,
            total=limits.total,
            per_tool_overrides=limits.tools,
            excluded=limits.excluded,
            repeats=limits.repeats,
            repeats_overrides=limits.repeats_tools,
            on_breach=limits.on_exceeded,
        ),
        timeout_s=calling.timeout_s,
        max_parallel=calling.max_parallel,
        max_threads=calling.max_threads,
        max_result_characters=calling.max_result_characters,
        before=before,
        after=after,
        error_processor=DefaultToolExecutionErrorProcessor(always_raise=calling.raise_on_error),
        telemetry=telemetry or build_telemetry(settings),
    )


def build_session_options(settings: Settings) -> SessionOptions:
    search, budget, pass_through = settings.search, settings.budget, settings.pass_through
    return SessionOptions(
        limit=search.limit,
        max_limit=search.max_limit,
        min_score=search.min_score,
        answer_tokens=search.answer_tokens,
        budget=Budget(
            budget.max_tools, budget.max_tokens, budget.ttl_s, budget.low_water, budget.max_definition_tokens
        ),
        pass_through=PassThrough(pass_through.max_tools, pass_through.max_tokens),
        expand_undiscovered=search.expand_undiscovered,
    )


def build_eviction(settings: Settings) -> EvictionStrategy:
    """By number, and by idle time too where one is set."""
    by_number = LruEvictionStrategy(settings.eviction.max_sessions)
    if settings.eviction.ttl_s is None:
        return by_number
    return CompositeEvictionStrategy(by_number, TtlEvictionStrategy(settings.eviction.ttl_s))


def build_sessions(settings: Settings, persistence: SessionPersistence | None = None) -> SessionStore:
    return SessionStore(build_eviction(settings), persistence, budget=build_session_options(settings).budget)


def build_engine(
    settings: Settings,
    catalog: Catalog,
    *,
    persistence: SessionPersistence | None = None,
    manager: ToolCallingManager | None = None,
    telemetry: Telemetry | None = None,
) -> ToolSearch:
    """Index *catalog*. Raises BadSettingError for a strategy without the encoder that it needs."""
    telemetry = telemetry or build_telemetry(settings)
    return ToolSearch(
        catalog,
        strategy=settings.index.strategy,
        encoder=settings.index.encoder,
        index_dir=settings.index.directory,
        sessions=build_sessions(settings, persistence),
        options=build_session_options(settings),
        manager=manager or build_manager(settings, telemetry=telemetry),
        telemetry=telemetry,
    )


def build_tool_advisor(
    settings: Settings,
    *,
    engine: ToolSearch | None = None,
    manager: ToolCallingManager | None = None,
    resolver: ToolCallbackResolver | None = None,
    telemetry: Telemetry | None = None,
) -> ToolCallingAdvisor:
    """Return the tool loop: with tool search if that is enabled, over *engine* or else over each request's own tools.

    *resolver* is asked for tools that a model calls unattached only if that fallback is enabled, and never with tool
    search, where what may be called is what can be found.
    """
    telemetry = telemetry or build_telemetry(settings)
    manager = manager or (engine.manager if engine else build_manager(settings, telemetry=telemetry))
    if not settings.advisor.enabled:
        resolver = resolver if settings.calling.resolution_fallback else None
        return ToolCallingAdvisor(manager, order=settings.calling.order, resolver=resolver)
    own = settings.index if engine is None else IndexSettings()  # an engine has its own index and sessions
    return ToolSearchAdvisor(
        engine,
        max_results=settings.advisor.max_results,
        system_suffix=_suffix(settings.advisor.system_suffix),
        accumulate=settings.advisor.accumulate,
        session_id_key=settings.advisor.session_id_key,
        options=build_session_options(settings),
        mode=settings.advisor.mode,
        strategy=own.strategy,
        encoder=own.encoder,
        sessions=build_sessions(settings) if engine is None else None,
        telemetry=telemetry,
        manager=manager,
        order=settings.advisor.order,
    )


def build_client(
    settings: Settings,
    model: ChatModel,
    *,
    engine: ToolSearch | None = None,
    tools: Iterable[object] = (),
    system: str | None = None,
    advisors: Iterable[Advisor] = (),
    manager: ToolCallingManager | None = None,
    resolver: ToolCallbackResolver | None = None,
    telemetry: Telemetry | None = None,
) -> ChatClient:
    """Return a client of *model* whose calls are recorded, with the tool loop of `build_tool_advisor`."""
    telemetry = telemetry or build_telemetry(settings)
    loop = build_tool_advisor(settings, engine=engine, manager=manager, resolver=resolver, telemetry=telemetry)
    return ChatClient(
        TelemetryModel(model, telemetry),
        tools=tools,
        resolver=resolver,
        system=system,
        advisors=[*advisors, loop],
        execute_tools=settings.calling.enabled,
    )


def _suffix(given: str | None) -> str:
    return DEFAULT_SYSTEM_SUFFIX if given is None else given
