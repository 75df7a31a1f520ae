"""Two replicas of a service over one PostgreSQL database, in one event loop, asked over ASGI."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx2

from tests.kit.clock import Clock
from tests.kit.service import HOST, NOW_S, PORT, ServiceKit
from toolsearch.service.app import make_app
from toolsearch.service.corpora.corpus import CorpusRef
from toolsearch.service.service import Service
from toolsearch.service.settings import ServiceSettings
from toolsearch.storage.postgres.place import PostgresStorage
from toolsearch.storage.seal import Seal

DEFAULT: Final = CorpusRef("default", "catalog", "default")
NEVER_S: Final = 100_000.0  # so that only notifications tell
_PATIENCE_S: Final = 20.0


@dataclass
class Replicas:
    """*one* and *two* share the store at *url*, and *operator*, the key of its first administrator."""

    url: str
    operator: str
    clock: Clock
    one: ServiceKit
    two: ServiceKit

    def clients(self) -> tuple[httpx2.AsyncClient, httpx2.AsyncClient]:
        return self.one.client(self.operator), self.two.client(self.operator)


@asynccontextmanager
async def replicas(url: str, folder: Path, *, poll_s: float = NEVER_S, **sections: Any) -> AsyncIterator[Replicas]:
    """Each has a folder of its own. *sections* are settings; by default they only hear of changes."""
    settings = ServiceSettings.model_validate(sections)
    clock, steady, seal = Clock(NOW_S), Clock(), Seal.until_restart()
    async with AsyncExitStack() as ending:
        kits: list[ServiceKit] = []
        operator = ""
        for name in ("one", "two"):
            storage = await asyncio.to_thread(PostgresStorage, url)
            ending.callback(storage.close)
            service = Service(
                settings, storage, seal=seal, clock=clock, steady=steady, indexes=folder / name, poll_s=poll_s
            )
            operator = operator or service.tenants.first_key() or ""
            await ending.enter_async_context(service.running())
            kits.append(ServiceKit(service, make_app(service, host=HOST, port=PORT), clock, steady, operator))
        yield Replicas(url, operator, clock, *kits)


async def eventually(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait until *condition* holds. Fails if it never does."""
    async with asyncio.timeout(_PATIENCE_S):
        while not await condition():  # noqa: ASYNC110  what happens elsewhere sets no event
            await asyncio.sleep(0.005)


async def names(kit: ServiceKit, ref: CorpusRef = DEFAULT) -> list[str]:
    """Of the tools that a search can find, sorted."""
    async with kit.service.corpora.using(ref) as corpus:
        return sorted(corpus.engine.index.names())


async def until_names(kit: ServiceKit, expected: Sequence[str], ref: CorpusRef = DEFAULT) -> None:
    async def are_there() -> bool:
        return await names(kit, ref) == sorted(expected)

    await eventually(are_there)


async def status_of(client: httpx2.AsyncClient, path: str) -> int:
    return (await client.get(path)).status_code
