"""A request with an Idempotency-Key is done once."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import pytest
from fastapi import Depends, FastAPI, Response

from tests.kit.service import ServiceKit, codes, serving
from toolsearch.errors import Kept, StorageError
from toolsearch.service.service import Service
from toolsearch.service.web.callers import ServiceCaller, caller_with
from toolsearch.storage.records import Record
from toolsearch.storage.seal import Seal


class Counter:
    """Counts how often it was asked. *gate* holds answers back."""

    def __init__(self) -> None:
        self.asked = 0
        self.begun = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()
        self.status = 201
        self.fails = False

    async def __call__(
        self,
        response: Response,
        caller: Annotated[ServiceCaller, Depends(caller_with("admin"))],  # noqa: ARG002
    ) -> dict[str, str]:
        self.asked += 1
        self.begun.set()
        await self.gate.wait()
        if self.fails:
            raise RuntimeError
        response.status_code = self.status
        response.headers["location"] = f"/v1/things/{self.asked}"
        return {"secret": f"ts_secret_{self.asked}"}


@pytest.fixture
def counter() -> Counter:
    return Counter()


@pytest.fixture
async def kit(tmp_path: Path, counter: Counter) -> AsyncIterator[ServiceKit]:
    def prepare(_: Service, app: FastAPI) -> None:
        app.post("/v1/things")(counter.__call__)

    async with serving(tmp_path, prepare=prepare, rates={"requests": 100}) as running:
        yield running


async def test_a_repeated_request_gets_the_first_answer_and_is_not_done_again(
    kit: ServiceKit, counter: Counter
) -> None:
    async with kit.client(kit.operator, **{"idempotency-key": "k1"}) as client:
        first = await client.post("/v1/things", json={"a": 1})
        again = await client.post("/v1/things", json={"a": 1})

    assert (first.status_code, first.content) == (again.status_code, again.content)
    assert again.headers["location"] == "/v1/things/1"
    assert again.headers["idempotency-replayed"] == "true"
    assert "idempotency-replayed" not in first.headers
    assert counter.asked == 1


async def test_a_key_is_good_for_one_request_of_one_api_key(kit: ServiceKit, counter: Counter) -> None:
    header = {"idempotency-key": "k1"}
    async with kit.client(kit.operator, **header) as client, kit.client(kit.key("default"), **header) as another:
        await client.post("/v1/things", json={"a": 1})
        answers = [await client.post("/v1/things", json={"a": 2}), await client.post("/v1/things?x=1", json={"a": 1})]
        elsewhere = await another.post("/v1/things", json={"a": 2})

    assert codes(answers) == [(422, "idempotency_mismatch")] * 2
    assert (elsewhere.status_code, counter.asked) == (201, 2)


async def test_two_at_once_are_done_once(kit: ServiceKit, counter: Counter) -> None:
    counter.gate.clear()
    async with kit.client(kit.operator, **{"idempotency-key": "k1"}) as client:
        asking = [asyncio.create_task(client.post("/v1/things", json={})) for _ in range(5)]
        await counter.begun.wait()
        counter.gate.set()
        answers = await asyncio.gather(*asking)

    assert counter.asked == 1
    assert len({each.content for each in answers}) == 1


async def test_what_was_refused_before_anything_was_done_may_be_repeated(kit: ServiceKit, counter: Counter) -> None:
    counter.status = 503
    async with kit.client(kit.operator, **{"idempotency-key": "k1"}) as client:
        await client.post("/v1/things", json={})
        counter.status = 201
        again = await client.post("/v1/things", json={})

    assert (again.status_code, counter.asked) == (201, 2)


async def test_what_failed_on_its_way_is_not_run_again_by_itself(kit: ServiceKit, counter: Counter) -> None:
    counter.fails = True
    async with kit.client(kit.operator, **{"idempotency-key": "k1"}) as client:
        await client.post("/v1/things", json={})
        counter.fails = False
        again = await client.post("/v1/things", json={})

    assert codes([again]) == [(409, "idempotency_unknown")]
    assert counter.asked == 1


async def test_what_may_run_twice_is_run_again_if_nobody_knows_what_came_of_it(
    kit: ServiceKit, counter: Counter
) -> None:
    kit.app.post("/v1/search/things")(counter.__call__)
    counter.fails = True
    async with kit.client(kit.operator, **{"idempotency-key": "k1"}) as client:
        assert (await client.post("/v1/search/things")).status_code == 500
        counter.fails = False
        assert (await client.post("/v1/search/things")).status_code == 201
        assert (await client.post("/v1/search/things")).headers["idempotency-replayed"] == "true"

    assert counter.asked == 2


async def test_a_request_that_did_not_begin_since_a_commit_was_not_answered_can_be_repeated(
    kit: ServiceKit, counter: Counter, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = kit.service.storage.records
    put, answers_lost = records.put, [True]

    def put_without_answer(*arguments: Any, **options: Any) -> Record:
        done = put(*arguments, **options)
        if answers_lost and answers_lost.pop():
            raise StorageError("the answer is lost", Kept.RECORDS, retry_after_s=1, outcome_is_unknown=True)
        return done

    monkeypatch.setattr(records, "put", put_without_answer)
    async with kit.client(kit.operator, **{"idempotency-key": "k1"}) as client:
        assert (await client.post("/v1/things")).status_code == 503
        assert counter.asked == 0
        assert (await client.post("/v1/things")).status_code == 201

    assert counter.asked == 1


async def test_a_key_is_forgotten_after_a_day(kit: ServiceKit, counter: Counter) -> None:
    async with kit.client(kit.operator, **{"idempotency-key": "k1"}) as client:
        await client.post("/v1/things", json={})
        kit.clock.now_s += 86_399
        await client.post("/v1/things", json={})
        assert counter.asked == 1
        kit.clock.now_s += 1
        await client.post("/v1/things", json={})

    assert counter.asked == 2


async def test_a_key_that_is_not_well_formed_is_refused(kit: ServiceKit, counter: Counter) -> None:
    async with kit.client(kit.operator) as client:
        answers = [
            await client.post("/v1/things", json={}, headers={"idempotency-key": each}) for each in ("", "x" * 256)
        ]

    assert codes(answers) == [(400, "bad_request")] * 2
    assert counter.asked == 0


async def test_answers_are_kept_sealed(kit: ServiceKit, counter: Counter, tmp_path: Path) -> None:
    """A new key is shown in an answer: it must not be in the file in plain."""
    async with kit.client(kit.operator, **{"idempotency-key": "k1"}) as client:
        answer = await client.post("/v1/things", json={"password": "hunter2"})

    with closing(sqlite3.connect(tmp_path / "toolsearch.db")) as database:
        kept = "\n".join(database.iterdump())
    assert answer.json() == {"secret": "ts_secret_1"}
    assert "idempotency" in kept
    assert "ts_secret_1" not in kept
    assert "hunter2" not in kept


async def test_an_answer_that_cannot_be_read_any_more_is_not_made_up(
    kit: ServiceKit, counter: Counter, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with kit.client(kit.operator, **{"idempotency-key": "k1"}) as client:
        await client.post("/v1/things", json={})
        monkeypatch.setattr(kit.service.idempotency, "_seal", Seal.until_restart())
        again = await client.post("/v1/things", json={})

    assert codes([again]) == [(409, "idempotency_unknown")]
    assert counter.asked == 1
