"""Keeps what strangers name away from our own network: addresses of MCP servers, APIs and documents.

A name is resolved once, and each of its addresses is checked; the connection then goes to an address that was checked
(`toolsearch.access.guarded_transport`), so that a name server that answers differently the second time gains nothing.
However a host is spelt, what counts are the addresses that it stands for.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, TypeAlias
from urllib.parse import urlsplit

from toolsearch.errors import BadSettingError, UnsafeUrlError

Resolve: TypeAlias = Callable[[str, int], Awaitable[list[str]]]  # the addresses of a host; raises OSError

_Address: TypeAlias = IPv4Address | IPv6Address
_Network: TypeAlias = IPv4Network | IPv6Network

_SCHEMES: Final = {"http": 80, "https": 443}
_FIRST_FREE_PORT: Final = 1_024  # below are mail, name and file servers, which a request might be made to talk to
_RESOLVE_S: Final = 5.0

_OF_NOBODY_ELSE: Final = tuple(  # what Python's is_global takes for the internet, or did in some versions
    map(
        ip_network,
        (
            "0.0.0.0/8",  # "this host", which means loopback on Linux
            "100.64.0.0/10",  # between carriers; metadata of some clouds
            "168.63.129.16/32",  # the metadata of Azure
            "192.0.0.0/24",  # protocol assignments; metadata of some clouds
            "192.88.99.0/24",  # relays to 6to4
            "198.18.0.0/15",
            "224.0.0.0/3",  # multicast, and what is reserved
        ),
    )
)
_INTERNET_V6: Final = IPv6Network("2000::/3")  # all else is link-local, private, or stands for an IPv4 address
_NOT_INTERNET_V6: Final = tuple(
    map(
        IPv6Network,
        (
            "2001::/23",  # Teredo and others that stand for another address
            "2001:db8::/32",
            "2002::/16",  # 6to4: an IPv4 address in disguise
            "3fff::/20",
        ),
    )
)
_NAT64: Final = IPv6Network("64:ff9b::/96")  # how networks without IPv4 reach it: the last four bytes are an address


@dataclass(frozen=True, slots=True)
class UrlGuard:
    """Lets through what is on the internet, and what the operator has named.

    hosts     names of hosts that may be reached wherever they are, in lower case
    networks  addresses that may be reached though they are not on the internet
    """

    hosts: frozenset[str] = frozenset()
    networks: tuple[_Network, ...] = ()
    resolve: Resolve | None = None

    @classmethod
    def of(cls, hosts: Iterable[str], networks: Iterable[str]) -> UrlGuard:
        """Raises BadSettingError for a network that is none, such as 10.0.0.1/8."""
        try:
            return cls(frozenset(map(_folded, hosts)), tuple(map(ip_network, networks)))
        except ValueError as error:
            raise BadSettingError(f"the setting outbound.allowedNetworks cannot be used: {error}") from error

    async def check(self, url: str) -> None:
        """Raises UnsafeUrlError, which says the same of a host that does not exist and of one that is not to be told
        of.
        """
        try:
            parts = urlsplit(url)
            scheme, host, port = parts.scheme, parts.hostname or "", parts.port
        except ValueError:
            raise UnsafeUrlError("it is not well formed") from None
        has_credentials = parts.username is not None or parts.password is not None
        await self.addresses(self.require_form(scheme, host, port, has_credentials=has_credentials), port or 0)

    def require_form(self, scheme: str, host: str, port: int | None, *, has_credentials: bool) -> str:
        """Return *host*. Raises UnsafeUrlError for what can be told without looking the host up."""
        if scheme not in _SCHEMES:
            raise UnsafeUrlError("only http and https are taken")
        if has_credentials:
            raise UnsafeUrlError("credentials do not belong into it; send them as headers")
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
            raise UnsafeUrlError("its host is not one that this service may reach; an operator can allow it")
        return found

    def _may_be_reached(self, text: str) -> bool:
        try:
            address = _plain(ip_address(text))
        except ValueError:  # with a zone, as link-local addresses have
            return False
        return any(address in network for network in self.networks) or is_on_the_internet(address)


def is_on_the_internet(address: _Address) -> bool:
    """Whether anybody may reach *address*, so that it is neither private nor stands for something that is."""
    plain = _plain(address)
    if isinstance(plain, IPv4Address):
        return plain.is_global and not any(plain in network for network in _OF_NOBODY_ELSE)
    if plain in _NAT64:
        return is_on_the_internet(IPv4Address(int(plain) & 0xFFFF_FFFF))
    return plain in _INTERNET_V6 and not any(plain in network for network in _NOT_INTERNET_V6)


def _plain(address: _Address) -> _Address:
    """``::ffff:10.0.0.1`` is 10.0.0.1."""
    return address.ipv4_mapped or address if isinstance(address, IPv6Address) else address


def _is_well_spelt(host: str) -> bool:
    """Leave out what readers of addresses understand differently, such as 0x7f.1, 010.0.0.1 and 2130706433."""
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
