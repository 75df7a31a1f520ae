"""A login that one process refreshes all the time, and that ends in another one at any moment."""

import asyncio
import json
import sys
from pathlib import Path

import httpx2

from tests.upstreams.test_user_tokens import revocable, tokens_in, tokens_of
from toolsearch.upstreams.http import NoTokenError

ROUNDS = 15


async def refresh_until_the_log_out(folder: Path) -> dict[str, list[str]]:
    """The refresh tokens that this process was given, and the tokens that it had revoked."""
    auth, given, revoked = tokens_of("alice", folder).auth(), list[str](), list[str]()
    while True:
        flow = auth.async_auth_flow(httpx2.Request("POST", "https://x.example/mcp"))
        try:
            await anext(flow)
            sent = await flow.asend(httpx2.Response(401))
            while sent.url.path != "/mcp":
                if sent.url.path == "/revoke":
                    revoked += tokens_in([sent])
                else:
                    given.append(f"refresh {len(given)}")
                new = {"access_token": given[-1], "refresh_token": given[-1], "token_type": "Bearer", "expires_in": 60}
                sent = await flow.asend(httpx2.Response(200, json=new, request=sent))
        except NoTokenError:
            return {"given": given, "revoked": revoked}
        finally:
            await flow.aclose()


async def main(folder: Path) -> None:
    for _ in sys.stdin:
        sys.stdout.write(json.dumps(await refresh_until_the_log_out(folder)) + "\n")
        sys.stdout.flush()


async def test_whatever_is_refreshed_during_a_log_out_nobody_is_logged_in_and_the_last_tokens_are_revoked(
    tmp_path, start_python
):
    other = start_python("-m", __name__, str(tmp_path))
    for number in range(ROUNDS):
        await revocable("alice", tmp_path, expires_in=60)
        other.stdin.write("go\n")
        other.stdin.flush()
        tokens, seen = tokens_of("alice", tmp_path), set[str]()
        while len(seen) < 2 + number % 5:
            await tokens.look()
            seen.add(tokens.current.access_token)
        revoked = tokens_in(await tokens.forget())
        told = json.loads(other.stdout.readline())
        assert told["given"][-1] in {*revoked, *told["revoked"]}, number
        assert not tokens_of("alice", tmp_path).is_there, number


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
