"""One running fake per test module, and a way to send it requests."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.kit.strict_upstreams import StrictUpstreams, say

HEADERS = {"x-api-key": "k", "authorization": "Bearer k", "anthropic-version": "2023-06-01"}


class Bench:
    """The fake and a client."""

    def __init__(self, fake: StrictUpstreams, base: str) -> None:
        self.fake = fake
        self.base = base
        self.http = httpx.Client(base_url=base, headers=HEADERS, timeout=20)

    def post(self, path: str, body: Any, **headers: str) -> httpx.Response:
        """Send a body."""
        named = {key.replace("_", "-"): value for key, value in headers.items()}
        return self.http.post(f"/v1/{path}", json=body, headers=named)

    def good(self, path: str, body: Any, **headers: str) -> Any:
        """Send a body that must be taken."""
        answer = self.post(path, body, **headers)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def bad(self, check: str, path: str, body: Any, status: int = 400, **headers: str) -> str:
        """Send a body that must be refused by this check; gives the message."""
        before = len(self.fake.refusals)
        answer = self.post(path, body, **headers)
        assert answer.status_code == status, (check, answer.status_code, answer.text)
        assert len(self.fake.refusals) == before + 1
        assert self.fake.refusals[-1].check == check, self.fake.refusals[-1]
        error = answer.json()
        assert error["error"]["message"] == self.fake.refusals[-1].message
        assert ("request_id" in error) == path.startswith("messages")
        return str(error["error"]["message"])


@pytest.fixture(scope="module")
def running() -> Iterator[Bench]:
    """A fake for the module."""
    fake = StrictUpstreams()
    with fake.serve() as base:
        bench = Bench(fake, base)
        with bench.http:
            yield bench


@pytest.fixture
def bench(running: Bench) -> Bench:
    """The module's fake with a plain brain."""
    running.fake.brain = say("Hello.")
    running.fake.faults = None
    return running


@pytest.fixture(autouse=True)
def sockets_are_collected() -> Iterator[None]:
    """Answers that break off leave sockets to the collector, which would warn in the midst of another test."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
