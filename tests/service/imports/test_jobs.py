"""Jobs: what is followed, kept, cancelled, and what becomes of them when the service stops."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.kit.clock import Clock
from tests.kit.outage import outage
from toolsearch.documents.json_values import as_list
from toolsearch.errors import Kept, SourceError, StillRunningError, StorageError, UnknownRecordError
from toolsearch.service.job_records import JOB, Job, JobRecords, JobStep
from toolsearch.service.jobs import JobProgress, Jobs, Work, new_job_id
from toolsearch.service.replicas import ReplicaLease
from toolsearch.storage.records import Record
from toolsearch.storage.sql import DatabaseConnection
from toolsearch.storage.sqlite.place import SqliteStorage
from toolsearch.storage.storage import Storage
from toolsearch.tools.json_types import JsonObject


class Steered:
    """Work that does what a test says, when it says it."""

    def __init__(self) -> None:
        self.may_go_on = asyncio.Event()
        self.has_begun = asyncio.Event()
        self.is_final = False
        self.error: Exception | None = None

    async def __call__(self, progress: JobProgress) -> JsonObject:
        progress.at("reading", done=1, total=2)
        if self.is_final:
            progress.is_final()
        self.has_begun.set()
        await self.may_go_on.wait()
        if self.error is not None:
            raise self.error
        progress.at("writing", done=2, total=2, refused=1)
        return {"written": 2}


READING = JobStep("reading", 1, 2)
WRITING = JobStep("writing", 2, 2, 1)


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return SqliteStorage(tmp_path / "records.db")


def jobs_in(
    storage: Storage, clock: Clock, *, at_once: int = 2, timeout_s: float = 60, look_every_s: float = 1
) -> Jobs:
    records = JobRecords(storage, clock, retention_s=100)
    lease = ReplicaLease(storage.leases, "only")
    return Jobs(records, lease, most_at_once=at_once, timeout_s=timeout_s, look_every_s=look_every_s)


async def started(jobs: Jobs, work: Steered, tenant: str = "acme") -> Job:
    job = await jobs.start(tenant, new_job_id(), "catalog/default/github", work)
    await work.has_begun.wait()
    return job


async def test_a_client_that_connects_late_gets_the_whole_story(storage: Storage, clock: Clock) -> None:
    jobs, work = jobs_in(storage, clock), Steered()
    job = await started(jobs, work)
    work.may_go_on.set()
    during = [news async for news in jobs.follow(job)]
    after = [news async for news in jobs.follow(job)]

    assert during == after
    assert during[:-1] == [JobStep("waiting"), READING, WRITING]
    assert isinstance(during[-1], Job)
    assert (during[-1].state, during[-1].outcome) == ("done", {"written": 2})


async def test_a_follower_is_told_of_each_step_when_it_is_made(storage: Storage, clock: Clock) -> None:
    jobs, work = jobs_in(storage, clock), Steered()
    news = jobs.follow(await started(jobs, work))

    assert [await anext(news), await anext(news)] == [JobStep("waiting"), READING]
    work.may_go_on.set()
    assert await anext(news) == WRITING
    await news.aclose()
    await jobs.aclose()


async def test_a_job_whose_work_fails_tells_the_code_and_the_words(storage: Storage, clock: Clock) -> None:
    jobs, work = jobs_in(storage, clock), Steered()
    work.error = SourceError("the document is malformed")
    job = await started(jobs, work)
    work.may_go_on.set()
    ended = await jobs.ended("acme", job.id)

    assert (ended.state, ended.code, ended.error) == ("failed", "source_error", "the document is malformed")


async def test_an_unexpected_failure_says_nothing_of_its_cause(storage: Storage, clock: Clock) -> None:
    jobs, work = jobs_in(storage, clock), Steered()
    work.error = RuntimeError("password=hunter2")
    job = await started(jobs, work)
    work.may_go_on.set()
    ended = await jobs.ended("acme", job.id)

    assert (ended.state, ended.code) == ("failed", "internal_error")
    assert "hunter2" not in ended.error


async def test_a_cancelled_job_has_ended(storage: Storage, clock: Clock) -> None:
    jobs = jobs_in(storage, clock)
    job = await started(jobs, Steered())

    assert (await jobs.cancel("acme", job.id)).state == "cancelled"
    assert (await jobs.get("acme", job.id)).state == "cancelled"
    assert await jobs.running_among("acme", [job.id]) == frozenset()


async def test_a_job_that_writes_is_not_cancelled(storage: Storage, clock: Clock) -> None:
    jobs, work = jobs_in(storage, clock), Steered()
    work.is_final = True
    job = await started(jobs, work)

    with pytest.raises(StillRunningError, match="is writing"):
        await jobs.cancel("acme", job.id)
    work.may_go_on.set()
    assert (await jobs.ended("acme", job.id)).state == "done"


async def test_a_stopping_service_lets_what_writes_end_and_interrupts_the_rest(storage: Storage, clock: Clock) -> None:
    jobs, reading, writing = jobs_in(storage, clock), Steered(), Steered()
    writing.is_final = True
    first, second = await started(jobs, reading), await started(jobs, writing)
    writing.may_go_on.set()
    await jobs.aclose()

    assert (await jobs.get("acme", first.id)).state == "interrupted"
    assert (await jobs.get("acme", second.id)).state == "done"


async def test_a_job_of_a_process_that_is_gone_was_interrupted(tmp_path: Path, clock: Clock) -> None:
    """At once where one process alone uses the store."""
    gone, work = jobs_in(SqliteStorage(tmp_path / "records.db"), clock), Steered()
    job = await started(gone, work)
    found = await jobs_in(SqliteStorage(tmp_path / "records.db"), clock).get("acme", job.id)

    assert found.state == "interrupted"
    assert "start it again" in found.error
    await gone.aclose()


class Written:
    """Work that writes its outcome, and then does what others need not wait for."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self.has_written, self.may_go_on = asyncio.Event(), asyncio.Event()
        self.error: Exception | None = None

    async def __call__(self, progress: JobProgress) -> JsonObject:
        progress.is_final()
        with self._storage.transaction():
            progress.written({"written": 2})
        progress.at("indexing")
        self.has_written.set()
        await self.may_go_on.wait()
        if self.error is not None:
            raise self.error
        return {"written": 2}


