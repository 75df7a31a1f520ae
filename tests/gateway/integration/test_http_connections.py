"""Clients that take their time: a slow request is cut off, a slow answer is not, and connections have a number."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from toolsearch.gateway.http import connection_protocol, server_config

HEAD = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n"


class App:
    """Answers with the body once it may."""

    def __init__(self) -> None:
        self.may_answer = asyncio.Event()
        self.asked = asyncio.Semaphore(0)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        body, message = b"", {"more_body": True}
        while message.get("more_body"):
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message["body"]
        self.asked.release()
        await self.may_answer.wait()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": body})


class Client:
    def __init__(self, reading: asyncio.StreamReader, writing: asyncio.StreamWriter) -> None:
        self._reading = reading
        self._writing = writing

    def send(self, data: bytes) -> None:
        self._writing.write(data)

    async def drip(self, data: bytes) -> bool:
        """Send *data* byte by byte, again and again, until the other side has closed; True."""
        ended = asyncio.create_task(self.is_closed())
        while not ended.done():
            for byte in data:
                self.send(bytes([byte]))
                await asyncio.sleep(0.01)
        return await ended

    async def is_closed(self) -> bool:
        """Wait for what comes next: True if that is the end."""
        try:
            return not await self._reading.read(1)
        except ConnectionError:
            return True

    async def everything(self) -> bytes:
        """All that comes until the other side closes."""
        return await self._reading.read()

    async def answer(self) -> bytes:
        head = await self._reading.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200")
        return await self._reading.readexactly(2)

    def close(self) -> None:
        self._writing.transport.abort()


@asynccontextmanager
async def served(app: App, **bounds: Any) -> AsyncIterator[Any]:
    """What opens a connection to *app*."""
    clients: list[Client] = []
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(512)  # so that connections wait until the server is up
        config = server_config(app, http=connection_protocol(**bounds), lifespan="off", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve([listening]))

        async def connect() -> Client:
            client = Client(*await asyncio.open_connection(*listening.getsockname()))
            clients.append(client)
            return client

        try:
            yield connect
        finally:
            for client in clients:
                client.close()
            server.should_exit = True
            await serving


@pytest.mark.parametrize("sent", [b"", HEAD[:-2], HEAD + b"x"], ids=["nothing", "headers", "half a body"])
async def test_four_hundred_connections_that_never_finish_a_request_are_all_closed(sent):
    app = App()
    app.may_answer.set()
    async with served(app, arrival_timeout_s=0.5) as connect:
        slow = [await connect() for _ in range(400)]
        for client in slow:
            client.send(sent)
        assert all(await asyncio.gather(*(client.is_closed() for client in slow)))
        prompt = await connect()
        prompt.send(HEAD + b"ok")
        assert await prompt.answer() == b"ok"


async def test_bytes_that_keep_coming_put_off_no_end():
    async with served(App(), arrival_timeout_s=0.5) as connect:
        clients = [await connect() for _ in range(20)]
        for client in clients:
            client.send(b"GET / HTTP/1.1\r\n")
        assert all(await asyncio.gather(*(client.drip(b"X-A: b\r\n") for client in clients)))


async def test_a_second_request_on_a_connection_may_take_no_longer_than_the_first():
    app = App()
    app.may_answer.set()
    async with served(app, arrival_timeout_s=0.5) as connect:
        client = await connect()
        client.send(HEAD + b"ok")
        assert await client.answer() == b"ok"
        client.send(HEAD[:20])
        assert await client.is_closed()


async def test_an_answer_may_take_longer_than_a_request():
    app = App()
    async with served(app, arrival_timeout_s=0.5) as connect:
        patient = await connect()
        patient.send(HEAD + b"ok")
        await app.asked.acquire()
        assert await (await connect()).is_closed()  # so that the time is over for a connection that came later
        app.may_answer.set()
        assert await patient.answer() == b"ok"


async def test_one_connection_too_many_takes_the_place_of_the_one_that_has_been_unfinished_for_longest():
    app = App()
    app.may_answer.set()
    async with served(app, max_connections=2) as connect:
        first, second = await connect(), await connect()
        first.send(b"GET /")
        third = await connect()
        assert await first.is_closed()
        for client in (second, third):
            client.send(HEAD + b"ok")
            assert await client.answer() == b"ok"


async def test_where_all_connections_are_at_work_a_new_one_is_turned_away():
    app = App()
    async with served(app, max_connections=2) as connect:
        at_work = [await connect() for _ in range(2)]
        for client in at_work:
            client.send(HEAD + b"ok")
            await app.asked.acquire()
        assert await (await connect()).is_closed()
        app.may_answer.set()
        assert [await client.answer() for client in at_work] == [b"ok", b"ok"]


@pytest.mark.parametrize(
    "lengths",
    [b"Content-Length: 4\r\nTransfer-Encoding: chunked", b"transfer-encoding: Chunked\r\ncontent-length: 4"],
    ids=["length first", "encoding first"],
)
async def test_a_request_with_a_length_beside_an_encoding_is_refused_and_nothing_behind_it_is_read(lengths):
    """The app is never asked, neither for it nor for what is sent behind it."""
    app = App()
    app.may_answer.set()
    async with served(app) as connect:
        client = await connect()
        client.send(b"POST / HTTP/1.1\r\nHost: localhost\r\n" + lengths + b"\r\n\r\n0\r\n\r\n" + HEAD + b"ok")
        refusal = await client.everything()
    assert refusal.startswith(b"HTTP/1.1 400")
    assert refusal.count(b"HTTP/1.1") == 1
    assert app.asked.locked()
