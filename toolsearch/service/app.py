"""The application, put together: who asks, the routes, the MCP face and the pages, on one port."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request, Response

from toolsearch.service.callers import ServiceCaller
from toolsearch.service.pages.router import add_pages
from toolsearch.service.problems import add_problem_handlers
from toolsearch.service.routes import catalogs, search, sessions
from toolsearch.service.service import Service

_ROUTERS = (catalogs.router, search.router, sessions.router)


def make_app(service: Service) -> FastAPI:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        async with service.running():
            yield

    app = FastAPI(title="toolsearch", lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url="/v1/openapi.json")
    app.state.service = service
    add_problem_handlers(app)
    app.middleware("http")(_identified(service))
    for router in _ROUTERS:
        app.include_router(router, prefix="/v1")
    add_pages(app)
    return app


def _identified(
    service: Service,
) -> Callable[[Request, Callable[[Request], Awaitable[Response]]], Awaitable[Response]]:
    async def identified(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        request.state.request_id = f"req_{secrets.token_hex(8)}"
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        grant = await service.keys.of_token(token.strip()) if scheme.lower() == "bearer" and token else None
        request.state.caller = ServiceCaller.of(grant, request.state.request_id) if grant else None
        response = await call_next(request)
        response.headers["x-request-id"] = request.state.request_id
        return response

    return identified
