"""Keeps addresses that strangers supply away from our own network: those of MCP servers, APIs and documents.

The guard checks addresses; the HTTP transport checks each connection, including those of redirects.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, TypeAlias, cast
from urllib.parse import urlsplit

import httpcore2
import httpx2

from toolsearch.errors import BadSettingError, UnsafeUrlError

Resolve: TypeAlias = Callable[[str, int], Awaitable[list[str]]]  # returns the addresses of a host; raises OSError
_Address: TypeAlias = IPv4Address | IPv6Address
_Network: TypeAlias = IPv4Network | IPv6Network
_SCHEMES: Final = {"http": 80, "https": 443}


# Ports below belong to mail, name and file servers, which a request could be made to talk to.
_FIRST_FREE_PORT: Final = 1_024
_RESOLVE_S: Final = 5.0
_KEPT_S: Final = 5.0  # seconds for which a connection that nobody uses is kept

_SPECIAL_NETWORKS: Final = tuple(  # networks that some Python version's is_global counts as internet
    map(
        ip_network,
        (
            "0.0.0.0/8",  # "this host", which means loopback on Linux
            "100.64.0.0/10",  # between carriers; metadata service of some clouds
            "168.63.129.16/32",  # metadata service of Azure
            "192.0.0.0/24",  # protocol assignments; metadata service of some clouds
            "192.88.99.0/24",  # relays to 6to4
            "198.18.0.0/15",
            "224.0.0.0/3",  # multicast and reserved
        ),
    )
)


# Every other address is link-local, private or stands for an IPv4 address.
_INTERNET_V6: Final = IPv6Network("2000::/3")

_NOT_INTERNET_V6: Final = tuple(
    map(
        IPv6Network,
        (
            "2001::/23",  # Teredo and other addresses that contain another address
            "2001:db8::/32",
            "2002::/16",  # 6to4: these contain an IPv4 address
            "3fff::/20",
        ),
    )
)


# IPv6-only networks reach IPv4 through it; the last four bytes are the IPv4 address.
_NAT64: Final = IPv6Network("64:ff9b::/96")


@dataclass(frozen=True, slots=True)
class UrlGuard:
    """Lets through addresses on the internet and those that the operator has named.

    hosts     hosts that may be reached at any address, in lower case
    networks  addresses that may be reached although they are not on the internet
    """

    hosts: frozenset[str] = frozenset()
    networks: tuple[_Network, ...] = ()
    resolve: Resolve | None = None

    @classmethod
    def of(cls, hosts: Iterable[str], networks: Iterable[str]) -> UrlGuard:
        """Read the settings. Raises BadSettingError for an invalid network, such as 10.0.0.1/8."""
        try:
            return cls(frozenset(map(_folded, hosts)), tuple(map(ip_network, networks)))
        except ValueError as error:
            raise BadSettingError(f"the setting outbound.allowedNetworks cannot be used: {error}") from error

    async def check(self, url: str) -> None:
        """Raises UnsafeUrlError. Its text is the same for a host that does not exist and for one that must stay
        secret.
        """
        try:
            parts = urlsplit(url)
            scheme, host, port = parts.scheme, parts.hostname or "", parts.port
        except ValueError:
            raise UnsafeUrlError("it is not well formed") from None
        has_credentials = parts.username is not None or parts.password is not None
        await self.addresses(self.require_form(scheme, host, port, has_credentials=has_credentials), port or 0)

    def require_form(self, scheme: str, host: str, port: int | None, *, has_credentials: bool) -> str:
        """Return *host*. Raises UnsafeUrlError for faults that show without a look-up of the host."""
        if scheme not in _SCHEMES:
            raise UnsafeUrlError("only http and https are taken")
        if has_credentials:
            raise UnsafeUrlError("it holds credentials; send them as headers")
        if not host or not _is_well_spelt(host):
            raise UnsafeUrlError("its host is not well formed")
        if port is not None and port not in _SCHEMES.values() and port < _FIRST_FREE_PORT:
            raise UnsafeUrlError(f"its port must be 80, 443, or {_FIRST_FREE_PORT} and above")
        return host

    async def addresses(self, host: str, port: int) -> list[str]:
        """The addresses of *host*, all of which may be reached. Raises UnsafeUrlError."""
        try:
            async with asyncio.timeout(_RESOLVE_S):
                found = await (self.resolve or _resolve)(host, port)
        except (OSError, UnicodeError, TimeoutError):
            found = []
        if not found or not (_folded(host) in self.hosts or all(map(self._may_be_reached, found))):
            raise UnsafeUrlError("this service may not reach its host; an operator can allow it")
        return found

    def _may_be_reached(self, text: str) -> bool:
        try:
            address = _plain(ip_address(text))
        except ValueError:  # an address with a zone, such as a link-local one
            return False
        return any(address in network for network in self.networks) or is_on_the_internet(address)


def is_on_the_internet(address: _Address) -> bool:
    """Whether anybody may reach *address*, which is then neither private nor an alias of a private address."""
    plain = _plain(address)
    if isinstance(plain, IPv4Address):
        return plain.is_global and not any(plain in network for network in _SPECIAL_NETWORKS)
    if plain in _NAT64:
        return is_on_the_internet(IPv4Address(int(plain) & 0xFFFF_FFFF))
    return plain in _INTERNET_V6 and not any(plain in network for network in _NOT_INTERNET_V6)


def _plain(address: _Address) -> _Address:
    """``::ffff:10.0.0.1`` is 10.0.0.1."""
    return address.ipv4_mapped or address if isinstance(address, IPv6Address) else address


def _is_well_spelt(host: str) -> bool:
    """Whether every reader understands the address alike, unlike 0x7f.1, 010.0.0.1 and 2130706433."""
    if any(character in host for character in "\\%@ \t\r\n") or not host.isprintable():
        return False
    last = host.removesuffix(".").rpartition(".")[2]
    if ":" not in host and not (last.isdigit() or last.lower().startswith("0x")):
        return True
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _folded(host: str) -> str:
    return host.lower().removesuffix(".")


async def _resolve(host: str, port: int) -> list[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class GuardedTransport(httpx2.AsyncHTTPTransport):
    """A transport of httpx2 that resolves a host, checks its addresses and connects to one of those.

    TLS and the ``Host`` header keep the name. A forbidden address raises httpx2.ConnectError. Give the client
    ``trust_env=False``, so that no proxy of the environment comes between.
    """

    def __init__(self, guard: UrlGuard) -> None:
        super().__init__(verify=_certificates(), trust_env=False)
        self._guard = guard
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=_certificates(),
            max_connections=None,
            keepalive_expiry=_KEPT_S,
            network_backend=_CheckedNetwork(guard),
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        url = request.url
        try:
            self._guard.require_form(url.scheme, url.host, url.port, has_credentials=bool(url.userinfo))
        except UnsafeUrlError as error:
            raise httpx2.ConnectError(str(error), request=request) from None
        return await super().handle_async_request(request)


class _CheckedNetwork(httpcore2.AsyncNetworkBackend):
    """Connects only to checked addresses."""

    def __init__(self, guard: UrlGuard) -> None:
        self._guard = guard
        self._network = cast("httpcore2.AsyncNetworkBackend", httpcore2.AnyIOBackend())

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  the name that the pool uses
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        try:
            addresses = await self._guard.addresses(host, port)
        except UnsafeUrlError as error:
            raise httpcore2.ConnectError(str(error)) from None
        failed: Exception | None = None
        try:
            for address in addresses:
                try:
                    return await self._network.connect_tcp(address, port, timeout, local_address, socket_options)
                except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                    failed = error
            raise failed or httpcore2.ConnectError("no address")
        finally:
            del failed  # else it holds itself, with the request, until the garbage collector runs

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
    """The certificates, read once: reading takes longer than many requests."""
    return httpx2.create_ssl_context(trust_env=False)
