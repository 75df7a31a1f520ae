"""Replicas of the proxy: each makes the same request of the same body."""

from collections.abc import Callable

from tests.kit.commands import Ran

SCRIPT = """
import asyncio, hashlib
from tests.proxy.test_requests import ENTRIES, body_of, planned, shop
from toolsearch.catalog.catalog import Catalog

def book_flight(to: str) -> str: "Book a flight to a city."

async def main():
    for api in ENTRIES:
        for cloud in ("", "other"):
            content = body_of(api, shop(api, 60), "Do the thing number 7 in the shop", model="claude-opus-5-5")
            request = await planned(api, content, tools=Catalog([book_flight]), cloud=cloud)
            print(hashlib.sha256(request.content()).hexdigest(), sorted(request.held))

asyncio.run(main())
"""


def test_other_processes_send_the_same_bytes(run_python: Callable[..., Ran]) -> None:
    """Whatever order their sets have."""
    said = {run_python("-c", SCRIPT, PYTHONHASHSEED=seed, PYTHONPATH=".").out for seed in ("1", "2")}

    assert len(said) == 1
    assert len(said.pop().splitlines()) == 6
