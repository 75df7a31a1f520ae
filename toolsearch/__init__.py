"""toolsearch: one small search tool in front of any number of tools.

What is public is importable from here; `docs/api.md` says of each name what it is for. Everything is imported when it
is first used, so that ``import toolsearch`` costs nothing.
"""

from __future__ import annotations

import importlib
import importlib.util

TYPE_CHECKING = False  # as type checkers know it; importing typing takes ten times as long as this module

if TYPE_CHECKING:
    from toolsearch.access.principals import Principal
    from toolsearch.access.reach import Reach, Rule, RuleKind
    from toolsearch.calling.hooks import (
        AfterCall,
        Allow,
        BeforeCall,
        Decision,
        DefaultToolExecutionErrorProcessor,
        Deny,
        Edit,
        ToolExecutionErrorProcessor,
        partial_results,
    )
    from toolsearch.calling.limits import CallLimits, TurnCounter
    from toolsearch.calling.manager import ToolCallingManager
    from toolsearch.calling.resolvers import (
        AttachedTools,
        DelegatingToolCallbackResolver,
        ImportPathResolver,
        StaticToolCallbackResolver,
        ToolCallbackResolver,
    )
    from toolsearch.catalog.catalog import Catalog
    from toolsearch.catalog.changes import CatalogChange
    from toolsearch.catalog.enrichment import EnrichmentPlan, EnrichmentReport, RequestWriter
    from toolsearch.catalog.enrichment_prompt import EnrichmentProblem
    from toolsearch.catalog.snapshot import CatalogSnapshot
    from toolsearch.catalog.source import LiveSource, LoadReport, Source
    from toolsearch.catalog.sources.mcp import McpSource, ServerStatus
    from toolsearch.catalog.sources.openapi_requests import HttpRequest
    from toolsearch.chat.advisor import Advisor, Chain, ChatRequest
    from toolsearch.chat.client import ChatClient, PromptSpec, chat_tool
    from toolsearch.chat.memory import ChatMemory, MemoryAdvisor, MessageWindowMemory, SqliteMessageStore
    from toolsearch.chat.model import ChatModel, ChatOptions, Prompt, ResponseFormat
    from toolsearch.chat.models.anthropic_messages import AnthropicModel
    from toolsearch.chat.models.openai_chat import OpenAIChatModel
    from toolsearch.chat.models.openai_responses import OpenAIResponsesModel
    from toolsearch.chat.models.scripted import ScriptedModel, ScriptedReply, scripted_calls
    from toolsearch.chat.telemetry_model import TelemetryModel
    from toolsearch.chat.tool_calling import ToolCallingAdvisor
    from toolsearch.chat.tool_search import ToolSearchAdvisor
    from toolsearch.discovery.answers import AnsweredQuery, FoundTool
    from toolsearch.discovery.discovered import Budget, DiscoveredTool, DiscoveredTools, WeakSearches
    from toolsearch.discovery.exposure import Exposure
    from toolsearch.discovery.pass_through import PassThrough
    from toolsearch.discovery.search_tool import AskedSearch, SearchArguments
    from toolsearch.discovery.view import View
    from toolsearch.engine import EngineOptions, ToolSearch
    from toolsearch.errors import (
        AuditStoreError,
        BadAnswerError,
        BadArgumentsError,
        BadPatternError,
        BadQueryError,
        BadSettingError,
        BadToolError,
        CallDeniedError,
        CallLimitError,
        ChatModelError,
        ContentsConflictError,
        ContentsStoreError,
        DuplicateToolError,
        EncoderError,
        FigureStoreError,
        IndexStoreError,
        KeyStoreError,
        LoginRequiredError,
        MessageStoreError,
        MissingExtraError,
        MissStoreError,
        NotAuthenticatedError,
        NotCallableHereError,
        NotPermittedError,
        PinStoreError,
        ReceiptStoreError,
        RecordConflictError,
        RecordStoreError,
        RepeatedCallError,
        RequestsFileError,
        SealError,
        ServerBusyError,
        ServerUnavailableError,
        ServiceError,
        SessionConflictError,
        SessionStoreError,
        SourceError,
        StillRunningError,
        StorageError,
        ToolExecutionError,
        ToolGoneError,
        ToolNotHereError,
        ToolSearchError,
        ToolStuckError,
        ToolTimeoutError,
        TooManyError,
        UnapprovedToolError,
        UndiscoveredToolError,
        UnfinishedCallError,
        UnknownPriceError,
        UnknownRecordError,
        UnknownSessionError,
        UnknownToolError,
        UnsafeUrlError,
        UsageStoreError,
        VectorStoreError,
    )
    from toolsearch.evaluation.evaluation import Evaluation, Quality, QueryAnswer, StrategyResult, evaluate
    from toolsearch.evaluation.queries import (
        BadLine,
        LabelledQuery,
        QueryFile,
        propose_queries,
        read_queries,
        write_queries,
    )
    from toolsearch.gateway.gateway import Gateway
    from toolsearch.gateway.http import http_app
    from toolsearch.gateway.settings import GatewayConfig, read_gateway_config
    from toolsearch.option_values import Unset
    from toolsearch.session import RequestTools, RequestToolsAndModel, RequestToolsToKeep, Session, ToolDelta
    from toolsearch.sessions.answering import Found
    from toolsearch.sessions.conversation import Conversation
    from toolsearch.sessions.eviction import (
        AlwaysEvictStrategy,
        CompositeEvictionStrategy,
        EvictionStrategy,
        LruEvictionStrategy,
        NeverEvictStrategy,
        TtlEvictionStrategy,
    )
    from toolsearch.sessions.options import SearchOptions, SessionOptions
    from toolsearch.sessions.port import ToolScope
    from toolsearch.sessions.savings import Savings
    from toolsearch.sessions.sent import Sent, SentTools, ToolList
    from toolsearch.sessions.state import SessionCounters, SessionState
    from toolsearch.sessions.store import SessionStore
    from toolsearch.sessions.unit_of_work import UnitOfWork
    from toolsearch.sessions.usage import UsageLog
    from toolsearch.sessions.usage_evidence import LearntUse
    from toolsearch.settings import (
        AdvisorSettings,
        CallingSettings,
        EvictionSettings,
        IndexSettings,
        SettingRow,
        Settings,
        TelemetrySettings,
    )
    from toolsearch.spans import ChatSpan, RequestSpan, SearchSpan, ToolCallSpan
    from toolsearch.storage.audit import AuditLog, AuditRecord
    from toolsearch.storage.memory import InMemoryMessageStore, InMemorySessionPersistence, InMemoryUsageStore
    from toolsearch.storage.pins import Pin, PinPersistence, SeenEntry
    from toolsearch.storage.sessions import MessageStore, SessionPersistence, StoredSession
    from toolsearch.storage.sqlite.stores import SqliteAuditLog, SqlitePins, SqliteSessionPersistence, SqliteUsageStore
    from toolsearch.storage.usage import StoredWeight, UsageCell, UsageStore
    from toolsearch.telemetry import Telemetry
    from toolsearch.tokens import (
        CountedDefinition,
        HeuristicTokenCounter,
        O200kTokenCounter,
        TokenCounter,
        count_json,
        default_counter,
        definition_tokens,
    )
    from toolsearch.tools.augmentation import AugmentedArguments, AugmentedToolProvider, augmented
    from toolsearch.tools.calls import ToolCall, ToolResult
    from toolsearch.tools.definition import (
        Refusal,
        Tool,
        ToolCallback,
        ToolContext,
        ToolDefinition,
        ToolMetadata,
        ToolOrigin,
        ToolReference,
        ToolSearchResponse,
    )
    from toolsearch.tools.docstrings import json_schema_of
    from toolsearch.tools.function_tools import FunctionToolCallback, tool, tool_from_function
    from toolsearch.tools.json_schema import ToolParam
    from toolsearch.tools.json_types import Json, JsonObject
    from toolsearch.tools.providers import ToolCallbacks, ToolProvider, as_tools
    from toolsearch.tools.results import ToolCallResultConverter, ToolOutput
    from toolsearch.tools.strict import strict_schema
    from toolsearch.wire.answers import ChatChunk, ChatResponse, ToolCallDelta, Usage, aggregate
    from toolsearch.wire.capabilities import (
        Capabilities,
        Cloud,
        Endpoint,
        Fact,
        Models,
        RevealMode,
        RevealSetting,
        capabilities_of,
    )
    from toolsearch.wire.formats import WireFormat, render_results, render_tools, sendable_messages
    from toolsearch.wire.messages import (
        AssistantMessage,
        Message,
        ProviderItems,
        SystemMessage,
        ToolChangeMessage,
        ToolMessage,
        UserMessage,
    )
    from toolsearch.wire.native_search import NativeSearch
    from toolsearch.wire.replies import parse_tool_calls
    from toolsearch.wiring import build_client, build_engine
    from toolsearch_indexes.documents import Hit, ToolDocument
    from toolsearch_indexes.encoders.onnx import OnnxEncoder, OnnxReader
    from toolsearch_indexes.encoders.opening import open_encoder
    from toolsearch_indexes.encoders.protocol import Encoder, KnowsWords
    from toolsearch_indexes.encoders.sentence_transformer import SentenceTransformerEncoder
    from toolsearch_indexes.encoders.static import HashingEncoder, StaticEncoder
    from toolsearch_indexes.explanation import Explanation, WordMatch
    from toolsearch_indexes.queries import Ranking, Selection, Strategy
    from toolsearch_indexes.reader import Reader, open_reader
    from toolsearch_indexes.tool_index import ExplainsSearches, ToolIndex
    from toolsearch_indexes.vector_cache import VectorCache
    from toolsearch_indexes.vector_store import VectorStore

