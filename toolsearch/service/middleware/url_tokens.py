"""Takes the token of a session out of the address of a request, before anything sees or logs the address.

Each MCP client keeps the path of the address that it is given, for each of its requests; headers and query strings are
lost by some. In here the token is where all credentials are: in the header ``Authorization``.
"""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from toolsearch.service.paths import mcp_path, session_token_in


class UrlTokens:
    """The token in an address goes before any credential of a header."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (found := session_token_in(scope["path"])) is not None:
            session, token = found
            others = [each for each in scope["headers"] if each[0] != b"authorization"]
            # The same scope, not a copy: the server writes its access log by it.
            scope["path"] = mcp_path(session)
            scope["raw_path"] = scope["path"].encode()
            scope["headers"] = [*others, (b"authorization", b"Bearer " + token.encode("latin-1", "replace"))]
        await self._app(scope, receive, send)
