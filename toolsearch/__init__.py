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
    from toolsearch.chat.agent_tool import chat_tool
    from toolsearch.chat.aggregate import aggregate
    from toolsearch.chat.client import ChatClient
    from toolsearch.chat.memory import InMemoryMessageStore, MessageWindowMemory
    from toolsearch.chat.memory_advisor import MemoryAdvisor
    from toolsearch.chat.memory_sqlite import SqliteMessageStore
    from toolsearch.chat.messages import AssistantMessage, SystemMessage, ToolMessage, UserMessage
    from toolsearch.chat.model import ChatOptions, ChatResponse
    from toolsearch.chat.tool_calling import ToolCallingAdvisor
    from toolsearch.chat.tool_search import ToolSearchAdvisor
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
    "AssistantMessage": "chat.messages",
    "Budget": "discovery.discovered",
    "CallLimits": "calling.limits",
    "Catalog": "catalog.catalog",
    "ChatClient": "chat.client",
    "ChatOptions": "chat.model",
    "ChatResponse": "chat.model",
    "CompositeEvictionStrategy": "discovery.eviction",
    "InMemoryMessageStore": "chat.memory",
    "LruEvictionStrategy": "discovery.eviction",
    "MemoryAdvisor": "chat.memory_advisor",
    "MessageWindowMemory": "chat.memory",
    "NeverEvictStrategy": "discovery.eviction",
    "PassThrough": "discovery.exposure",
    "Reach": "discovery.reach",
    "Savings": "session",
    "Session": "session",
    "SessionOptions": "session",
    "SessionStore": "discovery.store",
    "SqliteMessageStore": "chat.memory_sqlite",
    "SqliteSessionPersistence": "discovery.persistence",
    "SystemMessage": "chat.messages",
    "Tool": "tools.definition",
    "ToolCall": "calling.wire",
    "ToolCallingAdvisor": "chat.tool_calling",
    "ToolCallingManager": "calling.manager",
    "ToolContext": "tools.definition",
    "ToolDefinition": "tools.definition",
    "ToolMessage": "chat.messages",
    "ToolMetadata": "tools.definition",
    "ToolReference": "tools.definition",
    "ToolResult": "calling.result",
    "ToolSearch": "engine",
    "ToolSearchAdvisor": "chat.tool_search",
    "ToolSearchError": "errors",
    "TtlEvictionStrategy": "discovery.eviction",
    "UserMessage": "chat.messages",
    "aggregate": "chat.aggregate",
    "chat_tool": "chat.agent_tool",
    "tool": "tools.decorator",
}

__all__ = [
    "AlwaysEvictStrategy",
    "AssistantMessage",
    "Budget",
    "CallLimits",
    "Catalog",
    "ChatClient",
    "ChatOptions",
    "ChatResponse",
    "CompositeEvictionStrategy",
    "InMemoryMessageStore",
    "LruEvictionStrategy",
    "MemoryAdvisor",
    "MessageWindowMemory",
    "NeverEvictStrategy",
    "PassThrough",
    "Reach",
    "Savings",
    "Session",
    "SessionOptions",
    "SessionStore",
    "SqliteMessageStore",
    "SqliteSessionPersistence",
    "SystemMessage",
    "Tool",
    "ToolCall",
    "ToolCallingAdvisor",
    "ToolCallingManager",
    "ToolContext",
    "ToolDefinition",
    "ToolMessage",
    "ToolMetadata",
    "ToolReference",
    "ToolResult",
    "ToolSearch",
    "ToolSearchAdvisor",
    "ToolSearchError",
    "TtlEvictionStrategy",
    "UserMessage",
    "aggregate",
    "chat_tool",
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
