"""toolsearch: one small search tool in front of any number of tools.

Everything here is imported when it is first used, so that ``import toolsearch`` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolsearch.access.principals import Principal
    from toolsearch.access.reach import Reach
    from toolsearch.calling.attached import AttachedTools
    from toolsearch.calling.failures import DefaultToolExecutionErrorProcessor
    from toolsearch.calling.hooks import Allow, Deny, Edit
    from toolsearch.calling.limits import CallLimits, TurnCounter
    from toolsearch.calling.manager import ToolCallingManager
    from toolsearch.calling.resolvers import (
        DelegatingToolCallbackResolver,
        ImportPathResolver,
        StaticToolCallbackResolver,
    )
    from toolsearch.catalog.catalog import Catalog
    from toolsearch.chat.agent_tool import chat_tool
    from toolsearch.chat.client import ChatClient
    from toolsearch.chat.memory import MessageWindowMemory
    from toolsearch.chat.memory_advisor import MemoryAdvisor
    from toolsearch.chat.memory_sqlite import SqliteMessageStore
    from toolsearch.chat.model import ChatOptions, Prompt
    from toolsearch.chat.models.anthropic_messages import AnthropicModel
    from toolsearch.chat.models.openai_chat import OpenAIChatModel
    from toolsearch.chat.models.openai_responses import OpenAIResponsesModel
    from toolsearch.chat.models.scripted import ScriptedModel
    from toolsearch.chat.tool_calling import ToolCallingAdvisor
    from toolsearch.chat.tool_search import ToolSearchAdvisor
    from toolsearch.discovery.discovered import Budget
    from toolsearch.discovery.pass_through import PassThrough
    from toolsearch.engine import ToolSearch
    from toolsearch.errors import ToolSearchError
    from toolsearch.evaluation.evaluation import Evaluation, evaluate
    from toolsearch.evaluation.proposals import propose_queries
    from toolsearch.evaluation.queries import LabelledQuery, read_queries
    from toolsearch.session import Session
    from toolsearch.sessions.eviction import (
        AlwaysEvictStrategy,
        CompositeEvictionStrategy,
        LruEvictionStrategy,
        NeverEvictStrategy,
        TtlEvictionStrategy,
    )
    from toolsearch.sessions.store import SessionStore
    from toolsearch.sessions.usage.log import UsageLog
    from toolsearch.settings import Settings
    from toolsearch.storage.memory import InMemoryMessageStore
    from toolsearch.storage.sqlite.sessions import SqliteSessionPersistence
    from toolsearch.storage.sqlite.usage import SqliteUsageStore
    from toolsearch.telemetry import Telemetry
    from toolsearch.tools.augmentation import AugmentedArguments, AugmentedToolProvider, augmented
    from toolsearch.tools.calls import ToolCall, ToolResult
    from toolsearch.tools.decorator import tool
    from toolsearch.tools.definition import Tool, ToolContext, ToolDefinition, ToolMetadata, ToolReference
    from toolsearch.tools.function_tool import FunctionToolCallback
    from toolsearch.tools.params import ToolParam
    from toolsearch.tools.providers import ToolCallbacks
    from toolsearch.tools.schema_generator import json_schema_of
    from toolsearch.tools.strict import strict_schema
    from toolsearch.wire.aggregate import aggregate
    from toolsearch.wire.answers import ChatResponse, Usage
    from toolsearch.wire.messages import AssistantMessage, SystemMessage, ToolMessage, UserMessage
    from toolsearch.wiring import build_client, build_engine
    from toolsearch_indexes.strategies import Strategy

_MODULES = {
    "Allow": "calling.hooks",
    "AlwaysEvictStrategy": "sessions.eviction",
    "AnthropicModel": "chat.models.anthropic_messages",
    "AssistantMessage": "wire.messages",
    "AttachedTools": "calling.attached",
    "AugmentedArguments": "tools.augmentation",
    "AugmentedToolProvider": "tools.augmentation",
    "Budget": "discovery.discovered",
    "CallLimits": "calling.limits",
    "Catalog": "catalog.catalog",
    "ChatClient": "chat.client",
    "ChatOptions": "chat.model",
    "ChatResponse": "wire.answers",
    "CompositeEvictionStrategy": "sessions.eviction",
    "DefaultToolExecutionErrorProcessor": "calling.failures",
    "DelegatingToolCallbackResolver": "calling.resolvers",
    "Deny": "calling.hooks",
    "Edit": "calling.hooks",
    "Evaluation": "evaluation.evaluation",
    "FunctionToolCallback": "tools.function_tool",
    "ImportPathResolver": "calling.resolvers",
    "InMemoryMessageStore": "storage.memory",
    "LabelledQuery": "evaluation.queries",
    "LruEvictionStrategy": "sessions.eviction",
    "MemoryAdvisor": "chat.memory_advisor",
    "MessageWindowMemory": "chat.memory",
    "NeverEvictStrategy": "sessions.eviction",
    "OpenAIChatModel": "chat.models.openai_chat",
    "OpenAIResponsesModel": "chat.models.openai_responses",
    "PassThrough": "discovery.pass_through",
    "Principal": "access.principals",
    "Prompt": "chat.model",
    "Reach": "access.reach",
    "Savings": "sessions.savings",
    "ScriptedModel": "chat.models.scripted",
    "Session": "session",
    "SessionOptions": "sessions.options",
    "SessionStore": "sessions.store",
    "Settings": "settings",
    "SqliteMessageStore": "chat.memory_sqlite",
    "SqliteSessionPersistence": "storage.sqlite.sessions",
    "SqliteUsageStore": "storage.sqlite.usage",
    "StaticToolCallbackResolver": "calling.resolvers",
    "Strategy": "setting_values",
    "SystemMessage": "wire.messages",
    "Telemetry": "telemetry",
    "Tool": "tools.definition",
    "ToolCall": "tools.calls",
    "ToolCallbacks": "tools.providers",
    "ToolCallingAdvisor": "chat.tool_calling",
    "ToolCallingManager": "calling.manager",
    "ToolContext": "tools.definition",
    "ToolDefinition": "tools.definition",
    "ToolMessage": "wire.messages",
    "ToolMetadata": "tools.definition",
    "ToolParam": "tools.params",
    "ToolReference": "tools.definition",
    "ToolResult": "tools.calls",
    "ToolSearch": "engine",
    "ToolSearchAdvisor": "chat.tool_search",
    "ToolSearchError": "errors",
    "TtlEvictionStrategy": "sessions.eviction",
    "TurnCounter": "calling.limits",
    "Usage": "wire.answers",
    "UsageLog": "sessions.usage.log",
    "UserMessage": "wire.messages",
    "aggregate": "wire.aggregate",
    "augmented": "tools.augmentation",
    "build_client": "wiring",
    "build_engine": "wiring",
    "chat_tool": "chat.agent_tool",
    "evaluate": "evaluation.evaluation",
    "json_schema_of": "tools.schema_generator",
    "propose_queries": "evaluation.proposals",
    "read_queries": "evaluation.queries",
    "strict_schema": "tools.strict",
    "tool": "tools.decorator",
}

__all__ = [
    "Allow",
    "AlwaysEvictStrategy",
    "AnthropicModel",
    "AssistantMessage",
    "AttachedTools",
    "AugmentedArguments",
    "AugmentedToolProvider",
    "Budget",
    "CallLimits",
    "Catalog",
    "ChatClient",
    "ChatOptions",
    "ChatResponse",
    "CompositeEvictionStrategy",
    "DefaultToolExecutionErrorProcessor",
    "DelegatingToolCallbackResolver",
    "Deny",
    "Edit",
    "Evaluation",
    "FunctionToolCallback",
    "ImportPathResolver",
    "InMemoryMessageStore",
    "LabelledQuery",
    "LruEvictionStrategy",
    "MemoryAdvisor",
    "MessageWindowMemory",
    "NeverEvictStrategy",
    "OpenAIChatModel",
    "OpenAIResponsesModel",
    "PassThrough",
    "Principal",
    "Prompt",
    "Reach",
    "Savings",
    "ScriptedModel",
    "Session",
    "SessionOptions",
    "SessionStore",
    "Settings",
    "SqliteMessageStore",
    "SqliteSessionPersistence",
    "SqliteUsageStore",
    "StaticToolCallbackResolver",
    "Strategy",
    "SystemMessage",
    "Telemetry",
    "Tool",
    "ToolCall",
    "ToolCallbacks",
    "ToolCallingAdvisor",
    "ToolCallingManager",
    "ToolContext",
    "ToolDefinition",
    "ToolMessage",
    "ToolMetadata",
    "ToolParam",
    "ToolReference",
    "ToolResult",
    "ToolSearch",
    "ToolSearchAdvisor",
    "ToolSearchError",
    "TtlEvictionStrategy",
    "TurnCounter",
    "Usage",
    "UsageLog",
    "UserMessage",
    "aggregate",
    "augmented",
    "build_client",
    "build_engine",
    "chat_tool",
    "evaluate",
    "json_schema_of",
    "propose_queries",
    "read_queries",
    "strict_schema",
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
