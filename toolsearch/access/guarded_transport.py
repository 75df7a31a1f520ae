"""HTTP to addresses that strangers have named: each connection, and that of each redirect, goes where it may."""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from functools import cache
from typing import cast

import httpcore2
import httpx2

from toolsearch.access.url_guard import UrlGuard
from toolsearch.errors import UnsafeUrlError


class GuardedTransport(httpx2.AsyncHTTPTransport):
    """A transport of httpx2 that resolves a host, checks its addresses and connects to one of those.

    TLS and the ``Host`` header keep the name. What may not be reached is an httpx2.ConnectError. Give the client
    ``trust_env=False``, so that no proxy of the environment comes between.
    """

    def __init__(self, guard: UrlGuard) -> None:
        super().__init__(verify=_certificates(), trust_env=False)
        self._guard = guard
        self._pool = httpcore2.AsyncConnectionPool(ssl_context=_certificates(), network_backend=_CheckedNetwork(guard))

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        url = request.url
        try:
            self._guard.require_form(url.scheme, url.host, url.port, has_credentials=bool(url.userinfo))
        except UnsafeUrlError as error:
            raise httpx2.ConnectError(str(error), request=request) from None
        return await super().handle_async_request(request)


class _CheckedNetwork(httpcore2.AsyncNetworkBackend):
    """Connects to checked addresses alone."""

    def __init__(self, guard: UrlGuard) -> None:
        self._guard = guard
        self._network = cast("httpcore2.AsyncNetworkBackend", httpcore2.AnyIOBackend())

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the name that the pool uses
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        try:
            addresses = await self._guard.addresses(host, port)
        except UnsafeUrlError as error:
            raise httpcore2.ConnectError(str(error)) from None
        failed: Exception | None = None
        for address in addresses:
            try:
                return await self._network.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failed = error
        raise failed or httpcore2.ConnectError("no address")

    async def connect_unix_socket(
        self,
        path: str,  # noqa: ARG002
        timeout: float | None = None,  # noqa: ARG002, ASYNC109
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,  # noqa: ARG002
    ) -> httpcore2.AsyncNetworkStream:
        raise httpcore2.ConnectError("sockets of this machine are not for strangers")

    async def sleep(self, seconds: float) -> None:
        await self._network.sleep(seconds)


@cache
def _certificates() -> ssl.SSLContext:
    """Read once: it takes longer than many requests."""
    return httpx2.create_ssl_context(trust_env=False)
