"""Spans and metrics for OpenTelemetry: models, tools and searches, without content by default.

Needs `pip install '.[otel]'`.
"""

from __future__ import annotations

from model import model_or
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from toolsearch import Catalog, Settings, Telemetry, build_client, build_engine
from toolsearch.chat import scripted_calls


def main() -> None:
    exporter, reader = InMemorySpanExporter(), InMemoryMetricReader()
    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    telemetry = Telemetry(tracers, MeterProvider([reader]))  # without arguments: OpenTelemetry's own, once set up

    settings = Settings.from_environment({"TOOLSEARCH_ADVISOR__ENABLED": "true"})
    catalog = Catalog()
    catalog.load("module:statistics")
    engine = build_engine(settings, catalog, telemetry=telemetry)
    model = model_or(
        scripted_calls(("toolSearchTool", {"query": "median of numbers", "limit": 1})),
        scripted_calls(("statistics__median", {"data": [3, 1, 4, 1, 5]}), ("statistics__mean", {"numbers": []})),
        "The median is 3.",
    )
    client = build_client(settings, model, engine=engine, telemetry=telemetry)
    print(client.prompt("What is the median of 3, 1, 4, 1, 5?").context(conversation_id="ada").content_sync())

    for span in exporter.get_finished_spans():
        shown = ("error.type", "toolsearch.strategy", "toolsearch.hits")
        print(span.name, {key: span.attributes[key] for key in shown if span.attributes and key in span.attributes})
    data = reader.get_metrics_data()
    metrics = [
        each for of in (data.resource_metrics if data else ()) for scope in of.scope_metrics for each in scope.metrics
    ]
    print(*sorted(metric.name for metric in metrics), sep="\n")


if __name__ == "__main__":
    main()
