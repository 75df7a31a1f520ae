"""Background work: jobs, whose progress can be followed, and whose outcome is kept for a while."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, TypeAlias
from weakref import WeakValueDictionary

from toolsearch.api.imports import JobState
from toolsearch.chores import end
from toolsearch.errors import SourceError, StillRunningError, StorageError, ToolSearchError, UnknownRecordError
from toolsearch.freed_memory import give_back_freed_memory
from toolsearch.service.job_records import INTERRUPTED, Job, JobEndedError, JobRecords, JobStep
from toolsearch.service.replicas import ReplicaLease, RetriedWrites
from toolsearch.threads import in_thread
from toolsearch.tools.json_types import JsonObject

logger = logging.getLogger(__name__)

# Seconds between two looks: a replica writes the progress of its jobs, and reads those of others.
_LOOK_EVERY_S: Final = 1.0
# States in which no other process has ended the job; the end is written before this process notes it.
_NOT_ENDED_BY_OTHERS: Final = ("running", "done")
_UNEXPECTED = "the job has failed unexpectedly; the log says more, by its id"


def new_job_id() -> str:
    return f"job_{secrets.token_hex(8)}"


def _nothing() -> None:
    """Write nothing beside a job."""


class JobProgress:
    """Reports the progress of a job, in the event loop, and guards its writes, in a thread."""

    def __init__(self, running: _Running, records: JobRecords, turns: asyncio.Semaphore, timeout_s: float) -> None:
        self._running = running
        self._records = records
        self._turns = turns
        self._timeout_s = timeout_s
        self._limit: asyncio.Timeout | None = None

    def at(self, stage: str, *, done: int = 0, total: int | None = None, refused: int = 0) -> None:
        self._running.tell(JobStep(stage, done, total, refused))

    def is_final(self) -> None:
        """From now on this replica does not cancel the job, since its changes become visible."""
        self._running.is_final = True
        if self._limit is not None:
            self._limit.reschedule(None)

    @asynccontextmanager
    async def within_time(self) -> AsyncGenerator[None]:
        """A time limit for the whole work. Raises SourceError if it is not final in time."""
        try:
            async with asyncio.timeout(self._timeout_s) as self._limit:
                yield
        except TimeoutError:
            if self._limit is None or not self._limit.expired():
                raise
            raise SourceError(
                f"the import was given up after {self._timeout_s:g} s; check whether its source is slow"
            ) from None

    @asynccontextmanager
    async def computing(self) -> AsyncGenerator[None]:
        """A turn for work that takes CPU time and waits for nobody else. Other jobs wait for their turns meanwhile."""
        async with self._turns:
            yield

    def require_running(self) -> None:
        """Call it at the beginning of a transaction. Raises JobEndedError, which undoes the transaction, if the job was
        cancelled. It is also raised if the job counts as interrupted, because this replica was paused or cut off from
        the store.
        """
        self._records.require_running(self._running.job)

    def written(self, outcome: JsonObject) -> None:
        """The same for the transaction with all visible results of the job: the outcome is written with it.

        The job then ends as done, even if this process is killed before its work is over.
        """
        self._records.note_outcome(self._running.job, outcome)


Work: TypeAlias = Callable[[JobProgress], Awaitable[JsonObject]]
OnFailure: TypeAlias = Callable[[ToolSearchError, JobProgress], Awaitable[None]]


@dataclass(eq=False, slots=True)
class _Running:
    """A job of this process. Its record has the first *written* of its steps."""

    job: Job
    written: int = 0
    task: asyncio.Task[None] | None = None
    is_final: bool = False
    is_ending: bool = False
    news: asyncio.Event = field(default_factory=asyncio.Event)  # set at the next step, and then replaced

    def tell(self, step: JobStep) -> None:
        self.becomes(replace(self.job, steps=(*self.job.steps, step)))

    def becomes(self, job: Job) -> None:
        self.job = job
        self.news.set()
        self.news = asyncio.Event()

    def ended(self, state: JobState, ended_s: float, **more: Any) -> Job:
        return replace(self.job, state=state, ended_s=ended_s, **more)

    def give_up(self) -> None:
        """Once, and not while its outcome is being written."""
        if self.task is not None and not self.is_ending:
            self.is_ending = True
            self.task.cancel()


class Jobs:
    """Use it within one event loop.

    One of the replicas over a store runs a job. Each can read, follow and cancel it. The others see its progress with a
    delay of about a second.

    most_at_once  number of one tenant's jobs that this process runs at once, and of all jobs that compute at the
                  same time; the others wait for their turn
    timeout_s     seconds that a job may take once it has its turn
    look_every_s  seconds between writes of progress, and between looks at jobs of other replicas
    """

    def __init__(
        self,
        records: JobRecords,
        lease: ReplicaLease,
        *,
        most_at_once: int,
        timeout_s: float,
        look_every_s: float = _LOOK_EVERY_S,
    ) -> None:
        self._records = records
        self._lease = lease
        self._look_every_s = look_every_s
        self._most_at_once = most_at_once
        self._timeout_s = timeout_s
        self._turns = asyncio.Semaphore(most_at_once)
        self._turns_of_tenants = WeakValueDictionary[str, asyncio.Semaphore]()
        self._running: dict[str, _Running] = {}
        self._starting: set[asyncio.Task[Job]] = set()
        # A job whose end is not written would count as running for ever.
        self._owed = RetriedWrites("how a job has ended", pause_s=look_every_s)
        self._looking: asyncio.Task[None] | None = None
        self._is_closing = False
        self.ended_by_state = Counter[str]()  # state -> jobs that have ended in this process

    async def start(
        self,
        tenant: str,
        job_id: str,
        subject: str,
        work: Work,
        *,
        also: Callable[[], object] = _nothing,
        on_failure: OnFailure | None = None,
    ) -> Job:
        """Write the job down, under an id of `new_job_id`, and begin *work*; returns at once.

        *also* writes in the same transaction, in a thread; there is no job if it raises. *on_failure* notes elsewhere
        why the work has failed, before the job ends.
        """
        starting = asyncio.create_task(self._start(tenant, job_id, subject, work, also, on_failure))
        self._starting.add(starting)
        starting.add_done_callback(self._has_started)
        return await asyncio.shield(starting)  # if this was cancelled half-way, nobody would run the written job

    async def get(self, tenant: str, job_id: str) -> Job:
        """Raises UnknownRecordError."""
        return self._as_known_here(await in_thread(self._records.get, tenant, job_id))

    async def page(self, tenant: str, *, after: str = "", limit: int) -> list[Job]:
        """A page of jobs, sorted by id, which is independent of the time."""
        page = await in_thread(self._records.page, tenant, after=after, limit=limit)
        return [self._as_known_here(job) for job in page]

    @property
    def running(self) -> int:
        """How many run in this process or wait for their turn."""
        return len(self._running)

    async def running_among(self, tenant: str, job_ids: Collection[str]) -> frozenset[str]:
        """The *job_ids* of jobs that run or wait for their turn in any replica."""
        return await in_thread(self._running_among, tenant, job_ids)

    async def follow(self, job: Job) -> AsyncGenerator[JobStep | Job]:
        """Every step of *job* from the beginning, as it happens, and at the end the job with its outcome."""
        told = 0
        while True:
            running = self._running.get(job.id)
            news = running.news if running else None  # taken before the steps are read, so that none is missed
            job = running.job if running else await self.get(job.tenant, job.id)
            for step in job.steps[told:]:
                told += 1
                yield step
            if job.has_ended:
                yield job
                return
            await (news.wait() if news else asyncio.sleep(self._look_every_s))

    async def cancel(self, tenant: str, job_id: str) -> Job:
        """End it, whichever replica runs it. A job that has ended stays as it is.

        Once this returns, nothing is written for it any more. Raises UnknownRecordError, or StillRunningError if this
        process runs it, and it writes by now.
        """
        running = self._of_this_process(tenant, job_id)
        if running is None:
            return await in_thread(self._records.cancel, tenant, job_id)
        if running.is_final:
            raise StillRunningError(f"the job {job_id!r} is writing and cannot be cancelled any more; wait for its end")
        running.give_up()
        return await self.ended(tenant, job_id)

    async def ended(self, tenant: str, job_id: str) -> Job:
        """Wait until it has ended."""
        while True:
            running = self._of_this_process(tenant, job_id)
            if running is not None and running.task is not None:
                await asyncio.wait([running.task])
            job = await self.get(tenant, job_id)
            if job.has_ended:
                return job
            await asyncio.sleep(self._look_every_s)

    async def aclose(self) -> None:
        """Let jobs that are writing end, and interrupt the others."""
        self._is_closing = True
        await asyncio.gather(*self._starting, return_exceptions=True)
        tasks = [running.task for running in self._running.values() if running.task is not None]
        for running in self._running.values():
            if not running.is_final:
                running.give_up()
        if tasks:
            await asyncio.wait(tasks)
        if self._looking is not None:
            await end(self._looking)
        await self._owed.aclose()

    def _has_started(self, starting: asyncio.Task[Job]) -> None:
        self._starting.discard(starting)
        if not starting.cancelled():
            starting.exception()  # marks the error as seen, even if nobody waits for the task any more

    async def _start(
        self,
        tenant: str,
        job_id: str,
        subject: str,
        work: Work,
        also: Callable[[], object],
        on_failure: OnFailure | None,
    ) -> Job:
        lease = await self._lease.current()
        job = Job(job_id, tenant, subject, "running", self._records.clock(), lease=lease)
        try:
            await in_thread(self._add, job, also)
        except StorageError as error:  # the store may have written the job in spite of the error
            interrupted = replace(job, state="interrupted", error=INTERRUPTED)
            self._owed.owe((tenant, job.id), partial(self._end, interrupted), error)
            raise
        running = self._running[job.id] = _Running(job)
        running.task = asyncio.create_task(self._run(running, work, on_failure), name=job.id)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._keep_looking(), name="jobs")
        return job

    def _add(self, job: Job, also: Callable[[], object]) -> None:
        with self._records.storage.transaction():
            self._records.add(job)
            also()

    async def _run(self, running: _Running, work: Work, on_failure: OnFailure | None) -> None:
        clock = self._records.clock
        try:
            running.tell(JobStep("waiting"))
            of_tenant = self._turns_of_tenants.setdefault(running.job.tenant, asyncio.Semaphore(self._most_at_once))
            async with of_tenant:
                progress = JobProgress(running, self._records, self._turns, self._timeout_s)
                try:
                    async with progress.within_time():
                        outcome = await work(progress)
                except ToolSearchError as error:
                    if on_failure is not None:
                        await on_failure(error, progress)
                    raise
            ended = running.ended("done", clock(), outcome=outcome)
        except asyncio.CancelledError:
            ended = running.ended("cancelled", clock())
            if self._is_closing:
                ended = replace(ended, state="interrupted", error=INTERRUPTED)
        except JobEndedError:
            ended = running.ended("interrupted", clock(), error=INTERRUPTED)
        except ToolSearchError as error:
            ended = running.ended("failed", clock(), code=error.code, error=str(error))
        except Exception:
            logger.exception("the job %s has failed unexpectedly", running.job.id)
            ended = running.ended("failed", clock(), code="internal_error", error=_UNEXPECTED)
        running.is_ending = True
        del work, on_failure  # the document that was read need not stay in memory
        await in_thread(give_back_freed_memory)
        ended = await self._written(ended)
        del self._running[ended.id]
        self.ended_by_state[ended.state] += 1
        running.becomes(ended)

    async def _written(self, ended: Job) -> Job:
        """Return the job's end as all replicas see it, or will see it once the store is back."""
        try:
            return await in_thread(self._end, ended)
        except StorageError as error:
            self._owed.owe((ended.tenant, ended.id), partial(self._end, ended), error)
        except ToolSearchError:
            logger.exception("the outcome of the job %s cannot be kept", ended.id)
        return ended

    def _end(self, ended: Job) -> Job:
        try:
            return self._records.end(ended)
        except JobEndedError:
            with suppress(UnknownRecordError):  # the job was deleted with its tenant, or never written
                return self._records.get(ended.tenant, ended.id)
        return ended

    async def _keep_looking(self) -> None:
        """While jobs run here, write their progress, and give up those that others have ended."""
        while self._running:
            await asyncio.sleep(self._look_every_s)
            for running in list(self._running.values()):
                if running.job.lease != self._lease.name or not await self._is_going_on(running):
                    running.give_up()

    async def _is_going_on(self, running: _Running) -> bool:
        job = running.job
        try:
            if len(job.steps) > running.written and await in_thread(self._records.note_progress, job):
                running.written = len(job.steps)
                return True
            there = await in_thread(self._records.get, job.tenant, job.id)
        except StorageError as error:
            logger.info("how far the job %s is cannot be written now: %s", job.id, error)
            return True  # the job is ours until its lease runs out
        except ToolSearchError:  # the job was deleted with its tenant
            return False
        return there.state in _NOT_ENDED_BY_OTHERS

    def _as_known_here(self, job: Job) -> Job:
        """If this process runs the job, with the steps that are not written yet, and running until all is done."""
        running = self._of_this_process(job.tenant, job.id)
        return running.job if running is not None and job.state in _NOT_ENDED_BY_OTHERS else job

    def _of_this_process(self, tenant: str, job_id: str) -> _Running | None:
        running = self._running.get(job_id)
        return running if running is not None and running.job.tenant == tenant else None

    def _running_among(self, tenant: str, job_ids: Collection[str]) -> frozenset[str]:
        return frozenset(job.id for job in self._records.find(tenant, job_ids) if not job.has_ended)
