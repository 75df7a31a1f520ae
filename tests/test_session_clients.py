"""A session in the loop of the official clients: what a model's API is sent, request by request, by a real SDK.

The API is a server on the loopback interface whose model follows a script: search, call two tools at once, answer.
"""

import json
import threading
from collections.abc import Awaitable, Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from toolsearch import Catalog, PassThrough, Session, SessionOptions, ToolSearch

SEARCH = "toolSearchTool"
QUESTION = "What is 7 o'clock one zone further east? And pay the bill."


def convert_time(hour: int) -> int:
    """Convert an hour from one time zone to another."""
    return hour + 1


def pay_bill(amount: float) -> str:
    """Pay a bill with money."""
    raise RuntimeError(f"no {amount:g} left")


class ScriptedApi(ThreadingHTTPServer):
    """Answers each request with the next of *replies*, and keeps what it was sent."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.replies: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.requests: list[dict[str, Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def tools(self, name_of: Callable[[dict[str, Any]], str]) -> list[list[str]]:
        """The names of the tools in each request."""
        return [[name_of(entry) for entry in request["tools"]] for request in self.requests]


class _Handler(BaseHTTPRequestHandler):
    server: ScriptedApi

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.paths.append(self.path)
        self.server.requests.append(json.loads(body))
        reply = json.dumps(self.server.replies.pop(0)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedApi]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with ScriptedApi() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def session() -> Session:
    engine = ToolSearch(
        Catalog.from_functions([convert_time, pay_bill]), options=SessionOptions(pass_through=PassThrough(max_tools=0))
    )
    return engine.session("user-42")


Step = Callable[[], Awaitable[str | None]]


async def until_answered(step: Step) -> str:
    """Make one request after the other until the model gives a text."""
    while (text := await step()) is None:
        pass
    return text


def assert_what_became_of(session: Session, tools: list[list[str]]) -> None:
    """The list of tools grew once, at its end, and stayed as long as the turn did."""
    found = [SEARCH, "convert_time", "pay_bill"]
    assert tools == [[SEARCH], found, found]
    assert session.discovered == found[1:]
    counters = session.state.counters
    assert (counters.requests, counters.search_rounds, counters.calls, counters.failed_calls) == (3, 1, 2, 1)


def chat(message: dict[str, Any]) -> dict[str, Any]:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": None} | message}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}


def chat_call(call_id: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


async def test_openai_chat_completions(api: ScriptedApi, session: Session) -> None:
    api.replies = [
        chat({"tool_calls": [chat_call("1", SEARCH, {"query": "convert time zone or bill"})]}),
        chat({"tool_calls": [chat_call("2", "convert_time", {"hour": 7}), chat_call("3", "pay_bill", {"amount": 5})]}),
        chat({"content": "8. There is no money."}),
    ]
    messages: list[Any] = [{"role": "user", "content": QUESTION}]

    async with AsyncOpenAI(api_key="k", base_url=api.url, max_retries=0) as client:

        async def step() -> str | None:
            tools: Any = session.tools(format="openai")
            reply = await client.chat.completions.create(model="m", messages=messages, tools=tools)
            messages.append(reply.choices[0].message.model_dump(exclude_none=True))
            messages.extend(await session.execute(reply))
            return reply.choices[0].message.content

        assert await until_answered(step) == "8. There is no money."

    assert_what_became_of(session, api.tools(lambda entry: entry["function"]["name"]))
    assert set(api.paths) == {"/chat/completions"}
    _, _, search, _, converted, paid = api.requests[2]["messages"]
    assert (search["role"], search["tool_call_id"]) == ("tool", "1")
    assert search["content"].startswith("2 tools found, 2 of them new.")
    assert converted == {"role": "tool", "tool_call_id": "2", "content": "8"}
    assert (paid["tool_call_id"], paid["content"]) == ("3", "Error: no 5 left")


def response(*output: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": "r", "object": "response", "created_at": 1, "model": "m", "output": list(output),
        "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
    }  # fmt: skip


def response_call(call_id: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "function_call",
        "id": f"fc_{call_id}",
        "call_id": call_id,
        "name": name,
        "arguments": json.dumps(arguments),
    }


async def test_openai_responses(api: ScriptedApi, session: Session) -> None:
    text = {"type": "output_text", "text": "8. There is no money.", "annotations": []}
    api.replies = [
        response(
            {"type": "reasoning", "id": "rs", "summary": []},
            response_call("1", SEARCH, {"query": "convert time zone or bill"}),
        ),
        response(response_call("2", "convert_time", {"hour": 7}), response_call("3", "pay_bill", {"amount": 5})),
        response({"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [text]}),
    ]
    items: list[Any] = [{"role": "user", "content": QUESTION}]

    async with AsyncOpenAI(api_key="k", base_url=api.url, max_retries=0) as client:

        async def step() -> str | None:
            tools: Any = session.tools(format="openai-responses")
            reply = await client.responses.create(model="m", input=items, tools=tools)
            items.extend(item.model_dump(exclude_none=True) for item in reply.output)
            items.extend(await session.execute(reply))
            return reply.output_text or None

        assert await until_answered(step) == "8. There is no money."

    assert_what_became_of(session, api.tools(lambda entry: entry["name"]))
    assert set(api.paths) == {"/responses"}
    results = [item for item in api.requests[2]["input"] if item.get("type") == "function_call_output"]
    assert [result["call_id"] for result in results] == ["1", "2", "3"]
    assert [result["output"] for result in results[1:]] == ["8", "Error: no 5 left"]


def anthropic_message(*content: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": "m", "type": "message", "role": "assistant", "model": "m", "content": list(content),
        "stop_reason": "tool_use", "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
    }  # fmt: skip


def tool_use(call_id: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


async def test_anthropic_messages(api: ScriptedApi, session: Session) -> None:
    api.replies = [
        anthropic_message(
            {"type": "text", "text": "Let me see."}, tool_use("1", SEARCH, {"query": "convert time zone or bill"})
        ),
        anthropic_message(tool_use("2", "convert_time", {"hour": 7}), tool_use("3", "pay_bill", {"amount": 5})),
        anthropic_message({"type": "text", "text": "8. There is no money."}),
    ]
    messages: list[Any] = [{"role": "user", "content": QUESTION}]

    async with AsyncAnthropic(api_key="k", base_url=api.url, max_retries=0) as client:

        async def step() -> str | None:
            tools: Any = session.tools(format="anthropic")
            reply = await client.messages.create(model="m", max_tokens=100, messages=messages, tools=tools)
            messages.append({"role": "assistant", "content": [b.model_dump(exclude_none=True) for b in reply.content]})
            results = await session.execute(reply)
            messages.extend(results)
            return None if results else "".join(block.text for block in reply.content if block.type == "text")

        assert await until_answered(step) == "8. There is no money."

    assert_what_became_of(session, api.tools(lambda entry: entry["name"]))
    assert set(api.paths) == {"/v1/messages"}
    answer = api.requests[2]["messages"][-1]
    assert answer["role"] == "user"  # both results in one message, as the API wants them
    assert [(block["tool_use_id"], block["is_error"]) for block in answer["content"]] == [("2", False), ("3", True)]
    assert answer["content"][1]["content"] == [{"type": "text", "text": "no 5 left"}]
