"""The logins that users have begun: how many there may be, and whose make room for others."""

from dataclasses import replace
from pathlib import Path

from tests.kit.upstream_actors import settings_of
from toolsearch.access.principals import Grant, Principal
from toolsearch.upstreams.logins import BegunLogin, Logins
from toolsearch.upstreams.settings import UpstreamSettings
from toolsearch.upstreams.tokens import stored_tokens


def server(folder: Path, number: int = 0) -> UpstreamSettings:
    given = replace(settings_of({"url": f"https://x{number}.example/mcp"}, folder), credentials="per-user")
    return replace(given, tokens=stored_tokens(given, "a user"))


def user(tenant: str, number: int = 0) -> Grant:
    return Grant(Principal(tenant), key_id=f"key_{number}")


async def logins() -> Logins:
    async def unrecorded(_: Grant, __: str) -> None:
        """Record no login."""

    return Logins(unrecorded)


def begin(logins: Logins, grant: Grant, at: UpstreamSettings) -> BegunLogin:
    return logins.begin(grant, at, "https://gateway.example", on_success=lambda: None)


def is_open(logins: Logins, login: BegunLogin) -> bool:
    return logins.begun(login.grant, login.ticket) is not None


async def test_no_tenant_ends_the_logins_of_another_by_beginning_many(tmp_path: Path) -> None:
    every, servers = await logins(), [server(tmp_path, number) for number in range(20)]
    few = [begin(every, user("small"), at) for at in servers[:10]]
    for tenant in range(6):
        for key in range(40):
            for at in servers[:5]:
                begin(every, user(f"large {tenant}", key), at)
    assert all(is_open(every, each) for each in few)
    assert len(every._begun) == 1_000


async def test_a_tenant_and_a_user_make_room_among_their_own_logins(tmp_path: Path) -> None:
    every, servers = await logins(), [server(tmp_path, number) for number in range(21)]
    neighbour = begin(every, user("acme", 99), servers[0])
    first, *_, last = [begin(every, user("acme"), at) for at in servers]
    assert [is_open(every, each) for each in (neighbour, first, last)] == [True, False, True]
    assert len(every._begun) == 21
    for key in range(1, 20):
        for at in servers[:20]:
            begin(every, user("acme", key), at)
    assert is_open(every, neighbour)
    assert len(every._begun) == 200


async def test_logins_at_servers_of_one_name_with_other_addresses_are_others(tmp_path: Path) -> None:
    every = await logins()
    one, other = (begin(every, user("acme"), server(tmp_path, number)) for number in range(2))
    assert one.server == other.server
    assert is_open(every, one)
    assert is_open(every, other)
