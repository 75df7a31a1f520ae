"""The fake provider: one Starlette app for the Messages, Responses and Chat Completions wires."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from . import chat_out, messages_out, responses_out
from .brain import Brain, RandomBrain
from .cache import Count, PrefixCache
from .chat_check import check_chat
from .core import (
    ANTHROPIC_KINDS,
    OPENAI_KINDS,
    Json,
    Refusal,
    RefusalRecord,
    RequestRecord,
    Wire,
    canonical,
    error_body,
    new_id,
)
from .faults import Fault, Script, pick
from .gpt_common import check_auth
from .ledger import Ledger
from .messages_check import check_headers, check_messages
from .models import CLAUDE, GPT, ClaudeTraits, GptTraits
from .responses_check import check_responses


class Broken(Exception):
    """Raised inside a stream to break the connection off."""


class StrictUpstreams:
    """The state of the fake: brain, faults, what was issued, what was seen.

    `requests` holds every generation request, `refusals` every refused one. Both, like `brain` and `faults`, may be
    read and set while the server runs.
    """

    def __init__(
        self,
        brain: Brain | None = None,
        *,
        faults: Script | None = None,
        seed: int = 0,
        claude: dict[str, ClaudeTraits] | None = None,
        gpt: dict[str, GptTraits] | None = None,
        keep_bodies: bool = True,
        least_cached: int = 0,
        chunk_seed: int | None = None,
    ) -> None:
        self.brain: Brain = brain if brain is not None else RandomBrain(seed)
        self.faults = faults
        self.claude = dict(CLAUDE if claude is None else claude)
        self.gpt = dict(GPT if gpt is None else gpt)
        self.keep_bodies = keep_bodies
        self.ledger = Ledger()
        self.cache = PrefixCache(least=least_cached)
        self.requests: list[RequestRecord] = []
        self.refusals: list[RefusalRecord] = []
        self._rng = random.Random(seed if chunk_seed is None else chunk_seed)
        self._numbers: Iterator[int] = iter(range(10**9))
        self.app = Starlette(
            routes=[
                Route("/v1/messages", self._messages, methods=["POST"]),
                Route("/v1/messages/count_tokens", self._count, methods=["POST"]),
                Route("/v1/responses", self._responses, methods=["POST"]),
                Route("/v1/chat/completions", self._chat, methods=["POST"]),
                Route("/v1/models", self._models, methods=["GET"]),
                Route("/v1/models/{name}", self._model, methods=["GET"]),
            ]
        )

    # --- entry points -------------------------------------------------------------------------------------------

    async def _messages(self, request: Request) -> Response:
        return await self._serve(request, "messages")

    async def _responses(self, request: Request) -> Response:
        return await self._serve(request, "responses")

    async def _chat(self, request: Request) -> Response:
        return await self._serve(request, "chat")

    async def _count(self, request: Request) -> Response:
        record = RequestRecord(-1, "messages", request.url.path)
        try:
            betas = check_headers(request.headers)
            body = await self._body(request, "messages")
            checked = check_messages(body, betas, self.claude, self.ledger, counting=True)
        except Refusal as refusal:
            return self._refuse(refusal, record, None)
        return JSONResponse({"input_tokens": self.cache.marked("count", checked.segments, write=False).total})

    async def _models(self, request: Request) -> Response:
        if request.headers.get("anthropic-version"):
            data = [self._claude_model(name) for name in self.claude]
            return JSONResponse({"data": data, "has_more": False, "first_id": data[0]["id"], "last_id": data[-1]["id"]})
        return JSONResponse({"object": "list", "data": [self._gpt_model(name) for name in self.gpt]})

    async def _model(self, request: Request) -> Response:
        name = request.path_params["name"]
        anthropic = bool(request.headers.get("anthropic-version"))
        if anthropic and name in self.claude:
            return JSONResponse(self._claude_model(name))
        if not anthropic and name in self.gpt:
            return JSONResponse(self._gpt_model(name))
        wire: Wire = "messages" if anthropic else "chat"
        refusal = Refusal(
            "model",
            f"model: {name}" if anthropic else f"The model '{name}' does not exist",
            status=404,
            kind="not_found_error" if anthropic else "invalid_request_error",
            param="model",
            code="model_not_found",
        )
        return self._refuse(refusal, RequestRecord(-1, wire, request.url.path), None)

    @staticmethod
    def _claude_model(name: str) -> Json:
        return {
            "type": "model",
            "id": name,
            "display_name": name.replace("-", " ").title(),
            "created_at": "2026-01-01T00:00:00Z",
            "lifecycle": "active",
            "max_input_tokens": 1_000_000,
            "max_tokens": 128_000,
        }

    @staticmethod
    def _gpt_model(name: str) -> Json:
        return {"id": name, "object": "model", "created": 1_767_225_600, "owned_by": "openai"}

    # --- one request --------------------------------------------------------------------------------------------

    async def _body(self, request: Request, wire: Wire) -> Any:
        raw = await request.body()
        try:
            return json.loads(raw)
        except ValueError:
            text = (
                "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your "
                "HTTP library correctly.)"
            )
            if wire == "messages":
                text = "The request body is not valid JSON"
            raise Refusal("json", text) from None

    async def _serve(self, request: Request, wire: Wire) -> Response:
        number = next(self._numbers)
        record = RequestRecord(number, wire, request.url.path, headers=dict(request.headers))
        self.requests.append(record)
        fault = pick(self.faults, number, wire)
        body: Any = None
        try:
            body = await self._body(request, wire)
            if self.keep_bodies:
                record.body = body
            if isinstance(body, dict):
                record.model = str(body.get("model"))
                record.stream = body.get("stream") is True
            early = await self._early(fault, wire, record)
            if early is not None:
                return early
            whole, stream = self._answer(wire, body, request, record)
        except Refusal as refusal:
            return self._refuse(refusal, record, body)
        record.status = 200
        record.reply = whole if self.keep_bodies else None
        name = new_id("req_01")
        headers = {"request-id" if wire == "messages" else "x-request-id": name}
        if fault is not None:
            record.fault = fault.label
        if record.stream:
            return StreamingResponse(
                self._paced(stream, fault, wire),
                media_type="text/event-stream; charset=utf-8",
                headers={**headers, "cache-control": "no-cache"},
            )
        if fault is not None and fault.kind in ("cut", "close", "error_event", "drip"):
            text = json.dumps(whole, ensure_ascii=False).encode()
            return StreamingResponse(self._slow(text, fault), media_type="application/json", headers=headers)
        return JSONResponse(whole, headers=headers)

    def _answer(self, wire: Wire, body: Any, request: Request, record: RequestRecord) -> tuple[Json, list[bytes]]:
        """Check the request, run the brain and write the answer in both forms."""
        rng = random.Random(self._rng.random())
        lines: list[bytes]
        if wire == "messages":
            record.betas = check_headers(request.headers)
            checked = check_messages(body, record.betas, self.claude, self.ledger)
            count = self.cache.marked(f"messages:{checked.model}", checked.segments)
            self._note(record, body.get("tools"), [tool.name for tool in checked.tools if tool.callable], count)
            record.thinking_dropped = len(checked.transformations)
            whole, raw = messages_out.answer(checked, self.brain, self.ledger, count)
            record.called = [block["name"] for block in whole["content"] if block["type"].endswith("tool_use")]
            record.stop = whole["stop_reason"]
            record.output_tokens = whole["usage"]["output_tokens"]
            lines = [_sse(name, data) for name, data in messages_out.events(whole, raw, rng)]
            return whole, lines
        check_auth(request.headers)
        if wire == "responses":
            asked = check_responses(body, self.gpt, self.ledger)
            count = self.cache.automatic(f"responses:{asked.model}", asked.segments)
            self._note(record, body.get("tools"), [tool.name for tool in asked.tools if tool.callable], count)
            whole = responses_out.answer(asked, self.brain, self.ledger, count)
            record.called = [
                item.get("name", "tool_search") for item in whole["output"] if item["type"].endswith("_call")
            ]
            record.stop = whole["status"]
            record.output_tokens = whole["usage"]["output_tokens"]
            return whole, [_sse(name, data) for name, data in responses_out.events(whole, rng)]
        chat = check_chat(body, self.gpt)
        count = self.cache.automatic(f"chat:{chat.model}", chat.segments)
        self._note(record, body.get("tools"), [tool.name for tool in chat.tools if tool.callable], count)
        whole = chat_out.answer(chat, self.brain, count)
        calls = whole["choices"][0]["message"].get("tool_calls") or []
        record.called = [call[call["type"]]["name"] for call in calls]
        record.stop = whole["choices"][0]["finish_reason"]
        record.output_tokens = whole["usage"]["completion_tokens"]
        lines = [b"data: " + _compact(chunk) + b"\n\n" for chunk in chat_out.chunks(whole, chat.include_usage, rng)]
        return whole, [*lines, b"data: [DONE]\n\n"]

    @staticmethod
    def _note(record: RequestRecord, tools: Any, visible: list[str], count: Count) -> None:
        listed = tools or []
        record.tool_names = [str(_name(tool)) for tool in listed]
        record.visible_names = visible
        record.tools_bytes = len(canonical(listed).encode())
        record.cached_tokens = count.cached
        record.written_tokens = count.written

    def _refuse(self, refusal: Refusal, record: RequestRecord, body: Any) -> Response:
        record.status = refusal.status
        self.refusals.append(
            RefusalRecord(
                record.wire,
                refusal.check,
                refusal.message,
                refusal.status,
                refusal.param,
                body if self.keep_bodies else None,
                record.number,
            )
        )
        name = new_id("req_01")
        return JSONResponse(
            error_body(record.wire, refusal, name),
            refusal.status,
            headers={"request-id" if record.wire == "messages" else "x-request-id": name},
        )

    # --- faults -------------------------------------------------------------------------------------------------

    async def _early(self, fault: Fault | None, wire: Wire, record: RequestRecord) -> Response | None:
        """Faults that come before any answer."""
        if fault is None or fault.kind not in ("status", "hang", "junk", "empty"):
            return None
        record.fault = fault.label
        record.status = fault.status if fault.kind == "status" else 200
        if fault.kind == "status":
            refusal = _fault_error(wire, fault.status)
            headers = {"retry-after": fault.retry_after} if fault.retry_after is not None else {}
            return JSONResponse(error_body(wire, refusal, new_id("req_01")), fault.status, headers=headers)
        if fault.kind == "hang":
            await asyncio.sleep(fault.seconds)
            return StreamingResponse(_breaking(), media_type="application/json")
        if fault.kind == "empty":
            return Response(b"", 200, media_type="text/event-stream" if record.stream else "application/json")
        if record.stream:
            return Response(
                b"event: nonsense\ndata: {not json\n\n\x00\xff\xfe<html>", 200, media_type="text/event-stream"
            )
        return Response(b"<html><body>502 Bad Gateway</body></html>", 200, media_type="application/json")

    async def _paced(self, lines: Iterable[bytes], fault: Fault | None, wire: Wire) -> AsyncIterator[bytes]:
        """The stream, with the fault in its place."""
        for place, line in enumerate(lines):
            if fault is not None and fault.kind in ("cut", "close", "error_event") and place >= fault.event:
                if fault.kind == "cut":
                    if fault.bytes:
                        yield line[: fault.bytes]
                    await asyncio.sleep(0.01)
                    raise Broken
                if fault.kind == "error_event":
                    yield _error_line(wire, fault.status, place)
                return
            if fault is not None and fault.kind == "drip":
                await asyncio.sleep(fault.seconds)
            yield line
            if place % 8 == 7:
                await asyncio.sleep(0)

    @staticmethod
    async def _slow(text: bytes, fault: Fault) -> AsyncIterator[bytes]:
        half = len(text) // 2
        yield text[:half]
        if fault.kind == "drip":
            await asyncio.sleep(fault.seconds)
            yield text[half:]
            return
        await asyncio.sleep(0.01)
        if fault.kind == "cut":
            raise Broken

    # --- running ------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def serve(self) -> Iterator[str]:
        """Serve on a free loopback port in a thread; gives the base URL without `/v1`."""
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        config = uvicorn.Config(
            self.app, log_level="critical", lifespan="off", access_log=False, timeout_graceful_shutdown=1
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=lambda: asyncio.run(_served(server, listener)), daemon=True)
        thread.start()
        try:
            deadline = time.monotonic() + 10
            while not server.started:
                if time.monotonic() > deadline or not thread.is_alive():
                    raise RuntimeError("the fake provider did not start")
                time.sleep(0.01)
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(5)
            listener.close()

    def clear(self) -> None:
        """Forget what was seen, but not what was issued or cached."""
        self.requests.clear()
        self.refusals.clear()


async def _served(server: uvicorn.Server, listener: socket.socket) -> None:
    await server.serve([listener])
    await asyncio.sleep(0.01)  # connections that the end has closed


def _name(tool: Any) -> Any:
    if not isinstance(tool, dict):
        return tool
    inner = tool.get("function") or tool.get("custom") or tool
    return inner.get("name") or tool.get("type") if isinstance(inner, dict) else tool.get("type")


def _compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _sse(name: str, data: Json) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + _compact(data) + b"\n\n"


def _fault_error(wire: Wire, status: int) -> Refusal:
    if wire == "messages":
        return Refusal(
            "fault",
            {529: "Overloaded", 429: "This request would exceed your rate limit."}.get(status, "Internal server error"),
            status=status,
            kind=ANTHROPIC_KINDS.get(status, "api_error"),
        )
    return Refusal(
        "fault",
        {429: "Rate limit reached for requests."}.get(
            status, "The server had an error while processing your request. Sorry about that!"
        ),
        status=status,
        kind=OPENAI_KINDS.get(status, "server_error"),
        code="rate_limit_exceeded" if status == 429 else None,
    )


def _error_line(wire: Wire, status: int, place: int) -> bytes:
    if wire == "messages":
        kind = ANTHROPIC_KINDS.get(status, "api_error")
        return _sse(
            "error", {"type": "error", "error": {"type": kind, "message": "Overloaded"}, "request_id": new_id("req_01")}
        )
    if wire == "responses":
        return _sse(
            "error",
            {
                "type": "error",
                "sequence_number": place,
                "code": "server_error",
                "param": None,
                "message": "The server had an error while processing your request.",
            },
        )
    return (
        b"data: "
        + _compact(
            {
                "error": {
                    "message": "The server had an error while processing your request.",
                    "type": "server_error",
                    "param": None,
                    "code": None,
                }
            }
        )
        + b"\n\n"
    )


async def _breaking() -> AsyncIterator[bytes]:
    yield b" "
    raise Broken
