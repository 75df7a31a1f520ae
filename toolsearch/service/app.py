"""The application, put together: what every request passes, the routes, the MCP face and the pages, on one port."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import cache

from fastapi import APIRouter, FastAPI, Response
from starlette.middleware import Middleware
from starlette.routing import BaseRoute, Route

from toolsearch.gateway.http_guard import HostGuard
from toolsearch.service.hosts import named_hosts
from toolsearch.service.middleware.auditing import Audited
from toolsearch.service.middleware.authentication import Authentication
from toolsearch.service.middleware.bodies import Bodies
from toolsearch.service.middleware.deadline import Deadline
from toolsearch.service.middleware.failures import Failures
from toolsearch.service.middleware.headers import SecureHeaders
from toolsearch.service.middleware.observing import Observed
from toolsearch.service.middleware.repeats import Repeats
from toolsearch.service.middleware.request_ids import RequestIds
from toolsearch.service.middleware.url_tokens import UrlTokens
from toolsearch.service.openapi import TITLE, operation_id, use_document
from toolsearch.service.pages.router import add_pages
from toolsearch.service.paths import API, OPEN, mcp_path
from toolsearch.service.problems import add_problem_handlers, problem
from toolsearch.service.routes import (
    approvals,
    audit,
    calls,
    catalogs,
    feedback,
    jobs,
    keys,
    misses,
    operations,
    receipts,
    search,
    sessions,
    sources,
    tenants,
    toolsets,
    usage,
)
from toolsearch.service.service import Service
from toolsearch.service.shutdown import EndlessStreams
from toolsearch.wiring import build_telemetry

_ROUTERS = (  # routes are tried in their order, so what agents ask for most comes first
    *(search.router, sessions.router, calls.router),
    *(catalogs.router, toolsets.router, sources.router, jobs.router, approvals.router),
    *(feedback.router, usage.router, misses.router, receipts.router),
    *(keys.router, tenants.router, audit.router),
)


def make_app(service: Service, *, host: str = "127.0.0.1", port: int | None = None) -> FastAPI:
    """*host* and *port* are what it is bound to, and so the names that requests may be addressed to.

    Raises BadSettingError if it is bound to every address of the machine, and no setting names those it is reached by.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        async with service.running():
            yield

    app = FastAPI(
        title=TITLE,
        lifespan=lifespan,
        middleware=_middleware(service, host, port),
        docs_url=None,
        redoc_url=None,
        openapi_url=f"{API}/openapi.json",
    )
    use_document(app)
    app.state.service = service
    add_problem_handlers(app)
    app.router.routes.append(Route(mcp_path("{session}"), service.mcp))  # before those that it would be compared with
    app.router.routes.extend(_routes())
    return app


@cache
def _routes() -> list[BaseRoute]:
    """The routes that all applications share: FastAPI keeps there what it makes of each on the first request."""
    shared = APIRouter(generate_unique_id_function=operation_id)
    for router in _ROUTERS:
        shared.include_router(router, prefix="/v1")
    shared.include_router(operations.router)
    add_pages(shared)
    return shared.routes


def _middleware(service: Service, host: str, port: int | None) -> list[Middleware]:
    """Outermost first; `toolsearch.service.middleware` says what each is for."""
    serve = service.settings.serve
    return [
        Middleware(UrlTokens),
        Middleware(RequestIds),
        Middleware(Observed, metrics=service.metrics, telemetry=build_telemetry(service.settings)),
        Middleware(SecureHeaders, is_https=(serve.public_url or "").startswith("https://")),
        Middleware(Failures),
        Middleware(HostGuard, hosts=named_hosts(serve, host, port), origins=(), open_paths=OPEN, refuse=_refusal),
        Middleware(Authentication, of_token=service.of_token, limits=service.limits),
        Middleware(EndlessStreams, shutdown=service.shutdown),
        Middleware(Deadline, seconds=serve.request_timeout_s),
        Middleware(Bodies, max_bytes=serve.max_body_bytes, max_depth=serve.max_depth, visit_of=service.visits.find),
        Middleware(Audited, audit=service.audit),
        Middleware(Repeats, idempotency=service.idempotency),
    ]


def _refusal(detail: str, status: int) -> Response:
    code = "unknown_host" if status == 421 else "foreign_page"
    return problem(status=status, code=code, detail=f"{detail}; an operator can allow hosts in serve.allowedHosts")
