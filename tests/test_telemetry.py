"""Telemetry: what spans and metrics say, what they keep to themselves, and that it is nothing without OpenTelemetry."""

from __future__ import annotations

import json

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode, get_current_span

from tests.kit.telemetry_recorder import Recorder
from toolsearch import Telemetry
from toolsearch.errors import BadArgumentsError


@pytest.fixture
def recorder():
    return Recorder()


def test_a_tool_call_is_a_span_as_the_conventions_name_it(recorder):
    with recorder.telemetry.tool_call("get_time", call_id="call_7", arguments={"zone": "UTC"}) as span:
        span.answered("noon")

    span = recorder.span("execute_tool get_time")
    assert dict(span.attributes) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "get_time",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "call_7",
    }
    assert span.kind is SpanKind.INTERNAL
    assert span.status.status_code is StatusCode.UNSET


def test_a_failure_that_became_a_result_marks_the_span_and_counts_as_an_error(recorder):
    with recorder.telemetry.tool_call("get_time") as span:
        span.failed("tool_timeout")

    span = recorder.span("execute_tool get_time")
    assert span.attributes["error.type"] == "tool_timeout"
    assert span.status.status_code is StatusCode.ERROR
    labels = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "get_time"}
    assert recorder.points("toolsearch.tool.calls") == [(labels, 1)]
    assert recorder.points("toolsearch.tool.errors") == [(labels | {"error.type": "tool_timeout"}, 1)]


@pytest.mark.parametrize(
    ("error", "error_type"),
    [(BadArgumentsError("no"), "bad_arguments"), (ZeroDivisionError("no"), "ZeroDivisionError")],
)
def test_what_is_raised_passes_and_is_named_by_our_code_or_by_its_class(recorder, error, error_type):
    with pytest.raises(type(error)), recorder.telemetry.tool_call("get_time"):
        raise error

    span = recorder.span("execute_tool get_time")
    assert span.attributes["error.type"] == error_type
    assert span.events == ()  # no message and no traceback, which may quote arguments


def test_a_call_lasts_from_its_beginning_to_its_end(recorder):
    with recorder.telemetry.tool_call("get_time"):
        pass

    labels = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "get_time"}
    assert recorder.points("gen_ai.execute_tool.duration") == [(labels, (1, 0.5))]


def test_a_name_that_no_tool_has_stays_out_of_the_metrics(recorder):
    with recorder.telemetry.tool_call("made_up", is_known=False) as span:
        span.failed("unknown_tool")

    assert recorder.span("execute_tool made_up")
    ((labels, _),) = recorder.points("toolsearch.tool.calls")
    assert labels["gen_ai.tool.name"] == "_OTHER"


def test_spans_within_a_call_are_its_children(recorder):
    before = get_current_span()
    with recorder.telemetry.tool_call("toolSearchTool"), recorder.telemetry.search(strategy="keyword", limit=5):
        pass

    assert recorder.span("search_tools").parent.span_id == recorder.span("execute_tool toolSearchTool").context.span_id
    assert get_current_span() is before


def test_a_search_says_what_was_asked_of_the_index_and_how_much_it_found(recorder):
    with recorder.telemetry.search(strategy="hybrid", limit=5, query="secret plans") as span:
        span.found(["a", "b"])

    expected = {
        "toolsearch.strategy": "hybrid",
        "toolsearch.limit": 5,
        "toolsearch.hits": 2,
        "toolsearch.abstained": False,
    }
    assert dict(recorder.span("search_tools").attributes) == expected
    assert recorder.points("toolsearch.searches") == [({"toolsearch.strategy": "hybrid"}, 1)]
    assert recorder.points("toolsearch.searches.empty") == []


def test_a_search_that_finds_nothing_is_counted_as_such(recorder):
    with recorder.telemetry.search(strategy="keyword", limit=5) as span:
        span.found([])

    assert recorder.span("search_tools").attributes["toolsearch.abstained"] is True
    assert recorder.points("toolsearch.searches.empty") == [({"toolsearch.strategy": "keyword"}, 1)]


def test_a_search_that_fails_is_no_search_that_found_nothing(recorder):
    with pytest.raises(ValueError, match="no"), recorder.telemetry.search(strategy="regex", limit=5):
        raise ValueError("no")

    assert recorder.points("toolsearch.searches") == [({"toolsearch.strategy": "regex"}, 1)]
    assert recorder.points("toolsearch.searches.empty") == []


def test_a_chat_is_a_client_span_with_its_usage(recorder):
    with recorder.telemetry.chat(provider="openai", model="gpt-5.4") as span:
        span.asked({"temperature": 0.5, "max_tokens": None}, messages=list, tools=list)
        span.answered(input_tokens=100, output_tokens=7, cached_tokens=64, finish_reason="stop")

    span = recorder.span("chat gpt-5.4")
    assert span.kind is SpanKind.CLIENT
    assert dict(span.attributes) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-5.4",
        "gen_ai.request.temperature": 0.5,
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 7,
        "gen_ai.usage.cache_read.input_tokens": 64,
        "gen_ai.usage.cache_creation.input_tokens": 0,
        "gen_ai.response.finish_reasons": ("stop",),
    }
    usage = {labels["gen_ai.token.type"]: point for labels, point in recorder.points("gen_ai.client.token.usage")}
    assert usage == {"input": (1, 100), "output": (1, 7)}


