"""The operations that are recorded, each a span and a few points of metrics; without instruments they do nothing.

The tracer and the meters of OpenTelemetry are made once for each pair of providers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeAlias

if TYPE_CHECKING:
    from contextvars import Token

    from opentelemetry.context import Context
    from opentelemetry.metrics import Counter, Histogram, Meter, UpDownCounter
    from opentelemetry.trace import Span, SpanKind, Tracer

_SECONDS = (0.001, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_TOKENS = tuple(4**power for power in range(14))  # the conventions' buckets: 1 to 67 million


@dataclass(frozen=True, slots=True)
class Instruments:
    tracer: Tracer
    internal: SpanKind
    client: SpanKind
    server: SpanKind
    clock: Callable[[], float]
    capture_content: bool
    capture_definitions: bool
    tool_duration: Histogram
    tool_calls: Counter
    tool_errors: Counter
    search_duration: Histogram
    searches: Counter
    empty_searches: Counter
    discovered: Counter
    used: Counter
    tokens_sent: Counter
    tokens_saved: UpDownCounter
    chat_duration: Histogram
    token_usage: Histogram
    request_duration: Histogram
    server_duration: Histogram

    @classmethod
    def of(
        cls,
        tracer: Tracer,
        kinds: tuple[SpanKind, SpanKind, SpanKind],
        meter: Meter,
        *,
        clock: Callable[[], float],
        capture_content: bool,
        capture_definitions: bool,
    ) -> Instruments:
        def seconds(name: str, of: str) -> Histogram:
            return meter.create_histogram(name, "s", of, explicit_bucket_boundaries_advisory=_SECONDS)

        return cls(
            tracer=tracer,
            internal=kinds[0],
            client=kinds[1],
            server=kinds[2],
            clock=clock,
            capture_content=capture_content,
            capture_definitions=capture_definitions,
            tool_duration=seconds("gen_ai.execute_tool.duration", "Duration of tool calls."),
            tool_calls=meter.create_counter("toolsearch.tool.calls", "{call}", "Tool calls."),
            tool_errors=meter.create_counter("toolsearch.tool.errors", "{call}", "Tool calls that failed."),
            search_duration=seconds("toolsearch.search.duration", "Duration of searches for tools."),
            searches=meter.create_counter("toolsearch.searches", "{search}", "Searches for tools."),
            empty_searches=meter.create_counter("toolsearch.searches.empty", "{search}", "Those that found nothing."),
            discovered=meter.create_counter("toolsearch.tools.discovered", "{tool}", "Tools that searches brought."),
            used=meter.create_counter("toolsearch.tools.used", "{tool}", "Of these, tools that were then called."),
            tokens_sent=meter.create_counter("toolsearch.tokens.sent", "{token}", "Tool tokens sent to models."),
            tokens_saved=meter.create_up_down_counter(
                "toolsearch.tokens.saved", "{token}", "Tool tokens that all definitions would have cost beyond these."
            ),
            chat_duration=seconds("gen_ai.client.operation.duration", "Duration of model calls."),
            token_usage=meter.create_histogram(
                "gen_ai.client.token.usage",
                "{token}",
                "Tokens of model calls.",
                explicit_bucket_boundaries_advisory=_TOKENS,
            ),
            request_duration=seconds("http.server.request.duration", "Duration of requests to the service."),
            server_duration=seconds("mcp.client.operation.duration", "Duration of requests to MCP servers."),
        )


OperationKind: TypeAlias = Literal["internal", "client", "server"]
ANTICIPATED: Final = "toolsearch.anticipated"  # attribute of searches that no model has asked for
Attributes: TypeAlias = dict[str, str | bool | int | float | Sequence[str]]


class _Operation:
    """One thing that takes time; made for one ``with``, unless it is without instruments and so holds nothing."""

    __slots__ = (
        "_attributes",
        "_carrier",
        "_context",
        "_error_type",
        "_instruments",
        "_is_current",
        "_kind",
        "_labels",
        "_name",
        "_span",
        "_started_s",
    )

    def __init__(
        self,
        instruments: Instruments | None,
        name: str = "",
        attributes: Attributes | None = None,
        labels: Attributes | None = None,
        *,
        kind: OperationKind = "internal",
        is_current: bool = True,
        carrier: Mapping[str, str] | None = None,
    ) -> None:
        self._instruments = instruments
        self._name = name
        self._attributes = attributes or {}
        self._labels = labels or {}  # labels of the metrics, with few values each
        self._kind: OperationKind = kind
        self._is_current = is_current
        self._carrier = carrier  # headers that may name a parent in another process
        self._error_type = ""
        self._span: Span | None = None
        self._context: Token[Context] | None = None
        self._started_s = 0.0

    def failed(self, error_type: str) -> None:
        """Record a failure, even if it is a result and not raised. *error_type* is one of a few values."""
        if self._instruments is not None:
            self._error_type = error_type

    def __enter__(self) -> Self:
        if self._instruments is not None:
            self._start(self._instruments)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._instruments is None:
            return
        seconds = self._instruments.clock() - self._started_s
        if kind is not None and kind is not GeneratorExit and not self._error_type:
            self._error_type = _code(kind)
        labels = self._labels | {"error.type": self._error_type} if self._error_type else self._labels
        self._measure(self._instruments, seconds, labels)
        self._end()

    @property
    def _captures_content(self) -> bool:
        return self._instruments is not None and self._instruments.capture_content

    def _measure(self, instruments: Instruments, seconds: float, labels: Attributes) -> None:
        raise NotImplementedError

    def _set(self, attributes: Mapping[str, str | bool | int | float | Sequence[str]]) -> None:
        if self._span is not None:
            self._span.set_attributes(attributes)

    def _start(self, instruments: Instruments) -> None:
        kind = getattr(instruments, self._kind)
        parent = _extracted(self._carrier) if self._carrier is not None else None
        span = instruments.tracer.start_span(self._name, parent, kind, self._attributes)
        if span.get_span_context().is_valid:  # also true for an unsampled span, whose children must stay unsampled
            self._span = span
            if self._is_current:
                self._context = _attach(span)
        self._started_s = instruments.clock()

    def _end(self) -> None:
        if self._span is None:
            return
        from opentelemetry import context, trace

        if self._context is not None:
            context.detach(self._context)
        if self._error_type:
            self._span.set_attribute("error.type", self._error_type)
            self._span.set_status(trace.StatusCode.ERROR)
        self._span.end()


class ToolCallSpan(_Operation):
    """``execute_tool <name>``"""

    __slots__ = ()

    def answered(self, text: str) -> None:
        """Record the tool's answer; it is kept only if content is captured."""
        if self._span is not None and self._captures_content:
            self._set({"gen_ai.tool.call.result": text})

    def _measure(self, instruments: Instruments, seconds: float, labels: Attributes) -> None:
        instruments.tool_duration.record(seconds, labels)
        instruments.tool_calls.add(1, self._labels)
        if self._error_type:
            instruments.tool_errors.add(1, labels)


