"""Two replicas on one PostgreSQL under load, while one is killed and another one comes that changes the tables.

    python -m benchmarks.service_outage --seconds 30

Clients search, open sessions and discover tools, write catalogs and import listings, each by a replica of its own, and
do what docs/service.md tells them: a request that got no answer, or 503, is repeated with the same Idempotency-Key, by
another replica. After a third of the time the first replica is killed; then a third one is started whose tables have a
step more than those of the second one, which goes on. A request is lost if it is not answered however often it is
repeated; and what was acknowledged last has to be there at the end.
"""

from __future__ import annotations

import argparse
import base64
import itertools
import random
import secrets
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

import httpx2

from benchmarks.results import write_figures
from benchmarks.service_crashes import TOOLS, listing, word_of
from tests.kit.postgres import PostgresServer, packaged
from tests.kit.service_process import PROGRAM, QUIET, ServiceProcess, service_process
from toolsearch.environment import SECRET_KEY, STORE

_CLIENTS: Final = 2  # of each kind of work
_PATIENCE_S: Final = 60.0  # after which a request is lost
_PAUSE_S: Final = 0.2
_AGAIN: Final = frozenset({429, 502, 503, 504})
_IN_PROGRESS: Final = "idempotency_in_progress"
_NEXT_VERSION: Final = """
import runpy
from toolsearch.storage.postgres import schema
step = schema.Step(("ALTER TABLE records ADD COLUMN of_the_next_version TEXT",), oldest_version=1)
migrate = schema.migrate
schema.migrate = lambda connection: migrate(connection, (*schema.STEPS, step))
runpy.run_module("toolsearch", run_name="__main__", alter_sys=True)
"""


class LostError(Exception):
    """A request was not answered, however often it was repeated."""


@dataclass
class Figures:
    requests: int = 0
    repeated: int = 0  # tries beyond the first one
    lost: int = 0
    longest_s: float = 0.0  # from the first try of a request to its answer
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def note(self, *, tries: int, seconds: float) -> None:
        with self.lock:
            self.requests += 1
            self.repeated += tries - 1
            self.longest_s = max(self.longest_s, seconds)


class Caller:
    """A client that knows all replicas, and goes to the next one when one does not answer."""

    def __init__(self, replicas: list[ServiceProcess], first: int, figures: Figures) -> None:
        self._replicas = replicas
        self._at = first
        self._figures = figures
        self._clients: dict[str, httpx2.Client] = {}

    def ask(self, method: str, path: str, **request: Any) -> Any:
        """Raises LostError. Whatever else goes wrong is an AssertionError."""
        headers = {} if method == "GET" else {"idempotency-key": secrets.token_hex(16)}
        began_s = time.monotonic()
        for tries in itertools.count(1):
            answer = self._try(method, path, headers=headers, **request)
            seconds = time.monotonic() - began_s
            if answer is not None and not _is_put_off(answer):
                self._figures.note(tries=tries, seconds=seconds)
                assert answer.is_success, f"{method} {path}: {answer.text}"
                return answer.json() if answer.content else None
            if seconds > _PATIENCE_S:
                raise LostError(f"{method} {path}: {answer.text if answer is not None else 'no answer'}")
            self._at += 1
            time.sleep(_PAUSE_S)
        raise AssertionError

    def _try(self, method: str, path: str, **request: Any) -> httpx2.Response | None:
        replica = self._replicas[self._at % len(self._replicas)]
        client = self._clients.setdefault(replica.url, replica.client())
        try:
            return client.request(method, path, **request)
        except httpx2.TransportError:
            return None


def _is_put_off(answer: httpx2.Response) -> bool:
    return answer.status_code in _AGAIN or (answer.status_code == 409 and answer.json()["code"] == _IN_PROGRESS)


_Work: TypeAlias = Callable[[Caller, str, int], None]


def search(caller: Caller, catalog: str, number: int) -> None:
    caller.ask("POST", "/v1/search", json={"catalog": catalog, "queries": [word_of(number)]})


def discover(caller: Caller, catalog: str, number: int) -> None:
    session = caller.ask("POST", "/v1/sessions", json={"catalog": catalog})["id"]
    names = random.Random(number).sample(TOOLS, 2)
    for name in names:
        caller.ask("POST", f"/v1/sessions/{session}/expand", json={"names": [name]})
    active = {each["name"] for each in caller.ask("GET", f"/v1/sessions/{session}/active?limit=100")["items"]}
    assert active >= set(names), f"the session has lost {set(names) - active}"


