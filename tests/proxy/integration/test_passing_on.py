"""Requests that the proxy does not change: they pass with all their bytes, and so do the answers."""

import gzip
import json
import logging
import socket
import threading
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.kit.proxied import exchanged, post, raw_api, served_proxy
from toolsearch.proxy import app as proxy_app

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Own: a\r\nx-own: b\r\nContent-Length: 2\r\n\r\n{}"
PATHS = ["/v1/messages", "/v1/chat/completions", "/v1/responses"]


def parted(message: bytes) -> tuple[bytes, list[bytes], bytes]:
    """The first line of *message*, its headers in lower case without those about the connection, and its body."""
    head, _, body = message.partition(b"\r\n\r\n")
    first, *lines = head.split(b"\r\n")
    headers = [name.lower() + b":" + value for name, _, value in (line.partition(b":") for line in lines)]
    return first, sorted(line for line in headers if not line.startswith((b"connection:", b"host:", b"date:"))), body


def test_a_request_for_anything_else_passes_with_its_query_and_headers() -> None:
    request = (
        b"GET /v1/models/a%2Fb?limit=2&after=x%20y&limit=3 HTTP/1.1\r\nHost: HOST\r\nAuthorization: Bearer k\r\n"
        b"OpenAI-Organization: o\r\nX-Twice: 1\r\nX-Twice: 2\r\nConnection: close, x-mine\r\nX-Mine: 3\r\n\r\n"
    )
    with raw_api([OK]) as api, served_proxy(api.url) as url:
        answer = exchanged(url, request)

    first, headers, _ = parted(api.heads[0])
    assert first == b"GET /v1/models/a%2Fb?limit=2&after=x%20y&limit=3 HTTP/1.1"
    assert headers == [b"authorization: Bearer k", b"openai-organization: o", b"x-twice: 1", b"x-twice: 2"]
    assert parted(answer) == parted(OK)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "body",
    [
        b' {"model" : "m", "messages":[ ],"input":[], "new_field": 1.50 , "tools":[{"name":"a","input_schema":{}}] }\n',
        b'{"messages":[],"messages":[]}',
        b"no JSON \xff",
        b'{"messages":[],"tools":[{"type":"tool_search_tool_bm25_20251119","name":"tool_search_tool_bm25"}]}',
        b'{"messages":[],"tools":7}',
    ],
)
def test_a_request_that_is_not_changed_passes_with_its_bytes(path: str, body: bytes) -> None:
    with raw_api([OK]) as api, served_proxy(api.url) as url:
        answer = exchanged(url, post(f"{path}?beta=true", body, b"Accept-Encoding: gzip", b"X-Api-Key: k"))

    assert api.bodies == [body]
    first, sent_headers, _ = parted(post(f"{path}?beta=true", body, b"Accept-Encoding: gzip", b"X-Api-Key: k"))
    assert parted(api.heads[0]) == (first, sent_headers, b"")
    status, headers, content = parted(answer)
    assert (status, content) == (b"HTTP/1.1 200 OK", b"{}")
    assert [line for line in headers if not line.startswith(b"x-toolsearch-off: ")] == parted(OK)[1]
    assert len(headers) == len(parted(OK)[1]) + 1  # which says why


def test_a_compressed_answer_stays_compressed() -> None:
    content = gzip.compress(b'{"data": []}')
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(content)}\r\n\r\n".encode()
    with raw_api([head + content]) as api, served_proxy(api.url) as url:
        answer = exchanged(url, b"GET /v1/models HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n")

    assert parted(answer)[2] == content


def test_a_stream_passes_piece_by_piece_in_both_directions() -> None:
    """The client answers the first piece of the answer before the second is sent."""
    go_on = threading.Event()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    with (
        raw_api([head, b"5\r\none\r\n\r\n", go_on, b"3\r\ntwo\r\n0\r\n\r\n"]) as api,
        served_proxy(api.url) as url,
        httpx2.stream("POST", f"{url}/v1/files", content=iter([b"a", b"b" * 100_000])) as answer,
    ):
        pieces = answer.iter_raw()
        first = next(pieces)
        go_on.set()
        rest = b"".join(pieces)

    assert (first, rest) == (b"one\r\n", b"two")
    assert api.bodies == [b"a" + b"b" * 100_000]


def test_an_error_of_the_model_api_passes_as_it_came() -> None:
    error = b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}'
    head = f"HTTP/1.1 529 Overloaded\r\nRetry-After: 7\r\nContent-Length: {len(error)}\r\n\r\n".encode()
    body = json.dumps({"model": "m", "messages": [], "tools": TOOLS}).encode()
    with raw_api([head + error]) as api, served_proxy(api.url) as url:
        status, headers, content = parted(exchanged(url, post("/v1/messages", body)))

    assert status.startswith(b"HTTP/1.1 529")
    assert b"retry-after: 7" in headers
    assert content == error
    assert len(api.heads) == 1


TOOLS = [
    {"name": f"shop__thing_{number}", "description": "Does a thing.", "input_schema": {"type": "object"}}
    for number in range(20)
]


