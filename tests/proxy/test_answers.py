"""Answers of a model API that are odd or far too large."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from tests.wire.proxied.scripts import search, written
from tests.wire.proxied.test_openai_chat import DONE, Said, chunk, streamed
from toolsearch.proxy.app import ProxyApp
from toolsearch.proxy.upstream import Upstream
from toolsearch.settings import Settings
from toolsearch.wire import events

SETTINGS = Settings.model_validate({"index": {"encoder": None, "strategy": "keyword"}})
TOOLS: list[dict[str, Any]] = [
    {"type": "function", "function": {"name": f"thing_{number}", "description": "Does a thing.", "parameters": {}}}
    for number in range(20)
]
STREAM = "text/event-stream"


async def in_pieces(content: bytes) -> AsyncIterator[bytes]:
    for begin in range(0, len(content), 500):
        yield content[begin : begin + 500]


def upstream(content: bytes, kind: str = STREAM, **headers: str) -> Upstream:
    """A model API that gives the same answer to all requests."""
    head = {"content-type": kind, **headers}
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, headers=head, content=in_pieces(content)))
    return Upstream("https://model.example", silence_s=9, transport=transport)


def answered(content: bytes, kind: str = STREAM) -> httpx2.Response:
    """What a client of Chat Completions gets."""

    async def asking() -> httpx2.Response:
        app: Any = ProxyApp(upstream(content, kind), SETTINGS, None)
        said = [{"role": "user", "content": "Hi"}]
        body: dict[str, Any] = {"model": "gpt-5.1", "messages": said, "tools": TOOLS, "stream": kind == STREAM}
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://proxy") as client:
            return await client.post("/v1/chat/completions", json=body)

    got = asyncio.run(asking())
    assert "x-toolsearch-held-back" in got.headers or got.status_code == 502
    return got


def test_an_answer_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MOST_EVENT_BYTES", 1_000)
    got = answered(json.dumps({"choices": [], "more": "a" * 1_000}).encode(), "application/json")

    assert got.status_code == 502
    assert "more than 1,000 bytes" in got.json()["error"]["message"]


def test_calls_that_never_end_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MOST_EVENT_BYTES", 10_000)
    called = streamed(Said(calls=(search("c1", "a" * 100),)))[:2]
    got = answered(written([*called, *(100 * [chunk({"tool_calls": [{"index": 0, "function": {}}]})])]))

    assert "more than 10,000 bytes" in got.text


def test_a_long_text_is_passed_on_however_long_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MOST_EVENT_BYTES", 1_000)
    sent = written(streamed(Said("a" * 100, finish="stop")))

    assert answered(sent).content == sent


def test_a_stream_whose_last_line_has_no_blank_line_after_it_keeps_its_bytes() -> None:
    sent = written(streamed(Said("Hello.", finish="stop"))).removesuffix(b"\n")

    assert sent.endswith(b"data:[DONE]\n")
    assert answered(sent).content == sent


def test_a_stream_that_ends_without_a_reason_is_whole_but_nothing_of_it_runs() -> None:
    sent = written([chunk({"role": "assistant", "content": "Hello."}), DONE])
    assert answered(sent).content == sent

    called = streamed(Said(calls=(search("c1"),)))
    got = answered(written([*(event for event in called[:-2]), DONE]))
    assert "Found" not in got.text
    assert "tool_calls" not in got.text
    assert "error" not in got.text


def test_a_stream_with_no_end_at_all_is_an_error() -> None:
    assert "too early" in answered(written([chunk({"role": "assistant", "content": "Hello."})])).text


def test_no_cookie_of_the_model_api_is_kept() -> None:
    api = upstream(b"{}", **{"set-cookie": "a=b; Path=/"})

    async def asking() -> list[Any]:
        async with api.send("GET", b"/v1/models", [(b"host", b"model.example")], b"") as answer:
            assert (b"set-cookie", b"a=b; Path=/") in answer.headers
        return list(vars(api)["_client"].cookies.jar)

    assert asyncio.run(asking()) == []
