"""Makes a problem document of whatever is raised on the way to a route, and of what no route foresaw."""

from __future__ import annotations

import logging

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolsearch.service.problems import answer_to

logger = logging.getLogger(__name__)


class Failures:
    """Once an answer has begun, nothing can be said any more: the error goes on, and the connection is closed."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        has_begun = False

        async def watched(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Exception as error:
            if has_begun:
                raise
            await answer_to(error, scope["path"])(scope, receive, send)
