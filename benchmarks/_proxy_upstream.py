"""A model API for `proxy` that answers at once, with the bytes that it has made at the start.

It says where it listens. Two headers of a request, which a proxy passes on, say what the model does:

    x-searches: NUMBER  the first request with this number is answered by a search, the second one by words
    x-together: COUNT   streams go on after their first event once so many of them have begun
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from benchmarks.proxied_conversations import QUERY, WIRES, Wire
from tests.kit.loopback import Call, Reply
from tests.kit.proxy_clients import CLIENTS
from toolsearch.tools.naming import TOOL_NAME

_WORDS = Reply("word")
_DELTAS = 100  # of the words, when they are streamed


def _head(content_type: str, length: str) -> bytes:
    return f"HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\n{length}\r\n\r\n".encode()


def _answers(dialect: ModuleType, reply: Reply) -> dict[bool, list[bytes]]:
    """The pieces of the answer, whole and streamed."""
    body: dict[str, Any] = {"model": "any", "tools": [], "stream_options": {"include_usage": True}}
    message = dialect.render(reply, body, "{}_1".format)
    whole = json.dumps(message).encode()
    events = [
        each for event in dialect.events(message, body) for each in [event] * (_DELTAS if _is_delta(event) else 1)
    ]
    chunks = [b"%x\r\n%b\r\n" % (len(event), event.encode()) for event in events]
    return {
        False: [_head("application/json", f"content-length: {len(whole)}") + whole],
        True: [
            _head("text/event-stream", "transfer-encoding: chunked") + chunks[0],
            b"".join(chunks[1:]) + b"0\r\n\r\n",
        ],
    }


def _is_delta(event: str) -> bool:
    return '"wo"' in event  # the first of the two that the word comes in


def _search(wire: Wire) -> Reply:
    return Reply(calls=[Call(TOOL_NAME, CLIENTS[wire.name].arguments(queries=[QUERY]))])


_ANSWERS = {wire.path: [_answers(wire.dialect, reply) for reply in (_WORDS, _search(wire))] for wire in WIRES}


class _Server:
    def __init__(self) -> None:
        self._searched = set[str]()
        self._begun = defaultdict[int, list[asyncio.Event]](list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
                fields = dict(line.split(": ", 1) for line in head[1:] if line)
                body = await reader.readexactly(int(fields["content-length"]))
                number = fields.get("x-searches", "")
                is_search = bool(number) and number not in self._searched
                self._searched.add(number)
                path = head[0].split()[1]
                pieces = _ANSWERS[path][is_search][b'"stream":true' in body]
                await self._write(writer, pieces, int(fields.get("x-together", 0)))
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def _write(self, writer: asyncio.StreamWriter, pieces: Sequence[bytes], together: int) -> None:
        writer.write(pieces[0])
        if together:
            await self._wait_for(together)
        writer.writelines(pieces[1:])
        await writer.drain()

    async def _wait_for(self, count: int) -> None:
        mine, begun = asyncio.Event(), self._begun[count]
        begun.append(mine)
        if len(begun) == count:
            for each in self._begun.pop(count):
                each.set()
        await mine.wait()


async def _main() -> None:
    server = await asyncio.start_server(_Server().serve, "127.0.0.1", 0, backlog=1_000)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


asyncio.run(_main())
