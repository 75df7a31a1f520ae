"""Bodies as real programs and official SDKs write them keep all their bytes when nothing of ours is in play."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import httpx2
import pytest
from anthropic import Anthropic, AsyncAnthropic
from openai import AsyncOpenAI, OpenAI

from benchmarks.clients.running import scripted_model
from tests.kit.loopback import Call, Reply, Request, Seen
from tests.kit.proxied import served_proxy
from tests.proxy.recordings.record import with_numbers
from toolsearch.proxy.body import Body

RECORDINGS = sorted((Path(__file__).parents[1] / "recordings").glob("*.json"))
recorded = pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"zone": {"type": "string", "description": "Größe \u2028 é"}}}
FUNCTION: dict[str, Any] = {"name": "now", "description": "Tells the time.", "parameters": SCHEMA}
CHAT: dict[str, Any] = {
    "model": "gpt-4.1",
    "messages": [{"role": "user", "content": "When? 🕛"}],
    "tools": [{"type": "function", "function": FUNCTION}],
    "temperature": 1.0,
    "extra_body": {"unknown": {"b": 1, "a": None}},
}
RESPONSES: dict[str, Any] = {
    "model": "gpt-4.1",
    "input": "When? 🕛",
    "tools": [{"type": "function", "strict": False, **FUNCTION}],
    "extra_body": {"unknown": [1e-7, 1.50]},
}
MESSAGES: dict[str, Any] = {
    "model": "claude-sonnet-5",
    "max_tokens": 64,
    "messages": [{"role": "user", "content": [{"type": "text", "text": "When? 🕛"}]}],
    "tools": [{"name": "now", "input_schema": SCHEMA, "cache_control": {"type": "ephemeral"}}],
    "extra_body": {"unknown": '\u0000 \\ / "'},
}


async def openai_async(url: str) -> None:
    async with AsyncOpenAI(api_key="k", base_url=f"{url}/v1") as client:
        await client.chat.completions.create(**CHAT)
        await client.responses.create(**RESPONSES)
        async with client.responses.stream(**RESPONSES) as stream:
            await stream.get_final_response()


def openai_sync(url: str) -> None:
    with OpenAI(api_key="k", base_url=f"{url}/v1") as client:
        client.responses.create(**RESPONSES)
        assert [*client.chat.completions.create(**CHAT, stream=True)]


async def anthropic_async(url: str) -> None:
    async with AsyncAnthropic(api_key="k", base_url=url) as client:
        await client.messages.create(**MESSAGES)
        async with client.messages.stream(**MESSAGES) as stream:
            await stream.get_final_message()


def anthropic_sync(url: str) -> None:
    with Anthropic(api_key="k", base_url=url) as client:
        client.beta.messages.create(**MESSAGES, betas=["context-management-2025-06-27"])
        with client.messages.stream(**MESSAGES) as stream:
            stream.get_final_message()


def _sent(request: Request) -> tuple[str, bytes, dict[str, str]]:
    return request.path, request.raw, _told(request)


def _answer(seen: Seen) -> Reply:
    return Reply("Let me look.", calls=[Call("now", {"zone": "Europe/Oslo"})])


@pytest.mark.parametrize("talk", [openai_async, openai_sync, anthropic_async, anthropic_sync])
def test_what_the_official_sdks_send_for_a_few_tools_passes_with_its_bytes(
    talk: Callable[[str], Coroutine[Any, Any, None] | None],
) -> None:
    with scripted_model() as api, served_proxy(api.url) as url:
        api.play = _answer
        for place in (api.url, url):
            if (talking := talk(place)) is not None:
                asyncio.run(talking)

    half = len(api.requests) // 2
    assert half > 1
    assert [*map(_sent, api.requests[half:])] == [*map(_sent, api.requests[:half])]


@recorded
@pytest.mark.parametrize("is_off", [True, False])
def test_what_real_programs_send_passes_with_its_bytes(path: Path, is_off: bool) -> None:
    """Switched off by a header, or with too few tools to hold back."""
    recording = json.loads(path.read_text(encoding="utf-8"))
    body = recording["body"]
    if not is_off:
        body = _with_few_tools(body)
    with scripted_model() as api, served_proxy(api.url) as url:
        api.play = _answer
        headers = recording["headers"] | ({"x-toolsearch": "off"} if is_off else {})
        answer = httpx2.post(url + recording["path"], content=body.encode(), headers=headers)

    [request] = api.requests
    assert answer.status_code == 200
    assert request.raw == body.encode()
    assert _told(request) == {name: value for name, value in recording["headers"].items() if name in _told(request)}


def _with_few_tools(body: str) -> str:
    """The body with the first three of its tools, as its writer wrote them."""
    read = Body.read(body.encode(), lists=("tools",))
    assert read is not None
    few = ",".join(text for _, text in read.items("tools")[:3])
    part = read.parts["tools"]
    return f"{body[: part.start]}[{few}]{body[part.end :]}"


def _told(request: Request) -> dict[str, str]:
    return {name: value for name, value in request.headers.items() if name.startswith(("anthropic-", "x-", "user-"))}


@recorded
def test_a_recording_holds_no_id_of_a_session_or_an_installation(path: Path) -> None:
    text = path.read_text(encoding="utf-8")

    assert text == with_numbers(text)


@recorded
def test_a_body_that_is_read_and_written_has_its_bytes(path: Path) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))["body"].encode()
    body = Body.read(content)

    assert body is not None
    assert body.text.encode() == content
    assert {key: json.loads(body.written(part)) for key, part in body.parts.items()} == json.loads(content)
