"""Routes that read a body in one step: what they take and refuse is what any route of FastAPI takes and refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import httpx2
import pytest
from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.routing import APIRoute

from toolsearch.api.sessions import SearchRequest
from toolsearch.errors import NotAuthenticatedError
from toolsearch.service.web.direct_route import DirectRoute
from toolsearch.service.web.problems import add_problem_handlers

JSON = "application/json"
TAKEN = (
    b'{"queries": ["x"]}',
    b' {"queries": ["x"], "limit": 7} \n',
    b'{"queries": ["x"], "limit": 7.0}',
    b'{"queries": ["a"], "queries": ["b"]}',
    b'{"queries": ["\\u00e9\\ud83d\\ude00"], "explain": "true", "server": null}',
    b'{"names": ["send_mail"], "explain": 1}',
    b'\xef\xbb\xbf{"queries": ["x"]}',
)
REFUSED = (
    *(b"", b"{", b"null", b"[]", b'"x"', b"{}", b"{'queries': 1}", b'{"queries": ["x"]} {}', b'{"queries": ["\xff"]}'),
    *(b'{"queries": ["\\ud800"]}', b'{"queries": [""]}', b'{"queries": "x"}', b'{"queries": [1]}'),
    *(b'{"queries": ["x"], "limit": %s}' % limit for limit in (b"0", b'"3"', b"true", b"1.5", b"NaN", b"1e400")),
    *(b'{"queries": ["x"], "limit": 1%s}' % (b"0" * 400), b'{"queries": ["x"], "unknown": 1}'),
    *(b'{"queries": ["x"], "strategy": "magic"}', b'{"queries": ["x"], "allow": null}'),
)


async def of_header(request: Request) -> str:
    if "x-refused" in request.headers:
        raise NotAuthenticatedError
    return request.headers.get("x-who", "nobody")


async def echo(body: SearchRequest, who: Annotated[str, Depends(of_header)]) -> Response:
    return Response(f"{who}: {body.model_dump_json()}")


def client(route: type[APIRoute]) -> httpx2.AsyncClient:
    app, router = FastAPI(), APIRouter(route_class=route)
    router.post("/echo")(echo)
    app.include_router(router)
    add_problem_handlers(app)
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://test")


async def answered(route: type[APIRoute], body: bytes, **headers: str) -> tuple[int, bytes]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with client(route) as asking:
        answer = await asking.post("/echo", content=body, headers=named)
    return answer.status_code, answer.content


@pytest.mark.parametrize("body", TAKEN)
async def test_what_fits_is_read_as_on_any_route(body: bytes) -> None:
    status, content = await answered(DirectRoute, body, content_type=JSON, x_who="ann")
    assert (status, content) == await answered(APIRoute, body, content_type=JSON, x_who="ann")
    assert status == 200
    assert content.startswith(b"ann: {")


@pytest.mark.parametrize("body", REFUSED)
async def test_what_does_not_fit_is_refused_in_the_words_of_any_route(body: bytes) -> None:
    status, content = await answered(DirectRoute, body, content_type=JSON)
    assert (status, content) == await answered(APIRoute, body, content_type=JSON)
    assert status in (400, 422)


@pytest.mark.parametrize("media", ["application/json; charset=utf-8", "application/merge-patch+json", "text/plain", ""])
async def test_a_body_of_any_kind_is_taken_or_refused_as_on_any_route(media: str) -> None:
    headers = {"content_type": media} if media else {}
    direct = await answered(DirectRoute, TAKEN[0], **headers)
    assert direct == await answered(APIRoute, TAKEN[0], **headers)
    assert direct[0] == (200 if "json" in media else 422)


@pytest.mark.parametrize("body", [TAKEN[0], REFUSED[1], REFUSED[5]])
async def test_whom_a_dependency_refuses_is_refused_as_on_any_route(body: bytes) -> None:
    direct = await answered(DirectRoute, body, content_type=JSON, x_refused="yes")
    assert direct == await answered(APIRoute, body, content_type=JSON, x_refused="yes")
    assert direct[0] in (401, 422)


async def test_a_body_that_fits_is_not_parsed_by_fastapi(monkeypatch: pytest.MonkeyPatch) -> None:
    async def parsed(request: Request) -> object:
        raise AssertionError("it was parsed")

    monkeypatch.setattr(Request, "json", parsed)
    assert (await answered(DirectRoute, TAKEN[0], content_type=JSON))[0] == 200


async def made_of_more(request: Request, word: str) -> str:
    return word


async def with_parameter(body: SearchRequest, number: int) -> Response:
    return Response()


async def without_body(who: Annotated[str, Depends(of_header)]) -> Response:
    return Response()


async def with_more(body: SearchRequest, made: Annotated[str, Depends(made_of_more)]) -> Response:
    return Response()


@pytest.mark.parametrize("endpoint", [with_parameter, without_body, with_more])
def test_an_endpoint_that_takes_more_than_a_body_and_the_request_is_an_error(endpoint: Callable[..., object]) -> None:
    with pytest.raises(TypeError):
        DirectRoute("/", endpoint)
