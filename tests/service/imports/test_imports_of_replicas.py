"""Imports of two replicas over one store: one of a source at a time, and seen, followed and ended from either."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest

from tests.kit.imports import NOW_S, TENANT, ImportsKit, importing_into, petstore
from tests.kit.postgres import PostgresServer
from toolsearch.errors import StillRunningError, UnknownRecordError
from toolsearch.service.catalogs.imports.sources import SOURCE, CatalogSource, SourceSecrets
from toolsearch.service.catalogs.writing import REFUSED
from toolsearch.service.job_records import JOB, Job, JobStep
from toolsearch.storage.postgres.place import PostgresStorage
from toolsearch.storage.seal import Seal
from toolsearch.storage.sqlite.place import SqliteStorage
from toolsearch.storage.storage import Storage

DOCUMENT = "https://docs.example/openapi.json"
LISTING = [{"name": "read_log", "description": "Read the commits."}, {"description": "nameless"}]

Stores = tuple[Storage, Storage]


class ImportsOfReplicas:
    """What holds over any store. The clock of the second replica is ten minutes ahead."""

    @pytest.fixture
    async def kits(self, stores: Stores) -> AsyncIterator[tuple[ImportsKit, ImportsKit]]:
        seal = Seal.until_restart()
        async with (
            importing_into(stores[0], replica="one", seal=seal) as one,
            importing_into(stores[1], replica="two", seal=seal, clock_ahead_s=600) as two,
        ):
            await one.catalogs.create(TENANT, "default", {"description": ""})
            for kit in (one, two):
                kit.web.pages[DOCUMENT] = httpx2.Response(200, json=petstore("cats"))
                kit.web.may_answer.clear()
            yield one, two
            for kit in (one, two):
                kit.web.may_answer.set()

    @pytest.fixture
    def one(self, kits: tuple[ImportsKit, ImportsKit]) -> ImportsKit:
        return kits[0]

    @pytest.fixture
    def two(self, kits: tuple[ImportsKit, ImportsKit]) -> ImportsKit:
        return kits[1]

    async def test_a_source_is_imported_by_one_replica_at_a_time(self, one: ImportsKit, two: ImportsKit) -> None:
        await begun(one)

        with pytest.raises(StillRunningError, match="imports the source 'pets'"):
            await two.imports.refresh(TENANT, "default", "pets")
        with pytest.raises(StillRunningError):
            await two.imports.upload(TENANT, "default", "pets", petstore("dogs"))

    async def test_of_two_requests_at_the_same_moment_one_begins(self, one: ImportsKit, two: ImportsKit) -> None:
        """Both have read the source, and found no import, before either begins."""
        source = await one.imports.sources.save(replace(SOURCE_OF_PETS, sealed=sealed(one)))
        outcomes = await asyncio.gather(
            *(kit.imports.refresh(TENANT, "default", "pets") for kit in (one, two)), return_exceptions=True
        )

        assert sorted(type(each).__name__ for each in outcomes) == ["StillRunningError", "tuple"]
        assert len(one.storage.records.page(TENANT, JOB, limit=9, at_s=NOW_S)) == 1
        assert (await one.imports.sources.get(TENANT, "default", "pets")).version > source.version

    async def test_an_import_that_has_ended_can_be_done_again_by_another_replica(
        self, one: ImportsKit, two: ImportsKit
    ) -> None:
        source, job = await begun(one)
        one.web.may_answer.set()
        assert (await two.imports.jobs.ended(TENANT, job.id)).outcome["written"] == 1

        two.web.pages[DOCUMENT] = httpx2.Response(200, json=petstore("dogs"))
        two.web.may_answer.set()
        _, job = await two.ended(*await two.imports.refresh(TENANT, "default", source.name))
        assert job.outcome == {"written": 1, "unchanged": 0, "removed": 1, "refused": 0}
        assert one.tools() == {"pets__dogs": "pets"}

    async def test_progress_is_followed_from_the_other_replica_to_the_end(
        self, one: ImportsKit, two: ImportsKit
    ) -> None:
        _, job = await begun(one)
        news = two.imports.jobs.follow(job)
        assert [await anext(news), await anext(news)] == [JobStep("waiting"), JobStep("fetching")]

        one.web.may_answer.set()
        rest = [each async for each in news]
        assert [each.stage for each in rest if isinstance(each, JobStep)] == [
            "reading", "counting", "checking", "writing", "indexing",
        ]  # fmt: skip
        assert isinstance(rest[-1], Job)
        assert rest[-1] == await one.imports.jobs.ended(TENANT, job.id)
        assert (rest[-1].state, rest[-1].outcome["written"]) == ("done", 1)

    async def test_what_the_other_replica_cancels_writes_nothing_more(self, one: ImportsKit, two: ImportsKit) -> None:
        source, job = await begun(one)
        assert (await two.imports.jobs.cancel(TENANT, job.id)).state == "cancelled"
        assert (await one.imports.jobs.get(TENANT, job.id)).state == "cancelled"
        one.web.may_answer.set()

        assert (await one.ended(source, job))[1].state == "cancelled"
        await idle(one)
        assert one.tools() == {}
        source = await one.imports.sources.get(TENANT, "default", "pets")
        assert (source.is_settled, source.last) == (False, None)

    async def test_the_replica_that_runs_a_job_gives_it_up_soon_after_another_has_cancelled_it(
        self, one: ImportsKit, two: ImportsKit
    ) -> None:
        """Also while nothing comes of what it waits for."""
        _, job = await begun(one)
        await two.imports.jobs.cancel(TENANT, job.id)
        await idle(one)

    async def test_a_source_that_the_other_replica_deletes_leaves_nothing_over(
        self, one: ImportsKit, two: ImportsKit
    ) -> None:
        """Between the check and the writing of the import."""

        job = await during_the_import_of_mail(one, lambda: two.imports.delete(TENANT, "default", "mail"))
        assert (await two.imports.jobs.get(TENANT, job.id)).state == "cancelled"
        assert left_over(one) == []

    async def test_a_catalog_that_the_other_replica_deletes_leaves_nothing_over(
        self, one: ImportsKit, two: ImportsKit
    ) -> None:
        job = await during_the_import_of_mail(one, lambda: two.catalogs.delete(TENANT, "default"))
        assert (await two.imports.jobs.get(TENANT, job.id)).state == "cancelled"
        assert left_over(one) == []

    async def test_an_import_that_begins_while_its_catalog_is_deleted_writes_nothing(
        self, one: ImportsKit, two: ImportsKit
    ) -> None:
        """After the imports were stopped, and before the catalog is gone."""
        begun_late: list[Job] = []

        async def begin(_tenant: str, _catalog: str) -> None:
            begun_late.append((await begun(one))[1])

        two.catalogs.stopping.append(begin)
        await two.catalogs.delete(TENANT, "default")
        one.web.may_answer.set()
        ended = await one.imports.jobs.ended(TENANT, begun_late[0].id)

        assert (ended.state, ended.code) == ("failed", "not_found")
        assert left_over(one) == []

    async def test_no_source_is_added_to_a_catalog_that_is_gone(self, one: ImportsKit, two: ImportsKit) -> None:
        await two.catalogs.delete(TENANT, "default")

        with pytest.raises(UnknownRecordError, match="no catalog 'default'"):
            await begun(one)
        assert left_over(one) == []

    async def test_a_replica_whose_lease_has_run_out_writes_nothing_more(
        self, one: ImportsKit, two: ImportsKit
    ) -> None:
        """It does not know yet, and has all that it was to write."""
        leases: list[str] = []

        async def lose_lease() -> None:
            (job,) = await two.imports.jobs.page(TENANT, limit=9)
            one.storage.leases.release(job.lease, "one")
            leases.append(job.lease)

        job = await during_the_import_of_mail(one, lose_lease)
        seen = await two.imports.jobs.ended(TENANT, job.id)

        assert (seen.state, seen.error[-14:], seen.lease) == ("interrupted", "start it again", leases[0])
        assert await one.imports.jobs.get(TENANT, job.id) == seen
        assert one.tools() == {}
        source = await one.imports.sources.get(TENANT, "default", "mail")
        assert (source.is_settled, await one.refused(source)) == (False, {})
        _, job = await two.ended(*await two.imports.upload(TENANT, "default", "mail", LISTING))
        assert (job.state, job.outcome["written"]) == ("done", 1)

    async def test_a_replica_that_ends_lets_its_jobs_go_at_once(self, stores: Stores, two: ImportsKit) -> None:
        async with importing_into(stores[0], replica="three") as three:
            three.web.may_answer.clear()
            _, job = await begun(three)
            assert (await two.imports.jobs.get(TENANT, job.id)).state == "running"

        assert (await two.imports.jobs.get(TENANT, job.id)).state == "interrupted"
        assert two.storage.leases.held([job.lease]) == frozenset()


class TestOverOneSqliteStore(ImportsOfReplicas):
    @pytest.fixture
    def stores(self, tmp_path: Path) -> Iterator[Stores]:
        with closing(SqliteStorage(tmp_path / "toolsearch.db")) as storage:
            yield storage, storage


class TestOverPostgres(ImportsOfReplicas):
    @pytest.fixture
    def stores(self, postgres: PostgresServer) -> Iterator[Stores]:
        url = postgres.new_database()
        with closing(PostgresStorage(url)) as one, closing(PostgresStorage(url)) as two:
            yield one, two


SOURCE_OF_PETS = CatalogSource(TENANT, "default", "pets", "openapi", created_s=NOW_S)


def sealed(kit: ImportsKit) -> str:
    return kit.imports.sources.sealed(SourceSecrets(url=DOCUMENT))


async def begun(kit: ImportsKit) -> tuple[CatalogSource, Job]:
    """An import that waits for its document."""
    source, job = await kit.imports.create(SOURCE_OF_PETS, SourceSecrets(url=DOCUMENT))
    assert job is not None
    return source, job


async def during_the_import_of_mail(kit: ImportsKit, work: Callable[[], Awaitable[object]]) -> Job:
    """Do *work* between the check and the writing of an import, and return its job once both have ended."""
    working: list[asyncio.Future[object]] = []

    async def meanwhile() -> None:
        working.append(asyncio.ensure_future(work()))
        await asyncio.wait(working)  # which goes on when the job is cancelled

    kit.meanwhile = meanwhile
    source = CatalogSource(TENANT, "default", "mail", "listing", created_s=NOW_S)
    _, job = await kit.imports.create(source, SourceSecrets(), LISTING)
    await idle(kit)
    await asyncio.gather(*working)
    assert job is not None
    return job


async def idle(kit: ImportsKit) -> None:
    """Wait until the replica runs no job."""
    while kit.imports.jobs.running:  # noqa: ASYNC110  nothing tells of it but what is asserted
        await asyncio.sleep(0.01)


def left_over(kit: ImportsKit) -> list[str]:
    records = kit.storage.records
    kinds = [kind for kind in (SOURCE, REFUSED) if records.page(TENANT, kind, limit=9, at_s=NOW_S)]
    return [*kinds, *kit.tools()]
