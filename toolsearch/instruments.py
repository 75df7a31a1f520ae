"""The tracer and the meters of OpenTelemetry that everything is recorded with, made once for each pair of providers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opentelemetry.metrics import Counter, Histogram, Meter, UpDownCounter
    from opentelemetry.trace import SpanKind, Tracer

_SECONDS = (0.001, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_TOKENS = tuple(4**power for power in range(14))  # as the conventions want it: 1 to 67 million


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
        )
