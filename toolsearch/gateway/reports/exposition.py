"""Figures as a text for Prometheus: those that are counted as they happen, and those that are read on request."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

CONTENT_TYPE: Final = "text/plain; version=1.0.0; charset=utf-8"
Figures: TypeAlias = Iterable[Metric]


class Exposition(Collector):
    """The figures of one program. *read* gives those that are only worked out on request."""

    def __init__(self, read: Callable[[], Figures]) -> None:
        self._read = read
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def counter(self, name: str, about: str, *labels: str) -> Counter:
        return Counter(f"toolsearch_{name}", about, labels, registry=self._registry)

    def gauge(self, name: str, about: str) -> Gauge:
        return Gauge(f"toolsearch_{name}", about, registry=self._registry)

    def histogram(self, name: str, about: str, *labels: str, buckets: Sequence[float]) -> Histogram:
        return Histogram(f"toolsearch_{name}", about, labels, buckets=buckets, registry=self._registry)

    def text(self) -> bytes:
        """What is read on request may come from a store, so call it in a thread."""
        return generate_latest(self._registry)

    def describe(self) -> Figures:
        return ()  # empty, since otherwise registering would read the figures

    def collect(self) -> Figures:
        return self._read()


def total(name: str, about: str, count: float) -> Metric:
    return CounterMetricFamily(f"toolsearch_{name}", about, count)


def present(name: str, about: str, value: float) -> Metric:
    return GaugeMetricFamily(f"toolsearch_{name}", about, value)


def totals(name: str, about: str, labels: Sequence[str], counts: Mapping[tuple[str, ...], float]) -> Metric:
    """*counts* are by the values of *labels*."""
    return _filled(CounterMetricFamily(f"toolsearch_{name}", about, labels=labels), counts)


def presents(name: str, about: str, labels: Sequence[str], values: Mapping[tuple[str, ...], float]) -> Metric:
    """*values* are by the values of *labels*."""
    return _filled(GaugeMetricFamily(f"toolsearch_{name}", about, labels=labels), values)


def _filled(family: CounterMetricFamily | GaugeMetricFamily, values: Mapping[tuple[str, ...], float]) -> Metric:
    for labels, value in sorted(values.items()):
        family.add_metric(labels, value)
    return family
