"""No tenant sees or changes anything of another, its existence included, whatever it asks for."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import httpx2
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.kit.recording_storage import RecordingStorage
from tests.kit.service import ServiceKit, serving
from tests.kit.service_routes import Operation, operations, undocumented
from toolsearch.service import replicas
from toolsearch.service.corpora.corpus import CorpusRef
from toolsearch.service.corpora.stored_tools import to_row
from toolsearch.service.web.paths import MODELS, PROXIED
from toolsearch.tools.definition import Tool, ToolDefinition

MARK = "zebra"  # is in all that the other tenant has written, and in nothing else
OF_PROVIDERS = {*PROXIED, MODELS, f"{MODELS}/{{model}}"}  # asked in tests/service/test_proxy_face.py
ELSEWHERE = {"/", "/v1/openapi.json", "/v1/sessions/{session}/mcp"}  # the same for everybody; asked below


@dataclass
class World:
    """A service with an intruder, and with another tenant who has something of everything."""

    kit: ServiceKit
    folder: Path
    storage: RecordingStorage
    victims: dict[str, str] = field(default_factory=dict)  # the id of each, by the name of the parameter for it
    intruders: dict[str, str] = field(default_factory=dict)
    token: str = ""

    @property
    def unknown(self) -> dict[str, str]:
        """Ids as long as those of the other tenant, of nothing."""
        return {name: _unlike(each) for name, each in self.victims.items()}

    async def ask(self, operation: Operation, ids: dict[str, str]) -> httpx2.Response:
        body = operation.body_with(ids)
        json_body = {} if body is None else {"json": body}
        return await self.kit.client(self.token).request(operation.method, operation.url(ids), **json_body)

    def rows(self) -> list[str]:
        """All that the store has of the other tenant, but for figures, which are written behind its own requests."""
        with closing(sqlite3.connect(self.folder / "toolsearch.db")) as database:
            lines = [line for line in database.iterdump() if "'victim'" in line and "'intruder'" not in line]
        return [line for line in lines if not line.startswith('INSERT INTO "figures"')]


def _unlike(text: str) -> str:
    """Another id of the same form and length."""
    if text.isdecimal():  # a number is nobody's
        return text
    start, underscore, rest = text.partition("_")
    return f"{start}{underscore}{'0' * len(rest)}" if underscore and len(rest) == 16 else text[:-1] + "q"


@asynccontextmanager
async def world(*, with_victim: bool = True) -> AsyncIterator[World]:
    recording = RecordingStorage()
    many = {"requests": 1_000_000}
    never_s = 1_000_000.0  # else what the service itself looks for would be among the reads of a request
    with TemporaryDirectory() as folder, patch.object(replicas, "_RENEWED_EVERY_S", never_s):
        async with serving(Path(folder), wrap=recording, rates=many, poll_s=never_s) as kit:
            made = World(kit, Path(folder), recording)
            if with_victim:
                made.victims = await _furnish(kit, "victim", MARK)
            made.intruders = await _furnish(kit, "intruder", "horse")
            made.token = kit.key("intruder")
            await kit.client(made.token).get("/v1/me")
            await kit.service.keys.aclose()  # so that the last uses are written down
            yield made


async def _furnish(kit: ServiceKit, tenant: str, mark: str) -> dict[str, str]:
    """Give *tenant* something of everything, and return the ids by the names of their parameters."""
    client = kit.client(kit.key(tenant))
    catalog, tool, source = f"{mark}-barn", f"{mark}_{mark}", f"src-{mark}"
    api = "openai" if mark == MARK else "anthropic"
    tools = [{"name": tool, "description": f"Count the {mark}s."}]
    listing = {"kind": "listing", "name": source, "document": []}
    answers = [
        await client.post("/v1/catalogs", json={"name": catalog, "description": f"About {mark}s."}),
        await client.post(f"/v1/catalogs/{catalog}/tools", json=tools),
        job := await client.post(f"/v1/catalogs/{catalog}/sources", json=listing),
        key := await client.post("/v1/keys", json={"name": f"{mark} keeper"}),
        session := await client.post("/v1/sessions", json={"catalog": catalog}),
        await client.post("/v1/toolsets", json={"name": f"set-{mark}", "tools": [{"catalog": catalog, "tool": tool}]}),
        call := await client.post("/v1/calls", json={"catalog": catalog, "name": tool, "arguments": {}}),
        await client.post("/v1/providers", json={"api": api, "base_url": "https://93.184.215.14", "key": f"sk-{mark}"}),
        await client.post("/v1/search", json={"queries": [f"count {mark}"], "catalog": catalog}),
    ]
    for answer in answers:
        answer.raise_for_status()
    await client.get(f"/v1/jobs/{job.json()['job']['id']}/events")
    skill = Tool(ToolDefinition(f"{mark}_skill", f"How {mark}s are counted.", kind="skill"))
    await kit.service.corpora.change(CorpusRef(tenant, "catalog", catalog), put=[to_row(skill)])
    return {
        "catalog": catalog,
        "tool": tool,
        "source": source,
        "job": job.json()["job"]["id"],
        "toolset": f"set-{mark}",
        "number": "1",
        "call": call.json()["id"],
        "key_id": key.json()["id"],
        "session": session.json()["id"],
        "tenant": tenant,
        "api": api,
    }


async def test_what_is_anothers_answers_with_the_bytes_and_the_reads_of_what_does_not_exist() -> None:
    wrong: list[object] = []
    reads = 0
    async with world() as here:
        for operation in operations(here.kit.app):
            if not operation.parameters and "catalog" not in (operation.body or ()):
                continue
            for own in ({}, dict([next(iter(_own_of(here, operation).items()))])):
                if own and len(operation.parameters) < 2:
                    continue
                seen = []
                for ids in (here.victims, here.unknown):
                    here.storage.asked.clear()
                    answer = await here.ask(operation, {**ids, **own})
                    body = answer.text
                    for name in operation.parameters or ("catalog",):
                        body = body.replace({**ids, **own}[name], "ID")
                    # Figures of earlier requests are written at any moment.
                    asked = [each for each in here.storage.asked if not each.startswith("figures.")]
                    seen.append((answer.status_code, body, asked, _headers(answer)))

                reads += len(seen[0][2])
                if seen[0] != seen[1] or not (seen[0][0] in (403, 404) or (own and seen[0][0] == 200)):
                    wrong.append((str(operation), seen))
    assert wrong == []
    assert reads > 40


def _own_of(here: World, operation: Operation) -> dict[str, str]:
    """The first parameter as the intruder's own: their catalog, with a tool or source of the other tenant's name."""
    first = operation.parameters[0] if operation.parameters else "catalog"
    return {first: here.intruders[first]}


def _headers(answer: httpx2.Response) -> dict[str, str]:
    return {name: value for name, value in answer.headers.items() if name not in ("x-request-id", "content-length")}


async def test_the_mcp_address_of_anothers_session_is_that_of_no_session() -> None:
    initialize = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
    }
    async with world() as here:
        seen = []
        for session in (here.victims["session"], here.unknown["session"]):
            here.storage.asked.clear()
            answer = await here.kit.client(here.token).post(f"/v1/sessions/{session}/mcp", json=initialize)
            seen.append((answer.status_code, answer.text.replace(session, "ID"), list(here.storage.asked)))

    assert seen[0] == seen[1]
    assert seen[0][0] == 404


async def test_every_route_is_covered() -> None:
    """A new route needs an entry in `_furnish` for what its path names, and, if none can be made, a body."""
    async with world() as here:
        found = operations(here.kit.app)
        assert len(found) > 40
        assert undocumented(here.kit.app) == ELSEWHERE | OF_PROVIDERS
        for operation in found:
            assert set(operation.parameters) <= set(here.victims), operation


# Sequences

_CHOICES = st.lists(
    st.tuples(
        st.integers(0, 10_000), st.lists(st.sampled_from(("victims", "intruders", "unknown")), min_size=11, max_size=11)
    ),
    min_size=10,
    max_size=25,
)


async def _run(here: World, victims: dict[str, str], choices: list[tuple[int, list[str]]]) -> list[tuple[int, str]]:
    """Ask for what *choices* say; the answers, with what differs in any two runs left out."""
    every = operations(here.kit.app)
    pools = {"victims": victims, "intruders": here.intruders, "unknown": {n: _unlike(v) for n, v in victims.items()}}
    seen = []
    for number, whose in choices:
        operation = every[number % len(every)]
        ids = {name: pools[pool][name] for name, pool in zip(victims, whose, strict=True)}
        answer = await here.ask(operation, ids)
        seen.append((answer.status_code, answer.text))
        jobs = here.kit.service.imports.jobs
        for job in list(jobs._running):  # else it writes between the requests that follow, at some moment
            await jobs.ended(here.intruders["tenant"], job)
    return seen


async def _trial(choices: list[tuple[int, list[str]]]) -> None:
    async with world() as here:
        before = here.rows()
        seen = await _run(here, here.victims, choices)
        assert sorted(set(here.rows()) ^ set(before)) == []
        names = here.victims
    async with world(with_victim=False) as alone:
        seen_alone = await _run(alone, names, choices)
    assert _normalised(seen) == _normalised(seen_alone)


_ID = re.compile(r"\b(?:key|ses|job|req|rcp|call)_[0-9A-Za-z_-]{8,}|ts_[\w-]+")
_DIGEST = re.compile(r"\b[0-9a-f]{64}\b")
_MEASURED = re.compile(r"\"(?:latency_ms|used_at)\": ?[^,}]+")


def _normalised(seen: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """Leaves out what differs in any two runs: random ids and keys, digests of them, and what a clock has measured."""
    return [
        (status, _in_order(_MEASURED.sub('"measured": 0', _DIGEST.sub("", _ID.sub("", text))))) for status, text in seen
    ]


def _in_order(text: str) -> str:
    """Lists are in the order of ids, which are random; here they are in that of the rest."""
    try:
        answer = json.loads(text)
    except ValueError:
        return text
    if isinstance(answer, dict) and isinstance(answer.get("items"), list):
        answer["items"].sort(key=json.dumps)
    return json.dumps(answer)


@settings(max_examples=2, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(choices=_CHOICES)
def test_no_sequence_of_requests_shows_or_changes_anything_of_anothers(choices: list[tuple[int, list[str]]]) -> None:
    """The answers are those of a service where there is no other tenant."""
    asyncio.run(_trial(choices))
