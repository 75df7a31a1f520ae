"""Interleaved calls of two users with logins of their own: whether any token crosses, and what a call costs.

``python -m benchmarks.user_logins [--calls 1000]`` needs the authorization server of the tests:
``npm ci --prefix tests/mcp_servers``.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path

from tests.kit.user_logins import authority, call, guarded_server, team

_AT_ONCE = 20


async def measure(calls: int) -> str:
    """What became of *calls* calls, of which half are of each user."""
    with tempfile.TemporaryDirectory() as folder:
        async with (
            authority() as issuer,
            guarded_server(issuer) as guarded,
            team(guarded.url, Path(folder)) as people,
        ):
            clients = {user: await people.client(user) for user in people.tokens}
            for user, client in clients.items():
                await people.log_in(user, client)
            asked = [(user, number) for number in range(calls // len(clients)) for user in clients]
            wrong, began_s = 0, time.process_time()
            for start in range(0, len(asked), _AT_ONCE):
                part = asked[start : start + _AT_ONCE]
                answers = await asyncio.gather(*(call(clients[user], number) for user, number in part))
                wrong += sum(
                    answer != f"{user} {number} {user}" for answer, (user, number) in zip(answers, part, strict=True)
                )
            taken_ms = 1_000 * (time.process_time() - began_s) / len(asked)
            crossed = guarded.seen["alice"] & guarded.seen["bob"]
    return (
        f"{len(asked):,} calls of {len(clients)} users, {_AT_ONCE} at once: {wrong} answered for another user, "
        f"{len(crossed)} tokens crossed; {taken_ms:.1f} ms of CPU a call, with both clients and the server"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=1_000)
    print(asyncio.run(measure(parser.parse_args().calls)))
