"""Work that goes on behind a request: jobs, whose progress can be followed, and whose outcome is kept for a while."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias

from toolsearch.errors import StillRunningError, ToolSearchError, UnknownRecordError
from toolsearch.storage.records import Record, RecordStore
from toolsearch.tools.json_types import JsonObject

logger = logging.getLogger(__name__)

JOB: Final = "job"  # the kind of their records
JobState: TypeAlias = Literal["running", "done", "failed", "cancelled", "interrupted"]

_INTERRUPTED = "the service stopped before the job had ended, and nothing half-done is kept; start it again"
_UNEXPECTED = "the job has failed unexpectedly; the log says more, by its id"


def new_job_id() -> str:
    return f"job_{secrets.token_hex(8)}"


@dataclass(frozen=True, slots=True)
class JobStep:
    """How far a job is: *done* of *total* of the stage (None: not known), and how much was refused so far."""

    stage: str
    done: int = 0
    total: int | None = None
    refused: int = 0


@dataclass(frozen=True, slots=True)
class Job:
    """One job. Times are in seconds since 1970.

    subject  what it is about, such as ``catalog/default/github``
    outcome  what came of it, once it is done
    code     of the error with which it failed, and *error* in words with what to do; "" if it has not
    """

    id: str
    tenant: str
    subject: str
    state: JobState
    began_s: float
    ended_s: float | None = None
    steps: tuple[JobStep, ...] = ()
    outcome: JsonObject = field(default_factory=dict[str, Any])
    code: str = ""
    error: str = ""

    @property
    def has_ended(self) -> bool:
        return self.state != "running"


class Progress:
    """What the work of a job tells of itself. To be used in the event loop."""

    def __init__(self, tell: Callable[[JobStep], None], keep_from_now: Callable[[], None]) -> None:
        self._tell = tell
        self._keep_from_now = keep_from_now

    def at(self, stage: str, *, done: int = 0, total: int | None = None, refused: int = 0) -> None:
        self._tell(JobStep(stage, done, total, refused))

    def is_final(self) -> None:
        """From now on the job cannot be cancelled, since it begins to change what others see."""
        self._keep_from_now()


Work: TypeAlias = Callable[[Progress], Awaitable[JsonObject]]


@dataclass(eq=False, slots=True)
class _Running:
    """A job of this process."""

    job: Job
    task: asyncio.Task[None] | None = None
    is_final: bool = False
    news: asyncio.Event = field(default_factory=asyncio.Event)  # set at the next step, and then replaced

    def becomes(self, job: Job) -> None:
        self.job = job
        self.news.set()
        self.news = asyncio.Event()


class Jobs:
    """To be used within one event loop. *clock* gives seconds since 1970.

    A job that is written as running, and that this process does not run, was interrupted.

    retention_s  how long jobs are kept after they have begun
    most_at_once how many run at the same time; the others wait for their turn
    """

    def __init__(
        self, records: RecordStore, clock: Callable[[], float], *, retention_s: float, most_at_once: int
    ) -> None:
        self._records = records
        self._clock = clock
        self._retention_s = retention_s
        self._turns = asyncio.Semaphore(most_at_once)
        self._running: dict[str, _Running] = {}
        self._is_closing = False
        self.ended_by_state = Counter[str]()  # since the start

    async def start(self, tenant: str, job_id: str, subject: str, work: Work) -> Job:
        """Write the job down, under an id of `new_job_id`, and begin *work*; returns at once."""
        job = Job(job_id, tenant, subject, "running", self._clock())
        await self._keep(job)
        running = self._running[job.id] = _Running(job)
        running.task = asyncio.create_task(self._run(running, work), name=job.id)
        return job

    async def get(self, tenant: str, job_id: str) -> Job:
        """Raises UnknownRecordError."""
        running = self._running.get(job_id)
        if running is not None and running.job.tenant == tenant:
            return running.job
        record = await asyncio.to_thread(self._records.get, tenant, JOB, job_id, at_s=self._clock())
        if record is None:
            raise UnknownRecordError(JOB, job_id)
        return self._read(tenant, record)

    async def page(self, tenant: str, *, after: str = "", limit: int) -> list[Job]:
        """By id, which says nothing of the time."""
        page = await asyncio.to_thread(self._records.page, tenant, JOB, after=after, limit=limit, at_s=self._clock())
        return [self._read(tenant, record) for record in page]

    @property
    def running(self) -> int:
        """How many run or wait for their turn."""
        return len(self._running)

    def is_running(self, job_id: str) -> bool:
        return job_id in self._running

    async def follow(self, job: Job) -> AsyncGenerator[JobStep | Job]:
        """Every step of *job* from the beginning, as they come, and at the end the job with its outcome."""
        told = 0
        while (running := self._running.get(job.id)) is not None:
            news = running.news  # taken before the steps are read, so that none is missed
            for step in running.job.steps[told:]:
                told += 1
                yield step
            await news.wait()
        ended = await self.get(job.tenant, job.id)
        for step in ended.steps[told:]:
            yield step
        yield ended

    async def cancel(self, tenant: str, job_id: str) -> Job:
        """End it, and wait for that. A job that has ended stays as it is.

        Raises UnknownRecordError, or StillRunningError if it writes by now.
        """
        job = await self.get(tenant, job_id)
        running = self._running.get(job_id)
        if running is None or running.task is None:
            return job
        if running.is_final:
            raise StillRunningError(f"the job {job_id!r} is being written and ends in a moment; it cannot be cancelled")
        running.task.cancel()
        await asyncio.wait([running.task])
        return await self.get(tenant, job_id)

    async def ended(self, tenant: str, job_id: str) -> Job:
        """Wait until it has ended."""
        running = self._running.get(job_id)
        if running is not None and running.task is not None:
            await asyncio.wait([running.task])
        return await self.get(tenant, job_id)

    async def aclose(self) -> None:
        """Let what writes end, and interrupt the others."""
        self._is_closing = True
        tasks = [running.task for running in self._running.values() if running.task is not None]
        for running in self._running.values():
            if running.task is not None and not running.is_final:
                running.task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _run(self, running: _Running, work: Work) -> None:
        def tell(step: JobStep) -> None:
            running.becomes(replace(running.job, steps=(*running.job.steps, step)))

        def keep() -> None:
            running.is_final = True

        ended: dict[str, Any]
        try:
            tell(JobStep("waiting"))
            async with self._turns:
                ended = {"state": "done", "outcome": await work(Progress(tell, keep))}
        except asyncio.CancelledError:
            ended = {"state": "interrupted", "error": _INTERRUPTED} if self._is_closing else {"state": "cancelled"}
        except ToolSearchError as error:
            ended = {"state": "failed", "code": error.code, "error": str(error)}
        except Exception:
            logger.exception("the job %s has failed unexpectedly", running.job.id)
            ended = {"state": "failed", "code": "internal_error", "error": _UNEXPECTED}
        job = replace(running.job, ended_s=self._clock(), **ended)
        try:
            await self._keep(job)
        except ToolSearchError:
            logger.exception("the outcome of the job %s cannot be kept", job.id)
        del self._running[job.id]
        self.ended_by_state[job.state] += 1
        running.becomes(job)

    async def _keep(self, job: Job) -> None:
        await asyncio.to_thread(
            self._records.put,
            job.tenant,
            JOB,
            job.id,
            {name: value for name, value in asdict(job).items() if name not in ("id", "tenant")},
            over=None,
            at_s=self._clock(),
            expires_s=job.began_s + self._retention_s,
        )

    def _read(self, tenant: str, record: Record) -> Job:
        values: dict[str, Any] = dict(record.document)
        values["steps"] = tuple(JobStep(**step) for step in values["steps"])
        job = Job(record.id, tenant, **values)
        if job.state == "running":
            running = self._running.get(job.id)
            return running.job if running else replace(job, state="interrupted", error=_INTERRUPTED)
        return job
