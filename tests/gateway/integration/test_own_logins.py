"""A server at which each user logs in: at a real authorization server, and no token of one user is used for another."""

import pytest

from tests.kit.own_logins import authority, call, guarded_server, needs_authority, team

pytestmark = needs_authority


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_each_user_logs_in_by_the_link_in_the_error_and_is_known_to_the_server_as_oneself(tmp_path, era):
    async with authority() as issuer, guarded_server(issuer) as guarded, team(guarded.url, tmp_path) as people:
        alice, bob = await people.client("alice", era), await people.client("bob", era)
        await people.log_in("alice", alice)
        assert await call(alice, 1) == "alice 1 alice"
        assert "wants you to log in" in await call(bob, 2)
        await people.log_in("bob", bob)
        assert (await call(bob, 3), await call(alice, 4)) == ("bob 3 bob", "alice 4 alice")
    assert not guarded.seen["alice"] & guarded.seen["bob"]
