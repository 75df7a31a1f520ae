"""Jobs and their progress: ``/v1/jobs``."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Depends
from fastapi.sse import EventSourceResponse, ServerSentEvent

from toolsearch.api.base import Page
from toolsearch.api.imports import ErrorBody, JobBody, JobStepBody
from toolsearch.service.callers import ServiceCaller, caller_with
from toolsearch.service.cursors import Paging, paging
from toolsearch.service.job_records import Job, JobStep
from toolsearch.service.service import Service, the_service

router = APIRouter(tags=["jobs"])

_Service = Annotated[Service, Depends(the_service)]
_Reader = Annotated[ServiceCaller, Depends(caller_with("read-catalog"))]
_Writer = Annotated[ServiceCaller, Depends(caller_with("write-catalog"))]


async def _found(job: str, service: _Service, caller: _Reader) -> Job:
    """Before the answer begins, so that an unknown job is an error and no empty stream."""
    return await service.imports.jobs.get(caller.tenant, job)


@router.get("/jobs", summary="List jobs")
async def list_jobs(service: _Service, caller: _Reader, paging: Annotated[Paging, Depends(paging)]) -> Page[JobBody]:
    jobs = await service.imports.jobs.page(caller.tenant, after=paging.after, limit=paging.fetch)
    return paging.page(jobs, lambda each: each.id, job_body)


@router.get("/jobs/{job}", summary="Get a job")
async def get(found: Annotated[Job, Depends(_found)]) -> JobBody:
    return job_body(found)


@router.get("/jobs/{job}/events", summary="Follow the progress of a job", response_class=EventSourceResponse)
async def events(found: Annotated[Job, Depends(_found)], service: _Service) -> AsyncGenerator[ServerSentEvent]:
    """An event ``progress`` for each step from the beginning, whenever you connect, and ``ended`` with the outcome."""
    async for news in service.imports.jobs.follow(found):
        if isinstance(news, JobStep):
            yield ServerSentEvent(event="progress", data=_step_body(news))
        else:
            yield ServerSentEvent(event="ended", data=job_body(news))


@router.post("/jobs/{job}/cancel", summary="Cancel a job")
async def cancel(job: str, service: _Service, caller: _Writer) -> JobBody:
    """A job that has ended stays as it is; one that is being written ends by itself in a moment."""
    return job_body(await service.imports.jobs.cancel(caller.tenant, job))


def job_body(job: Job) -> JobBody:
    return JobBody(
        id=job.id,
        subject=job.subject,
        state=job.state,
        began_at=datetime.fromtimestamp(job.began_s, UTC),
        ended_at=datetime.fromtimestamp(job.ended_s, UTC) if job.ended_s is not None else None,
        progress=_step_body(job.steps[-1]) if job.steps else None,
        outcome=dict(job.outcome),
        error=ErrorBody(code=job.code or job.state, detail=job.error) if job.error else None,
    )


def _step_body(step: JobStep) -> JobStepBody:
    return JobStepBody(stage=step.stage, done=step.done, total=step.total, refused=step.refused)
