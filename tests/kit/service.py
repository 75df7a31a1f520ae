"""The service in this process, asked over ASGI, with a store in a file as it has in earnest."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from fastapi import FastAPI

from tests.kit.clock import Clock
from tests.kit.documented import require_documented
from toolsearch.access.scopes import SCOPES, Scope
from toolsearch.service.app import make_app
from toolsearch.service.corpora.corpus import CorpusRef
from toolsearch.service.replica_changes import POLL_S
from toolsearch.service.service import Service
from toolsearch.service.sessions.sessions import SessionPlan
from toolsearch.service.settings import ServiceSettings
from toolsearch.service.web.callers import ServiceCaller
from toolsearch.storage.postgres.place import PostgresStorage
from toolsearch.storage.seal import Seal
from toolsearch.storage.sqlite.place import SqliteStorage
from toolsearch.storage.storage import Storage

HOST = "127.0.0.1"
PORT = 8080
NOW_S = 1_800_000_000.0

LISTING = [
    {"name": "read_log", "description": "Read the commits of a repository."},
    {"name": "send_mail", "description": "Send a letter to somebody."},
]


@dataclass
class ServiceKit:
    """A service that runs. *operator* is the key of its first administrator."""

    service: Service
    app: FastAPI
    clock: Clock
    steady: Clock
    operator: str

    def client(self, token: str | None = None, **headers: str) -> httpx2.AsyncClient:
        """Close it, or leave it to the garbage collector: it has no connections.

        A test fails if an answer has a status that the OpenAPI document does not name.
        """
        credential = {"authorization": f"Bearer {token}"} if token else {}
        return httpx2.AsyncClient(
            transport=httpx2.ASGITransport(self.app, raise_app_exceptions=False),
            base_url=f"http://{HOST}:{PORT}",
            headers={**credential, **headers},
            event_hooks={"response": [require_documented]},
        )

    def key(self, tenant: str, *scopes: Scope, **more: Any) -> str:
        """A new key of *tenant*, with all scopes unless some are named."""
        return self.service.keys.make(tenant, "a test's", scopes or SCOPES, **more)[0]

    async def session_of(self, token: str) -> str:
        """The id of a session over the catalog ``default`` that belongs to *token*, which need not have its scope."""
        grant = await self.service.of_token(token)
        assert grant is not None
        caller = ServiceCaller.of(grant)
        plan = SessionPlan(CorpusRef(caller.tenant, "catalog", "default"))
        return (await self.service.sessions.create(caller, plan)).id

    async def catalog(self, token: str, name: str = "default", tools: Sequence[dict[str, Any]] = LISTING) -> None:
        """Make a catalog with *tools*."""
        async with self.client(token) as client:
            (await client.post("/v1/catalogs", json={"name": name})).raise_for_status()
            (await client.post(f"/v1/catalogs/{name}/tools", json=list(tools))).raise_for_status()


@asynccontextmanager
async def serving(
    folder: Path,
    *,
    prepare: Callable[[Service, FastAPI], None] | None = None,
    wrap: Callable[[Storage], Storage] = lambda storage: storage,
    seal: Seal | None = None,
    tools: Sequence[str] = (),
    store: str | None = None,
    clock: Clock | None = None,
    poll_s: float = POLL_S,
    **sections: dict[str, Any],
) -> AsyncIterator[ServiceKit]:
    """Run a service whose store is in *folder*, or at the URL *store*.

    *sections* are settings, such as ``serve={"max_body_bytes": 8}``.

    prepare  may add routes before anything is asked
    wrap     puts something in front of the store, such as what counts its reads
    tools    Python modules of the operator
    seal     that of an earlier run, to start again with what that has sealed
    poll_s   how often it looks for what other replicas wrote
    """
    clock, steady = clock or Clock(NOW_S), Clock()
    storage = _open(folder, store)
    try:
        service = Service(
            ServiceSettings.model_validate(sections),
            wrap(storage),
            seal=seal,
            clock=clock,
            steady=steady,
            indexes=folder / "indexes",
            tools=tools,
            poll_s=poll_s,
        )
        operator = service.tenants.first_key() or ""
        app = make_app(service, host=HOST, port=PORT)
        if prepare is not None:
            prepare(service, app)
        async with service.running():
            yield ServiceKit(service, app, clock, steady, operator)
    finally:
        storage.close()


def _open(folder: Path, store: str | None) -> Storage:
    folder.mkdir(exist_ok=True)
    return SqliteStorage(folder / "toolsearch.db") if store is None else PostgresStorage(store)


@asynccontextmanager
async def two_replicas(
    folder: Path,
    store: str,
    *,
    prepare: Callable[[Service, FastAPI], None] | None = None,
    wrap: Callable[[Storage], Storage] = lambda storage: storage,
    **sections: dict[str, Any],
) -> AsyncIterator[tuple[ServiceKit, ServiceKit]]:
    """Two services over the database at *store*, with one clock and one seal."""
    seal, clock = Seal.until_restart(), Clock(NOW_S)
    both: dict[str, Any] = {"seal": seal, "store": store, "clock": clock, "prepare": prepare, "wrap": wrap, **sections}
    async with serving(folder / "one", **both) as one, serving(folder / "other", **both) as other:
        other.operator = one.operator
        yield one, other


def codes(answers: Iterable[httpx2.Response]) -> list[tuple[int, str]]:
    """Of each answer the status, and the code of the problem that it is."""
    return [(each.status_code, each.json()["code"]) for each in answers]
