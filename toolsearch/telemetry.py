"""Spans and metrics of searches, tool calls and model calls, as OpenTelemetry's conventions for GenAI name them.

What a query, an argument or an answer says is left out unless *capture_content* asks for it. Without OpenTelemetry, or
without a provider, everything here does nothing, in about a microsecond.

Metrics:

    gen_ai.execute_tool.duration            s, by tool and error.type
    toolsearch.tool.calls, .errors          counts of the same
    toolsearch.search.duration              s, by strategy and error.type
    toolsearch.searches, .empty             searches, and those of them that found nothing
    toolsearch.tools.discovered, .used      tools new to a session by a search, and those of them that it then called
    toolsearch.tokens.sent, .saved          of tool definitions and searches; saved is an estimate, and may go down
    gen_ai.client.operation.duration        s, by provider, model and error.type
    gen_ai.client.token.usage               tokens of a model call, by gen_ai.token.type (input, output)
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeAlias

if TYPE_CHECKING:
    from contextvars import Token

    from opentelemetry.context import Context
    from opentelemetry.metrics import Counter, Histogram, Meter, MeterProvider, UpDownCounter
    from opentelemetry.trace import Span, SpanKind, Tracer, TracerProvider

__all__ = ["ChatSpan", "SearchSpan", "Telemetry", "ToolCallSpan"]

Attributes: TypeAlias = dict[str, str | bool | int | float | Sequence[str]]

_SCOPE = "toolsearch"
_SECONDS = (0.001, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_TOKENS = tuple(4**power for power in range(14))  # as the conventions want it: 1 to 67 million
_OTHER = "_OTHER"  # the conventions' word for a value that would be one of too many


class Telemetry:
    """What records; to be given to an engine, a calling manager and models. Safe to share between threads.

    Without *tracer_provider* and *meter_provider* it uses OpenTelemetry's global ones, from when they are set.
    *clock* gives seconds; only differences count.
    """

    def __init__(
        self,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        *,
        capture_content: bool = False,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.capture_content = capture_content
        self.clock = clock
        self._tracer_provider = tracer_provider
        self._meter_provider = meter_provider

    def tool_call(
        self, name: str, *, call_id: str = "", arguments: object = None, is_known: bool = True
    ) -> ToolCallSpan:
        """Around one call of the tool *name*, in which other spans become its children.

        A name that no tool has comes from a model; with *is_known* false it stays out of the metrics, which could not
        bear any number of names.
        """
        instruments = self._instruments
        if instruments is None:
            return _NO_TOOL_CALL
        attributes: Attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.type": "function",
        }
        if call_id:
            attributes["gen_ai.tool.call.id"] = call_id
        if self.capture_content and arguments is not None:
            attributes["gen_ai.tool.call.arguments"] = _text(arguments)
        labels: Attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name if is_known else _OTHER}
        return ToolCallSpan(self, instruments, f"execute_tool {name}", attributes, labels)

    def search(self, *, strategy: str, limit: int, query: str = "") -> SearchSpan:
        """Around one search of the index."""
        instruments = self._instruments
        if instruments is None:
            return _NO_SEARCH
        attributes: Attributes = {"toolsearch.strategy": strategy, "toolsearch.limit": limit}
        if self.capture_content:
            attributes["toolsearch.query"] = query
        return SearchSpan(self, instruments, "search_tools", attributes, {"toolsearch.strategy": strategy})

    def chat(self, *, provider: str, model: str, is_current: bool = True) -> ChatSpan:
        """Around one call of a model; *provider* as the conventions name it: openai, anthropic, ...

        With *is_current* other spans become its children. A generator has to set it to false, since what runs between
        two of its pieces is not the model's.
        """
        instruments = self._instruments
        if instruments is None:
            return _NO_CHAT
        labels: Attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": provider,
            "gen_ai.request.model": model,
        }
        return ChatSpan(self, instruments, f"chat {model}", dict(labels), labels, is_client=True, is_current=is_current)

    def discovered(self, tools: int) -> None:
        """Count tools that a search has brought into a session that did not have them."""
        if tools and self._instruments is not None:
            self._instruments.discovered.add(tools)

    def used(self, tools: int) -> None:
        """Count tools that are called for the first time since a search brought them into the session."""
        if tools and self._instruments is not None:
            self._instruments.used.add(tools)

    def tokens(self, *, sent: int = 0, saved: int) -> None:
        """Count tool tokens sent to a model, and those saved so against sending all; below 0 for what it cost."""
        if self._instruments is not None:
            self._instruments.tokens_sent.add(sent)
            self._instruments.tokens_saved.add(saved)

    @property
    def has_metrics(self) -> bool:
        """Whether anything records metrics, so that figures that cost something need not be worked out for nothing."""
        provider = self._meter_provider
        if provider is None:
            api = sys.modules.get("opentelemetry.metrics")
            provider = api.get_meter_provider() if api is not None else None
        return provider is not None and not _does_nothing(provider)

    @property
    def _instruments(self) -> _Instruments | None:
        """None as long as there is no provider; nobody can have set a global one who has not imported the library."""
        if self._tracer_provider is None and self._meter_provider is None and "opentelemetry.trace" not in sys.modules:
            return None
        return self._bound

    @cached_property
    def _bound(self) -> _Instruments | None:
        try:
            from opentelemetry import metrics, trace
        except ImportError:  # half of an installation
            return None
        # The API's own stand-ins pass on to the global providers once these are set.
        tracers = self._tracer_provider or trace.get_tracer_provider()
        meters = self._meter_provider or metrics.get_meter_provider()
        kinds = (trace.SpanKind.INTERNAL, trace.SpanKind.CLIENT)
        return _Instruments.of(tracers.get_tracer(_SCOPE), kinds, meters.get_meter(_SCOPE))


def _does_nothing(provider: object) -> bool:
    """Whether *provider* is one of the API's own, which record nothing."""
    return type(provider).__module__.startswith("opentelemetry.metrics")


