"""toolsearch: one small search tool in front of any number of tools.

Everything here is imported when it is first used, so that ``import toolsearch`` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolsearch.calling.limits import CallLimits
    from toolsearch.calling.manager import ToolCallingManager
    from toolsearch.calling.result import ToolResult
    from toolsearch.calling.wire import ToolCall
    from toolsearch.catalog.catalog import Catalog
    from toolsearch.discovery.discovered import Budget
    from toolsearch.discovery.eviction import (
        AlwaysEvictStrategy,
        CompositeEvictionStrategy,
        LruEvictionStrategy,
        NeverEvictStrategy,
        TtlEvictionStrategy,
    )
    from toolsearch.discovery.exposure import PassThrough
    from toolsearch.discovery.persistence import SqliteSessionPersistence
    from toolsearch.discovery.reach import Reach
    from toolsearch.discovery.store import SessionStore
    from toolsearch.engine import ToolSearch
    from toolsearch.errors import ToolSearchError
    from toolsearch.session import Savings, Session, SessionOptions
    from toolsearch.tools.decorator import tool
    from toolsearch.tools.definition import Tool, ToolContext, ToolDefinition, ToolMetadata, ToolReference

_MODULES = {
    "AlwaysEvictStrategy": "discovery.eviction",
    "Budget": "discovery.discovered",
    "CallLimits": "calling.limits",
    "Catalog": "catalog.catalog",
    "CompositeEvictionStrategy": "discovery.eviction",
    "LruEvictionStrategy": "discovery.eviction",
    "NeverEvictStrategy": "discovery.eviction",
    "PassThrough": "discovery.exposure",
    "Reach": "discovery.reach",
    "Savings": "session",
    "Session": "session",
    "SessionOptions": "session",
    "SessionStore": "discovery.store",
    "SqliteSessionPersistence": "discovery.persistence",
    "Tool": "tools.definition",
    "ToolCall": "calling.wire",
    "ToolCallingManager": "calling.manager",
    "ToolContext": "tools.definition",
    "ToolDefinition": "tools.definition",
    "ToolMetadata": "tools.definition",
    "ToolReference": "tools.definition",
    "ToolResult": "calling.result",
    "ToolSearch": "engine",
    "ToolSearchError": "errors",
    "TtlEvictionStrategy": "discovery.eviction",
    "tool": "tools.decorator",
}

__all__ = [
    "AlwaysEvictStrategy",
    "Budget",
    "CallLimits",
    "Catalog",
    "CompositeEvictionStrategy",
    "LruEvictionStrategy",
    "NeverEvictStrategy",
    "PassThrough",
    "Reach",
    "Savings",
    "Session",
    "SessionOptions",
    "SessionStore",
    "SqliteSessionPersistence",
    "Tool",
    "ToolCall",
    "ToolCallingManager",
    "ToolContext",
    "ToolDefinition",
    "ToolMetadata",
    "ToolReference",
    "ToolResult",
    "ToolSearch",
    "ToolSearchError",
    "TtlEvictionStrategy",
    "tool",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
