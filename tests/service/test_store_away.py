"""The store is away: every request is told so, no door opens, and afterwards everything is as it was."""

from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.kit.outage import outage
from tests.kit.pages import sign_in
from tests.kit.service import ServiceKit, serving
from tests.kit.service_routes import operations

TOOL = {"name": "made_up", "description": "Count something."}
NAMES = ("api", "catalog", "toolset", "tenant", "key_id", "source", "job", "call", "server", "entry", "receipt")
FROM_MEMORY = {  # what the service knows without the store, for a key that it has just asked for
    "get /v1/me",
    "get /v1/catalogs/{catalog}/tools",
    "get /v1/catalogs/{catalog}/tools/{tool}",
    "get /v1/catalogs/{catalog}/servers",
    "post /v1/search",
    "post /v1/feedback",  # it is kept until it can be written
}


@pytest.fixture
async def kit(tmp_path: Path) -> AsyncIterator[ServiceKit]:
    async with serving(tmp_path) as running:
        await running.catalog(running.operator, "made-up", [TOOL])
        yield running


def is_away(answer: httpx2.Response) -> bool:
    assert "nobody answers" in answer.text, answer.text
    return (answer.status_code, answer.headers.get("retry-after")) == (503, "2")


@pytest.mark.parametrize("with_key", [True, False], ids=["with an Idempotency-Key", "without"])
async def test_every_operation_says_that_the_store_is_away_and_when_to_try_again(
    kit: ServiceKit, with_key: bool
) -> None:
    others: set[str] = set()
    async with kit.client(kit.operator) as client:
        session = (await client.post("/v1/sessions", json={"catalog": "made-up"})).json()["id"]
        ids = {
            **dict.fromkeys(NAMES, "made-up"),
            "tool": "made_up",
            "name": "made_up",
            "session": session,
            "number": "1",
        }
        with outage(kit.service.storage):
            for number, operation in enumerate(operations(kit.app)):
                headers = {"if-match": '"1"', **({"idempotency-key": f"k{number}"} if with_key else {})}
                request: dict[str, Any] = {"json": operation.body_with(ids), "headers": headers}
                answer = await client.request(operation.method, operation.url(ids), **request)
                if answer.is_success:
                    others.add(str(operation))
                else:
                    assert is_away(answer), (str(operation), answer.text)
                    assert answer.json()["code"] == "store_unavailable"

    assert others <= FROM_MEMORY


async def test_a_key_that_cannot_be_looked_up_is_neither_accepted_nor_refused(kit: ServiceKit) -> None:
    async with kit.client(kit.operator) as known, kit.client("ts_made_up") as unknown:
        assert (await known.get("/v1/me")).status_code == 200
        with outage(kit.service.storage):
            assert is_away(await unknown.get("/v1/me"))
            assert (await known.get("/v1/me")).status_code == 200  # it was asked for less than 5 s ago
            kit.clock.now_s += 5
            assert is_away(await known.get("/v1/me"))

        assert (await known.get("/v1/me")).status_code == 200
        assert (await unknown.get("/v1/me")).status_code == 401


async def test_an_answer_that_could_not_be_kept_is_what_a_repetition_gets_later(kit: ServiceKit) -> None:
    """The store goes away while the request runs; whoever waits for the answer gets it."""
    storage = kit.service.storage

    async def create() -> dict[str, bool]:
        away.enter_context(outage(storage))
        return {"is_done": True}

    kit.app.post("/v1/search/slow")(create)
    with ExitStack() as away:
        async with kit.client(kit.operator, **{"idempotency-key": "once"}) as client:
            first = await client.post("/v1/search/slow", json={})
            assert first.json() == {"is_done": True}
            assert is_away(await client.post("/v1/search/slow", json={}))
            away.close()
            again = await client.post("/v1/search/slow", json={})

    assert (again.json(), again.headers["idempotency-replayed"]) == ({"is_done": True}, "true")


async def test_a_page_is_a_page(kit: ServiceKit) -> None:
    async with kit.client() as browser:
        await sign_in(browser, kit.operator)
        with outage(kit.service.storage):
            answer = await browser.get("/pages/catalogs")
            assert is_away(answer)
            assert answer.headers["content-type"].startswith("text/html")

        assert (await browser.get("/pages/catalogs")).status_code == 200


async def test_what_is_put_off_is_not_logged_with_each_request(
    kit: ServiceKit, caplog: pytest.LogCaptureFixture
) -> None:
    async with kit.client(kit.operator) as client:
        with outage(kit.service.storage), caplog.at_level("WARNING"):
            for _ in range(3):
                assert is_away(await client.post("/v1/catalogs", json={"name": "other"}))

    assert caplog.text == ""