def test_content_is_captured_only_where_that_was_asked_for():
    recorder = Recorder(capture_content=True)
    with recorder.telemetry.tool_call("get_time", arguments={"zone": "Zürich"}) as call:
        call.answered("noon")
    with recorder.telemetry.search(strategy="keyword", limit=5, query="time zones") as search:
        search.found(["get_time"])
    with recorder.telemetry.chat(provider="openai", model="m") as chat:
        chat.asked({}, messages=lambda: [{"role": "user"}], tools=list)
        chat.answered(input_tokens=1, output_tokens=1, messages=lambda: [{"role": "assistant"}])

    assert recorder.span("execute_tool get_time").attributes["gen_ai.tool.call.arguments"] == '{"zone": "Zürich"}'
    assert recorder.span("execute_tool get_time").attributes["gen_ai.tool.call.result"] == "noon"
    assert recorder.span("search_tools").attributes["toolsearch.query"] == "time zones"
    assert recorder.span("search_tools").attributes["toolsearch.tools"] == ("get_time",)
    assert json.loads(recorder.span("chat m").attributes["gen_ai.input.messages"]) == [{"role": "user"}]
    assert json.loads(recorder.span("chat m").attributes["gen_ai.output.messages"]) == [{"role": "assistant"}]


def test_a_span_in_a_generator_does_not_become_the_current_one(recorder):
    before = get_current_span()
    with recorder.telemetry.chat(provider="openai", model="m", is_current=False):
        assert get_current_span() is before


def test_spans_that_are_not_sampled_keep_their_children_from_being_sampled(recorder):
    from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased

    exporter = InMemorySpanExporter()
    tracers = TracerProvider(ParentBased(ALWAYS_OFF), shutdown_on_exit=False)
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    with Telemetry(tracers).tool_call("get_time"):
        assert not get_current_span().get_span_context().trace_flags.sampled
        assert get_current_span().get_span_context().is_valid

    assert exporter.get_finished_spans() == ()


def test_figures_of_discovery_and_of_tokens_add_up(recorder):
    recorder.telemetry.discovered(3)
    recorder.telemetry.discovered(2)
    recorder.telemetry.used(1)
    recorder.telemetry.tokens(sent=100, saved=900)
    recorder.telemetry.tokens(saved=-50)

    assert recorder.points("toolsearch.tools.discovered") == [({}, 5)]
    assert recorder.points("toolsearch.tools.used") == [({}, 1)]
    assert recorder.points("toolsearch.tokens.sent") == [({}, 100)]
    assert recorder.points("toolsearch.tokens.saved") == [({}, 850)]


def test_without_a_provider_there_is_nothing_to_record_to(recorder):
    assert recorder.telemetry.has_metrics
    assert not Telemetry().has_metrics

    def unread():
        pytest.fail("nobody reads this")

    with Telemetry().chat(provider="openai", model="m") as span:
        span.asked({"temperature": 1.0}, messages=unread, tools=unread)
        span.answered(input_tokens=1, output_tokens=1, messages=lambda: pytest.fail("nobody reads this"))


def test_opentelemetry_is_not_imported_by_us_unless_somebody_else_has(run_python):
    code = """
import sys
from toolsearch.telemetry import Telemetry
telemetry = Telemetry()
with telemetry.tool_call("a") as span:
    span.answered("b")
with telemetry.search(strategy="keyword", limit=5) as span:
    span.found([])
with telemetry.chat(provider="openai", model="m") as span:
    span.answered(input_tokens=1, output_tokens=1)
telemetry.discovered(1)
telemetry.tokens(sent=1, saved=1)
print(telemetry.has_metrics, [name for name in sys.modules if name.startswith("opentelemetry")])
"""
    assert run_python("-c", code).out == "False []\n"


def test_global_providers_count_also_when_they_are_set_later(run_python):
    code = """
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from toolsearch.telemetry import Telemetry
telemetry = Telemetry()
with telemetry.tool_call("before"):
    pass
exporter, reader = InMemorySpanExporter(), InMemoryMetricReader()
tracers = TracerProvider()
tracers.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(tracers)
metrics.set_meter_provider(MeterProvider([reader]))
with telemetry.tool_call("after"):
    pass
calls = [m for m in reader.get_metrics_data().resource_metrics[0].scope_metrics[0].metrics if m.name.endswith("calls")]
print(telemetry.has_metrics, [span.name for span in exporter.get_finished_spans()], calls[0].data.data_points[0].value)
"""
    assert run_python("-c", code).out == "True ['execute_tool after'] 1\n"