# By module; type checkers read the imports above instead. A test compares the two with `__all__`.
_NAMES: dict[str, tuple[str, ...]] = {
    "toolsearch.access.principals": ("Principal",),
    "toolsearch.access.reach": (
        "Reach",
        "Rule",
        "RuleKind",
    ),
    "toolsearch.calling.hooks": (
        "AfterCall",
        "Allow",
        "BeforeCall",
        "Decision",
        "DefaultToolExecutionErrorProcessor",
        "Deny",
        "Edit",
        "ToolExecutionErrorProcessor",
        "partial_results",
    ),
    "toolsearch.calling.limits": (
        "CallLimits",
        "TurnCounter",
    ),
    "toolsearch.calling.manager": ("ToolCallingManager",),
    "toolsearch.calling.resolvers": (
        "AttachedTools",
        "DelegatingToolCallbackResolver",
        "ImportPathResolver",
        "StaticToolCallbackResolver",
        "ToolCallbackResolver",
    ),
    "toolsearch.catalog.catalog": ("Catalog",),
    "toolsearch.catalog.changes": ("CatalogChange",),
    "toolsearch.catalog.enrichment": (
        "EnrichmentPlan",
        "EnrichmentReport",
        "RequestWriter",
    ),
    "toolsearch.catalog.enrichment_prompt": ("EnrichmentProblem",),
    "toolsearch.catalog.snapshot": ("CatalogSnapshot",),
    "toolsearch.catalog.source": (
        "LiveSource",
        "LoadReport",
        "Source",
    ),
    "toolsearch.catalog.sources.mcp": (
        "McpSource",
        "ServerStatus",
    ),
    "toolsearch.catalog.sources.openapi_requests": ("HttpRequest",),
    "toolsearch.chat.advisor": (
        "Advisor",
        "Chain",
        "ChatRequest",
    ),
    "toolsearch.chat.client": (
        "ChatClient",
        "PromptSpec",
        "chat_tool",
    ),
    "toolsearch.chat.memory": (
        "ChatMemory",
        "MemoryAdvisor",
        "MessageWindowMemory",
        "SqliteMessageStore",
    ),
    "toolsearch.chat.model": (
        "ChatModel",
        "ChatOptions",
        "Prompt",
        "ResponseFormat",
    ),
    "toolsearch.chat.models.anthropic_messages": ("AnthropicModel",),
    "toolsearch.chat.models.openai_chat": ("OpenAIChatModel",),
    "toolsearch.chat.models.openai_responses": ("OpenAIResponsesModel",),
    "toolsearch.chat.models.scripted": (
        "ScriptedModel",
        "ScriptedReply",
        "scripted_calls",
    ),
    "toolsearch.chat.telemetry_model": ("TelemetryModel",),
    "toolsearch.chat.tool_calling": ("ToolCallingAdvisor",),
    "toolsearch.chat.tool_search": ("ToolSearchAdvisor",),
    "toolsearch.discovery.answers": (
        "AnsweredQuery",
        "FoundTool",
    ),
    "toolsearch.discovery.discovered": (
        "Budget",
        "DiscoveredTool",
        "DiscoveredTools",
        "WeakSearches",
    ),
    "toolsearch.discovery.exposure": ("Exposure",),
    "toolsearch.discovery.pass_through": ("PassThrough",),
    "toolsearch.discovery.search_tool": (
        "AskedSearch",
        "SearchArguments",
    ),
    "toolsearch.discovery.view": ("View",),
    "toolsearch.engine": (
        "EngineOptions",
        "ToolSearch",
    ),
    "toolsearch.errors": (
        "AuditStoreError",
        "BadAnswerError",
        "BadArgumentsError",
        "BadPatternError",
        "BadQueryError",
        "BadSettingError",
        "BadToolError",
        "CallDeniedError",
        "CallLimitError",
        "ChatModelError",
        "ContentsConflictError",
        "ContentsStoreError",
        "DuplicateToolError",
        "EncoderError",
        "FigureStoreError",
        "IndexStoreError",
        "KeyStoreError",
        "LoginRequiredError",
        "MessageStoreError",
        "MissStoreError",
        "MissingExtraError",
        "NotAuthenticatedError",
        "NotCallableHereError",
        "NotPermittedError",
        "PinStoreError",
        "ReceiptStoreError",
        "RecordConflictError",
        "RecordStoreError",
        "RepeatedCallError",
        "RequestsFileError",
        "SealError",
        "ServerBusyError",
        "ServerUnavailableError",
        "ServiceError",
        "SessionConflictError",
        "SessionStoreError",
        "SourceError",
        "StillRunningError",
        "StorageError",
        "TooManyError",
        "ToolExecutionError",
        "ToolGoneError",
        "ToolNotHereError",
        "ToolSearchError",
        "ToolStuckError",
        "ToolTimeoutError",
        "UnapprovedToolError",
        "UndiscoveredToolError",
        "UnfinishedCallError",
        "UnknownPriceError",
        "UnknownRecordError",
        "UnknownSessionError",
        "UnknownToolError",
        "UnsafeUrlError",
        "UsageStoreError",
        "VectorStoreError",
    ),
    "toolsearch.evaluation.evaluation": (
        "Evaluation",
        "Quality",
        "QueryAnswer",
        "StrategyResult",
        "evaluate",
    ),
    "toolsearch.evaluation.queries": (
        "BadLine",
        "LabelledQuery",
        "QueryFile",
        "propose_queries",
        "read_queries",
        "write_queries",
    ),
    "toolsearch.gateway.gateway": ("Gateway",),
    "toolsearch.gateway.http": ("http_app",),
    "toolsearch.gateway.settings": (
        "GatewayConfig",
        "read_gateway_config",
    ),
    "toolsearch.option_values": ("Unset",),
    "toolsearch.session": (
        "RequestTools",
        "RequestToolsAndModel",
        "RequestToolsToKeep",
        "Session",
        "ToolDelta",
    ),
    "toolsearch.sessions.answering": ("Found",),
    "toolsearch.sessions.conversation": ("Conversation",),
    "toolsearch.sessions.eviction": (
        "AlwaysEvictStrategy",
        "CompositeEvictionStrategy",
        "EvictionStrategy",
        "LruEvictionStrategy",
        "NeverEvictStrategy",
        "TtlEvictionStrategy",
    ),
    "toolsearch.sessions.options": (
        "SearchOptions",
        "SessionOptions",
    ),
    "toolsearch.sessions.port": ("ToolScope",),
    "toolsearch.sessions.savings": ("Savings",),
    "toolsearch.sessions.sent": (
        "Sent",
        "SentTools",
        "ToolList",
    ),
    "toolsearch.sessions.state": (
        "SessionCounters",
        "SessionState",
    ),
    "toolsearch.sessions.store": ("SessionStore",),
    "toolsearch.sessions.unit_of_work": ("UnitOfWork",),
    "toolsearch.sessions.usage": ("UsageLog",),
    "toolsearch.sessions.usage_evidence": ("LearntUse",),
    "toolsearch.settings": (
        "AdvisorSettings",
        "CallingSettings",
        "EvictionSettings",
        "IndexSettings",
        "SettingRow",
        "Settings",
        "TelemetrySettings",
    ),
    "toolsearch.spans": (
        "ChatSpan",
        "RequestSpan",
        "SearchSpan",
        "ToolCallSpan",
    ),
    "toolsearch.storage.audit": (
        "AuditLog",
        "AuditRecord",
    ),
    "toolsearch.storage.memory": (
        "InMemoryMessageStore",
        "InMemorySessionPersistence",
        "InMemoryUsageStore",
    ),
    "toolsearch.storage.pins": (
        "Pin",
        "PinPersistence",
        "SeenEntry",
    ),
    "toolsearch.storage.sessions": (
        "MessageStore",
        "SessionPersistence",
        "StoredSession",
    ),
    "toolsearch.storage.sqlite.stores": (
        "SqliteAuditLog",
        "SqlitePins",
        "SqliteSessionPersistence",
        "SqliteUsageStore",
    ),
    "toolsearch.storage.usage": (
        "StoredWeight",
        "UsageCell",
        "UsageStore",
    ),
    "toolsearch.telemetry": ("Telemetry",),
    "toolsearch.tokens": (
        "CountedDefinition",
        "HeuristicTokenCounter",
        "O200kTokenCounter",
        "TokenCounter",
        "count_json",
        "default_counter",
        "definition_tokens",
    ),
    "toolsearch.tools.augmentation": (
        "AugmentedArguments",
        "AugmentedToolProvider",
        "augmented",
    ),
    "toolsearch.tools.calls": (
        "ToolCall",
        "ToolResult",
    ),
    "toolsearch.tools.definition": (
        "Refusal",
        "Tool",
        "ToolCallback",
        "ToolContext",
        "ToolDefinition",
        "ToolMetadata",
        "ToolOrigin",
        "ToolReference",
        "ToolSearchResponse",
    ),
    "toolsearch.tools.docstrings": ("json_schema_of",),
    "toolsearch.tools.function_tools": (
        "FunctionToolCallback",
        "tool",
        "tool_from_function",
    ),
    "toolsearch.tools.json_schema": ("ToolParam",),
    "toolsearch.tools.json_types": (
        "Json",
        "JsonObject",
    ),
    "toolsearch.tools.providers": (
        "ToolCallbacks",
        "ToolProvider",
        "as_tools",
    ),
    "toolsearch.tools.results": (
        "ToolCallResultConverter",
        "ToolOutput",
    ),
    "toolsearch.tools.strict": ("strict_schema",),
    "toolsearch.wire.answers": (
        "ChatChunk",
        "ChatResponse",
        "ToolCallDelta",
        "Usage",
        "aggregate",
    ),
    "toolsearch.wire.capabilities": (
        "Capabilities",
        "Cloud",
        "Endpoint",
        "Fact",
        "Models",
        "RevealMode",
        "RevealSetting",
        "capabilities_of",
    ),
    "toolsearch.wire.formats": (
        "WireFormat",
        "render_results",
        "render_tools",
        "sendable_messages",
    ),
    "toolsearch.wire.messages": (
        "AssistantMessage",
        "Message",
        "ProviderItems",
        "SystemMessage",
        "ToolChangeMessage",
        "ToolMessage",
        "UserMessage",
    ),
    "toolsearch.wire.native_search": ("NativeSearch",),
    "toolsearch.wire.replies": ("parse_tool_calls",),
    "toolsearch.wiring": (
        "build_client",
        "build_engine",
    ),
    "toolsearch_indexes.documents": (
        "Hit",
        "ToolDocument",
    ),
    "toolsearch_indexes.encoders.onnx": (
        "OnnxEncoder",
        "OnnxReader",
    ),
    "toolsearch_indexes.encoders.opening": ("open_encoder",),
    "toolsearch_indexes.encoders.protocol": (
        "Encoder",
        "KnowsWords",
    ),
    "toolsearch_indexes.encoders.sentence_transformer": ("SentenceTransformerEncoder",),
    "toolsearch_indexes.encoders.static": (
        "HashingEncoder",
        "StaticEncoder",
    ),
    "toolsearch_indexes.explanation": (
        "Explanation",
        "WordMatch",
    ),
    "toolsearch_indexes.queries": (
        "Ranking",
        "Selection",
        "Strategy",
    ),
    "toolsearch_indexes.reader": (
        "Reader",
        "open_reader",
    ),
    "toolsearch_indexes.tool_index": (
        "ExplainsSearches",
        "ToolIndex",
    ),
    "toolsearch_indexes.vector_cache": ("VectorCache",),
    "toolsearch_indexes.vector_store": ("VectorStore",),
}