async def test_a_job_that_has_written_its_outcome_runs_until_its_work_is_over(storage: Storage, clock: Clock) -> None:
    here, other, work = jobs_in(storage, clock), jobs_in(storage, clock), Written(storage)
    job = await here.start("acme", new_job_id(), "catalog/default/github", work)
    await work.has_written.wait()
    assert [(await jobs.get("acme", job.id)).state for jobs in (here, other)] == ["running", "running"]

    work.may_go_on.set()
    ended = await here.ended("acme", job.id)
    assert (ended.state, ended.outcome) == ("done", {"written": 2})
    assert ended.steps == (JobStep("waiting"), JobStep("indexing"))
    assert await other.get("acme", job.id) == ended
    await here.aclose()


async def test_a_job_whose_outcome_is_written_is_done_whatever_becomes_of_the_rest(
    tmp_path: Path, clock: Clock
) -> None:
    """The process goes, somebody else cancels it, or the rest of the work fails."""
    storage = SqliteStorage(tmp_path / "records.db")
    jobs, (kept, cancelled, failing) = jobs_in(storage, clock, at_once=3), [Written(storage) for _ in range(3)]
    failing.error = SourceError("out of memory")
    begun: list[str] = []
    for work in (kept, cancelled, failing):
        begun.append((await jobs.start("acme", new_job_id(), "catalog/default/github", work)).id)
        await work.has_written.wait()
    failing.may_go_on.set()
    assert (await jobs.ended("acme", begun[2])).state == "done"

    assert (await jobs_in(storage, clock).cancel("acme", begun[1])).state == "done"
    found = await jobs_in(SqliteStorage(tmp_path / "records.db"), clock).get("acme", begun[0])
    assert (found.state, found.outcome, found.error) == ("done", {"written": 2}, "")
    for work in (kept, cancelled):
        work.may_go_on.set()
    await jobs.aclose()


async def test_how_a_job_ended_while_the_store_was_away_is_written_once_it_is_back(
    storage: Storage, clock: Clock
) -> None:
    jobs, work = jobs_in(storage, clock, look_every_s=0.01), Steered()
    job = await started(jobs, work)
    with outage(storage):
        work.may_go_on.set()
        while jobs.running:  # noqa: ASYNC110  a job that ends sets no event here
            await asyncio.sleep(0.01)

    assert (await jobs.ended("acme", job.id)).state == "done"
    await jobs.aclose()


class LosesAnswer(SqliteStorage):
    """Commits, and cannot say so."""

    @contextmanager
    def transaction(self) -> Iterator[DatabaseConnection]:
        with super().transaction() as connection:
            yield connection
        raise StorageError("the connection was cut", Kept.RECORDS, retry_after_s=2)


async def test_a_job_that_was_written_though_the_store_did_not_say_so_is_not_running_for_ever(
    tmp_path: Path, clock: Clock
) -> None:
    jobs, job_id = jobs_in(LosesAnswer(tmp_path / "records.db"), clock, look_every_s=0.01), new_job_id()
    with pytest.raises(StorageError):
        await jobs.start("acme", job_id, "catalog/default/github", Steered())

    assert (await jobs.ended("acme", job_id)).state == "interrupted"
    await jobs.aclose()


