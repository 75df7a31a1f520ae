"""What the proxy holds of a request while the model answers, and after that."""

import asyncio
import gc
import json
import tracemalloc
from collections.abc import AsyncIterator
from typing import Any

import httpx
import httpx2
import pytest

from tests.kit.proxy_talk import Talk, search
from tests.kit.strict_upstreams import Reply, Text
from tests.kit.strict_upstreams.core import Wire
from tests.proxy.test_requests import EVERY_API, PATHS, SETTINGS, body_of, shop
from toolsearch.proxy.app import ProxyApp, _Exchange
from toolsearch.proxy.body import Body
from toolsearch.proxy.request import Request
from toolsearch.proxy.upstream import Upstream
from toolsearch.threads import in_thread

_OF_REQUESTS = (_Exchange, Body, Request, httpx2.Request)
_SIZE = 2_000_000  # bytes of the largest value in a request


@EVERY_API
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_nothing_of_a_request_waits_for_the_garbage_collector(api: Wire, stream: bool) -> None:
    """It comes seldom, and a body may have megabytes."""
    talk = Talk(api, [Reply([search()]), Reply([Text("Well.")])], stream=stream)
    gc.collect()
    gc.disable()
    try:
        await talk.ask()
        kept = [type(each).__name__ for each in gc.get_objects() if isinstance(each, _OF_REQUESTS)]
    finally:
        gc.enable()

    assert talk.is_well
    assert kept == []


class _Measured(httpx2.AsyncBaseTransport):
    """A model API that looks at the memory of the process once it has the request."""

    def __init__(self) -> None:
        self.lengths: list[int] = []
        self.held: list[int] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        assert isinstance(request.stream, httpx2.AsyncByteStream)
        self.lengths.append(sum([len(piece) async for piece in request.stream]))
        assert request.headers["content-length"] == str(self.lengths[-1])
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=self._events())

    async def _events(self) -> AsyncIterator[bytes]:
        await asyncio.gather(*(in_thread(int) for _ in range(8)))  # so that no thread is still at the request
        self.held.append(tracemalloc.get_traced_memory()[0])
        yield b"data: {}\n\n"


@EVERY_API
@pytest.mark.parametrize("way", ["off", "whole", "searched"])
@pytest.mark.parametrize("length", ["told", "not told"])
async def test_a_body_is_not_held_while_the_model_answers(api: str, way: str, length: str) -> None:
    tools: list[dict[str, Any]] = shop(api, 3 if way == "whole" else 40)
    if way != "whole":
        _function(tools[0])["description"] += "x" * _SIZE
    more = {"metadata": {"x": "y" * _SIZE}} if way == "whole" else {}
    content = body_of(api, tools, stream=True, **more)
    app = ProxyApp(Upstream("http://api.test", transport=(measured := _Measured())), SETTINGS, None, "other")

    async def pieces() -> AsyncIterator[bytes]:
        yield content[: _SIZE // 2]
        yield content[_SIZE // 2 :]

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://proxy.test") as http:
        for _ in range(2):
            headers = {"x-toolsearch": "off"} if way == "off" else {}
            headers |= {"content-length": str(len(content))} if length == "told" else {}
            tracemalloc.start()
            await http.post(PATHS[api], content=pieces(), headers=headers)
            tracemalloc.stop()

    assert (measured.lengths[1] == len(content)) == (way != "searched")
    assert measured.held[1] < _SIZE // 4


def _function(tool: dict[str, Any]) -> dict[str, Any]:
    return tool.get("function", tool)


def test_only_the_text_of_a_value_is_kept() -> None:
    body = Body.read(json.dumps({"a": [1, {"b": 2}], "c": 3}).encode(), lists=("a",))

    assert body is not None
    less = body.without_value("a").without_value("none")
    assert (less.get("a"), less.items("a"), less.get("c")) == (None, [], 3)
    assert less.replaced({}) == body.replaced({})
    assert less.written_at("a", "") == '[1, {"b": 2}]'
