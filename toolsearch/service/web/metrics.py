"""``/healthz``, ``/readyz`` and ``/metrics``, for operators; and the middleware that counts requests."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, NamedTuple

from fastapi import APIRouter, Depends, Request, Response
from prometheus_client.core import Metric
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolsearch.api.base import Health
from toolsearch.errors import Kept, SealError, StorageError
from toolsearch.gateway.http_guard import is_of_this_machine
from toolsearch.gateway.reports.exposition import CONTENT_TYPE, Exposition, Figures, present, total, totals
from toolsearch.proxy.app import ProxiedRequest
from toolsearch.service.web.callers import ServiceCaller, metrics_reader
from toolsearch.service.web.parts import ServiceParts, the_service
from toolsearch.service.web.paths import API, METRICS, OPEN, is_under
from toolsearch.storage.records import THE_SERVICE, RecordStore
from toolsearch.storage.sql import StoreLoad
from toolsearch.telemetry import Telemetry
from toolsearch.tools.json_types import Json

_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class ServiceFigures(NamedTuple):
    """The figures from one look at the service. Each mapping is by the value of the label.

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
    """Made once for a service. *read* gives figures that are only read on request."""

    def __init__(self, read: Callable[[], ServiceFigures]) -> None:
        shown = Exposition(lambda: _on_demand(read()))
        self.text = shown.text
        self._requests = shown.counter("requests", "Requests that were answered.", "method", "route", "status")
        about = "How long answers took; streams of events are left out."
        self._seconds = shown.histogram("request_seconds", about, "route", buckets=_SECONDS)
        self.running = shown.gauge("requests_running", "Requests that are being answered.")
        self._problems = shown.counter("problems", "Requests that were refused or failed, by the stable code.", "code")
        about = "Requests to models through the proxy, and what became of their tools. Tokens are estimates."
        self._proxied = shown.counter("proxied", about, "api", "what")
        self._store_errors = shown.counter("store_errors", "Requests that failed for the store's sake.", "code")

    def answered(self, *, method: str, route: str, status: int, seconds: float | None) -> None:
        """*seconds* is None for a stream."""
        self._requests.labels(method, route, str(status)).inc()
        if seconds is not None:
            self._seconds.labels(route).observe(seconds)

    def refused(self, code: str, *, is_store_error: bool) -> None:
        self._problems.labels(code).inc()
        if is_store_error:
            self._store_errors.labels(code).inc()

    def proxied(self, done: ProxiedRequest) -> None:
        counts = {
            "requests": 1,
            "unchanged": not done.costs.requests,
            "held_back_tools": done.held_back,
            "revealed_tools": done.revealed,
            "saved_tokens": max(0, done.costs.saved_tokens),  # a counter only grows
        }
        for what, count in counts.items():
            self._proxied.labels(done.api, what).inc(count)


def _on_demand(reading: ServiceFigures) -> Figures:
    yield from _of_store(reading.store)
    if reading.sessions is not None:
        yield present("sessions", "Sessions that have not expired.", reading.sessions)
    yield present("corpora", "Catalogs and toolsets in memory.", reading.corpora)
    yield present("corpora_bytes", "About how much memory they take.", reading.corpora_bytes)
    yield total("evictions", "Times that one left memory for room.", reading.evictions)
    yield present("jobs_running", "Jobs that run or wait.", reading.running_jobs)
    yield _counts("jobs_ended", "Jobs that have ended, by how.", "state", reading.ended_jobs)
    yield _counts("activity", "Searches, calls and tokens, over every face.", "what", reading.activity)


def _of_store(load: StoreLoad) -> Figures:
    yield present("store_up", "1 if the store could be used the last time.", int(load.is_there))
    yield total("store_outages", "Times that the store went away.", load.times_away)
    yield present("store_connections", "Connections to the store.", load.connections)
    yield present("store_connections_busy", "Of these, those in use.", load.busy)
    yield present("store_waiting", "Threads that wait for a connection.", load.waiting)


def _counts(name: str, about: str, label: str, counts: Mapping[str, int]) -> Metric:
    return totals(name, about, (label,), {(value,): count for value, count in counts.items()})


READINESS: Final = "readiness"  # the kind of the records that are written to test the store, one for each replica
_KEPT_S: Final = 60.0
_LOOK_EVERY_S: Final = 1.0  # seconds; asking needs no key, and each look waits for the disk
logger = logging.getLogger(__name__)


