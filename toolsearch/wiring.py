"""Builds the objects that settings describe, for applications that do not wire anything themselves."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from toolsearch.calling.hooks import AfterCall, BeforeCall
from toolsearch.calling.manager import ToolCallingManager
from toolsearch.calling.resolvers import ToolCallbackResolver
from toolsearch.catalog.catalog import Catalog
from toolsearch.catalog.index_opening import IndexKeeper
from toolsearch.catalog.indexing import SharedIndex
from toolsearch.catalog.source import ToolLike
from toolsearch.chat.advisor import Advisor
from toolsearch.chat.client import ChatClient
from toolsearch.chat.model import ChatModel
from toolsearch.chat.telemetry_model import TelemetryModel
from toolsearch.chat.tool_calling import ToolCallingAdvisor
from toolsearch.chat.tool_search import DEFAULT_SYSTEM_SUFFIX, ToolSearchAdvisor
from toolsearch.engine import EngineOptions, ToolSearch
from toolsearch.sessions.options import SearchOptions, SessionOptions
from toolsearch.sessions.session_eviction import (
    CompositeEvictionStrategy,
    EvictionStrategy,
    LruEvictionStrategy,
    TtlEvictionStrategy,
)
from toolsearch.sessions.store import SessionStore
from toolsearch.sessions.usage import UsageLog
from toolsearch.settings import IndexSettings, Settings
from toolsearch.storage.sessions import SessionPersistence
from toolsearch.telemetry import Telemetry
from toolsearch_indexes.vector_cache import VectorCache

__all__ = [
    "build_client",
    "build_engine",
    "build_eviction",
    "build_manager",
    "build_session_options",
    "build_sessions",
    "build_telemetry",
    "build_tool_advisor",
    "open_engine",
]


def build_telemetry(settings: Settings) -> Telemetry:
    """Record to OpenTelemetry's global providers."""
    captured = settings.telemetry
    return Telemetry(capture_content=captured.capture_content, capture_definitions=captured.capture_definitions)


def build_manager(
    settings: Settings,
    *,
    before: Sequence[BeforeCall] = (),
    after: Sequence[AfterCall] = (),
    telemetry: Telemetry | None = None,
) -> ToolCallingManager:
    calling = settings.calling
    return ToolCallingManager(
        limits=settings.limits,
        timeout_s=calling.timeout_s,
        max_parallel=calling.max_parallel,
        max_threads=calling.max_threads,
        max_result_characters=calling.max_result_characters,
        before=before,
        after=after,
        telemetry=telemetry or build_telemetry(settings),
    )


def build_session_options(settings: Settings) -> SessionOptions:
    return SessionOptions(**_values(settings.search), budget=settings.budget, pass_through=settings.pass_through)


def build_eviction(settings: Settings) -> EvictionStrategy:
    """By number, and by idle time too where one is set."""
    by_number = LruEvictionStrategy(settings.eviction.max_sessions)
    if settings.eviction.ttl_s is None:
        return by_number
    return CompositeEvictionStrategy(by_number, TtlEvictionStrategy(settings.eviction.ttl_s))


def build_sessions(
    settings: Settings, persistence: SessionPersistence | None = None, *, clock: Callable[[], float] = time.time
) -> SessionStore:
    return SessionStore(build_eviction(settings), persistence, budget=settings.budget, clock=clock)


def build_engine(
    settings: Settings,
    catalog: Catalog | Iterable[ToolLike],
    *,
    persistence: SessionPersistence | None = None,
    manager: ToolCallingManager | None = None,
    telemetry: Telemetry | None = None,
    usage: UsageLog | None = None,
    clock: Callable[[], float] = time.time,
    cache: VectorCache | None = None,
    _keeper: IndexKeeper | None = None,
    _shared: SharedIndex | None = None,
) -> ToolSearch:
    """Index *catalog* in the place that *settings* name, unless *_keeper* keeps the index. *_shared* holds some of its
    tools already.

    Raises BadSettingError for a strategy without the encoder that it needs.
    """
    options = _engine_options(settings, persistence, manager, telemetry, clock)
    options["usage"], options["cache"] = usage, cache
    return ToolSearch(catalog, index_dir=settings.index.index_dir, _keeper=_keeper, _shared=_shared, **options)


def open_engine(settings: Settings, index_dir: str | Path) -> ToolSearch:
    """Open the index in *index_dir*, with its own encoder and requests unless *settings* name others.

    Raises IndexStoreError.
    """
    options = _engine_options(settings)
    if "encoder" not in settings.index.model_fields_set:
        del options["encoder"]
    if "requests" not in settings.index.model_fields_set:
        del options["requests"]
    if "requests_files" not in settings.index.model_fields_set:
        del options["requests_files"]
    return ToolSearch.open(index_dir, **options)


def _engine_options(
    settings: Settings,
    persistence: SessionPersistence | None = None,
    manager: ToolCallingManager | None = None,
    telemetry: Telemetry | None = None,
    clock: Callable[[], float] = time.time,
) -> EngineOptions:
    telemetry = telemetry or build_telemetry(settings)
    return EngineOptions(
        strategy=settings.index.strategy,
        encoder=settings.index.encoder,
        reader=settings.index.reader,
        requests=settings.index.requests,
        requests_files=settings.index.requests_files,
        sessions=build_sessions(settings, persistence, clock=clock),
        options=build_session_options(settings),
        manager=manager or build_manager(settings, telemetry=telemetry),
        telemetry=telemetry,
        clock=clock,
    )


def build_tool_advisor(
    settings: Settings,
    *,
    engine: ToolSearch | None = None,
    manager: ToolCallingManager | None = None,
    telemetry: Telemetry | None = None,
) -> ToolCallingAdvisor:
    """Return the tool loop. If tool search is enabled, it is over *engine*, or else over each request's own tools."""
    telemetry = telemetry or build_telemetry(settings)
    manager = manager or (engine.manager if engine else build_manager(settings, telemetry=telemetry))
    if not settings.advisor.enabled:
        return ToolCallingAdvisor(manager)
    own = settings.index if engine is None else IndexSettings()  # a given engine has its own index and sessions
    return ToolSearchAdvisor(
        engine,
        system_suffix=_suffix(settings.advisor.system_suffix),
        search_first=settings.advisor.search_first,
        options=build_session_options(settings),
        strategy=own.strategy,
        encoder=own.encoder,
        reader=own.reader,
        requests=own.requests,
        requests_files=own.requests_files,
        sessions=build_sessions(settings) if engine is None else None,
        telemetry=telemetry,
        manager=manager,
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
    loop = build_tool_advisor(settings, engine=engine, manager=manager, telemetry=telemetry)
    return ChatClient(
        TelemetryModel(model, telemetry),
        tools=tools,
        resolver=resolver,
        system=system,
        advisors=[*advisors, loop],
    )


def _values(options: SearchOptions) -> dict[str, Any]:
    return {field.name: getattr(options, field.name) for field in fields(options)}


def _suffix(given: str | None) -> str:
    return DEFAULT_SYSTEM_SUFFIX if given is None else given