class SearchSpan(_Operation):
    """``search_tools``"""

    __slots__ = ()

    def found(self, tools: Iterable[str]) -> None:
        """Record the tools found, by name, best first."""
        if self._instruments is None:
            return
        names = list(tools)
        self._set({"toolsearch.hits": len(names)})
        if ANTICIPATED not in self._labels:  # otherwise nobody has asked, so nobody misses anything
            self._set({"toolsearch.abstained": not names})
            if not names:
                self._instruments.empty_searches.add(1, self._labels)
        if self._captures_content:
            self._set({"toolsearch.tools": names})

    def _measure(self, instruments: Instruments, seconds: float, labels: Attributes) -> None:
        instruments.search_duration.record(seconds, labels)
        instruments.searches.add(1, self._labels)


class RequestSpan(_Operation):
    """``GET /v1/catalogs/{catalog}``"""

    __slots__ = ()

    def answered(self, *, route: str, status: int, attributes: Mapping[str, str]) -> None:
        """Record the route, by its template, and the status of the answer. *attributes* are for the span alone."""
        if self._instruments is None:
            return
        told: Attributes = {"http.route": route, "http.response.status_code": status}
        self._labels = self._labels | told
        self._set({**told, **attributes})
        if self._span is not None:
            self._span.update_name(f"{self._name} {route}")
        if status >= 500:
            self.failed(str(status))

    def _measure(self, instruments: Instruments, seconds: float, labels: Attributes) -> None:
        instruments.request_duration.record(seconds, labels)


