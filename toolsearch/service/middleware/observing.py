"""Counts, times, logs and traces each request, by the template of its route.

What stands in an address, a query or a body is kept out of all of these.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolsearch.errors import StorageError, ToolSearchError
from toolsearch.service.callers import ServiceCaller
from toolsearch.service.metrics import Metrics
from toolsearch.service.paths import API, METRICS, OPEN, is_under
from toolsearch.telemetry import Telemetry

logger = logging.getLogger("toolsearch.service.requests")

_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_OTHER: Final = "other"  # what no route is for, and any method that is not among those
_PREFIXES: Final = (API, "/pages")
_CLIENT_LEFT: Final = 499  # nginx's number for a client that has not waited
_POLLED: Final = OPEN | {METRICS}


def _codes(kind: type[ToolSearchError]) -> Iterator[str]:
    """The codes of *kind* and below, of those that are the service's own fault."""
    if kind.status >= 500:
        yield kind.code
    for below in kind.__subclasses__():
        yield from _codes(below)


_STORE_CODES: Final = frozenset(_codes(StorageError))


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
    """What the log says of a request; the metrics and the span say less."""
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
    """Such as ``/v1/catalogs/{catalog}``; addresses themselves are as many as callers like."""
    path = getattr(scope.get("route"), "path", None)
    if path is None:
        return _OTHER
    prefix = next((each for each in _PREFIXES if is_under(each, scope["path"])), "")
    return path if path.startswith(prefix) else f"{prefix}{path}"  # FastAPI leaves out what a router is included below


def _log(told: dict[str, Any]) -> None:
    level = logging.DEBUG if told["route"] in _POLLED else logging.INFO
    if not logger.isEnabledFor(level):
        return
    words = " ".join(str(value) for value in told.values() if value != "")
    logger.log(level, "%s", words, extra={"fields": told})
