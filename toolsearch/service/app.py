"""Puts the application together: middleware, routes, the MCP face and the pages, on one port."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import cache
from typing import Annotated

from fastapi import APIRouter, Depends, FastAPI, Response
from starlette.middleware import Middleware
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Scope

from toolsearch.errors import UnknownRecordError
from toolsearch.gateway.http_guard import HostGuard, RequestIds
from toolsearch.service.activity.misses import page_router as misses_page
from toolsearch.service.activity.misses import router as misses_routes
from toolsearch.service.activity.receipts import page_router as receipts_page
from toolsearch.service.activity.receipts import router as receipts_routes
from toolsearch.service.approvals import page_router as approvals_page
from toolsearch.service.approvals import router as approvals_routes
from toolsearch.service.audit import Audited
from toolsearch.service.audit import page_router as audit_page
from toolsearch.service.audit import router as audit_routes
from toolsearch.service.calls.page import router as tools_page
from toolsearch.service.calls.routes import router as calls_routes
from toolsearch.service.catalogs.imports.page import router as imports_page
from toolsearch.service.catalogs.imports.routes import jobs_router as jobs_routes
from toolsearch.service.catalogs.imports.routes import router as sources_routes
from toolsearch.service.catalogs.page import router as catalogs_page
from toolsearch.service.catalogs.routes import router as catalogs_routes
from toolsearch.service.keys.page import router as keys_page
from toolsearch.service.keys.routes import router as keys_routes
from toolsearch.service.keys.sign_in import router as sign_in_page
from toolsearch.service.logins.page import router as logins_page
from toolsearch.service.pages import frame
from toolsearch.service.pages.frame import PageRoute, see_other, visit_with
from toolsearch.service.playground import router as playground_page
from toolsearch.service.providers import router as providers_routes
from toolsearch.service.search import feedback_router as feedback_routes
from toolsearch.service.search import router as search_routes
from toolsearch.service.search import session_router as session_search_routes
from toolsearch.service.service import Service
from toolsearch.service.sessions.page import router as sessions_page
from toolsearch.service.sessions.routes import router as sessions_routes
from toolsearch.service.tenants import page_router as tenants_page
from toolsearch.service.tenants import router as tenants_routes
from toolsearch.service.toolsets.page import list_router as toolsets_page
from toolsearch.service.toolsets.page import router as toolset_editing_page
from toolsearch.service.toolsets.routes import router as toolsets_routes
from toolsearch.service.usage import page_router as usage_page
from toolsearch.service.usage import router as usage_routes
from toolsearch.service.web.bodies import Bodies
from toolsearch.service.web.callers import Visit
from toolsearch.service.web.idempotency import IdempotentRequests
from toolsearch.service.web.metrics import Observed
from toolsearch.service.web.metrics import router as operations_routes
from toolsearch.service.web.middleware import (
    Authentication,
    Deadline,
    EndlessStreams,
    Failures,
    SecureHeaders,
    UrlTokens,
)
from toolsearch.service.web.openapi import TITLE, operation_id, use_document
from toolsearch.service.web.paths import API, MODELS, OPEN, PROXIED, mcp_path, named_hosts
from toolsearch.service.web.problems import add_problem_handlers, problem
from toolsearch.wiring import build_telemetry

ROUTERS = (
    sign_in_page,
    playground_page,
    tools_page,
    catalogs_page,
    toolsets_page,
    toolset_editing_page,
    imports_page,
    approvals_page,
    logins_page,
    sessions_page,
    usage_page,
    misses_page,
    receipts_page,
    audit_page,
    keys_page,
    tenants_page,
)


def add_pages(above: APIRouter) -> None:
    above.add_api_route("/", _to_the_pages, include_in_schema=False)
    above.mount(frame.STATIC_PATH, frame.KeptFiles())
    others = APIRouter(route_class=PageRoute, include_in_schema=False)
    others.add_api_route("/{path:path}", _unknown)
    for router in (*ROUTERS, others):
        above.include_router(router, prefix=frame.ROOT)


async def _to_the_pages() -> Response:
    return see_other(frame.ROOT)


async def _unknown(path: str, _: Annotated[Visit, Depends(visit_with())]) -> Response:
    raise UnknownRecordError("page", path)


_ROUTERS = (  # routes are tried in this order, so the most frequent ones come first
    *(search_routes, sessions_routes, session_search_routes, calls_routes),
    *(catalogs_routes, toolsets_routes, sources_routes, jobs_routes, approvals_routes),
    *(feedback_routes, usage_routes, misses_routes, receipts_routes),
    *(keys_routes, tenants_routes, providers_routes, audit_routes),
)


class _ToldRoute(Route):
    """A route that is no operation of the API. Like one, it is named in the log and the metrics."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, more = super().matches(scope)
        return match, {**more, "route": self} if match is not Match.NONE else more


def make_app(service: Service, *, host: str = "127.0.0.1", port: int | None = None) -> FastAPI:
    """*host* and *port* are the bound address, and so the names that requests may be addressed to.

    Raises BadSettingError if it is bound to every address of the machine, and no setting has its public names.
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
    # Placed first, so that requests of MCP and to models are compared with few routes.
    app.router.routes.append(_ToldRoute(mcp_path("{session}"), service.mcp))
    app.router.routes.extend(_ToldRoute(path, service.proxy, methods=["POST"]) for path in PROXIED)
    app.router.routes.extend(
        _ToldRoute(path, service.proxy, methods=["GET"]) for path in (MODELS, f"{MODELS}/{{model}}")
    )
    app.router.routes.extend(_routes())
    return app


@cache
def _routes() -> list[BaseRoute]:
    """The routes, shared by all applications, since FastAPI caches data in them on the first request."""
    shared = APIRouter(generate_unique_id_function=operation_id)
    for router in _ROUTERS:
        shared.include_router(router, prefix="/v1")
    shared.include_router(operations_routes)
    add_pages(shared)
    return shared.routes


def _middleware(service: Service, host: str, port: int | None) -> list[Middleware]:
    """The middleware, outermost first; see `toolsearch.service.web`."""
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
        Middleware(Bodies, max_bytes=serve.max_body_bytes, visit_of=service.visits.find),
        Middleware(Audited, audit=service.audit),
        Middleware(IdempotentRequests, idempotency=service.idempotency),
    ]


def _refusal(detail: str, status: int) -> Response:
    code = "unknown_host" if status == 421 else "foreign_page"
    return problem(status=status, code=code, detail=f"{detail}; an operator can allow hosts in serve.allowedHosts")
