"""Whatever two replicas do with one session at the same time, by keys of different reach: what becomes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.kit.postgres import PostgresServer
from tests.kit.service import ServiceKit, two_replicas

NAMES = [f"tool_{letter}" for letter in "abcdef"]
OUT_OF_SESSION = {"tool_f"}
OUT_OF_NARROW = {"tool_c", "tool_d", *OUT_OF_SESSION}

Step: TypeAlias = tuple[str, str, bool]  # what is done, with which tool, and whether by the narrow key

kinds = st.sampled_from(["search", "search", "expand", "pin", "evict", "end-turn", "tools", "call"])
steps = st.tuples(kinds, st.sampled_from(NAMES), st.booleans())
rounds = st.lists(st.tuples(steps, steps), min_size=1, max_size=6)


@dataclass
class World:
    """*clients* has the client of each replica with the wide key and with the narrow one."""

    runner: asyncio.Runner
    kits: tuple[ServiceKit, ServiceKit]
    clients: list[tuple[httpx2.AsyncClient, httpx2.AsyncClient]]


@dataclass
class Life:
    """One session, and what is known of it."""

    world: World
    session: str
    found: set[str] = field(default_factory=set)
    evicted: set[str] = field(default_factory=set)
    listed: list[str] = field(default_factory=list)

    async def take(self, replica: int, step: Step) -> httpx2.Response:
        kind, name, is_narrow = step
        client, path = self.world.clients[replica][is_narrow], f"/v1/sessions/{self.session}"
        out = OUT_OF_NARROW if is_narrow else OUT_OF_SESSION
        if name not in out and kind in ("search", "expand", "pin"):
            self.found.add(name)
        if name not in out and kind == "evict":
            self.evicted.add(name)
        if kind == "tools":
            answer = await client.get(f"{path}/tools?format=anthropic")
        elif kind == "search":
            answer = await client.post(f"{path}/search", json={"queries": [f"select:{name}"]})
        elif kind == "call":
            answer = await client.post(f"{path}/calls", json={"name": name, "arguments": {}})
            assert answer.status_code in ({404} if name in out else {200, 404})
        else:
            body = None if kind == "end-turn" else {"names": [name]}
            answer = await client.post(f"{path}/{kind}", json=body)
        shown = answer.text.replace(name, "") if kind != "tools" else answer.text  # what was asked for is repeated
        assert not [each for each in out if each in shown], (step, answer.text)
        return answer

    async def active(self, replica: int, *, is_narrow: bool) -> list[str]:
        answer = await self.world.clients[replica][is_narrow].get(f"/v1/sessions/{self.session}/active")
        return [tool["name"] for tool in answer.json()["items"]]

    async def check(self) -> None:
        """Both replicas list the same, in an order that only grows at its end, to everybody what they reach."""
        lists = [await self.active(replica, is_narrow=False) for replica in (0, 1)]
        narrow = [await self.active(replica, is_narrow=True) for replica in (0, 1)]
        assert lists[0] == lists[1]
        assert narrow[0] == narrow[1] == [name for name in lists[0] if name not in OUT_OF_NARROW]
        assert self.found - self.evicted <= set(lists[0]) <= self.found
        stayed = [name for name in self.listed if name not in self.evicted]
        assert [name for name in lists[0] if name not in self.evicted][: len(stayed)] == stayed
        self.listed = lists[0]


@pytest.fixture
def world(tmp_path: Path, postgres: PostgresServer) -> Iterator[World]:
    tools = [{"name": name, "description": f"Does what {name} does."} for name in NAMES]
    with asyncio.Runner() as runner:
        running = AsyncExitStack()

        async def start() -> tuple[ServiceKit, ServiceKit]:
            url, rates = postgres.new_database(), {"requests": 1_000_000}
            serving = two_replicas(tmp_path, url, pass_through={"max_tools": 0}, rates=rates)
            kits = await running.enter_async_context(serving)
            await kits[0].catalog(kits[0].operator, tools=tools)
            return kits

        kits = runner.run(start())
        narrow = kits[0].key("default", deny=["tool_c", "tool_d"])
        yield World(runner, kits, [(kit.client(kits[0].operator), kit.client(narrow)) for kit in kits])
        runner.run(running.aclose())


async def _begun(world: World) -> Life:
    answer = await world.clients[0][True].post("/v1/sessions", json={"deny": sorted(OUT_OF_SESSION)})
    return Life(world, answer.json()["id"])


async def _lived(world: World, history: list[tuple[Step, Step]]) -> None:
    life = await _begun(world)
    for both in history:
        answers = await asyncio.gather(*(life.take(replica, step) for replica, step in enumerate(both)))
        assert all(answer.status_code in (200, 404) for answer in answers), [answer.text for answer in answers]
        await life.check()


async def _deleted(world: World, first: Step, during: Step) -> None:
    life = await _begun(world)
    await life.take(1, first)
    path = f"/v1/sessions/{life.session}"
    deleted, answer = await asyncio.gather(world.clients[0][False].delete(path), life.take(1, during))
    assert deleted.status_code == 204
    assert answer.status_code in (200, 404)
    again = [(await life.take(replica, during)).status_code for replica in (0, 1)]
    assert again == [404, 404]
    storage = world.kits[0].service.storage
    assert storage.sessions("default").load(life.session) is None


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=rounds)
def test_what_both_have_found_is_there_in_one_order_and_within_reach(
    world: World, history: list[tuple[Step, Step]]
) -> None:
    world.runner.run(_lived(world, history))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=steps, during=steps)
def test_a_session_that_one_deletes_stays_deleted_whatever_the_other_does_with_it(
    world: World, first: Step, during: Step
) -> None:
    world.runner.run(_deleted(world, first, during))
