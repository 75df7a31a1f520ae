"""Two replicas over one PostgreSQL database: whichever of them is asked, it is the same service."""

import asyncio
from pathlib import Path
from typing import Annotated, Any

import httpx2
from fastapi import Depends, FastAPI, Response

from tests.kit.agents import THEIRS
from tests.kit.postgres import PostgresServer
from tests.kit.service import codes, two_replicas
from toolsearch.service.service import Service
from toolsearch.service.web.callers import ServiceCaller, caller_with


class Slow:
    """A route of both replicas that counts how often it was asked, and holds its answers back."""

    def __init__(self) -> None:
        self.asked = 0
        self.status = 200
        self.begun = asyncio.Event()
        self.gate = asyncio.Event()

    def prepare(self, _: Service, app: FastAPI) -> None:
        app.post("/v1/things")(self.__call__)

    async def __call__(
        self,
        response: Response,
        caller: Annotated[ServiceCaller, Depends(caller_with("admin"))],  # noqa: ARG002
    ) -> dict[str, int]:
        self.asked += 1
        self.begun.set()
        await self.gate.wait()
        response.status_code = self.status
        return {"number": self.asked}


async def test_a_request_that_reaches_both_replicas_at_once_is_done_once(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    slow = Slow()
    async with two_replicas(tmp_path, postgres.new_database(), prepare=slow.prepare) as (one, other):
        key = {"idempotency-key": "k1"}
        clients = [replica.client(one.operator, **key) for replica in (one, other)]
        asking = [asyncio.create_task(client.post("/v1/things", json={})) for client in clients]
        await slow.begun.wait()
        slow.gate.set()
        answers = await asyncio.gather(*asking)
        different = [await client.post("/v1/things", json={"another": "request"}) for client in clients]

    assert slow.asked == 1
    assert [answer.json() for answer in answers] == [{"number": 1}] * 2
    assert sorted(answer.headers.get("idempotency-replayed", "") for answer in answers) == ["", "true"]
    assert codes(different) == [(422, "idempotency_mismatch")] * 2


async def test_a_request_whose_replica_has_gone_is_not_run_again_by_the_other(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    slow = Slow()
    async with two_replicas(tmp_path, postgres.new_database(), prepare=slow.prepare) as (one, other):
        key = {"idempotency-key": "k1"}
        first = asyncio.create_task(one.client(one.operator, **key).post("/v1/things", json={}))
        await slow.begun.wait()
        first.cancel()
        again = asyncio.create_task(other.client(one.operator, **key).post("/v1/things", json={}))
        leases = one.service.storage.leases
        leases.release(f"replica/{one.service.replica}", one.service.replica)  # as when it has run out
        answer = await again

    assert codes([answer]) == [(409, "idempotency_unknown")]
    assert slow.asked == 1


async def test_a_request_that_one_replica_has_refused_may_be_repeated_at_the_other(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    slow = Slow()
    slow.gate.set()
    slow.status = 503
    async with two_replicas(tmp_path, postgres.new_database(), prepare=slow.prepare) as (one, other):
        clients = [replica.client(one.operator, **{"idempotency-key": "k1"}) for replica in (one, other)]
        refused = await clients[0].post("/v1/things", json={})
        slow.status = 200
        again = await clients[1].post("/v1/things", json={})

    assert (refused.status_code, again.status_code, slow.asked) == (503, 200, 2)


async def test_the_rates_of_a_key_are_those_of_all_replicas_together(tmp_path: Path, postgres: PostgresServer) -> None:
    """What was used through one replica counts at the other as soon as they have told each other, in both ways."""
    rates = {"requests": 10}
    async with two_replicas(tmp_path, postgres.new_database(), rates=rates) as (one, other):
        rated = [replica.service.limits.shared for replica in (one, other)]
        clients = [replica.client(one.operator) for replica in (one, other)]

        async def told() -> None:
            for each in (*rated, *rated):
                assert each is not None
                await each.exchange()

        await told()
        statuses = [(await clients[0].get("/v1/me")).status_code for _ in range(6)]
        await told()
        statuses += [(await clients[1].get("/v1/me")).status_code for _ in range(5)]
        await told()
        refused = await clients[0].get("/v1/me")
        one.steady.now_s += 6
        again = await clients[0].get("/v1/me")

    assert statuses == [200] * 10 + [429]
    assert (refused.status_code, refused.headers["retry-after"], again.status_code) == (429, "6", 200)


async def test_the_limit_of_a_tool_is_that_of_all_replicas_together(tmp_path: Path, postgres: PostgresServer) -> None:
    rates = {"tools": {"flights": {"tools": ["book_*"], "per_minute": 2}}}
    async with two_replicas(tmp_path, postgres.new_database(), rates=rates) as (one, other):
        await one.catalog(one.operator, tools=THEIRS)
        rated = [replica.service.limits.shared for replica in (one, other)]
        clients = [replica.client(one.operator) for replica in (one, other)]

        async def code(client: httpx2.AsyncClient, name: str, **arguments: str) -> str | None:
            for each in (*rated, *rated):
                assert each is not None
                await each.exchange()
            answer: dict[str, Any] = (
                await client.post("/v1/calls", json={"name": name, "arguments": arguments})
            ).json()
            return answer.get("code")

        codes_of = [await code(client, "book_flight", city="Oslo") for client in (*clients, *clients)]
        others = await code(clients[0], "pay_bill")
        colleague = await code(other.client(one.key("default")), "book_flight", city="Oslo")

    assert codes_of == [None, None, "rate_limited", "rate_limited"]
    assert (others, colleague) == (None, None)


async def test_a_provider_that_one_replica_is_told_is_that_of_both_at_once(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    """Its key is looked up with each request, so that an exchanged one is not used any more."""
    outbound = {"allowed_networks": ["127.0.0.0/8"]}
    async with two_replicas(tmp_path, postgres.new_database(), outbound=outbound) as (one, other):
        for key in ("sk-1", "sk-2"):
            body = {"api": "openai", "base_url": "http://127.0.0.1:9999", "key": key}
            (await one.client(one.operator).post("/v1/providers", json=body)).raise_for_status()
            assert (await other.service.providers.get("default", "openai")).key == key
        await one.client(one.operator).delete("/v1/providers/openai")
        answer = await other.client(one.operator).post("/v1/chat/completions", json={})

    assert answer.json()["error"]["code"] == "no_provider"
