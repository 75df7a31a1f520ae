"""Spans and metrics of searches, tool calls and model calls, as OpenTelemetry's conventions for GenAI name them.

Queries, arguments and answers are left out unless *capture_content* is set, and definitions of tools unless
*capture_definitions* is set. Without OpenTelemetry, or without a provider, everything here does nothing, in about a
microsecond.

Metrics:

    gen_ai.execute_tool.duration            s, by tool and error.type
    toolsearch.tool.calls, .errors          counts of the same
    toolsearch.search.duration              s, by strategy and error.type
    toolsearch.searches, .empty             searches, and those of them that found nothing
    toolsearch.tools.discovered, .used      tools new to a session by a search, and those of them that it then called
                                            (search.duration, searches and these two have an attribute
                                            toolsearch.anticipated for searches of anticipation; .empty never has it)
    toolsearch.tokens.sent, .saved          of tool definitions and searches; saved is an estimate, and may go down
    gen_ai.client.operation.duration        s, by provider, model and error.type
    gen_ai.client.token.usage               tokens of a model call, by gen_ai.token.type (input, output)
    http.server.request.duration            s, of the service, by method, route and status
    mcp.client.operation.duration           s, of requests to MCP servers, by server, method and error.type
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from typing import TYPE_CHECKING

from toolsearch.errors import shown_name
from toolsearch.spans import (
    ANTICIPATED,
    Attributes,
    ChatSpan,
    Instruments,
    RequestSpan,
    SearchSpan,
    ServerRequestSpan,
    ToolCallSpan,
    as_text,
)

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

__all__ = ["ChatSpan", "RequestSpan", "SearchSpan", "Telemetry", "ToolCallSpan"]

_SCOPE = "toolsearch"
_anticipates: ContextVar[bool] = ContextVar("anticipates", default=False)
_OTHER = "_OTHER"  # the conventions' word for a value beyond the limit


class Telemetry:
    """Records spans and metrics. Give it to an engine, a calling manager and models. Safe to share between threads.

    Without *tracer_provider* and *meter_provider* it uses OpenTelemetry's global ones, once they are set. *clock* gives
    seconds; only differences count.
    """

    def __init__(
        self,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        *,
        capture_content: bool = False,
        capture_definitions: bool = False,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.capture_content = capture_content
        self.capture_definitions = capture_definitions
        self._clock = clock
        self._tracer_provider = tracer_provider
        self._meter_provider = meter_provider

    def tool_call(
        self,
        name: str,
        *,
        call_id: str = "",
        arguments: object = None,
        description: str = "",
        input_schema: object = None,
        is_known: bool = True,
    ) -> ToolCallSpan:
        """A span around one call of the tool *name*. Spans within become its children.

        Unknown names come from a model. With *is_known* false the name stays out of the metrics, which need a bounded
        number of names.
        """
        instruments = self._instruments
        if instruments is None:
            return _NO_TOOL_CALL
        name = shown_name(name)
        attributes: Attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.type": "function",
        }
        if call_id:
            attributes["gen_ai.tool.call.id"] = shown_name(call_id)
        if self.capture_content and arguments is not None:
            attributes["gen_ai.tool.call.arguments"] = as_text(arguments)
        if self.capture_definitions and input_schema is not None:
            attributes["gen_ai.tool.description"] = description
            attributes["toolsearch.tool.input_schema"] = as_text(input_schema)  # the conventions have no name for it
        labels: Attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name if is_known else _OTHER}
        return ToolCallSpan(instruments, f"execute_tool {name}", attributes, labels)

    def search(self, *, strategy: str, limit: int, query: str = "") -> SearchSpan:
        """Around one search of the index."""
        instruments = self._instruments
        if instruments is None:
            return _NO_SEARCH
        labels: Attributes = {"toolsearch.strategy": strategy, **_mark(is_anticipated=_anticipates.get())}
        attributes: Attributes = {**labels, "toolsearch.limit": limit}
        if self.capture_content:
            attributes["toolsearch.query"] = query
        return SearchSpan(instruments, "search_tools", attributes, labels)

    @contextmanager
    def anticipation(self) -> Generator[None]:
        """Within this, searches are made before a model asks for them, so they and what they bring are marked."""
        before = _anticipates.set(True)
        try:
            yield
        finally:
            _anticipates.reset(before)

    def chat(self, *, provider: str, model: str, is_current: bool = True) -> ChatSpan:
        """A span around one call of a model. *provider* is a name of the conventions: openai, anthropic, ...

        With *is_current* other spans become its children. A generator has to set it to false, since the code that runs
        between two pieces is not part of the call.
        """
        instruments = self._instruments
        if instruments is None:
            return _NO_CHAT
        labels: Attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": provider,
            "gen_ai.request.model": model,
        }
        return ChatSpan(instruments, f"chat {model}", dict(labels), labels, kind="client", is_current=is_current)

    def request(self, *, method: str, headers: Mapping[str, str]) -> RequestSpan:
        """Around one request to the service; *headers*, in lower case, may name the span that it belongs below."""
        instruments = self._instruments
        if instruments is None:
            return _NO_REQUEST
        attributes: Attributes = {"http.request.method": method}
        return RequestSpan(instruments, method, attributes, dict(attributes), kind="server", carrier=headers)

    def server_request(self, server: str, *, method: str, era: str) -> ServerRequestSpan:
        """Around one request to an MCP server; *era* is that of the protocol that it speaks."""
        instruments = self._instruments
        if instruments is None:
            return _NO_SERVER_REQUEST
        labels: Attributes = {"mcp.method.name": method, "toolsearch.server": server}
        attributes: Attributes = {**labels, "toolsearch.era": era}
        return ServerRequestSpan(instruments, f"{method} {server}", attributes, labels, kind="client")

    def discovered(self, tools: int) -> None:
        """Count tools that a search has brought into a session that did not have them."""
        if tools and self._instruments is not None:
            self._instruments.discovered.add(tools, _mark(is_anticipated=_anticipates.get()))

    def used(self, tools: int, *, is_anticipated: bool = False) -> None:
        """Count tools that are called for the first time since a search brought them into the session."""
        if tools and self._instruments is not None:
            self._instruments.used.add(tools, _mark(is_anticipated=is_anticipated))

    def tokens(self, *, sent: int = 0, saved: int) -> None:
        """Count tool tokens sent to a model, and those saved against sending all tools; negative if it cost more."""
        if self._instruments is not None:
            self._instruments.tokens_sent.add(sent)
            self._instruments.tokens_saved.add(saved)

    @property
    def has_metrics(self) -> bool:
        """Whether metrics are recorded, so that costly figures are needed."""
        provider = self._meter_provider
        if provider is None:
            api = sys.modules.get("opentelemetry.metrics")
            provider = api.get_meter_provider() if api is not None else None
        return provider is not None and not _does_nothing(provider)

    @property
    def _instruments(self) -> Instruments | None:
        """None as long as there is no provider. A global provider can only exist if the library was imported."""
        if self._tracer_provider is None and self._meter_provider is None and "opentelemetry.trace" not in sys.modules:
            return None
        return self._bound

    @cached_property
    def _bound(self) -> Instruments | None:
        try:
            from opentelemetry import metrics, trace
        except ImportError:  # OpenTelemetry is only partly installed
            return None
        # The API's placeholders use the global providers once these are set.
        tracers = self._tracer_provider or trace.get_tracer_provider()
        meters = self._meter_provider or metrics.get_meter_provider()
        kinds = (trace.SpanKind.INTERNAL, trace.SpanKind.CLIENT, trace.SpanKind.SERVER)
        return Instruments.of(
            tracers.get_tracer(_SCOPE),
            kinds,
            meters.get_meter(_SCOPE),
            clock=self._clock,
            capture_content=self.capture_content,
            capture_definitions=self.capture_definitions,
        )


def _mark(*, is_anticipated: bool) -> Attributes:
    return {ANTICIPATED: True} if is_anticipated else {}


def _does_nothing(provider: object) -> bool:
    """Whether *provider* is one of the API's placeholders, which record nothing."""
    return type(provider).__module__.startswith("opentelemetry.metrics")


# Shared, since it has no state.
_NO_TOOL_CALL = ToolCallSpan(None)
_NO_SEARCH = SearchSpan(None)
_NO_CHAT = ChatSpan(None)
_NO_REQUEST = RequestSpan(None)
_NO_SERVER_REQUEST = ServerRequestSpan(None)
