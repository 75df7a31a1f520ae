"""The balancer of examples/deployment, which is a real HAProxy: where requests go, and which are sent twice."""

import threading
from collections.abc import Iterator
from pathlib import Path

import httpx2
import jwt
import pytest

from tests.kit.balancer import Balancer, Replica, balancer
from toolsearch.api.base import Problem
from toolsearch.service.web.paths import mcp_path

TENANTS = [f"tenant-{number}" for number in range(12)]
SEARCH = {"queries": ["send mail"]}


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def session_token(tenant: str) -> str:
    return jwt.encode({"tenant": tenant, "sub": "session"}, b"k" * 32, "HS256")


def cut() -> bool:
    return False


@pytest.fixture
def replicas() -> Iterator[tuple[Replica, Replica]]:
    pair = Replica("one"), Replica("two")
    yield pair
    for replica in pair:
        replica.close()


@pytest.fixture
def running(replicas: tuple[Replica, Replica], tmp_path: Path) -> Iterator[Balancer]:
    with balancer([replica.port for replica in replicas], tmp_path) as running:
        yield running


@pytest.fixture
def client(running: Balancer) -> Iterator[httpx2.Client]:
    with running.client() as client:
        yield client


def test_requests_with_one_key_go_to_one_replica_and_keys_to_both(client: httpx2.Client) -> None:
    answers = {key: {client.get("/v1/me", headers=bearer(key)).text for _ in range(5)} for key in TENANTS}

    assert {len(each) for each in answers.values()} == {1}
    assert set.union(*answers.values()) == {"one", "two"}


def test_a_tenant_that_is_named_goes_to_one_replica_by_whatever_it_is_named(client: httpx2.Client) -> None:
    for number, tenant in enumerate(TENANTS):
        token = session_token(tenant)
        answers = {
            client.get("/v1/me", headers={"x-toolsearch-tenant": tenant, **bearer(f"key {number}")}).text,
            client.post(mcp_path("session", token), json={}).text,
            client.post(mcp_path("session"), json={}, headers=bearer(token)).text,
        }

        assert len(answers) == 1, tenant


def test_a_browser_stays_at_one_replica(client: httpx2.Client) -> None:
    answers = [
        {client.get("/pages", headers={"cookie": f"theme=dark; toolsearch_visit={visit}"}).text for _ in range(3)}
        for visit in TENANTS
    ]

    assert {len(each) for each in answers} == {1}
    assert set.union(*answers) == {"one", "two"}


def test_a_client_that_has_shaken_hands_stays_with_the_replica_that_knows_it(
    client: httpx2.Client, replicas: tuple[Replica, Replica]
) -> None:
    one, two = replicas
    one.answer_headers, two.answer_headers = {"mcp-session-id": "of one"}, {"mcp-session-id": "of two"}
    first = client.post(mcp_path("session"), json={}, headers=bearer("key"))
    known = {"mcp-session-id": first.headers["mcp-session-id"]}
    one.answer_headers = two.answer_headers = {}

    answers = {client.post(mcp_path("session"), json={}, headers=known | bearer(key)).text for key in TENANTS}

    assert answers == {first.text}


def test_who_loses_a_replica_is_served_by_the_other_at_once(
    client: httpx2.Client, replicas: tuple[Replica, Replica]
) -> None:
    replicas[0].close()

    answers = [client.post("/v1/catalogs", json={}, headers=bearer(key)) for key in TENANTS]

    assert {(answer.status_code, answer.text) for answer in answers} == {(200, "two")}


def test_a_replica_that_is_not_ready_gets_no_new_requests(
    client: httpx2.Client, replicas: tuple[Replica, Replica]
) -> None:
    def answers() -> set[str]:
        return {client.get("/v1/me", headers=bearer(key)).text for key in TENANTS}

    assert answers() == {"one", "two"}
    replicas[0].is_ready = False
    while answers() != {"two"}:
        """The balancer asks each second, and four times a second once it knows."""

    replicas[0].is_ready = True
    while answers() != {"one", "two"}:
        """Its tenants come back to it."""


@pytest.mark.parametrize(
    ("method", "path", "headers", "sent"),
    [
        ("GET", "/v1/me", {}, 2),
        ("POST", "/v1/search", {}, 2),
        ("POST", "/v1/calls", {}, 1),
        ("POST", "/v1/calls", {"idempotency-key": "one"}, 2),
        ("POST", mcp_path("session"), {"idempotency-key": "one"}, 1),
        ("POST", mcp_path("session", "token"), {"idempotency-key": "one"}, 1),
    ],
)
def test_what_got_no_answer_is_sent_again_only_where_that_does_no_harm(
    method: str, path: str, headers: dict[str, str], sent: int, client: httpx2.Client, replicas: tuple[Replica, Replica]
) -> None:
    for replica in replicas:
        replica.before_answer = cut

    body = {} if method == "GET" else {"json": SEARCH}
    answer = client.request(method, path, headers=headers | bearer("key"), **body)

    assert answer.status_code == 502
    received = len(replicas[0].paths) + len(replicas[1].paths)
    assert (received > 1) == (sent > 1), received


def test_the_second_try_goes_to_the_other_replica(client: httpx2.Client, replicas: tuple[Replica, Replica]) -> None:
    replicas[0].before_answer = cut

    answers = {client.post("/v1/search", json=SEARCH, headers=bearer(key)).text for key in TENANTS}

    assert answers == {"two"}
    assert replicas[0].paths


def test_events_are_passed_on_as_they_come(client: httpx2.Client, replicas: tuple[Replica, Replica]) -> None:
    """The second event is written once the first has been read."""
    was_read = threading.Event()

    def stream(write) -> None:
        write(b"event 1\n\n")
        if was_read.wait(30):
            write(b"event 2\n\n")

    for replica in replicas:
        replica.stream = stream

    with client.stream("GET", mcp_path("session"), headers=bearer("key")) as answer:
        events = answer.iter_raw()
        first = next(events)
        was_read.set()
        rest = b"".join(events)

    assert (first, rest) == (b"event 1\n\n", b"event 2\n\n")


def test_without_a_replica_the_answer_is_a_problem_that_says_when_to_try_again(
    client: httpx2.Client, replicas: tuple[Replica, Replica]
) -> None:
    for replica in replicas:
        replica.close()

    answer = client.get("/v1/me", headers=bearer("key"))

    assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
    assert answer.headers["content-type"] == "application/problem+json"
    assert Problem.model_validate_json(answer.content).code == "service_unavailable"


def test_the_log_has_neither_keys_nor_addresses_of_sessions(replicas: tuple[Replica, Replica], tmp_path: Path) -> None:
    with balancer([replica.port for replica in replicas], tmp_path) as running, running.client() as client:
        client.post(mcp_path("session", "token-in-the-address"), json={}, headers=bearer("key-in-a-header"))

    [line] = [line for line in running.log if "POST" in line]
    assert "status=200" in line
    assert "token-in-the-address" not in line
    assert "key-in-a-header" not in line
