"""How often a key may ask, and how much a tenant may have."""

from pathlib import Path

import pytest

from tests.kit.clock import Clock
from tests.kit.service import codes, serving
from toolsearch.calling.rates import Buckets
from toolsearch.errors import TooManyError
from toolsearch.service.service import Service
from toolsearch.service.web.callers import ServiceCaller

ONE = ("key", "requests")


def test_a_bucket_holds_a_minute_and_fills_up_over_a_minute(clock: Clock) -> None:
    buckets = Buckets(clock)

    assert [buckets.take(ONE, 1, 3) for _ in range(4)] == [0, 0, 0, pytest.approx(20)]
    clock.now_s += 19
    assert buckets.take(ONE, 1, 3) == pytest.approx(1)
    clock.now_s += 1
    assert buckets.take(ONE, 1, 3) == 0
    clock.now_s += 60
    assert [buckets.take(ONE, 3, 3), buckets.take(ONE, 1, 3)] == [0, pytest.approx(20)]


def test_what_is_used_already_may_go_over_and_has_to_be_made_up(clock: Clock) -> None:
    """A minute holds 100: after 90 and 50 it is 40 behind, which takes 24 s to make up, and 0.6 s for one."""
    buckets = Buckets(clock)

    buckets.owe(ONE, 90, 100)
    assert buckets.wait_s(ONE, 1, 100) == 0
    buckets.owe(ONE, 50, 100)
    assert buckets.take(ONE, 1, 100) == pytest.approx(24.6)
    clock.now_s += 24.6
    assert buckets.take(ONE, 1, 100) == 0


def test_buckets_that_are_full_are_forgotten_and_never_more_than_the_most_are_kept(clock: Clock) -> None:
    buckets = Buckets(clock, most=3)

    for name in "abcde":
        buckets.take((name, "requests"), 1, 1)
    assert len(buckets) == 3
    clock.now_s += 60
    buckets.take(("f", "requests"), 1, 1)
    assert len(buckets) == 1


async def test_a_key_that_asks_too_often_is_told_when_to_come_back_and_others_are_not_held_up(tmp_path: Path) -> None:
    async with serving(tmp_path, rates={"requests": 2}) as kit:
        client, another = kit.client(kit.key("acme")), kit.client(kit.key("acme"))
        answers = [await client.get("/v1/none") for _ in range(3)]
        other = await another.get("/v1/none")
        kit.steady.now_s += 30
        later = await client.get("/v1/none")

    assert codes(answers) == [(404, "not_found"), (404, "not_found"), (429, "too_many")]
    assert answers[2].headers["retry-after"] == "30"
    assert codes([other, later]) == [(404, "not_found")] * 2


@pytest.mark.parametrize("step_s", [172_800, -172_800])
async def test_a_clock_that_is_set_for_a_while_locks_nobody_out(tmp_path: Path, step_s: float) -> None:
    async with serving(tmp_path, rates={"requests": 2}) as kit:
        client = kit.client(kit.key("acme"))
        kit.clock.now_s += step_s
        during = await client.get("/v1/none")
        kit.clock.now_s -= step_s
        afterwards = [await client.get("/v1/none") for _ in range(2)]

    assert codes([during, *afterwards]) == [(404, "not_found"), (404, "not_found"), (429, "too_many")]
    assert afterwards[1].headers["retry-after"] == "30"


async def test_a_key_whose_models_were_sent_too_many_tokens_waits_with_every_request(tmp_path: Path) -> None:
    """The tools of the first request cost more than the one token of a minute."""
    async with serving(tmp_path, rates={"tokens": 1}) as kit:
        acme = kit.key("acme")
        client, another = kit.client(acme), kit.client(kit.key("acme"))
        await kit.catalog(acme)
        opened = await client.post("/v1/sessions", json={})
        path = f"/v1/sessions/{opened.json()['id']}"
        first = await client.get(f"{path}/tools")
        answers = [await client.get(path), await another.get(path)]

    assert (first.status_code, answers[1].status_code) == (200, 200)
    assert codes(answers[:1]) == [(429, "too_many")]
    assert int(answers[0].headers["retry-after"]) > 60


async def test_more_calls_at_once_than_a_minute_holds_are_never_taken(tmp_path: Path) -> None:
    async with serving(tmp_path, rates={"calls": 3}) as kit:
        with pytest.raises(TooManyError) as caught:
            await kit.service.limits.calls(await _caller(kit.service, kit.operator), 4)

    assert caught.value.retry_after_s is None


async def test_a_tenant_has_room_for_what_its_quota_says(tmp_path: Path) -> None:
    async with serving(tmp_path, quotas={"catalogs": 2, "tools": 3, "keys": 2}) as kit:
        limits = kit.service.limits
        acme = kit.key("acme")
        kit.key("acme", expires_s=kit.clock.now_s)  # has expired, and does not count
        await kit.catalog(acme)

        await limits.require_room("acme", "catalogs")
        await limits.require_room("acme", "tools")
        await limits.require_room("acme", "keys")
        for what, more in (("catalogs", 2), ("tools", 2), ("keys", 2)):
            with pytest.raises(TooManyError, match=what):
                await limits.require_room("acme", what, more)  # type: ignore[arg-type]
        await limits.require_room("other", "tools", 3)


async def _caller(service: Service, token: str) -> ServiceCaller:
    grant = await service.keys.of_token(token)
    assert grant is not None
    return ServiceCaller.of(grant)
