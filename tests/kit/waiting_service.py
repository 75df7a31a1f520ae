"""``toolsearch serve`` with two routes more: one that waits until a file is there, one whose stream has no end."""

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import Any

from anyio import Path
from fastapi import FastAPI
from fastapi.responses import StreamingResponse

from toolsearch.cli import main
from toolsearch.service import app as made
from toolsearch.service.service import Service

make_app = made.make_app


def with_waiting(service: Service, **binding: Any) -> FastAPI:
    app = make_app(service, **binding)

    @app.get("/wait")
    async def wait(begun: str, released: str) -> str:
        await Path(begun).touch()
        while not await Path(released).exists():  # noqa: ASYNC110  it is another process that makes it
            await asyncio.sleep(0.01)
        return "done"

    @app.get("/stream")
    async def stream() -> StreamingResponse:
        return StreamingResponse(_forever(), media_type="text/event-stream")

    return app


async def _forever() -> AsyncIterator[str]:
    yield "data: begun\n\n"
    await asyncio.Event().wait()


made.make_app = with_waiting
if __name__ == "__main__":
    sys.exit(main(["serve", *sys.argv[1:]]))
