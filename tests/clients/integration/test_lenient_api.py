"""The model API for real programs: it takes what they send, in the ways in which they send it."""

import http.client
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.kit.loopback import Call, LoopbackApi, Reply

GEMINI = "/v1beta/models/m:streamGenerateContent?alt=sse"


@pytest.fixture
def lenient() -> Iterator[LoopbackApi]:
    with LoopbackApi(is_strict=False) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def send(api: LoopbackApi, method: str, path: str, body: Any = None, *, is_chunked: bool = False) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", api.server_port)
    data = json.dumps(body).encode()
    connection.request(method, path, iter([data[:5], data[5:]]) if is_chunked else data, encode_chunked=is_chunked,
        headers={"Transfer-Encoding": "chunked"} if is_chunked else {})  # fmt: skip
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def test_gemini_is_streamed_with_its_calls(lenient: LoopbackApi) -> None:
    lenient.play = lambda seen: Reply(calls=[Call("now", {"said": seen.said})])

    status, text = send(lenient, "POST", GEMINI, {"contents": [{"role": "user", "parts": [{"text": "When?"}]}]})

    [part] = json.loads(text.removeprefix("data: "))["candidates"][0]["content"]["parts"]
    assert (status, part["functionCall"]["name"], part["functionCall"]["args"]) == (200, "now", {"said": "When?"})


def test_a_call_in_a_namespace_of_responses_names_the_two_apart(lenient: LoopbackApi) -> None:
    lenient.play = lambda _: Reply(calls=[Call("mcp__clock.now")])

    _, text = send(lenient, "POST", "/v1/responses", {"model": "m", "input": [], "undocumented": 1})

    [item] = json.loads(text)["output"]
    assert (item["type"], item["namespace"], item["name"]) == ("function_call", "mcp__clock", "now")


def test_a_body_may_come_in_chunks(lenient: LoopbackApi) -> None:
    lenient.play = lambda seen: Reply(seen.said)
    body = {"model": "m", "messages": [{"role": "user", "content": "When?"}]}

    _, text = send(lenient, "POST", "/v1/chat/completions", body, is_chunked=True)

    assert json.loads(text)["choices"][0]["message"]["content"] == "When?"


def test_models_and_counts_are_told_and_the_rest_is_not_there(lenient: LoopbackApi) -> None:
    assert json.loads(send(lenient, "GET", "/v1/models")[1])["data"][0]["id"] == "m"
    assert json.loads(send(lenient, "POST", "/v1/messages/count_tokens", {})[1])["input_tokens"] > 0
    assert json.loads(send(lenient, "POST", "/v1beta/models/m:countTokens", {})[1])["totalTokens"] > 0
    assert send(lenient, "GET", "/v1/nothing")[0] == 404
    assert send(lenient, "POST", "/v1/nothing", {})[0] == 404
    assert lenient.requests == []
