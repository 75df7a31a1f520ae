"""One replica in a process of its own, whose import waits for its document until it is told to go on.

Run as ``python -m tests.kit.importing_process URL LEASE_S``. It prints the id of its job, waits for a line, lets the
document arrive, and prints how the job has ended.
"""

import asyncio
import sys
from contextlib import closing

import httpx2

from tests.kit.imports import NOW_S, TENANT, importing_into, petstore
from toolsearch.service.catalogs.imports.sources import CatalogSource, SourceSecrets
from toolsearch.storage.postgres.place import PostgresStorage

DOCUMENT = "https://docs.example/openapi.json"


async def run(url: str, lease_s: float) -> None:
    with closing(PostgresStorage(url)) as storage:
        async with importing_into(storage, replica="process", lease_s=lease_s) as kit:
            kit.web.pages[DOCUMENT] = httpx2.Response(200, json=petstore("cats"))
            kit.web.may_answer.clear()
            await kit.catalogs.create(TENANT, "default", {"description": ""})
            source = CatalogSource(TENANT, "default", "pets", "openapi", created_s=NOW_S)
            _, job = await kit.imports.create(source, SourceSecrets(url=DOCUMENT))
            assert job is not None
            print(job.id, flush=True)  # noqa: T201  the test reads it
            await asyncio.to_thread(sys.stdin.readline)
            kit.web.may_answer.set()
            print((await kit.imports.jobs.ended(TENANT, job.id)).state, flush=True)  # noqa: T201  the test reads it


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1], float(sys.argv[2])))
