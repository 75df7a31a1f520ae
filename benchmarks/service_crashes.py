"""Kill ``toolsearch serve`` with SIGKILL at random moments of much work, and see after each restart what is left.

    python -m benchmarks.service_crashes --rounds 100

Nothing that was acknowledged may be lost, nothing half-written may be visible, and searches must find what is in the
store. Each round ends with an error that says what is wrong, or with a line of what was going on.

Writers give all tools of a catalog another version in one request, and an import gives them to those of a source; so
tools of two versions in one catalog are half a change. Each version has a word of its own in all descriptions, so that
a search tells which version the index has. The budget for indexes is small, so that they are saved and read again.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import random
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from tests.kit.service_process import QUIET, ServiceProcess, service_process
from toolsearch.service.data_folder import STORE_FILE
from toolsearch.storage.sqlite.storage import SqliteStorage

TENANT = "default"
TOOLS = [f"tool_{number:02}" for number in range(40)]
WRITTEN = ["written-0", "written-1"]  # catalogs that are written to
IMPORTED = "imported"  # a catalog with one source
_MOST_DONE = 30  # requests that are acknowledged before the kill, at random; and a moment after the last of them
_MOMENT_S = 0.1
_POLL_S = 0.005
_LONGEST_S = 30.0  # until the kill, on a machine that is busy


@dataclass
class Versions:
    """Of one catalog: what was asked for last, and what was acknowledged last."""

    sent: int = 0
    acknowledged: int = 0


@dataclass
class Ledger:
    """What clients know of the service."""

    versions: dict[str, Versions] = field(default_factory=lambda: {name: Versions() for name in (*WRITTEN, IMPORTED)})
    sessions: dict[str, set[str]] = field(default_factory=dict)  # of each the tools that it was told it shows
    ended: set[str] = field(default_factory=set)  # sessions whose end was acknowledged
    calls: set[str] = field(
        default_factory=set
    )  # ids of requests whose call was handed back, so that there is a receipt
    reported: set[str] = field(default_factory=set)  # calls whose report was acknowledged
    acknowledged: int = 0


@dataclass(frozen=True)
class Round:
    acknowledged: int
    sessions: int
    calls: int
    versions: dict[str, int]


def word_of(version: int) -> str:
    """A word that no other version's is near to."""
    return "".join(chr(ord("a") + byte % 26) for byte in hashlib.sha256(str(version).encode()).digest()[:12])


def listing(version: int) -> list[dict[str, Any]]:
    text = f"Does what {word_of(version)} is for."
    schema = {"type": "object", "properties": {"version": {"type": "integer", "const": version}}}
    return [{"name": name, "description": text, "input_schema": schema} for name in TOOLS]


def crash_rounds(folder: Path, rounds: int, seed: int = 0) -> Iterator[Round]:
    """Start, look, work, kill, and again; *rounds* kills, each followed by a look. Raises AssertionError."""
    draw = random.Random(seed)
    ledger, key = Ledger(), ""
    for number in range(rounds + 1):
        with service_process(
            folder, *QUIET, TOOLSEARCH_MEMORY__INDEX_BYTES="1", XDG_STATE_HOME=str(folder / "state")
        ) as started:
            key = key or started.key
            process = ServiceProcess(started.process, started.url, key)
            with process.client() as client:
                if number == 0:
                    _prepare(client)
                else:
                    yield _look(client, folder, ledger)
            if number < rounds:
                _work_until_killed(process, ledger, draw)


def _prepare(client: httpx2.Client) -> None:
    for name in (*WRITTEN, IMPORTED):
        _ok(client.post("/v1/catalogs", json={"name": name}))
    _ok(client.post(f"/v1/catalogs/{IMPORTED}/sources", json={"kind": "listing", "name": "list", "prefix": ""}))


