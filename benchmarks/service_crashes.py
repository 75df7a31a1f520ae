"""Kill ``toolsearch serve`` with SIGKILL at random moments of much work, and see after each restart what is left.

    python -m benchmarks.service_crashes --rounds 100
    python -m benchmarks.service_crashes --rounds 100 --store postgres

On PostgreSQL there are two replicas, and one of them or the server with all its processes is killed; what was not
killed goes on without a restart.

Nothing that was acknowledged may be lost, nothing half-written may be visible, searches on each replica must find what
is in the store, and a call with an Idempotency-Key is run at most once, however often it is repeated. Each round ends
with an error that says what is wrong, or with a line of what was going on.

Writers give all tools of a catalog another version in one request, and an import gives them to those of a source; so
tools of two versions in one catalog are half a change. Each version has a word of its own in all descriptions, so that
a search tells which version the index has. The budget for indexes is small, so that they are saved and read again.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import httpx2

from benchmarks.crash_deployments import EXECUTED, TOOL, Deployment, deployed, noted
from benchmarks.results import write_figures
from toolsearch.storage.storage import Storage

TENANT = "default"
TOOLS = [f"tool_{number:02}" for number in range(40)]
WRITTEN = ["written-0", "written-1"]  # catalogs that are written to
IMPORTED = "imported"  # a catalog with one source
_MOST_DONE = 30  # requests that are acknowledged before the kill, at random; and a moment after the last of them
_MOMENT_S = 0.1
_POLL_S = 0.005
_LONGEST_S = 30.0  # until the kill, on a machine that is busy
_FOLLOWED_S = 30.0  # until a replica must have followed the store; a second is what is promised, on a machine with room
_INTERRUPTED_S = 60.0  # until a job of a replica that was killed must be told as interrupted
_PASSING = frozenset({"store_unavailable", "still_running", "idempotency_in_progress", "idempotency_unknown"})


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
    keys: set[str] = field(default_factory=set)  # with which calls were asked for that the service runs
    executed: set[str] = field(default_factory=set)  # of these, those that were answered
    acknowledged: int = 0


@dataclass(frozen=True)
class Round:
    acknowledged: int
    sessions: int
    calls: int
    executed: int
    versions: dict[str, int]
    killed: str = ""


def word_of(version: int) -> str:
    """A word that no other version's is near to."""
    return "".join(chr(ord("a") + byte % 26) for byte in hashlib.sha256(str(version).encode()).digest()[:12])


def listing(version: int) -> list[dict[str, Any]]:
    text = f"Does what {word_of(version)} is for."
    schema = {"type": "object", "properties": {"version": {"type": "integer", "const": version}}}
    return [{"name": name, "description": text, "input_schema": schema} for name in TOOLS]


class PutOffError(Exception):
    """The store, or another replica, is away; nothing was acknowledged."""


_Work: TypeAlias = Callable[[httpx2.Client, Ledger, random.Random], None]


def crash_rounds(folder: Path, rounds: int, seed: int = 0, *, store: str = "sqlite") -> Iterator[Round]:
    """Work, kill, start what was killed, look, and again, *rounds* times. Raises AssertionError."""
    draw, ledger = random.Random(seed), Ledger()
    with deployed(store, folder) as running:
        with running.replicas[0].client() as client:
            _prepare(client)
        for _ in range(rounds):
            killed = _work_until_killed(running, ledger, draw)
            running.restore()
            yield replace(_look(running, folder, ledger), killed=killed)
        with running.replicas[0].client() as client:
            _require_no_job_of_nobody(client)


def _prepare(client: httpx2.Client) -> None:
    for name in (*WRITTEN, IMPORTED):
        _ok(client.post("/v1/catalogs", json={"name": name}))
    _ok(client.post(f"/v1/catalogs/{IMPORTED}/sources", json={"kind": "listing", "name": "list", "prefix": ""}))


def _work_until_killed(running: Deployment, ledger: Ledger, draw: random.Random) -> str:
    """Each kind of work goes to one replica, another one each time."""
    enough = ledger.acknowledged + draw.randrange(_MOST_DONE)
    works: list[_Work] = [*map(_writer, WRITTEN), _import, _searches, _sessions, _calls, _executions]
    is_over = threading.Event()

    def keep_working(work: _Work, number: int, own: random.Random) -> None:
        with running.replicas[number % len(running.replicas)].client() as client:
            try:
                while not is_over.is_set():
                    work(client, ledger, own)
            except (httpx2.TransportError, PutOffError):
                return  # it was killed, or the store was

    with ThreadPoolExecutor(len(works)) as threads:
        first = draw.randrange(len(running.replicas))
        begun = [
            threads.submit(keep_working, work, first + number, random.Random(draw.randrange(1 << 30)))
            for number, work in enumerate(works)
        ]
        give_up_s = time.monotonic() + _LONGEST_S
        while ledger.acknowledged < enough and time.monotonic() < give_up_s:
            time.sleep(_POLL_S)
        time.sleep(draw.uniform(0, _MOMENT_S))
        killed = running.kill(draw)
        time.sleep(draw.uniform(0, _MOMENT_S))  # so that others meet what is left
        is_over.set()
        for each in begun:
            each.result()
    return killed


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
    if job["error"] is not None and (job["state"] == "interrupted" or job["error"]["code"] in _PASSING):
        raise PutOffError(job["error"])
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
        shown = _ok(client.post(f"/v1/sessions/{session}/expand", json={"names": [name]}))
        assert shown["names"] == [name], shown
        ledger.sessions[session].add(name)
        ledger.acknowledged += 1
    if draw.random() < 0.3:
        ledger.sessions.pop(session)  # once it was asked to end, it may be there or not
        _ok(client.delete(f"/v1/sessions/{session}"))
        ledger.ended.add(session)