async def test_however_many_steps_a_job_makes_they_are_written_once_in_a_while(storage: Storage, clock: Clock) -> None:
    """The record is written when the job begins, once for a thousand steps, and when it ends."""
    jobs, may_end = jobs_in(storage, clock), asyncio.Event()

    async def work(progress: JobProgress) -> JsonObject:
        for number in range(1_000):
            progress.at("counting", done=number)
        await may_end.wait()
        return {}

    def written() -> Record:
        record = storage.records.get("acme", JOB, job.id, at_s=clock())
        assert record is not None
        return record

    job = await jobs.start("acme", new_job_id(), "catalog/default/github", work)
    begun = written()
    async with asyncio.timeout(20):
        while (during := written()) == begun:  # noqa: ASYNC110  the store sets no event
            await asyncio.sleep(0.01)
    may_end.set()
    ended = await jobs.ended("acme", job.id)

    once = 2  # numbers that are counted on by: one holds the record, one writes it
    assert (during.version, len(as_list(during.document["steps"]) or ())) == (begun.version + once, 1_001)
    assert len(ended.steps) == 1_001
    await jobs.aclose()


async def test_one_job_waits_for_its_turn(storage: Storage, clock: Clock) -> None:
    jobs, first, second = jobs_in(storage, clock, at_once=1), Steered(), Steered()
    one = await started(jobs, first)
    other = await jobs.start("acme", new_job_id(), "catalog/default/gitlab", second)
    news = jobs.follow(other)

    assert await anext(news) == JobStep("waiting")
    assert not second.has_begun.is_set()
    first.may_go_on.set()
    second.may_go_on.set()
    assert (await jobs.ended("acme", one.id)).state == "done"
    assert (await jobs.ended("acme", other.id)).state == "done"


async def test_a_running_job_of_another_tenant_is_as_unknown_as_none(storage: Storage, clock: Clock) -> None:
    jobs, work = jobs_in(storage, clock), Steered()
    job = await started(jobs, work)

    with pytest.raises(UnknownRecordError) as foreign:
        await jobs.get("umbrella", job.id)
    with pytest.raises(UnknownRecordError) as cancelled:
        await jobs.cancel("umbrella", job.id)
    assert str(foreign.value) == str(cancelled.value) == f"there is no job {job.id!r}"
    await jobs.aclose()


async def test_jobs_are_forgotten_after_their_time(storage: Storage, clock: Clock) -> None:
    jobs, work = jobs_in(storage, clock), Steered()
    work.may_go_on.set()
    job = await started(jobs, work)
    await jobs.ended("acme", job.id)
    clock.now_s += 100

    with pytest.raises(UnknownRecordError):
        await jobs.get("acme", job.id)


# One tenant beside others


async def test_what_one_tenants_jobs_wait_for_holds_up_no_other_tenant(storage: Storage, clock: Clock) -> None:
    jobs, slow, quick = jobs_in(storage, clock, at_once=1), Steered(), Steered()
    await started(jobs, slow, "acme")
    waiting = await jobs.start("acme", new_job_id(), "catalog/default/second", Steered())
    quick.may_go_on.set()
    async with asyncio.timeout(30):
        ended = await jobs.ended("other", (await started(jobs, quick, "other")).id)

    assert ended.state == "done"
    assert (await jobs.get("acme", waiting.id)).steps == (JobStep("waiting"),)
    await jobs.aclose()


async def test_no_more_jobs_than_the_most_compute_at_once_whoever_they_belong_to(
    storage: Storage, clock: Clock
) -> None:
    jobs, computing, may_end = jobs_in(storage, clock, at_once=2), list[int](), asyncio.Event()

    def work_of(number: int, asked: asyncio.Event) -> Work:
        async def work(progress: JobProgress) -> JsonObject:
            asked.set()
            async with progress.computing():
                computing.append(number)
                await may_end.wait()
            return {}

        return work

    begun: list[Job] = []
    for number in range(3):
        asked = asyncio.Event()
        begun.append(await jobs.start(f"tenant {number}", new_job_id(), "catalog/default/x", work_of(number, asked)))
        await asked.wait()
    before = list(computing)
    may_end.set()
    states = [(await jobs.ended(job.tenant, job.id)).state for job in begun]

    assert (before, computing, states) == ([0, 1], [0, 1, 2], ["done"] * 3)


async def test_a_job_that_takes_too_long_fails_and_whoever_keeps_note_is_told(storage: Storage, clock: Clock) -> None:
    jobs, noted = jobs_in(storage, clock, timeout_s=0.05), list[str]()

    async def note(error: Exception, _: JobProgress) -> None:
        noted.append(str(error))

    job = await jobs.start("acme", new_job_id(), "catalog/default/x", Steered(), on_failure=note)
    ended = await jobs.ended("acme", job.id)

    assert (ended.state, ended.code, noted) == ("failed", "source_error", [ended.error])
    assert "given up after 0.05 s" in ended.error


async def test_a_job_that_writes_already_is_not_given_up_for_its_time(storage: Storage, clock: Clock) -> None:
    jobs, work = jobs_in(storage, clock, timeout_s=0.05), Steered()
    work.is_final = True
    job = await started(jobs, work)
    await asyncio.sleep(0.1)
    work.may_go_on.set()

    assert (await jobs.ended("acme", job.id)).state == "done"