def _work_until_killed(process: ServiceProcess, ledger: Ledger, draw: random.Random) -> None:
    seeds = itertools.count(draw.randrange(1 << 30))
    enough = ledger.acknowledged + draw.randrange(_MOST_DONE)
    jobs: list[Callable[[httpx2.Client, Ledger, random.Random], None]] = [
        *(_writer(name) for name in WRITTEN),
        _import,
        _searches,
        _sessions,
        _calls,
    ]

    def work(job: Callable[[httpx2.Client, Ledger, random.Random], None]) -> None:
        own = random.Random(next(seeds))
        with process.client() as client:
            try:
                while True:
                    job(client, ledger, own)
            except httpx2.TransportError:
                return  # it was killed

    with ThreadPoolExecutor(len(jobs)) as threads:
        running = [threads.submit(work, job) for job in jobs]
        give_up_s = time.monotonic() + _LONGEST_S
        while ledger.acknowledged < enough and time.monotonic() < give_up_s:
            time.sleep(_POLL_S)
        time.sleep(draw.uniform(0, _MOMENT_S))
        process.process.kill()
        process.process.wait()
        for each in running:
            each.result()


def _writer(name: str) -> Callable[[httpx2.Client, Ledger, random.Random], None]:
    def write(client: httpx2.Client, ledger: Ledger, _: random.Random) -> None:
        versions = ledger.versions[name]
        versions.sent += 1
        body = _ok(client.post(f"/v1/catalogs/{name}/tools", json=listing(versions.sent)))
        assert body["refused"] == 0, body
        versions.acknowledged = versions.sent
        ledger.acknowledged += 1

    return write


def _import(client: httpx2.Client, ledger: Ledger, _: random.Random) -> None:
    versions = ledger.versions[IMPORTED]
    versions.sent += 1
    job = _ok(client.put(f"/v1/catalogs/{IMPORTED}/sources/list/document", json=listing(versions.sent)))["job"]
    while job["state"] == "running":
        time.sleep(0.01)
        job = _ok(client.get(f"/v1/jobs/{job['id']}"))
    assert job["state"] == "done", job
    versions.acknowledged = versions.sent
    ledger.acknowledged += 1


def _searches(client: httpx2.Client, ledger: Ledger, draw: random.Random) -> None:
    name = draw.choice((*WRITTEN, IMPORTED))
    _ok(client.post("/v1/search", json={"catalog": name, "queries": [word_of(ledger.versions[name].sent)]}))


def _sessions(client: httpx2.Client, ledger: Ledger, draw: random.Random) -> None:
    """Open a session, let it discover tools by name, and end some."""
    session = _ok(client.post("/v1/sessions", json={"catalog": WRITTEN[0]}))["id"]
    ledger.sessions[session] = set()
    for _ in range(3):
        name = draw.choice(TOOLS)
        if ledger.versions[WRITTEN[0]].acknowledged == 0:
            return  # there may be no tools yet
        _ok(client.post(f"/v1/sessions/{session}/expand", json={"names": [name]}))
        ledger.sessions[session].add(name)
        ledger.acknowledged += 1
    if draw.random() < 0.3:
        shown = ledger.sessions.pop(session)  # once it was asked to end, it may be there or not
        assert client.delete(f"/v1/sessions/{session}").status_code == 204, shown
        ledger.ended.add(session)


def _calls(client: httpx2.Client, ledger: Ledger, draw: random.Random) -> None:
    """Make a call that is handed back, as all tools here live with their caller, and report how it ended."""
    if ledger.versions[WRITTEN[1]].acknowledged == 0:
        client.get("/healthz")  # there may be no tools yet
        return
    answer = client.post("/v1/calls", json={"catalog": WRITTEN[1], "name": draw.choice(TOOLS)})
    call = _ok(answer)["id"]
    ledger.calls.add(answer.headers["x-request-id"])
    report = client.post(f"/v1/calls/{call}/result", json={"is_error": draw.random() < 0.1})
    assert report.status_code == 204, report.text
    ledger.reported.add(call)
    ledger.acknowledged += 2


