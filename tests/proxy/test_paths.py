"""Paths of requests: each goes below the address of the model API, or nowhere."""

import asyncio
import json
from typing import Any

import httpx2
import pytest

from tests.kit.proxy_fuzz import KEYWORDS
from toolsearch.proxy.app import ProxyApp
from toolsearch.proxy.upstream import Upstream

LEAVING = [b"/v1/../../admin", b"/..", b"/v1/%2e%2E/%2e%2e/admin", b"/v1/..%2f..%2fadmin", b"/v1/..%5c..\\admin"]
ILLEGAL = ["/v1/models/ü".encode(), b"/v1/models#a", b"/v1/models?a=\xff", b"/v1/a b", b"/v1/a\tb"]


async def _sent(target: bytes) -> tuple[int, str, list[bytes]]:
    """The status and the code of the answer to a request for *target*, and the targets that reached the model API."""
    asked: list[bytes] = []
    told: list[Any] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.url.raw_path)
        return httpx2.Response(200, stream=httpx2.ByteStream(b"{}"))

    received = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive() -> dict[str, Any]:
        for message in received:
            return message
        await asyncio.Event().wait()  # the client stays
        raise AssertionError

    async def send(message: Any) -> None:
        told.append(message)

    path, _, query = target.partition(b"?")
    scope = {"type": "http", "method": "GET", "path": path.decode(errors="replace"), "raw_path": path, "headers": []}
    upstream = Upstream("http://api.test/base", silence_s=60, transport=httpx2.MockTransport(answer))
    await ProxyApp(upstream, KEYWORDS, None)({**scope, "query_string": query}, receive, send)
    content = json.loads(b"".join(message.get("body", b"") for message in told))
    return told[0]["status"], content.get("error", {}).get("code", ""), asked


@pytest.mark.parametrize("target", [*LEAVING, *ILLEGAL], ids=repr)
async def test_a_path_that_leaves_the_apis_or_is_none_is_refused(target: bytes) -> None:
    assert await _sent(target) == (400, "bad_request", [])


@pytest.mark.parametrize("target", [b"/v1/models/a%2Fb?x=../..", b"/v1/a..b/...", b"/v1/%C3%BC"], ids=repr)
async def test_any_other_path_goes_on_as_it_came(target: bytes) -> None:
    status, _, asked = await _sent(target)

    assert (status, asked) == (200, [b"/base" + target])
