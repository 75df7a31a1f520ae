"""When the client repeats a request, how long it waits, and what it raises: the same for both of its forms."""

import httpx2
import pytest

from toolsearch.client import AsyncToolSearchClient, ToolSearchClient
from toolsearch.client.exchange import Patience, exchange
from toolsearch.client.operations import call
from toolsearch.errors import ServiceError

ME = {"tenant": "default", "key_id": "key_1", "scopes": [], "allow": [], "deny": [], "operator": False}
URL = "http://service.test"


class Script:
    """Answers each request with the next of *answers*, and notes what was asked and how long was waited."""

    def __init__(self, *answers: httpx2.Response | Exception) -> None:
        self._answers = list(answers)
        self.requests: list[httpx2.Request] = []
        self.waits: list[float] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def wait(self, seconds: float) -> None:
        self.waits.append(seconds)


@pytest.fixture(params=["sync", "async"])
def ask(request):
    """Ask by either client, as ``await ask(script, "me")``."""

    async def ask(script, operation, *arguments, max_wait_s=30, **described):
        transport = httpx2.MockTransport(script)
        if request.param == "sync":
            with ToolSearchClient(
                URL, "ts_k", transport=transport, sleep=script.waits.append, max_wait_s=max_wait_s
            ) as client:
                return getattr(client, operation)(*arguments, **described)
        async with AsyncToolSearchClient(
            URL, "ts_k", transport=transport, sleep=script.wait, max_wait_s=max_wait_s
        ) as client:
            return await getattr(client, operation)(*arguments, **described)

    return ask


def put_off(seconds: str, status: int = 429) -> httpx2.Response:
    problem = {"title": "Too Many", "status": status, "code": "too_many", "detail": "wait"}
    return httpx2.Response(status, headers={"retry-after": seconds}, json=problem)


async def test_an_answer_is_read_as_its_model(ask):
    script = Script(httpx2.Response(200, json={**ME, "new_field": 1}))

    assert (await ask(script, "me")).key_id == "key_1"
    (request,) = script.requests
    assert (request.url, request.headers["authorization"]) == (f"{URL}/v1/me", "Bearer ts_k")


@pytest.mark.parametrize("status", [429, 503])
async def test_what_the_service_puts_off_is_repeated_after_the_time_that_it_names(ask, status):
    script = Script(put_off("2", status), put_off("3", status), httpx2.Response(200, json=ME))

    await ask(script, "me")
    assert script.waits == [2, 3]


async def test_it_does_not_wait_longer_than_it_may(ask):
    script = Script(put_off("20"), put_off("11"))

    with pytest.raises(ServiceError) as raised:
        await ask(script, "me", max_wait_s=30)
    assert (raised.value.code, raised.value.status, script.waits) == ("too_many", 429, [20])


async def test_it_gives_up_after_six_repetitions(ask):
    script = Script(*(put_off("0") for _ in range(7)))

    with pytest.raises(ServiceError):
        await ask(script, "me")
    assert len(script.requests) == 7


async def test_a_write_whose_connection_broke_is_repeated_under_the_same_idempotency_key(ask):
    created = {"name": "a", "description": "", "tools": 0, "revision": 0, "version": 1, "changed_at": 0}
    script = Script(httpx2.ReadError("broken"), httpx2.Response(201, json=created))

    await ask(script, "create_catalog", "a")
    first, second = (each.headers["idempotency-key"] for each in script.requests)
    assert first == second
    assert script.waits == [0.5]


async def test_a_change_whose_connection_broke_is_repeated_under_the_same_idempotency_key(ask):
    described = {"name": "a", "description": "b", "tools": 0, "revision": 0, "version": 2, "changed_at": 0}
    script = Script(httpx2.ReadError("broken"), httpx2.Response(200, json=described))

    await ask(script, "describe_catalog", "a", description="b")
    first, second = (each.headers["idempotency-key"] for each in script.requests)
    assert first == second


@pytest.mark.parametrize("status", [502, 503, 504])
async def test_what_a_balancer_says_of_a_replica_that_was_killed_is_tried_again(ask, status):
    script = Script(httpx2.Response(status, text="<html>no server"), httpx2.Response(200, json=ME))

    await ask(script, "me")
    assert script.waits == [0.5]


async def test_what_the_service_says_to_have_taken_too_long_is_not_asked_for_again(ask):
    problem = {"title": "Gateway Timeout", "status": 504, "code": "request_timeout", "detail": "not done"}
    answer = httpx2.Response(504, json=problem, headers={"content-type": "application/problem+json"})

    with pytest.raises(ServiceError) as raised:
        await ask(Script(answer), "me")
    assert raised.value.code == "request_timeout"


@pytest.mark.parametrize(
    "broken", [httpx2.ReadError("broken"), httpx2.ReadTimeout("late"), httpx2.Response(502, text="<html>no server")]
)
def test_a_call_that_may_have_run_is_made_once(broken):
    steps = exchange(call("pay", catalog="a"), Patience(6, 30))
    next(steps)

    with pytest.raises(ServiceError) as raised:
        steps.send(broken)
    assert raised.value.code in ("service_unreachable", "unknown_answer")


async def test_a_problem_becomes_an_error_with_its_code_and_the_id_of_the_request(ask):
    problem = {
        "title": "Unprocessable",
        "status": 422,
        "code": "bad_request",
        "detail": "the request does not fit",
        "errors": [{"field": "body.name", "message": "too long"}],
    }
    script = Script(httpx2.Response(422, headers={"x-request-id": "req_1"}, json=problem))

    with pytest.raises(ServiceError, match=r"does not fit; body\.name: too long") as raised:
        await ask(script, "create_catalog", "a")
    error = raised.value
    assert (error.code, error.status, error.request_id) == ("bad_request", 422, "req_1")
    assert ServiceError.code == "service_error"


@pytest.mark.parametrize(("status", "text"), [(502, "<html>bad gateway"), (200, "<html>log in")])
async def test_an_answer_that_is_not_the_services_is_an_error(ask, status, text):
    with pytest.raises(ServiceError) as raised:
        await ask(Script(*[httpx2.Response(status, text=text)] * 7), "me")
    assert (raised.value.code, raised.value.status) == ("unknown_answer", 502)


async def test_names_cannot_leave_their_place_in_the_address(ask):
    script = Script(httpx2.Response(204))

    await ask(script, "delete_catalog", "../keys?x=1#y")
    assert script.requests[0].url.raw_path == b"/v1/catalogs/..%2Fkeys%3Fx%3D1%23y"