def _calls(client: httpx2.Client, ledger: Ledger, draw: random.Random) -> None:
    """Make a call that is handed back, as all tools here live with their caller, and report how it ended."""
    if ledger.versions[WRITTEN[1]].acknowledged == 0:
        client.get("/healthz")  # there may be no tools yet
        return
    answer = client.post("/v1/calls", json={"catalog": WRITTEN[1], "name": draw.choice(TOOLS)})
    call = _ok(answer)["id"]
    ledger.calls.add(answer.headers["x-request-id"])
    _ok(client.post(f"/v1/calls/{call}/result", json={"is_error": draw.random() < 0.1}))
    ledger.reported.add(call)
    ledger.acknowledged += 2


def _executions(client: httpx2.Client, ledger: Ledger, draw: random.Random) -> None:
    """Make a call that the service runs, with an Idempotency-Key."""
    key = f"{draw.randrange(1 << 60):x}"
    ledger.keys.add(key)
    ledger.calls.add(_executed(client, key).headers["x-request-id"])
    ledger.executed.add(key)
    ledger.acknowledged += 1


def _executed(client: httpx2.Client, key: str) -> httpx2.Response:
    body = {"catalog": EXECUTED, "name": TOOL, "arguments": {"key": key}}
    answer = client.post("/v1/calls", json=body, headers={"idempotency-key": key})
    _ok(answer)
    return answer


def _look(running: Deployment, folder: Path, ledger: Ledger) -> Round:
    with closing(running.storage()) as storage:
        stored = {name: _stored_version(storage, name, each) for name, each in ledger.versions.items()}
        _followed(partial(_require_receipts, storage, ledger))
    for name, version in stored.items():
        for replica in running.replicas:
            with replica.client() as client:
                _followed(partial(_require_index_of, client, name, version))
        ledger.versions[name].acknowledged = version  # so that the next version is a new one for sure
    for replica in running.replicas:
        with replica.client() as client:
            _require_sessions_and_calls(client, ledger)
            _repeat_what_was_not_answered(client, ledger)
    times = Counter(noted(folder))
    assert times.keys() >= ledger.executed, f"{len(ledger.executed - times.keys())} calls were answered and never run"
    assert all(count == 1 for count in times.values()), f"calls were run twice: {times.most_common(3)}"
    return Round(ledger.acknowledged, len(ledger.sessions), len(ledger.calls), len(ledger.executed), stored)


def _followed(check: Callable[[], None]) -> None:
    """Let *check* fail for as long as a replica may take to follow the store."""
    give_up_s = time.monotonic() + _FOLLOWED_S
    while True:
        try:
            return check()
        except AssertionError:
            if time.monotonic() > give_up_s:
                raise
            time.sleep(_POLL_S)


def _require_receipts(storage: Storage, ledger: Ledger) -> None:
    receipts = {receipt.request_id for receipt in storage.receipts.page(TENANT, limit=1_000_000)}
    assert ledger.calls <= receipts, f"receipts of {len(ledger.calls - receipts)} calls are lost"


def _require_sessions_and_calls(client: httpx2.Client, ledger: Ledger) -> None:
    for session, shown in ledger.sessions.items():
        active = {each["name"] for each in _pages(client, f"/v1/sessions/{session}/active")}
        assert shown <= active, f"{session} does not show {shown - active}, which it was told to"
    for session in ledger.ended:
        assert client.get(f"/v1/sessions/{session}").status_code == 404, f"{session} had ended"
    for call in random.Random(0).sample(sorted(ledger.reported), min(20, len(ledger.reported))):
        again = client.post(f"/v1/calls/{call}/result", json={})
        assert again.status_code == 404, f"{call} was reported, and can be again"


def _repeat_what_was_not_answered(client: httpx2.Client, ledger: Ledger) -> None:
    """As a client does: with the same key, a few times. It may have been run or not, and is not run twice."""
    for key in sorted(ledger.keys - ledger.executed):
        try:
            _executed(client, key)
        except PutOffError:
            continue
        ledger.executed.add(key)


def _require_no_job_of_nobody(client: httpx2.Client) -> None:
    give_up_s = time.monotonic() + _INTERRUPTED_S
    while "running" in {job["state"] for job in _pages(client, "/v1/jobs")}:
        assert time.monotonic() < give_up_s, "nobody runs a job that says it is running"
        time.sleep(0.1)


def _stored_version(storage: Storage, catalog: str, versions: Versions) -> int:
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
    """The answer. Raises PutOffError for what may succeed later."""
    told = f"{response.request.method} {response.request.url}: {response.text}"
    if not response.is_success and response.json().get("code") in _PASSING:
        raise PutOffError(told)
    assert response.is_success, told
    return response.json() if response.content else None


def main() -> None:
    parser = argparse.ArgumentParser(description="Kill the service at random moments, and see what is left.")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--store", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    given = parser.parse_args()
    rounds: list[Round] = []
    with tempfile.TemporaryDirectory() as folder:
        for each in crash_rounds(Path(folder), given.rounds, given.seed, store=given.store):
            rounds.append(each)
            print(f"{len(rounds):3}: {each}", flush=True)
    if given.json:
        figures = {"store": given.store, "rounds": [asdict(each) for each in rounds]}
        write_figures(given.json, "service_crashes", figures, seed=given.seed)


if __name__ == "__main__":
    main()
