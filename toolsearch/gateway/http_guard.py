"""Names each HTTP request, and checks it before anything else sees it: which host it is addressed to, and which page
has sent it.

A web page in somebody's browser can send requests to a gateway on that machine and, with a name server of its own (DNS
rebinding), even read the answers. Such requests carry the page's name as ``Host`` or ``Origin``, which gives them away.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolsearch.access.addresses import is_loopback
from toolsearch.errors import BadSettingError
from toolsearch.gateway.caller import grant_in
from toolsearch.gateway.settings import HttpSettings
from toolsearch.request_ids import answering, is_sound, new_request_id

_EVERY_ADDRESS = ("0.0.0.0", "::", "")  # noqa: S104
_LOOPBACK_NAMES = ("127.0.0.1", "localhost", "::1")
_RETRY_AFTER_S = 60  # nobody can predict when clients end their sessions, so clients need not retry each second
_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class HostPort:
    """A host in lower case and a port; None stands for any."""

    host: str
    port: int | None = None

    @classmethod
    @lru_cache(maxsize=64)  # each request names its host, and nearly all the same
    def parse(cls, text: str) -> HostPort:
        """Read ``HOST``, ``HOST:PORT``, ``HOST:*`` or these with ``[::1]``. Raises ValueError."""
        parts = urlsplit(f"//{text.removesuffix(':*')}")
        if not parts.hostname or parts.path or parts.query or parts.fragment or parts.username is not None:
            raise ValueError(f"{text!r} is not of the form HOST or HOST:PORT")
        return cls(parts.hostname, parts.port)


REQUEST_ID: Final = "x-request-id"


class RequestIds:
    """Takes the id that the client gives in ``x-request-id`` if it is short and of letters and digits, or makes one."""

    def __init__(self, app: ASGIApp, *, make_id: Callable[[], str] = new_request_id) -> None:
        self._app = app
        self._make_id = make_id

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get(REQUEST_ID, "")
        request_id = given if is_sound(given) else self._make_id()
        scope.setdefault("state", {})["request_id"] = request_id

        async def with_header(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[REQUEST_ID] = request_id
            await send(message)

        with answering(request_id):
            await self._app(scope, receive, with_header)


class HostGuard:
    """Lets a request through if it is addressed to one of *hosts* and comes from no page, or from a page of *origins*
    or *hosts*.

    Requests for *open_paths*, which reveal nothing, always pass, so that a monitor can use any address. *refuse* makes
    the answer to a refused request from a text and a status.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        hosts: Iterable[HostPort],
        origins: Iterable[str],
        open_paths: Iterable[str] = (),
        refuse: Callable[[str, int], Response] = PlainTextResponse,
    ) -> None:
        self._app = app
        self._hosts = frozenset(hosts)
        self._origins = frozenset(origin.lower().removesuffix("/") for origin in origins)
        self._open_paths = frozenset(open_paths)
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in self._open_paths:
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if not self._is_ours(headers.getlist("host"), "http"):
            await self._refuse("This host is not served here", 421)(scope, receive, send)
        elif not all(map(self._may_ask, headers.getlist("origin"))):
            await self._refuse("This origin may not ask", 403)(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _is_ours(self, named: list[str], scheme: str) -> bool:
        if len(named) != 1:
            return False
        try:
            address = HostPort.parse(named[0])
        except ValueError:
            return False
        exact = HostPort(address.host, address.port or _DEFAULT_PORTS[scheme])
        return exact in self._hosts or HostPort(address.host) in self._hosts

    def _may_ask(self, origin: str) -> bool:
        """Whether *origin* is allowed by name, or the page came from here."""
        if origin.lower() in self._origins:
            return True
        scheme, colon, host = origin.partition("://")
        return bool(colon) and scheme in _DEFAULT_PORTS and self._is_ours([host], scheme)


def is_own_page(request: HTTPConnection, own_hosts: Collection[str] = ()) -> bool:
    """Whether the browser says that *request* comes from a page of the host that it is sent to, or of *own_hosts*."""
    page = urlsplit(request.headers.get("origin", "")).netloc.lower()
    site = request.headers.get("sec-fetch-site", "same-origin")
    return site == "same-origin" and page != "" and page in {request.headers.get("host", "").lower(), *own_hosts}


_FORWARDED: Final = frozenset({"forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip"})  # by a proxy
NEVER_KEPT: Final = {"cache-control": "no-store", "x-content-type-options": "nosniff"}


def page_headers(policy: str) -> dict[str, str]:
    """The headers of a page that no other page may frame or be told of. *policy* is its Content-Security-Policy."""
    return {
        "content-security-policy": policy,
        "referrer-policy": "same-origin",  # with no-referrer, forms of the page would have the origin "null"
        "x-frame-options": "DENY",
        **NEVER_KEPT,
    }


def is_of_this_machine(request: HTTPConnection) -> bool:
    """Whether *request* comes from this machine itself, and not through a proxy on it."""
    is_forwarded = not _FORWARDED.isdisjoint(request.headers)
    return request.client is not None and is_loopback(request.client.host) and not is_forwarded


def guarded_route(page: Route, scopes: Iterable[str], *, is_for_operators: bool) -> Route:
    """*page* for credentials that are good for *scopes*, and for operators only if *is_for_operators*. Where no
    credential is asked for, whoever is on this machine counts as an operator.
    """
    methods = sorted(page.methods or {"GET"})
    return Route(page.path, endpoint=_Guarded(page.app, scopes, is_for_operators=is_for_operators), methods=methods)


class _Guarded:
    """Asks a browser for a password, which is the token, and refuses everybody else."""

    def __init__(self, app: ASGIApp, scopes: Iterable[str], *, is_for_operators: bool) -> None:
        self._app = app
        self._scopes = frozenset(scopes)
        self._is_for_operators = is_for_operators

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        grant = grant_in(scope)
        if grant is None:
            challenge = {"www-authenticate": 'Basic realm="toolsearch: any name, and your token"'}
            await PlainTextResponse("Say who you are", 401, headers=challenge)(scope, receive, send)
        elif self._is_for_operators and not (
            grant.is_operator if "auth" in scope else is_of_this_machine(HTTPConnection(scope))
        ):
            await PlainTextResponse("This page is for operators only", 403)(scope, receive, send)
        elif not self._scopes.issubset(grant.scopes):
            await PlainTextResponse("This token lacks a scope", 403)(scope, receive, send)
        else:
            await self._app(scope, receive, send)


class RetryAfter:
    """Adds a time to retry to refusals for lack of room. *idle_s* is how long a session may be idle."""

    def __init__(self, app: ASGIApp, *, idle_s: float) -> None:
        self._app = app
        self._seconds = str(min(_RETRY_AFTER_S, max(1, int(idle_s))))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_header(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] == 503:
                MutableHeaders(scope=message).setdefault("retry-after", self._seconds)
            await send(message)

        await self._app(scope, receive, with_header)


def served_hosts(
    allowed: Iterable[str], host: str, port: int | None, *, setting: str = "toolsearch.http.allowedHosts"
) -> list[HostPort]:
    """The hosts that requests may be addressed to, for a server that is bound to *host* and *port*; None allows any.

    Raises BadSettingError if it is bound to every address of the machine and *setting*, which is *allowed*, names none
    of them.
    """
    try:
        named = [HostPort.parse(each) for each in allowed]
    except ValueError as error:
        raise BadSettingError(f"the setting {setting} cannot be used: {error}") from error
    if host in _EVERY_ADDRESS:
        if not named:
            raise BadSettingError(
                f"bound to every address, the server needs the names by which clients reach it: set {setting}, such as "
                '["tools.example.com"], or bind it to one address'
            )
        return named
    own = _LOOPBACK_NAMES if is_loopback(host) else (host.lower(),)
    return [*named, *(HostPort(name, port) for name in own)]


def require_safe_binding(settings: HttpSettings, host: str, *, asks_for_tokens: bool) -> None:
    """Raise BadSettingError if other machines could reach the gateway and no token would be required."""
    if is_loopback(host) or asks_for_tokens or settings.allow_anonymous:
        return
    raise BadSettingError(
        f"bound to {host or 'every address'}, the gateway would serve anybody who can reach it: set "
        "toolsearch.principals or toolsearch.jwt, bind it to 127.0.0.1, or set toolsearch.http.allowAnonymous to true"
    )


class BearerOnly:
    """Lets requests with a valid token for *scopes* through. Others are told what is missing, and where *metadata*
    names who issues tokens (RFC 6750 and 9728).
    """

    def __init__(self, app: ASGIApp, scopes: Sequence[str], metadata: str) -> None:
        self._app = app
        self._scopes = scopes
        self._metadata = metadata

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        grant = grant_in(scope)
        if grant is None:
            has_token = "authorization" in Headers(scope=scope)
            refusal = self._refusal(401, "invalid_token" if has_token else "", "send a valid token")
            await refusal(scope, receive, send)
        elif not grant.scopes.issuperset(self._scopes):
            await self._refusal(403, "insufficient_scope", "the token lacks a scope")(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _refusal(self, status: int, error: str, description: str) -> JSONResponse:
        told = {"error": error, "error_description": description} if error else {}
        where = {"scope": " ".join(self._scopes), "resource_metadata": self._metadata}
        parts = {"realm": "toolsearch", **told, **{name: value for name, value in where.items() if value}}
        challenge = ", ".join(f'{name}="{value}"' for name, value in parts.items())
        return JSONResponse({"error": description}, status, headers={"www-authenticate": f"Bearer {challenge}"})