@dataclass(frozen=True, slots=True)
class _Instruments:
    tracer: Tracer
    internal: SpanKind
    client: SpanKind
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

    @classmethod
    def of(cls, tracer: Tracer, kinds: tuple[SpanKind, SpanKind], meter: Meter) -> _Instruments:
        def seconds(name: str, of: str) -> Histogram:
            return meter.create_histogram(name, "s", of, explicit_bucket_boundaries_advisory=_SECONDS)

        return cls(
            tracer=tracer,
            internal=kinds[0],
            client=kinds[1],
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
        )


class _Operation:
    """One thing that takes time. Made for one ``with``; what it does wrong never reaches what it observes."""

    __slots__ = (
        "_attributes",
        "_context",
        "_error_type",
        "_instruments",
        "_is_client",
        "_is_current",
        "_labels",
        "_name",
        "_span",
        "_started_s",
        "_telemetry",
    )

    def __init__(
        self,
        telemetry: Telemetry,
        instruments: _Instruments | None,
        name: str = "",
        attributes: Attributes | None = None,
        labels: Attributes | None = None,
        *,
        is_client: bool = False,
        is_current: bool = True,
    ) -> None:
        self._telemetry = telemetry
        self._instruments = instruments
        self._name = name
        self._attributes = attributes or {}
        self._labels = labels or {}  # of the metrics: few values each
        self._is_client = is_client
        self._is_current = is_current
        self._error_type = ""
        self._span: Span | None = None
        self._context: Token[Context] | None = None
        self._started_s = 0.0

    def failed(self, error_type: str) -> None:
        """Say that this failed, also where the failure is a result and not raised: *error_type* is one of a few."""
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
        seconds = self._telemetry.clock() - self._started_s
        if kind is not None and kind is not GeneratorExit and not self._error_type:
            self._error_type = _code(kind)
        labels = self._labels | {"error.type": self._error_type} if self._error_type else self._labels
        self._measure(self._instruments, seconds, labels)
        self._end()

    def _measure(self, instruments: _Instruments, seconds: float, labels: Attributes) -> None:
        raise NotImplementedError

    def _set(self, attributes: Mapping[str, str | bool | int | float | Sequence[str]]) -> None:
        if self._span is not None:
            self._span.set_attributes(attributes)

    def _start(self, instruments: _Instruments) -> None:
        kind = instruments.client if self._is_client else instruments.internal
        span = instruments.tracer.start_span(self._name, kind=kind, attributes=self._attributes)
        if span.get_span_context().is_valid:  # also one that is not sampled, whose children must not be either
            self._span = span
            if self._is_current:
                self._context = _attach(span)
        self._started_s = self._telemetry.clock()

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
        """Say what the tool returned; kept only where content is captured."""
        if self._span is not None and self._telemetry.capture_content:
            self._set({"gen_ai.tool.call.result": text})

    def _measure(self, instruments: _Instruments, seconds: float, labels: Attributes) -> None:
        instruments.tool_duration.record(seconds, labels)
        instruments.tool_calls.add(1, self._labels)
        if self._error_type:
            instruments.tool_errors.add(1, labels)


class SearchSpan(_Operation):
    """``search_tools``"""

    __slots__ = ()

    def found(self, names: Sequence[str]) -> None:
        """Say what was found, best first."""
        if self._instruments is None:
            return
        if not names:
            self._instruments.empty_searches.add(1, self._labels)
        self._set({"toolsearch.hits": len(names), "toolsearch.abstained": not names})
        if self._telemetry.capture_content:
            self._set({"toolsearch.tools": list(names)})

    def _measure(self, instruments: _Instruments, seconds: float, labels: Attributes) -> None:
        instruments.search_duration.record(seconds, labels)
        instruments.searches.add(1, self._labels)


class ChatSpan(_Operation):
    """``chat <model>``"""

    __slots__ = ()

    def asked(self, attributes: Mapping[str, str | int | float | None], messages: Callable[[], object]) -> None:
        """Say how the model was asked, by gen_ai.request.*; a None is left out. *messages*: only if content is kept."""
        if self._span is not None:
            self._set({f"gen_ai.request.{key}": value for key, value in attributes.items() if value is not None})
            if self._telemetry.capture_content:
                self._set({"gen_ai.input.messages": _text(messages())})

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
        """Say what the answer took and, where content is kept, what it was."""
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
        if messages is not None and self._telemetry.capture_content:
            self._set({"gen_ai.output.messages": _text(messages())})

    def _measure(self, instruments: _Instruments, seconds: float, labels: Attributes) -> None:
        instruments.chat_duration.record(seconds, labels)


def _attach(span: Span) -> Token[Context]:
    from opentelemetry import context, trace

    return context.attach(trace.set_span_in_context(span))


def _code(kind: type[BaseException]) -> str:
    """Our own stable code of an error, or else the name of its class."""
    code: Any = getattr(kind, "code", None)
    return code if isinstance(code, str) else kind.__qualname__


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


_OFF = Telemetry()
_NO_TOOL_CALL = ToolCallSpan(_OFF, None)
_NO_SEARCH = SearchSpan(_OFF, None)
_NO_CHAT = ChatSpan(_OFF, None)