class ServerRequestSpan(_Operation):
    """``tools/call <server>``, a request to an MCP server"""

    __slots__ = ()

    @property
    def carrier(self) -> dict[str, str]:
        """The context of the trace, by which the server's own spans become children of this one; empty without one."""
        if self._span is None:
            return {}
        from opentelemetry import propagate

        carrier: dict[str, str] = {}
        propagate.inject(carrier)
        return carrier

    def _measure(self, instruments: Instruments, seconds: float, labels: Attributes) -> None:
        instruments.server_duration.record(seconds, labels)


class ChatSpan(_Operation):
    """``chat <model>``"""

    __slots__ = ()

    def asked(
        self,
        attributes: Mapping[str, str | int | float | None],
        messages: Callable[[], object],
        tools: Callable[[], object],
    ) -> None:
        """Record the request to the model, as gen_ai.request.*; None values are left out.

        *messages* is called only if content is captured, *tools* only if definitions are.
        """
        if self._span is None or self._instruments is None:
            return
        self._set({f"gen_ai.request.{key}": value for key, value in attributes.items() if value is not None})
        if self._instruments.capture_content:
            self._set({"gen_ai.input.messages": as_text(messages())})
        if self._instruments.capture_definitions:
            self._set({"gen_ai.tool.definitions": as_text(tools())})

    def answered(
        self,
        *,
        input_tokens: int,
        output_tokens: int,
        cached_tokens: int = 0,
        cache_write_tokens: int = 0,
        finish_reason: str | None = None,
        messages: Callable[[], object] | None = None,
    ) -> None:
        """Record the tokens of the answer and, if content is captured, the answer itself."""
        if self._instruments is None:
            return
        for kind, tokens in (("input", input_tokens), ("output", output_tokens)):
            self._instruments.token_usage.record(tokens, self._labels | {"gen_ai.token.type": kind})
        if self._span is None:
            return
        self._set(
            {
                "gen_ai.usage.input_tokens": input_tokens,
                "gen_ai.usage.output_tokens": output_tokens,
                "gen_ai.usage.cache_read.input_tokens": cached_tokens,
                "gen_ai.usage.cache_creation.input_tokens": cache_write_tokens,
            }
        )
        if finish_reason:
            self._set({"gen_ai.response.finish_reasons": [finish_reason]})
        if messages is not None and self._captures_content:
            self._set({"gen_ai.output.messages": as_text(messages())})

    def _measure(self, instruments: Instruments, seconds: float, labels: Attributes) -> None:
        instruments.chat_duration.record(seconds, labels)


def _extracted(carrier: Mapping[str, str]) -> Context:
    from opentelemetry import propagate

    return propagate.extract(carrier)


def _attach(span: Span) -> Token[Context]:
    from opentelemetry import context, trace

    return context.attach(trace.set_span_in_context(span))


def _code(kind: type[BaseException]) -> str:
    """Our own stable code of an error, or the name of its class."""
    code: Any = getattr(kind, "code", None)
    return code if isinstance(code, str) else kind.__qualname__


def as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
