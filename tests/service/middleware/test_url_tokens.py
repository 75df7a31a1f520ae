"""The token in the address of a session."""

from typing import Any

import pytest

from toolsearch.service.web.middleware import UrlTokens
from toolsearch.service.web.paths import is_mcp, mcp_path, session_token_in


async def passed(path: str, **headers: str) -> dict[str, Any]:
    """The scope after it has passed, which has to be the same object."""
    scope: dict[str, Any] = {
        "type": "http",
        "path": path,
        "raw_path": path.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    seen: list[Any] = []

    async def app(scope: Any, _receive: Any, _send: Any) -> None:
        seen.append(scope)

    async def nothing(*_: Any) -> Any: ...

    await UrlTokens(app)(scope, nothing, nothing)
    assert seen == [scope]
    assert seen[0] is scope
    return scope


async def test_a_token_becomes_the_credential_and_leaves_the_address_that_is_logged() -> None:
    scope = await passed(mcp_path("ses_1", "a.b.c"), authorization="Bearer another", accept="text/plain")

    assert (scope["path"], scope["raw_path"]) == ("/v1/sessions/ses_1/mcp", b"/v1/sessions/ses_1/mcp")
    assert scope["headers"] == [(b"accept", b"text/plain"), (b"authorization", b"Bearer a.b.c")]


@pytest.mark.parametrize(
    "path", ["/v1/sessions/ses_1/mcp", "/v1/sessions/ses_1/mcp/", "/v1/sessions/ses_1/tools/x", "/x/ses_1/mcp/a", "/"]
)
async def test_other_addresses_stay(path: str) -> None:
    scope = await passed(path, authorization="Bearer key")

    assert scope["path"] == path
    assert scope["headers"] == [(b"authorization", b"Bearer key")]


def test_the_address_of_a_session_is_known_with_and_without_a_token() -> None:
    assert session_token_in(mcp_path("s", "t")) == ("s", "t")
    assert session_token_in(mcp_path("s")) is None
    assert is_mcp(mcp_path("s"))
    assert not is_mcp("/v1/sessions/s/tools")
    assert not is_mcp("/v2/sessions/s/mcp")