@pytest.mark.parametrize("path", PATHS)
def test_a_model_api_that_cannot_be_reached_is_told_in_the_words_of_the_api(path: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port: int = closed.getsockname()[1]
    with served_proxy(f"http://127.0.0.1:{port}") as url:
        answer = httpx2.post(f"{url}{path}", json={"model": "m"})

    assert answer.status_code == 502
    assert "chat_model_error" in json.dumps(answer.json()["error"])


@pytest.mark.parametrize("path", PATHS)
def test_a_model_api_that_is_silent_for_too_long_is_given_up(path: str) -> None:
    with raw_api([threading.Event()]) as api, served_proxy(api.url, silence_s=0.1) as url:
        answer = httpx2.post(f"{url}{path}", json={"model": "m"})

    assert answer.status_code == 504
    assert "chat_model_timeout" in json.dumps(answer.json()["error"])


@pytest.mark.parametrize("path", PATHS)
def test_a_request_that_is_too_large_is_refused(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy_app, "MOST_REQUEST_BYTES", 10)
    with raw_api() as api, served_proxy(api.url) as url:
        answer = httpx2.post(f"{url}{path}", content=b'{"a":"0123456789"}')

    assert answer.status_code == 413
    assert "body_too_large" in json.dumps(answer.json()["error"])


@pytest.mark.parametrize("path", [*PATHS, "/v1/models"])
@pytest.mark.parametrize("tools", [[], TOOLS])
def test_the_model_api_is_left_when_the_client_hangs_up(path: str, tools: list[Any]) -> None:
    """Also if nothing is streamed, and whether or not the request is changed."""
    body = json.dumps({"model": "m", "messages": [], "input": [], "tools": tools}).encode()
    with raw_api([threading.Event()]) as api, served_proxy(api.url) as url:
        address = urlsplit(url)
        with socket.create_connection((str(address.hostname), int(address.port or 0))) as client:
            client.sendall(post(path, body).replace(b"HOST", address.netloc.encode()))
            while not api.bodies:
                threading.Event().wait(0.01)
        assert api.hung_up.wait(10)


def test_a_websocket_is_refused_in_words() -> None:
    with raw_api() as api, served_proxy(api.url) as url:
        answer = httpx2.get(f"{url}/v1/responses", headers={"upgrade": "websocket", "connection": "upgrade"})

    assert answer.status_code == 426
    assert "websocket" in answer.text


def test_a_request_for_another_host_is_refused() -> None:
    with raw_api() as api, served_proxy(api.url) as url:
        assert httpx2.get(f"{url}/v1/models", headers={"host": "evil.example"}).status_code == 421
        assert httpx2.get(f"{url}/v1/models", headers={"origin": "https://evil.example"}).status_code == 403


def test_no_key_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    key = "sk-very-secret"
    caplog.set_level(logging.DEBUG)
    body = json.dumps({"model": "m", "messages": [], "tools": TOOLS}).encode()
    with (
        raw_api([OK], [b"HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n"], [b"junk"]) as api,
        served_proxy(api.url) as url,
    ):
        for _ in range(3):
            exchanged(
                url, post("/v1/messages", body, f"x-api-key: {key}".encode(), f"Authorization: Bearer {key}".encode())
            )

    assert all(key.encode() in head for head in api.heads)
    assert key not in caplog.text
    assert not any(key in str(record.__dict__) for record in caplog.records)


def test_a_client_can_switch_it_off() -> None:
    """The switch itself is the proxy's, and goes no further."""
    body = json.dumps({"model": "m", "messages": [], "tools": TOOLS}).encode()
    with raw_api([OK]) as api, served_proxy(api.url) as url:
        answer = exchanged(url, post("/v1/messages", body, b"X-Toolsearch: off"))

    assert api.bodies == [body]
    assert b"x-toolsearch" not in api.heads[0].lower()
    assert b"x-toolsearch-off: the client has switched the proxy off" in parted(answer)[1]


def test_an_answer_says_how_many_tools_were_held_back_and_shown() -> None:
    """Names are not said: a header has no room for many."""
    said = [{"role": "user", "content": "Send an e-mail to somebody"}]
    mail = {"name": "mail__send_mail", "description": said[0]["content"], "input_schema": {"type": "object"}}
    body = json.dumps({"model": "m", "messages": said, "tools": [*TOOLS, mail]}).encode()
    with raw_api([OK]) as api, served_proxy(api.url) as url:
        _, headers, _ = parted(exchanged(url, post("/v1/messages", body)))

    assert f"x-toolsearch-held-back: {len(TOOLS)}".encode() in headers
    assert b"x-toolsearch-shown: 1" in headers


def test_an_answer_that_is_compressed_all_the_same_is_not_taken_for_a_reply() -> None:
    content = gzip.compress(b"{}")
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(content)}\r\n\r\n".encode()
    body = json.dumps({"model": "m", "messages": [], "tools": TOOLS}).encode()
    with raw_api([head + content]) as api, served_proxy(api.url) as url:
        status, _, told = parted(exchanged(url, post("/v1/messages", body, b"Accept-Encoding: gzip")))

    assert b"accept-encoding: identity" in api.heads[0].lower()
    assert status.startswith(b"HTTP/1.1 502")
    assert b"compressed" in told


def test_an_answer_that_breaks_off_does_not_look_whole() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    with raw_api([head, b"5\r\none\r\n\r\n"]) as api, served_proxy(api.url) as url:
        answer = exchanged(url, b"GET /v1/files HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n")

    assert b"one" in answer
    assert not answer.endswith(b"0\r\n\r\n")