class Readiness:
    """Use it within one event loop. *clock* gives seconds since 1970, *steady* seconds that only grow."""

    def __init__(
        self, records: RecordStore, replica: str, clock: Callable[[], float], steady: Callable[[], float]
    ) -> None:
        self._records = records
        self._replica = replica
        self._clock = clock
        self._steady = steady
        self._looking = asyncio.Lock()
        self._looked_s: float | None = None
        self._status = ""

    async def status(self) -> str:
        """``ok``, or the fault. It writes to the store, unless it did so within the last second."""
        async with self._looking:
            if self._looked_s is None or self._steady() - self._looked_s >= _LOOK_EVERY_S:
                self._status = await asyncio.to_thread(self._look)
                self._looked_s = self._steady()
            return self._status

    def _look(self) -> str:
        now_s, document = self._clock(), dict[str, Json]()
        try:
            self._records.put(
                *(THE_SERVICE, READINESS, self._replica, document), over=None, at_s=now_s, expires_s=now_s + _KEPT_S
            )
        except StorageError as error:
            if error.retry_after_s is not None:
                return "store unavailable"
            logger.error("the store cannot be used: %s", error)  # noqa: TRY400
            return "store unusable"
        return "ok"


router = APIRouter(tags=["operations"])
_Service = Annotated[ServiceParts, Depends(the_service)]


@router.get("/healthz", summary="Whether the process lives")
async def alive() -> Health:
    return Health(status="ok")


@router.get(
    "/readyz",
    summary="Whether requests can be served",
    responses={503: {"model": Health, "description": "The service is ending, or its store cannot be used."}},
)
async def ready(service: _Service, response: Response) -> Health:
    status = "stopping" if service.shutdown.has_begun else await service[Readiness].status()
    if status != "ok":
        response.status_code = 503
    return Health(status=status)


@router.get(
    METRICS,
    summary="Figures for Prometheus",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Metrics as text."}},
)
async def metrics(request: Request, service: _Service) -> Response:
    """For operators. With the setting `serve.local_metrics` also for programs on this machine, without a key."""
    if not (service.settings.serve.local_metrics and is_of_this_machine(request)):
        await metrics_reader(request)
    return Response(await asyncio.to_thread(service[Metrics].text), media_type=CONTENT_TYPE)


request_logger = logging.getLogger("toolsearch.service.requests")
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_OTHER: Final = "other"  # stands for unknown routes and for other methods
_PREFIXES: Final = (API, "/pages")
_CLIENT_LEFT: Final = 499  # nginx's number for a client that has left early
_POLLED: Final = OPEN | {METRICS}


_STORE_CODES: Final = {StorageError.code, SealError.code, *(kept.case.code for kept in Kept if kept.case)}


class Observed:
    """*clock* gives seconds; only differences count."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        metrics: Metrics,
        telemetry: Telemetry,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._app = app
        self._metrics = metrics
        self._telemetry = telemetry
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began_s, status, is_stream = self._clock(), _CLIENT_LEFT, False
        method = scope["method"] if scope["method"] in _METHODS else _OTHER
        scope.setdefault("state", {})

        async def watched(message: Message) -> None:
            nonlocal status, is_stream
            if message["type"] == "http.response.start":
                status = message["status"]
                is_stream = Headers(raw=message["headers"]).get("content-type", "").startswith("text/event-stream")
            await send(message)

        self._metrics.running.inc()
        with self._telemetry.request(method=method, headers=Headers(scope=scope)) as span:
            try:
                await self._app(scope, receive, watched)
            finally:
                self._metrics.running.dec()
                told = _told(scope, method, status, self._clock() - began_s)
                span.answered(
                    route=told["route"], status=status, attributes={"toolsearch.request_id": told["request_id"]}
                )
                self._metrics.answered(
                    method=method, route=told["route"], status=status, seconds=None if is_stream else told["ms"] / 1_000
                )
                if told["code"]:
                    self._metrics.refused(told["code"], is_store_error=told["code"] in _STORE_CODES)
                _log(told)


def _told(scope: Scope, method: str, status: int, seconds: float) -> dict[str, Any]:
    """The log's fields of a request; the metrics and the span have fewer."""
    state: dict[str, Any] = scope["state"]
    caller: ServiceCaller | None = state.get("caller")
    return {
        "request_id": state.get("request_id", ""),
        "method": method,
        "route": _template(scope),
        "status": status,
        "ms": round(seconds * 1_000, 3),
        "tenant": caller.tenant if caller else "",
        "key": caller.key_id if caller else "",
        "code": state.get("problem", ""),
    }


def _template(scope: Scope) -> str:
    """The route's template, such as ``/v1/catalogs/{catalog}``, since the number of addresses is unbounded."""
    path = getattr(scope.get("route"), "path", None)
    if path is None:
        return _OTHER
    prefix = next((each for each in _PREFIXES if is_under(each, scope["path"])), "")
    return path if path.startswith(prefix) else f"{prefix}{path}"  # FastAPI leaves out the prefix of an included router


def _log(told: dict[str, Any]) -> None:
    level = logging.DEBUG if told["route"] in _POLLED else logging.INFO
    if not request_logger.isEnabledFor(level):
        return
    words = " ".join(str(value) for value in told.values() if value != "")
    request_logger.log(level, "%s", words, extra={"fields": told})
