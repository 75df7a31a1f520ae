"""A balancer without any memory: each request goes to the next of several servers, whoever makes it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import cycle

import httpx2
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from tests.kit.gateway import listening

_OF_ONE_HOP = frozenset({"host", "connection", "transfer-encoding", "keep-alive"})
_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]


@asynccontextmanager
async def round_robin(servers: Sequence[str]) -> AsyncIterator[str]:
    """Give the URL of the balancer."""
    following = cycle(servers)
    async with httpx2.AsyncClient(timeout=None) as client:

        async def forward(request: Request) -> StreamingResponse:
            target = f"{next(following)}{request.url.path}"
            headers = {name: value for name, value in request.headers.items() if name not in _OF_ONE_HOP}
            asked = client.build_request(
                request.method, target, params=request.url.query, headers=headers, content=await request.body()
            )
            answer = await client.send(asked, stream=True)
            kept = {name: value for name, value in answer.headers.items() if name not in _OF_ONE_HOP}
            return StreamingResponse(
                answer.aiter_raw(), answer.status_code, kept, background=BackgroundTask(answer.aclose)
            )

        app = Starlette(routes=[Route("/{path:path}", forward, methods=_METHODS)])
        async with listening(app, lifespan="off") as url:
            yield url
