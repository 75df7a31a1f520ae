"""What the proxy holds of a request while the model answers, and after that."""

import asyncio
import gc
import json
import tracemalloc
import weakref
from collections.abc import AsyncIterator
from typing import Any

import httpx
import httpx2
import pytest
from starlette.types import Message, Receive, Scope, Send

from tests.kit.proxy_talk import Talk, search
from tests.kit.strict_upstreams import Reply, Text
from tests.kit.strict_upstreams.core import Wire
from tests.proxy.test_requests import ALWAYS, EVERY_API, PATHS, SETTINGS, body_of, planned, shop
from tests.proxy.test_stored_replies import is_refused, stored_talk
from toolsearch.proxy.app import ProxyApp, _Exchange
from toolsearch.proxy.body import Body
from toolsearch.proxy.request import Request
from toolsearch.proxy.upstream import Upstream
from toolsearch.service.web.bodies import Bodies
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
        await _threads_are_done()
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


async def test_a_request_that_is_refused_is_not_kept_with_the_list_that_cannot_be_searched() -> None:
    talk = stored_talk(Reply([search()]), Reply([Text("Well.")]), stream=True)
    await talk.ask()
    talk.stream = False
    await talk.ask("And now?", tools=2 * talk.client.body()["tools"], metadata={"is": "refused"})
    await _threads_are_done()
    gc.collect()

    assert is_refused(talk)
    assert [each for each in gc.get_objects() if isinstance(each, Body) and "metadata" in each.parts] == []


@EVERY_API
async def test_a_request_holds_the_text_of_its_conversation_once(api: Wire) -> None:
    for _ in range(2):  # the first time, modules are imported
        tracemalloc.start()
        request = await planned(api, body_of(api, shop(api), "x" * _SIZE), settings=ALWAYS)
        held = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()

    assert held < 1.5 * _SIZE
    assert b"x" * _SIZE in request.content()


@EVERY_API
async def test_names_that_a_client_made_up_are_not_remembered(api: str) -> None:
    """The answers to searches are, for all clients of a list."""
    request = await planned(api, body_of(api, shop(api)))
    texts = {request.history.answer_to_search([f"no_{number}_thing"]).text for number in range(3)}

    assert len(texts) == 1
    assert request._tools.remembered.answer.cache_info().currsize == 1


async def test_an_upstream_keeps_no_address_and_ends_with_its_last_use() -> None:
    upstream = Upstream("http://api.test", transport=(measured := _Measured()))
    held = weakref.ref(upstream)
    gc.disable()
    try:
        async with upstream.send("GET", b"/v1/models?key=secret", [(b"content-length", b"0")], b""):
            pass
        del upstream
        assert held() is None
    finally:
        gc.enable()
    assert measured.lengths == [0]


async def test_a_body_that_the_service_gives_on_is_given_once_and_not_held() -> None:
    given, held = list[Message](), list[int]()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        given.append({"length": len((await receive())["body"])})
        held.append(tracemalloc.get_traced_memory()[0])
        given.append(await receive())

    messages: list[Any] = ["x", None]

    async def receive() -> Message:
        letter = messages.pop(0)
        return {"type": "http.request", "body": letter.encode() * _SIZE} if letter else {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        raise AssertionError(message)

    async def no_visit(token: str) -> None: ...

    scope = {"type": "http", "path": "/", "headers": [(b"content-length", b"2000000")], "state": {"caller": "somebody"}}
    tracemalloc.start()
    await Bodies(app, max_bytes=_SIZE, visit_of=no_visit)(scope, receive, send)
    tracemalloc.stop()

    assert given == [{"length": _SIZE}, {"type": "http.disconnect"}]
    assert held[0] < _SIZE // 4


async def _threads_are_done() -> None:
    """No thread is still at the request."""
    await asyncio.gather(*(in_thread(int) for _ in range(8)))


def _function(tool: dict[str, Any]) -> dict[str, Any]:
    return tool.get("function", tool)


def test_only_the_text_of_a_value_is_kept() -> None:
    body = Body.read(json.dumps({"a": [1, {"b": 2}], "c": 3}).encode(), lists=("a",))

    assert body is not None
    less = body.without_value("a").without_value("none")
    assert (less.get("a"), less.items("a"), less.get("c")) == (None, [], 3)
    assert less.replaced({}) == body.replaced({})
    assert less.written_at("a", "") == '[1, {"b": 2}]'