def _look(client: httpx2.Client, folder: Path, ledger: Ledger) -> Round:
    with closing(sqlite3.connect(f"file:{folder / STORE_FILE}?mode=ro", uri=True)) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    with closing(SqliteStorage(folder / STORE_FILE)) as storage:
        stored = {name: _stored_version(storage, name, each) for name, each in ledger.versions.items()}
        receipts = {receipt.request_id for receipt in storage.receipts.page(TENANT, limit=1_000_000)}
        assert ledger.calls <= receipts, f"receipts of {len(ledger.calls - receipts)} calls are lost"
    for name, version in stored.items():
        _require_index_of(client, name, version)
        ledger.versions[name].acknowledged = version  # so that the next version is a new one for sure
    for session, shown in ledger.sessions.items():
        active = {each["name"] for each in _pages(client, f"/v1/sessions/{session}/active")}
        assert shown <= active, f"{session} does not show {shown - active}, which it was told to"
    for session in ledger.ended:
        assert client.get(f"/v1/sessions/{session}").status_code == 404, f"{session} had ended"
    for call in random.Random(0).sample(sorted(ledger.reported), min(20, len(ledger.reported))):
        again = client.post(f"/v1/calls/{call}/result", json={})
        assert again.status_code == 404, f"{call} was reported, and can be again"
    states = {job["state"] for job in _pages(client, "/v1/jobs")}
    assert "running" not in states, "nobody runs a job that says it is running"
    return Round(ledger.acknowledged, len(ledger.sessions), len(ledger.calls), stored)


def _stored_version(storage: SqliteStorage, catalog: str, versions: Versions) -> int:
    rows = storage.contents.page(TENANT, catalog, limit=1_000)
    found = {row.document["definition"]["input_schema"]["properties"]["version"]["const"] for row in rows}
    if not rows:
        assert versions.acknowledged == 0, f"all tools of {catalog} are lost"
        return 0
    assert len(found) == 1, f"{catalog} has tools of the versions {sorted(found)}: half a change"
    version: int = next(iter(found))
    assert [row.name for row in rows] == TOOLS, f"{catalog} lacks tools"
    assert versions.acknowledged <= version <= versions.sent, (
        f"{catalog} has version {version}, and {versions.acknowledged} was acknowledged, {versions.sent} sent"
    )
    return version


def _require_index_of(client: httpx2.Client, catalog: str, version: int) -> None:
    """Lists have the tools of *version*, and searches find them by its word, and none by the words around it."""
    words = [word_of(each) for each in (version, version - 1, version + 1)]
    body = {"catalog": catalog, "queries": words, "names": TOOLS, "strategy": "keyword", "limit": 100}
    answer = _ok(client.post("/v1/search", json=body))
    found = [sorted(tool["name"] for tool in each["tools"]) for each in answer["answers"]]
    expected = TOOLS if version else []
    assert found == [expected, [], []], f"the index of {catalog} is not that of version {version}: {found}"
    assert sorted(each["name"] for each in answer["named"]) == expected
    listed = {
        each["name"]: word_of(version) in each["summary"] for each in _pages(client, f"/v1/catalogs/{catalog}/tools")
    }
    assert listed == dict.fromkeys(expected, True)


def _pages(client: httpx2.Client, path: str) -> Iterator[dict[str, Any]]:
    after: str | None = ""
    while after is not None:
        body = _ok(client.get(path, params={"after": after, "limit": 100} if after else {"limit": 100}))
        yield from body["items"]
        after = body["next"]


def _ok(response: httpx2.Response) -> Any:
    assert response.is_success, f"{response.request.method} {response.request.url}: {response.text}"
    return response.json()


def main() -> None:
    parser = argparse.ArgumentParser(description="Kill the service at random moments, and see what is left.")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for number, each in enumerate(crash_rounds(Path(folder) / "data", given.rounds, given.seed), start=1):
            print(f"{number:3}: {each}", flush=True)


if __name__ == "__main__":
    main()
