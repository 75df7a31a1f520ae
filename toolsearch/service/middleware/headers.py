"""Headers that tell browsers to be strict with our answers."""

from __future__ import annotations

from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolsearch.service.paths import is_for_programs

_ALWAYS: Final = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # without any, browsers would not say which page a form is from
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
_FOR_PROGRAMS: Final = "default-src 'none'; frame-ancestors 'none'"
_FOR_PAGES: Final = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"
_HSTS: Final = "max-age=31536000"


class SecureHeaders:
    """*is_https*: clients reach the service over https alone, and browsers are told to keep to that."""

    def __init__(self, app: ASGIApp, *, is_https: bool) -> None:
        self._app = app
        self._always = {**_ALWAYS, "strict-transport-security": _HSTS} if is_https else dict(_ALWAYS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        policy = _FOR_PROGRAMS if is_for_programs(scope["path"]) else _FOR_PAGES

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._always.items():
                    headers[name] = value
                headers["content-security-policy"] = policy
                headers.setdefault("cache-control", "no-store")
            await send(message)

        await self._app(scope, receive, with_headers)
