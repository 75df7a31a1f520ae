"""Replicas of the proxy: each makes the same request of the same body."""

import asyncio
import hashlib
from collections.abc import Callable

from tests.kit.commands import Ran
from tests.proxy.test_requests import ENTRIES, body_of, planned, shop
from toolsearch.catalog.catalog import Catalog
from toolsearch.wire.capabilities import Cloud

SCRIPT = f"from {__name__} import made; print(made(), end='')"
CLOUDS: tuple[Cloud, ...] = ("", "other")


def book_flight(to: str) -> str:
    """Book a flight to a city."""
    return to


def made() -> str:
    """What this process makes of requests to each API: a digest, and the names of tools whose calls it holds."""
    return "\n".join(asyncio.run(_made(api, cloud)) for api in ENTRIES for cloud in CLOUDS)


async def _made(api: str, cloud: Cloud) -> str:
    content = body_of(api, shop(api, 60), "Do the thing number 7 in the shop", model="claude-opus-5-5")
    request = await planned(api, content, tools=Catalog([book_flight]), cloud=cloud)
    return f"{hashlib.sha256(request.content()).hexdigest()} {sorted(request.held)}"


def test_another_process_sends_the_same_bytes(run_python: Callable[..., Ran]) -> None:
    """Whatever order its sets have."""
    other = run_python("-c", SCRIPT, PYTHONHASHSEED="2", PYTHONPATH=".").out

    assert other == made()
    assert len(set(other.splitlines())) > 1