__all__ = [
    "Advisor",
    "AdvisorSettings",
    "AfterCall",
    "Allow",
    "AlwaysEvictStrategy",
    "AnsweredQuery",
    "AnthropicModel",
    "AskedSearch",
    "AssistantMessage",
    "AttachedTools",
    "AuditLog",
    "AuditRecord",
    "AuditStoreError",
    "AugmentedArguments",
    "AugmentedToolProvider",
    "BadAnswerError",
    "BadArgumentsError",
    "BadLine",
    "BadPatternError",
    "BadQueryError",
    "BadSettingError",
    "BadToolError",
    "BeforeCall",
    "Budget",
    "CallDeniedError",
    "CallLimitError",
    "CallLimits",
    "CallingSettings",
    "Capabilities",
    "Catalog",
    "CatalogChange",
    "CatalogSnapshot",
    "Chain",
    "ChatChunk",
    "ChatClient",
    "ChatMemory",
    "ChatModel",
    "ChatModelError",
    "ChatOptions",
    "ChatRequest",
    "ChatResponse",
    "ChatSpan",
    "Cloud",
    "CompositeEvictionStrategy",
    "ContentsConflictError",
    "ContentsStoreError",
    "Conversation",
    "CountedDefinition",
    "Decision",
    "DefaultToolExecutionErrorProcessor",
    "DelegatingToolCallbackResolver",
    "Deny",
    "DiscoveredTool",
    "DiscoveredTools",
    "DuplicateToolError",
    "Edit",
    "Encoder",
    "EncoderError",
    "Endpoint",
    "EngineOptions",
    "EnrichmentPlan",
    "EnrichmentProblem",
    "EnrichmentReport",
    "Evaluation",
    "EvictionSettings",
    "EvictionStrategy",
    "ExplainsSearches",
    "Explanation",
    "Exposure",
    "Fact",
    "FigureStoreError",
    "Found",
    "FoundTool",
    "FunctionToolCallback",
    "Gateway",
    "GatewayConfig",
    "HashingEncoder",
    "HeuristicTokenCounter",
    "Hit",
    "HttpRequest",
    "ImportPathResolver",
    "InMemoryMessageStore",
    "InMemorySessionPersistence",
    "InMemoryUsageStore",
    "IndexSettings",
    "IndexStoreError",
    "Json",
    "JsonObject",
    "KeyStoreError",
    "KnowsWords",
    "LabelledQuery",
    "LearntUse",
    "LiveSource",
    "LoadReport",
    "LoginRequiredError",
    "LruEvictionStrategy",
    "McpSource",
    "MemoryAdvisor",
    "Message",
    "MessageStore",
    "MessageStoreError",
    "MessageWindowMemory",
    "MissStoreError",
    "MissingExtraError",
    "Models",
    "NativeSearch",
    "NeverEvictStrategy",
    "NotAuthenticatedError",
    "NotCallableHereError",
    "NotPermittedError",
    "O200kTokenCounter",
    "OnnxEncoder",
    "OnnxReader",
    "OpenAIChatModel",
    "OpenAIResponsesModel",
    "PassThrough",
    "Pin",
    "PinPersistence",
    "PinStoreError",
    "Principal",
    "Prompt",
    "PromptSpec",
    "ProviderItems",
    "Quality",
    "QueryAnswer",
    "QueryFile",
    "Ranking",
    "Reach",
    "Reader",
    "ReceiptStoreError",
    "RecordConflictError",
    "RecordStoreError",
    "Refusal",
    "RepeatedCallError",
    "RequestSpan",
    "RequestTools",
    "RequestToolsAndModel",
    "RequestToolsToKeep",
    "RequestWriter",
    "RequestsFileError",
    "ResponseFormat",
    "RevealMode",
    "RevealSetting",
    "Rule",
    "RuleKind",
    "Savings",
    "ScriptedModel",
    "ScriptedReply",
    "SealError",
    "SearchArguments",
    "SearchOptions",
    "SearchSpan",
    "SeenEntry",
    "Selection",
    "Sent",
    "SentTools",
    "SentenceTransformerEncoder",
    "ServerBusyError",
    "ServerStatus",
    "ServerUnavailableError",
    "ServiceError",
    "Session",
    "SessionConflictError",
    "SessionCounters",
    "SessionOptions",
    "SessionPersistence",
    "SessionState",
    "SessionStore",
    "SessionStoreError",
    "SettingRow",
    "Settings",
    "Source",
    "SourceError",
    "SqliteAuditLog",
    "SqliteMessageStore",
    "SqlitePins",
    "SqliteSessionPersistence",
    "SqliteUsageStore",
    "StaticEncoder",
    "StaticToolCallbackResolver",
    "StillRunningError",
    "StorageError",
    "StoredSession",
    "StoredWeight",
    "Strategy",
    "StrategyResult",
    "SystemMessage",
    "Telemetry",
    "TelemetryModel",
    "TelemetrySettings",
    "TokenCounter",
    "TooManyError",
    "Tool",
    "ToolCall",
    "ToolCallDelta",
    "ToolCallResultConverter",
    "ToolCallSpan",
    "ToolCallback",
    "ToolCallbackResolver",
    "ToolCallbacks",
    "ToolCallingAdvisor",
    "ToolCallingManager",
    "ToolChangeMessage",
    "ToolContext",
    "ToolDefinition",
    "ToolDelta",
    "ToolDocument",
    "ToolExecutionError",
    "ToolExecutionErrorProcessor",
    "ToolGoneError",
    "ToolIndex",
    "ToolList",
    "ToolMessage",
    "ToolMetadata",
    "ToolNotHereError",
    "ToolOrigin",
    "ToolOutput",
    "ToolParam",
    "ToolProvider",
    "ToolReference",
    "ToolResult",
    "ToolScope",
    "ToolSearch",
    "ToolSearchAdvisor",
    "ToolSearchError",
    "ToolSearchResponse",
    "ToolStuckError",
    "ToolTimeoutError",
    "TtlEvictionStrategy",
    "TurnCounter",
    "UnapprovedToolError",
    "UndiscoveredToolError",
    "UnfinishedCallError",
    "UnitOfWork",
    "UnknownPriceError",
    "UnknownRecordError",
    "UnknownSessionError",
    "UnknownToolError",
    "UnsafeUrlError",
    "Unset",
    "Usage",
    "UsageCell",
    "UsageLog",
    "UsageStore",
    "UsageStoreError",
    "UserMessage",
    "VectorCache",
    "VectorStore",
    "VectorStoreError",
    "View",
    "WeakSearches",
    "WireFormat",
    "WordMatch",
    "aggregate",
    "as_tools",
    "augmented",
    "build_client",
    "build_engine",
    "capabilities_of",
    "chat_tool",
    "count_json",
    "default_counter",
    "definition_tokens",
    "evaluate",
    "http_app",
    "json_schema_of",
    "open_encoder",
    "open_reader",
    "parse_tool_calls",
    "partial_results",
    "propose_queries",
    "read_gateway_config",
    "read_queries",
    "render_results",
    "render_tools",
    "scripted_calls",
    "sendable_messages",
    "strict_schema",
    "tool",
    "tool_from_function",
    "write_queries",
]

_MODULES = {name: module for module, names in _NAMES.items() for name in names}

_OF_EXTRA_MCP = ("Gateway", "http_app")

if not TYPE_CHECKING:  # or type checkers would take any name for one that there is
    if importlib.util.find_spec("mcp") is None:  # "import *" takes what can be had
        __all__ = [name for name in __all__ if name not in _OF_EXTRA_MCP]

    def __getattr__(name: str) -> object:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        if name in _OF_EXTRA_MCP and importlib.util.find_spec("mcp") is None:
            from toolsearch.errors import MissingExtraError

            raise MissingExtraError(f"toolsearch.{name}", "mcp")
        value = getattr(importlib.import_module(_MODULES[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
