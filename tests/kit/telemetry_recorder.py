"""A Telemetry for tests, whose spans and metrics can be read back."""

from __future__ import annotations

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from toolsearch.telemetry import Telemetry


class Recorder:
    """A Telemetry whose spans and metrics can be read back. Its clock moves on by 0.5 s with each look."""

    def __init__(self, *, capture_content: bool = False, capture_definitions: bool = False) -> None:
        self._exporter = InMemorySpanExporter()
        self._reader = InMemoryMetricReader()
        self._now_s = 0.0
        tracers = TracerProvider(shutdown_on_exit=False)
        tracers.add_span_processor(SimpleSpanProcessor(self._exporter))
        meters = MeterProvider([self._reader], shutdown_on_exit=False)
        self.telemetry = Telemetry(
            tracers,
            meters,
            capture_content=capture_content,
            capture_definitions=capture_definitions,
            clock=self._clock,
        )

    def _clock(self):
        self._now_s += 0.5
        return self._now_s

    @property
    def spans(self):
        return list(self._exporter.get_finished_spans())

    def span(self, name):
        (span,) = [span for span in self.spans if span.name == name]
        return span

    def points(self, metric):
        """(attributes, value) of each point: the sum of a counter, the (count, sum) of a histogram."""
        data = self._reader.get_metrics_data()
        metrics = [] if data is None else data.resource_metrics[0].scope_metrics[0].metrics
        points = [point for found in metrics if found.name == metric for point in found.data.data_points]
        return [
            (dict(point.attributes), (point.count, point.sum) if hasattr(point, "count") else point.value)
            for point in points
        ]