def write(caller: Caller, catalog: str, number: int) -> None:
    caller.ask("POST", f"/v1/catalogs/{catalog}/tools", json=listing(number))


def bring_in(caller: Caller, catalog: str, number: int) -> None:
    """Import a listing, and again if the replica that did it was killed."""
    state = "interrupted"
    while state != "done":
        job = caller.ask("PUT", f"/v1/catalogs/{catalog}/sources/list/document", json=listing(number))["job"]
        while (state := job["state"]) == "running":
            time.sleep(_PAUSE_S)
            job = caller.ask("GET", f"/v1/jobs/{job['id']}")
        assert state in ("done", "interrupted"), job


def outage(folder: Path, seconds: float, figures: Figures) -> Iterator[str]:
    """Count in *figures*; yield a line for what happens, and one of them at the end. Raises AssertionError."""
    with ExitStack() as stack:
        server = PostgresServer(packaged(), is_durable=True)
        stack.callback(server.close)
        server.start()
        environment = {
            STORE: server.new_database(is_empty=True),
            SECRET_KEY: base64.b64encode(secrets.token_bytes(32)).decode(),
            "XDG_STATE_HOME": str(folder / "state"),
            "TOOLSEARCH_RATES__REQUESTS": "10000000",
        }

        def start(name: str, key: str | None, program: tuple[str, ...] = PROGRAM) -> ServiceProcess:
            started = service_process(folder / name, *QUIET, program=program, key=key, **environment)
            return stack.enter_context(started)

        first = start("one", None)
        replicas = [first, start("two", first.key)]
        works: list[tuple[_Work, str]] = []
        for number in range(_CLIENTS):
            written, imported = f"written-{number}", f"imported-{number}"
            _make(Caller(replicas, 0, figures), written, imported)
            works += [(search, written), (discover, written), (write, written), (bring_in, imported)]
        is_over = threading.Event()
        last: dict[str, int] = {}

        def keep_working(work: _Work, catalog: str, at: int) -> None:
            caller = Caller(replicas, at, figures)
            for number in itertools.count(2):
                if is_over.is_set():
                    return
                try:
                    work(caller, catalog, number)
                except LostError:
                    with figures.lock:
                        figures.lost += 1
                if work in (write, bring_in):
                    last[catalog] = number

        with ThreadPoolExecutor(len(works)) as threads, ExitStack() as ending:
            ending.callback(is_over.set)
            running = [threads.submit(keep_working, *each, at) for at, each in enumerate(works)]
            time.sleep(seconds / 3)
            first.process.kill()
            yield f"killed the first replica after {figures.requests} requests"
            replicas[0] = start("three", first.key, ("-c", _NEXT_VERSION, "serve"))
            version = server.execute("SELECT max(version) FROM toolsearch.versions", database=_name(environment[STORE]))
            yield f"started one whose tables have version {version[0][0]}, after {figures.requests} requests"
            time.sleep(seconds * 2 / 3)
        for each in running:
            each.result()
        for at, (catalog, number) in enumerate(last.items()):
            _require_version(Caller(replicas, at, figures), catalog, number)
    yield str(figures)
    assert not figures.lost


def _make(caller: Caller, written: str, imported: str) -> None:
    for name in (written, imported):
        caller.ask("POST", "/v1/catalogs", json={"name": name})
    caller.ask("POST", f"/v1/catalogs/{imported}/sources", json={"kind": "listing", "name": "list", "prefix": ""})
    write(caller, written, 1)
    bring_in(caller, imported, 1)


def _require_version(caller: Caller, catalog: str, number: int) -> None:
    """The last write that was answered is what is there."""
    body = {"catalog": catalog, "queries": [word_of(number)], "strategy": "keyword", "limit": 100}
    give_up_s = time.monotonic() + _PATIENCE_S
    while len(caller.ask("POST", "/v1/search", json=body)["answers"][0]["tools"]) != len(TOOLS):
        assert time.monotonic() < give_up_s, f"{catalog} does not have version {number}, which was acknowledged"
        time.sleep(_PAUSE_S)


def _name(url: str) -> str:
    return url.rpartition("/")[2]


def main() -> None:
    parser = argparse.ArgumentParser(description="Replace a replica under load by one of the next version.")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    given = parser.parse_args()
    figures = Figures()
    with tempfile.TemporaryDirectory() as folder:
        for told in outage(Path(folder), given.seconds, figures):
            print(told, flush=True)
    if given.json:
        names = ("requests", "repeated", "lost", "longest_s")
        write_figures(given.json, "service_outage", {name: getattr(figures, name) for name in names})


if __name__ == "__main__":
    main()
