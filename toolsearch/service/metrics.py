"""Figures of the service for Prometheus: how much is asked, how long it takes, and what is held in memory.

No label has a value that a caller could make up, and none says anything of a tenant's contents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from toolsearch.storage.load import StoreLoad

CONTENT_TYPE: Final = "text/plain; version=1.0.0; charset=utf-8"

_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Reading(NamedTuple):
    """What one look at the service gives. Each mapping is by the value of the label.

    sessions  None while the store is away
    """

    store: StoreLoad
    sessions: int | None
    corpora: int
    corpora_bytes: int
    evictions: int
    running_jobs: int
    ended_jobs: Mapping[str, int]
    activity: Mapping[str, int]


class Metrics:
    """Made once for a service. *read* gives what is only looked at when somebody asks."""

    def __init__(self, read: Callable[[], Reading]) -> None:
        self._registry = CollectorRegistry()
        self._requests = self._counter("requests", "Requests that were answered.", "method", "route", "status")
        self._seconds = Histogram(
            "toolsearch_request_seconds",
            "How long answers took; streams of events are left out.",
            ["route"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self.running = Gauge(
            "toolsearch_requests_running", "Requests that are being answered.", registry=self._registry
        )
        self._problems = self._counter("problems", "Requests that were refused or failed, by the stable code.", "code")
        self._store_errors = self._counter("store_errors", "Requests that failed for the store's sake.", "code")
        self._registry.register(_OnDemand(read))

    def answered(self, *, method: str, route: str, status: int, seconds: float | None) -> None:
        """*seconds* is None for a stream."""
        self._requests.labels(method, route, str(status)).inc()
        if seconds is not None:
            self._seconds.labels(route).observe(seconds)

    def refused(self, code: str, *, is_store_error: bool) -> None:
        self._problems.labels(code).inc()
        if is_store_error:
            self._store_errors.labels(code).inc()

    def text(self) -> bytes:
        """What Prometheus reads. It looks into the store, so call it in a thread."""
        return generate_latest(self._registry)

    def _counter(self, name: str, about: str, *labels: str) -> Counter:
        return Counter(f"toolsearch_{name}", about, labels, registry=self._registry)


class _OnDemand(Collector):
    def __init__(self, read: Callable[[], Reading]) -> None:
        self._read = read

    def describe(self) -> Iterable[Metric]:
        return ()  # or registering it would read

    def collect(self) -> Iterable[Metric]:
        reading = self._read()
        yield from _of_store(reading.store)
        if reading.sessions is not None:
            yield GaugeMetricFamily("toolsearch_sessions", "Sessions that have not expired.", reading.sessions)
        yield GaugeMetricFamily("toolsearch_corpora", "Catalogs and toolsets in memory.", reading.corpora)
        yield GaugeMetricFamily("toolsearch_corpora_bytes", "About how much memory they take.", reading.corpora_bytes)
        yield CounterMetricFamily("toolsearch_evictions", "Times that one left memory for room.", reading.evictions)
        yield GaugeMetricFamily("toolsearch_jobs_running", "Jobs that run or wait.", reading.running_jobs)
        yield _counts("jobs_ended", "Jobs that have ended, by how.", "state", reading.ended_jobs)
        yield _counts("activity", "Searches, calls and tokens, over every face.", "what", reading.activity)


def _of_store(load: StoreLoad) -> Iterable[Metric]:
    yield GaugeMetricFamily("toolsearch_store_up", "1 if the store could be used the last time.", int(load.is_there))
    yield CounterMetricFamily("toolsearch_store_outages", "Times that the store went away.", load.times_away)
    yield GaugeMetricFamily("toolsearch_store_connections", "Connections to the store.", load.connections)
    yield GaugeMetricFamily("toolsearch_store_connections_busy", "Of these, those in use.", load.busy)
    yield GaugeMetricFamily("toolsearch_store_waiting", "Threads that wait for a connection.", load.waiting)


def _counts(name: str, about: str, label: str, counts: Mapping[str, int]) -> CounterMetricFamily:
    family = CounterMetricFamily(f"toolsearch_{name}", about, labels=[label])
    for value, count in sorted(counts.items()):
        family.add_metric([value], count)
    return family
