"""Which addresses a stranger may make us connect to."""

import gc
import weakref
from ipaddress import ip_address
from typing import NoReturn

import httpcore2
import pytest

from toolsearch.access.url_guard import UrlGuard, _CheckedNetwork, is_on_the_internet
from toolsearch.errors import BadSettingError, UnsafeUrlError

PUBLIC = "93.184.215.14"


def guard(*addresses: str, hosts: tuple[str, ...] = (), networks: tuple[str, ...] = ()) -> UrlGuard:
    """A guard to whom every name stands for *addresses*."""

    async def resolve(host: str, port: int) -> list[str]:
        if not addresses:
            raise OSError("no such host")
        return list(addresses)

    made = UrlGuard.of(hosts, networks)
    return UrlGuard(made.hosts, made.networks, resolve)


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.255.255.254", "0.0.0.0", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1"),  # noqa: S104
        *("169.254.169.254", "100.64.0.1", "100.100.100.200", "168.63.129.16", "192.0.0.192", "198.18.0.1"),
        *("192.0.2.1", "198.51.100.1", "203.0.113.1", "192.88.99.1", "224.0.0.1", "240.0.0.1", "255.255.255.255"),
        *("::", "::1", "fe80::1", "fec0::1", "fc00::1", "fd00:ec2::254", "ff02::1", "2001:db8::1", "3fff::1"),
        *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "::ffff:0:127.0.0.1"),
        *("2002:7f00:1::", "2002:0a00:1::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2"),
        *("64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::808:808", "100::1", "5f00::1"),
    ],
)
def test_an_address_that_is_not_on_the_internet_is_known_as_such(address: str) -> None:
    assert not is_on_the_internet(ip_address(address))


@pytest.mark.parametrize(
    "address", [PUBLIC, "8.8.8.8", "172.32.0.1", "::ffff:8.8.8.8", "2606:4700::1111", "64:ff9b::808:808"]
)
def test_an_address_that_is_on_the_internet_is_known_as_such(address: str) -> None:
    assert is_on_the_internet(ip_address(address))


@pytest.mark.parametrize(
    "url",
    [
        *("ftp://host.example/", "file:///etc/passwd", "gopher://host.example/", "//host.example/", "host.example", ""),
        *("https://user@host.example/", "https://user:secret@host.example/", "https://:@host.example/"),
        *("https:///path", "https://[::1/", "https://host.example:99999/", "https://host.example:x/"),
        *("https://host.example:22/", "https://host.example:25/", "https://host.example:0/"),
        *("http://0x7f.1/", "http://0x7f000001/", "http://2130706433/", "http://127.1/", "http://010.0.0.1/"),
        *("http://0177.0.0.1/", "http://1.2.3.4.5/", "http://host.example%00.evil.example/", "http://a\\@b/"),
        *("http://127.0.0.1.:80/", "http://[fe80::1%25eth0]/"),
    ],
)
async def test_a_url_that_is_not_well_formed_is_refused_before_its_host_is_looked_up(url: str) -> None:
    with pytest.raises(UnsafeUrlError):
        await guard(PUBLIC).check(url)


@pytest.mark.parametrize("url", ["https://host.example/", "http://HOST.example.:8080/a?b#c", "https://8.8.8.8/"])
async def test_a_url_on_the_internet_is_let_through(url: str) -> None:
    await guard(PUBLIC).check(url)


@pytest.mark.parametrize("addresses", [("10.0.0.1",), (PUBLIC, "10.0.0.1"), (PUBLIC, "::1"), ("fe80::1%eth0",), ()])
async def test_a_host_with_any_address_within_is_refused_as_if_it_did_not_exist(addresses: tuple[str, ...]) -> None:
    with pytest.raises(UnsafeUrlError) as caught:
        await guard(*addresses).check("https://host.example/")

    assert str(caught.value) == (
        "this URL cannot be used: this service may not reach its host; an operator can allow it"
    )


async def test_an_operator_allows_hosts_by_name_and_networks() -> None:
    await guard("10.0.0.1", hosts=("Jira.corp.example.",)).check("https://jira.corp.example/")
    await guard("10.0.0.1", networks=("10.0.0.0/8",)).check("https://host.example/")
    await guard("::ffff:10.0.0.1", networks=("10.0.0.0/8",)).check("https://host.example/")
    for refused in (
        guard("10.0.0.1", hosts=("jira.corp.example",)).check("https://evil.jira.corp.example/"),
        guard("192.168.0.1", networks=("10.0.0.0/8",)).check("https://host.example/"),
    ):
        with pytest.raises(UnsafeUrlError):
            await refused


def test_a_network_that_is_none_is_refused() -> None:
    with pytest.raises(BadSettingError, match=r"outbound\.allowedNetworks"):
        UrlGuard.of((), ("10.0.0.1/8",))


async def test_a_connection_that_failed_leaves_nothing_to_the_garbage_collector(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def refused(*_: object) -> NoReturn:
        raise httpcore2.ConnectError("refused")

    network = _CheckedNetwork(guard(PUBLIC))
    monkeypatch.setattr(network._network, "connect_tcp", refused)
    gc.disable()
    try:
        try:
            await network.connect_tcp("a.example", 443)
        except httpcore2.ConnectError as error:
            held = weakref.ref(error)
        assert held() is None
    finally:
        gc.enable()
