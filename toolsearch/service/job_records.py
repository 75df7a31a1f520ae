"""Jobs as records of the store. Every replica reads them; only the replica that runs a job writes its record.

A job has the lease of its replica. If the lease has run out, the job was interrupted, and the first replica to notice
records that. From then on the job's own replica, which may only have been paused, can write nothing for it: each of its
writes is in one transaction with `JobRecords.require_running`. Cancelling works in the same way. The outcome of a job
is written in one transaction with the last of these writes. From then on the job can only end as done. If a part of its
work is still missing, the code that needs it does it again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Final

from toolsearch.api.imports import JobState
from toolsearch.errors import UnknownRecordError
from toolsearch.storage.records import Record
from toolsearch.storage.storage import Storage
from toolsearch.tools.json_types import JsonObject

RETENTION_S: Final = 7 * 86_400.0  # for which jobs are kept
JOB: Final = "job"  # the kind of the records of jobs

INTERRUPTED: Final = "the service stopped before the job had ended, and nothing half-done is kept; start it again"


@dataclass(frozen=True, slots=True)
class JobStep:
    """The progress of a job: *done* of *total* in this stage (None means unknown), and the number of refused
    entries.
    """

    stage: str
    done: int = 0
    total: int | None = None
    refused: int = 0


@dataclass(frozen=True, slots=True)
class Job:
    """One job. Times are in seconds since 1970.

    subject  object of the job, such as ``catalog/default/github``
    lease    lease of its replica; its name begins with the replica's id
    outcome  result of the job; a job with an outcome is done, or will be
    code     code of the error with which it failed; *error* is the message; both are "" if it has not failed
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
    lease: str = ""

    @property
    def has_ended(self) -> bool:
        return self.state != "running"


class JobEndedError(Exception):
    """The running job may not write, because it was cancelled or counts as interrupted."""


_OF_RECORD: Final = frozenset(each.name for each in fields(Job)) - {"id", "tenant"}


@dataclass(frozen=True, slots=True)
class JobRecords:
    """For threads. *clock* gives seconds since 1970. Jobs are kept for *retention_s* after they have begun."""

    storage: Storage
    clock: Callable[[], float]
    retention_s: float = RETENTION_S

    def get(self, tenant: str, job_id: str) -> Job:
        """Raises UnknownRecordError."""
        record = self.storage.records.get(tenant, JOB, job_id, at_s=self.clock())
        if record is None:
            raise UnknownRecordError(JOB, job_id)
        return self._judged(tenant, [record])[0]

    def page(self, tenant: str, *, after: str, limit: int) -> list[Job]:
        """By id."""
        return self._judged(tenant, self.storage.records.page(tenant, JOB, after=after, limit=limit, at_s=self.clock()))

    def find(self, tenant: str, job_ids: Collection[str]) -> list[Job]:
        """The existing jobs of *job_ids*."""
        found = [self.storage.records.get(tenant, JOB, job_id, at_s=self.clock()) for job_id in job_ids]
        return self._judged(tenant, [record for record in found if record is not None])

    def add(self, job: Job) -> None:
        """Write a new job."""
        self._put(job, over=0)

    def note_progress(self, job: Job) -> bool:
        """Write how far it is, unless it has ended; return whether that was written."""
        with self.storage.transaction():
            there = self._hold(job.tenant, job.id)
            if there is None or there.has_ended:
                return False
            self._put(replace(there, steps=job.steps))
            return True

    def require_running(self, job: Job) -> Job:
        """Within a transaction, before something is written for *job*; return its record.

        Raises JobEndedError if nothing may be written for it.
        """
        there = self._hold(job.tenant, job.id)
        if there is None or there.has_ended or not self.storage.leases.held([there.lease]):
            raise JobEndedError(job.id)
        return there

    def note_outcome(self, job: Job, outcome: JsonObject) -> None:
        """As `require_running`, and write *outcome*. From now on the job can only end as done."""
        self._put(replace(self.require_running(job), outcome=outcome))

    def end(self, job: Job) -> Job:
        """Write how it has ended, and return that. Raises JobEndedError as `require_running`."""
        with self.storage.transaction():
            ended = _with_outcome_of(self.require_running(job), job)
            self._put(ended)
        return ended

    def cancel(self, tenant: str, job_id: str) -> Job:
        """Write that it is cancelled, wherever it runs, unless it has ended. Raises UnknownRecordError."""
        return self._end_for_another(self.get(tenant, job_id), "cancelled")

    def _judged(self, tenant: str, records: Sequence[Record]) -> list[Job]:
        jobs = [_job(tenant, record) for record in records]
        leases = {job.lease for job in jobs if not job.has_ended}
        held = self.storage.leases.held(leases) if leases else frozenset[str]()
        return [
            job if job.has_ended or job.lease in held else self._end_for_another(job, "interrupted", INTERRUPTED)
            for job in jobs
        ]

    def _end_for_another(self, job: Job, state: JobState, error: str = "") -> Job:
        ended = replace(job, state=state, error=error)
        with self.storage.transaction():
            there = self._hold(job.tenant, job.id)
            if there is None:
                return ended
            if there.has_ended:
                return there
            ended = replace(there, state=state, error=error, ended_s=self.clock() if state == "cancelled" else None)
            ended = _with_outcome_of(there, ended)
            self._put(ended)
        return ended

    def _hold(self, tenant: str, job_id: str) -> Job | None:
        record = self.storage.records.hold(tenant, JOB, job_id, at_s=self.clock())
        return _job(tenant, record) if record else None

    def _put(self, job: Job, *, over: int | None = None) -> None:
        document = {name: value for name, value in asdict(job).items() if name in _OF_RECORD}
        expires_s = job.began_s + self.retention_s
        records, now_s = self.storage.records, self.clock()
        records.put(job.tenant, JOB, job.id, document, over=over, at_s=now_s, expires_s=expires_s)


def _with_outcome_of(there: Job, ended: Job) -> Job:
    """*ended*; but if its record *there* has an outcome already, the job is done."""
    return replace(ended, state="done", outcome=there.outcome, code="", error="") if there.outcome else ended


def _job(tenant: str, record: Record) -> Job:
    """Read the record. Fields from another version of this program are left out."""
    values: dict[str, Any] = {name: value for name, value in record.document.items() if name in _OF_RECORD}
    values["steps"] = tuple(JobStep(**step) for step in values["steps"])
    return Job(record.id, tenant, **values)
