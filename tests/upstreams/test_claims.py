"""Headers that are filled in from the claims of the caller's token."""

import pytest

from toolsearch.errors import CallDeniedError
from toolsearch.upstreams.config import HttpServer, read_mcp_config

MAPPED = "${claim:email}"


def server(headers: dict[str, str]) -> HttpServer:
    entry = {"url": "https://x.example/mcp", "headers": headers}
    config = read_mcp_config({"mcpServers": {"s": entry}}, {"KEY": "k-1"})
    assert not config.refused
    (read,) = config.servers
    assert isinstance(read, HttpServer)
    return read


def test_claims_stand_in_for_their_placeholders_beside_what_the_environment_gives():
    read = server({"X-User": f"mail={MAPPED}; id=${{claim:https://x.example/id}}", "X-Key": "${KEY}"})

    assert dict(read.headers) == {"X-Key": "k-1"}
    assert read.filled_in({"email": "a@x.example", "https://x.example/id": 7}) == {
        "X-User": "mail=a@x.example; id=7",
    }


@pytest.mark.parametrize(
    "value",
    [None, "", " a", "a\r\nX-Admin: yes", "a\nb", "a\x00", "ä", "a" * 2_000, True, 1.5, ["a"], {"a": 1}],
)
def test_a_claim_that_is_missing_or_could_not_stand_in_a_header_refuses_the_call(value):
    with pytest.raises(CallDeniedError, match="the claim 'email'"):
        server({"X-User": MAPPED}).filled_in({} if value is None else {"email": value})


def test_a_value_of_a_claim_is_not_filled_in_again():
    read = server({"X-User": MAPPED})

    assert read.filled_in({"email": "${claim:role}", "role": "admin"}) == {"X-User": "${claim:role}"}


def test_claims_are_for_headers_alone():
    for entry in ({"url": "https://x.example/${claim:sub}"}, {"command": "x", "args": ["${claim:sub}"]}):
        (refused,) = read_mcp_config({"mcpServers": {"s": entry}}, {}).refused
        assert "cannot be filled in" in refused.reason
