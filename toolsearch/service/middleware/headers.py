"""Headers that tell browsers to be strict with our answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

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
_CACHE_CONTROL: Final = b"cache-control"
_HSTS: Final = "max-age=31536000"


class SecureHeaders:
    """*is_https*: clients reach the service over https alone, and browsers are told to keep to that."""

    def __init__(self, app: ASGIApp, *, is_https: bool) -> None:
        self._app = app
        always = {**_ALWAYS, "strict-transport-security": _HSTS} if is_https else _ALWAYS
        self._for_programs = _encoded({**always, "content-security-policy": _FOR_PROGRAMS})
        self._for_pages = _encoded({**always, "content-security-policy": _FOR_PAGES})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        strict = self._for_programs if is_for_programs(scope["path"]) else self._for_pages

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = [each for each in message["headers"] if each[0] not in strict]
                if not any(name == _CACHE_CONTROL for name, _ in own):
                    own.append((_CACHE_CONTROL, b"no-store"))
                message["headers"] = [*own, *strict.items()]
            await send(message)

        await self._app(scope, receive, with_headers)


def _encoded(headers: Mapping[str, str]) -> dict[bytes, bytes]:
    return {name.encode(): value.encode() for name, value in headers.items()}
