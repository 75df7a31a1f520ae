"""What every request passes before a route runs."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any

import httpx2
import pytest
from fastapi import Depends, FastAPI
from starlette.types import Receive, Scope, Send

from tests.kit.service import ServiceKit, codes, serving
from toolsearch.service.service import Service
from toolsearch.service.web.bodies import MAX_DEPTH, depth_of
from toolsearch.service.web.callers import ServiceCaller, caller_with
from toolsearch.service.web.middleware import Deadline


def _add_routes(_: Service, app: FastAPI) -> None:
    admin = Annotated[ServiceCaller, Depends(caller_with("admin"))]

    @app.post("/v1/echo")
    async def echo(caller: admin, body: dict[str, Any]) -> dict[str, Any]:
        return body

    @app.get("/v1/broken")
    async def broken(caller: admin) -> None:
        raise RuntimeError("a secret of the machine")

    @app.get("/v1/hanging")
    async def hanging() -> None:
        await asyncio.Event().wait()


@pytest.fixture
async def kit(tmp_path: Path) -> AsyncIterator[ServiceKit]:
    async with serving(tmp_path, prepare=_add_routes, serve={"max_body_bytes": 100_000}) as running:
        yield running


# Ids, headers


async def test_a_request_has_the_id_that_the_client_gave_if_that_is_sound(kit: ServiceKit) -> None:
    async with kit.client(kit.operator) as client:
        given = [
            (await client.get("/v1/none", headers={"x-request-id": each})).headers["x-request-id"]
            for each in ("trace-1.b_2", "a b", "x" * 65, "a\tb")
        ]

    assert given[0] == "trace-1.b_2"
    assert all(each.startswith("req_") for each in given[1:])


async def test_answers_tell_browsers_to_be_strict_and_not_to_keep_them(kit: ServiceKit) -> None:
    async with kit.client() as client:
        api, page = await client.get("/v1/none"), await client.get("/pages/sign-in")

    assert api.headers["x-content-type-options"] == "nosniff"
    assert api.headers["x-frame-options"] == "DENY"
    assert api.headers["cache-control"] == "no-store"
    assert api.headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
    assert "default-src 'self';" in page.headers["content-security-policy"]
    assert "unsafe" not in page.headers["content-security-policy"]
    assert "strict-transport-security" not in page.headers


async def test_browsers_keep_to_https_once_the_service_is_reached_by_it(tmp_path: Path) -> None:
    async with serving(tmp_path, serve={"public_url": "https://tools.example"}) as kit, kit.client() as client:
        answer = await client.get("https://tools.example/v1/none")

    assert answer.status_code == 404
    assert answer.headers["strict-transport-security"] == "max-age=31536000"


# Failures


async def test_every_refusal_is_a_problem_with_a_stable_code(kit: ServiceKit) -> None:
    async with kit.client(kit.operator) as client:
        answers = [
            await client.get("/v1/none"),
            await client.delete("/v1/echo"),
            await client.post("/v1/echo", json=["a list"]),
            await client.post("/v1/echo", content=b"{", headers={"content-type": "application/json"}),
            await client.post("/v1/echo", content=b"a=1", headers={"content-type": "text/plain"}),
            await client.get("/v1/broken"),
        ]

    assert codes(answers) == [
        (404, "not_found"),
        (405, "method_not_allowed"),
        (422, "bad_request"),
        (422, "bad_request"),
        (415, "unsupported_media_type"),
        (500, "internal_error"),
    ]
    assert {each.headers["content-type"] for each in answers} == {"application/problem+json"}
    assert all("x-request-id" in each.headers and "content-security-policy" in each.headers for each in answers)
    assert answers[1].headers["allow"] == "POST"
    assert "secret" not in answers[5].text


async def test_a_request_that_takes_too_long_is_given_up(tmp_path: Path) -> None:
    async with (
        serving(tmp_path, prepare=_add_routes, serve={"request_timeout_s": 0.001}) as kit,
        kit.client() as client,
    ):
        assert codes([await client.get("/v1/hanging")]) == [(504, "request_timeout")]


async def test_a_stream_may_last_longer_than_a_request() -> None:
    async def stream(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        await asyncio.sleep(0.01)
        await send({"type": "http.response.body", "body": b"data: 1\n\n"})

    app = Deadline(stream, seconds=0.001)
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://test") as client:
        assert (await client.get("/v1/stream")).text == "data: 1\n\n"


async def test_a_model_may_think_for_longer_than_a_request_lasts() -> None:
    async def model(scope: Scope, receive: Receive, send: Send) -> None:
        await asyncio.sleep(0.01)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    app = Deadline(model, seconds=0.001)
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://test") as client:
        assert (await client.post("/v1/messages")).text == "{}"


# Hosts, pages


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"host": "evil.example"}, (421, "unknown_host")),
        ({"host": "127.0.0.1:9999"}, (421, "unknown_host")),
        ({"origin": "https://evil.example"}, (403, "foreign_page")),
        ({"origin": "null"}, (403, "foreign_page")),
    ],
)
async def test_requests_for_other_hosts_and_from_foreign_pages_are_refused(
    kit: ServiceKit, headers: dict[str, str], expected: tuple[int, str]
) -> None:
    async with kit.client(kit.operator) as client:
        assert codes([await client.get("/v1/none", headers=headers)]) == [expected]


# Who asks


async def test_a_credential_that_is_not_accepted_is_refused_with_the_same_bytes_whatever_is_asked_for(
    kit: ServiceKit,
) -> None:
    asked = [
        await kit.client(None, authorization=each).get(path)
        for each in ("Bearer ts_unknown", "Bearer", "Basic YTpi", "nonsense")
        for path in ("/v1/none", "/v1/broken")
    ]

    assert {(each.status_code, each.content) for each in asked} == {(401, asked[0].content)}
    assert asked[0].headers["www-authenticate"] == 'Bearer realm="toolsearch"'


# Bodies


async def test_bodies_are_limited_in_size_however_they_are_sent(kit: ServiceKit) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(101):
            yield b" " * 1_000

    whole = b'{"a":"%s"}' % (b"x" * 100_000)
    json_type = {"content-type": "application/json"}
    async with kit.client(kit.operator) as client, kit.client() as unknown:
        answers = [
            await client.post("/v1/echo", content=whole, headers=json_type),
            await client.post("/v1/echo", content=chunks(), headers=json_type),
            await unknown.post("/v1/echo", content=whole[:70_000], headers=json_type),
        ]
        fitting = await client.post("/v1/echo", json={"a": "x" * 99_000})

    assert codes(answers) == [(413, "body_too_large")] * 3
    assert fitting.status_code == 200


def _nested(levels: int) -> list[Any]:
    """Lists within lists, around brackets in a text, which do not count."""
    return [_nested(levels - 1)] if levels > 1 else [1, "[[[[[["]


async def test_json_is_limited_in_depth_and_is_utf_8(kit: ServiceKit) -> None:
    async with kit.client(kit.operator) as client:
        deepest = await client.post("/v1/echo", json={"a": _nested(MAX_DEPTH - 1)})
        answers = [
            await client.post("/v1/echo", json={"a": _nested(MAX_DEPTH)}),
            await client.post("/v1/echo", content=b"[" * 90_000, headers={"content-type": "application/json"}),
            await client.post(
                "/v1/echo", content=json.dumps({"a": 1}).encode("utf-16"), headers={"content-type": "application/json"}
            ),
        ]

    assert deepest.status_code == 200
    assert codes(answers) == [(400, "bad_request")] * 3


@pytest.mark.parametrize(
    ("body", "depth"),
    [
        (b"1", 0),
        (b"[]", 1),
        (b'{"a":[{}]}', 3),
        (b'"[[["', 0),
        (rb'["\"[[[[", "\\"]', 1),
        (rb'["\\", [[]]]', 3),
        (b'{"a":[]}\n{"b":[[]]}\n', 3),
        (b"[[[", 3),
    ],
)
def test_the_depth_of_json_leaves_out_brackets_within_text(body: bytes, depth: int) -> None:
    assert depth_of(body) == depth
    assert depth_of(b"[]" * 1_000 + body) == max(depth, 1)


@pytest.mark.parametrize(
    "bad_line",
    [b"]]]]", b'"', b'{"a": "', b'"\\', b"[[[", b'"[[[', b"}}}}", b""],
    ids=["closes", "text", "object", "escape", "opens", "opens in text", "closes objects", "empty"],
)
def test_a_line_that_is_no_json_hides_nothing_of_the_depth_of_those_behind_it(bad_line: bytes) -> None:
    deep = b'{"a": [[[ "]]]" ]]]}'
    assert depth_of(bad_line + b"\n" + deep + b"\n" + bad_line, is_lines=True) == 4
    assert depth_of(b"\n".join([bad_line, deep] * 100), is_lines=True) == 4


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("DELETE", "/v1/catalogs", "GET, POST"),
        ("PUT", "/v1/catalogs/default", "DELETE, GET, PATCH"),
        ("POST", "/healthz", "GET"),
        ("PUT", "/pages/sign-in", "GET, POST"),
    ],
)
async def test_a_wrong_method_is_answered_with_every_method_of_the_path(
    tmp_path: Path, method: str, path: str, allowed: str
) -> None:
    async with serving(tmp_path) as kit, kit.client(kit.operator) as client:
        answer = await client.request(method, path)

    assert codes([answer]) == [(405, "method_not_allowed")]
    assert answer.headers["allow"] == allowed
