"""The server: one address, the dialects by path, a script, and a record of what was sent."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from types import ModuleType
from typing import Any

import pytest

from tests.kit.loopback import anthropic_messages, gemini, openai_chat, openai_responses
from tests.kit.loopback.memory import Memory
from tests.kit.loopback.prompt_cache import PromptCache
from tests.kit.loopback.script import Failure, Raw, RefusedError, Reply
from tests.kit.loopback.seen import Seen, seen_in
from tests.kit.loopback.sse import event

DIALECTS: dict[str, ModuleType] = {
    "/v1/chat/completions": openai_chat,
    "/v1/responses": openai_responses,
    "/v1/messages": anthropic_messages,
}
_COUNTED = {"input_tokens": 10, "totalTokens": 10}  # to whoever wants to know before it asks, in either dialect
_MODELS = {"object": "list", "data": [{"id": "m", "object": "model", "type": "model", "display_name": "m"}]}
_PATIENCE_S = 10  # for a client that ought to hang up; only a failing test waits that long


@dataclass(frozen=True)
class Request:
    path: str
    headers: dict[str, str]  # names in lower case
    body: dict[str, Any]
    came_s: float = 0.0  # on the monotonic clock
    raw: bytes = b""  # the body as it came

    @property
    def is_streamed(self) -> bool:
        return bool(self.body.get("stream")) or self.path.endswith(":streamGenerateContent")

    @property
    def seen(self) -> Seen:
        """What the model reads of it."""
        return seen_in(self.path, self.body)


def available_tools(request: Request) -> set[str]:
    """The names of the tools that the model may call, in a request that was not refused."""
    names: set[str] = DIALECTS[request.path].available_tools(request.headers, request.body)
    return names


class LoopbackApi(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, *, is_strict: bool = True) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.is_strict = is_strict
        self.replies: list[Reply | Failure | Raw] = []
        self.answer: Callable[[dict[str, Any]], Reply | Failure | Raw] | None = None
        self.play: Callable[[Seen], Reply | Failure | Raw] | None = None
        self.requests: list[Request] = []
        self.refusals: list[str] = []
        self.remembers = True
        self.cache: PromptCache | None = None
        self.hung_up = threading.Event()
        self.memory = Memory()
        self.lock = threading.Lock()
        self._ids = count(1)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def openai_url(self) -> str:
        return f"{self.url}/v1"

    def script(self, *replies: Reply | Failure | Raw) -> None:
        """Answer the next requests with *replies*, after those that are still there."""
        self.replies.extend(replies)

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [request.body for request in self.requests]

    @property
    def tools(self) -> list[list[str]]:
        """The names of the tools in each request; a search tool without a name goes by its type."""
        return [[_name(tool) for tool in body.get("tools", [])] for body in self.bodies]

    def new_id(self, prefix: str) -> str:
        return f"{prefix}_{next(self._ids)}"

    def next_reply(self, request: Request) -> Reply | Failure | Raw:
        if self.play is not None:
            return self.play(request.seen)
        if self.answer is not None:
            return self.answer(request.body)
        if not self.replies:
            raise RefusedError("the script has no reply left")
        return self.replies.pop(0)


def _name(tool: dict[str, Any]) -> str:
    return tool.get("name") or tool.get("function", {}).get("name") or tool["type"]


class _Handler(BaseHTTPRequestHandler):
    server: LoopbackApi
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if not self.server.is_strict and self.path.partition("?")[0] == "/v1/models":
            self._json(200, _MODELS)
        else:
            self._json(404, {"error": {"type": "not_found", "message": f"no such path: {self.path}"}})

    def do_POST(self) -> None:
        content = self._content()
        path = self.path.partition("?")[0]
        if not self.server.is_strict and path.endswith(("/count_tokens", ":countTokens")):
            self._json(200, _COUNTED)
            return
        dialect = gemini if not self.server.is_strict and gemini.PATH.fullmatch(path) else DIALECTS.get(path)
        if dialect is None:
            self._json(404, {"error": {"type": "not_found", "message": f"no such path: {self.path}"}})
            return
        body = json.loads(content)
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            with self.server.lock:
                request = Request(path, headers, body, time.monotonic(), content)
                self.server.requests.append(request)
                reply, message = self._answer(dialect, request)
        except RefusedError as refused:
            self.server.refusals.append(refused.message)
            self._json(refused.status, dialect.error(refused.status, refused.code, refused.message))
            return
        if isinstance(reply, Failure) and not (reply.in_stream and request.is_streamed):
            self._json(reply.status, dialect.error(reply.status, reply.code, reply.message))
        elif isinstance(reply, Raw) and not request.is_streamed:
            self._json(200, reply.body)
        elif request.is_streamed:
            self._stream(dialect, reply, body, message)
        else:
            self._json(200, message)

    def _content(self) -> bytes:
        """The body of a request, which some programs send in chunks."""
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        chunks: list[bytes] = []
        while size := int(self.rfile.readline(), 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(chunks)

    def _answer(self, dialect: ModuleType, request: Request) -> tuple[Reply | Failure | Raw, dict[str, Any]]:
        body, memory = request.body, self.server.memory
        if not self.server.is_strict:
            reply = self.server.next_reply(request)
            return reply, dialect.render(reply if isinstance(reply, Reply) else Reply(), body, self.server.new_id)
        dialect.check(request.headers, body)
        conversation = dialect.conversation(body)
        if self.server.remembers:
            memory.verify(dialect.thoughts_of(body), is_bound=dialect.is_bound(body))
            memory.check(conversation, dialect.call_ids(conversation))
        reply = self.server.next_reply(request)
        said = reply if isinstance(reply, Reply) else Reply("This will not")
        if self.server.cache is not None:
            said = replace(said, usage=self.server.cache.use(request.path, body["model"], dialect.rendered(body)))
        message = dialect.render(said, body, self.server.new_id)
        own = dialect.said(message)
        memory.note(conversation + own, dialect.call_ids(own))
        memory.sign(dialect.thoughts(message, body))
        return reply, message

    def _stream(
        self, dialect: ModuleType, reply: Reply | Failure | Raw, body: dict[str, Any], message: dict[str, Any]
    ) -> None:
        events = list(dialect.events(message, body))
        if isinstance(reply, Raw):
            events = [event(each, each.get("type", "") if isinstance(each, dict) else "") for each in reply.events]
        elif isinstance(reply, Failure):
            events = [*events[: len(events) // 2], dialect.error_event(reply.code, reply.message)]
        elif reply.ending != "whole":
            events = events[: len(events) // 2]
        try:
            self._send(events, reply.ending if isinstance(reply, Reply) else "whole")
        except ConnectionError:  # the client hung up in the midst of it
            self.server.hung_up.set()

    def _send(self, events: list[str], ending: str) -> None:
        self._head(200, "text/event-stream", ("Transfer-Encoding", "chunked"))
        for each in events:
            self._chunk(each.encode())
        if ending == "held":
            self.connection.settimeout(_PATIENCE_S)
            if self.connection.recv(1) == b"":
                self.server.hung_up.set()
        elif ending != "cut":
            self._chunk(b"")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

    def _json(self, status: int, message: Any) -> None:
        data = json.dumps(message).encode()
        self._head(status, "application/json", ("Content-Length", str(len(data))))
        self.wfile.write(data)

    def _head(self, status: int, content_type: str, length: tuple[str, str]) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header(*length)
        self.send_header("Connection", "close")
        if status == 429:
            self.send_header("retry-after-ms", "1")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackApi]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with LoopbackApi() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()
