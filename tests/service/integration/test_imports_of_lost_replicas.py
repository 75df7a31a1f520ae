"""Replicas that are killed, or paused for longer than their lease, in the middle of an import."""

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager
from subprocess import Popen

import pytest

from tests.kit.commands import start_python
from tests.kit.imports import TENANT, ImportsKit, importing_into, petstore
from tests.kit.postgres import PostgresServer
from tests.kit.replicas import eventually
from toolsearch.service.job_records import Job, JobStep
from toolsearch.storage.postgres.place import PostgresStorage

_LEASE_S = 3.0  # of the process, so that a test need not wait for long


@pytest.fixture
def url(postgres: PostgresServer) -> str:
    return postgres.new_database()


@pytest.fixture
async def kit(url: str) -> AsyncIterator[ImportsKit]:
    """Another replica, in this process."""
    with closing(PostgresStorage(url)) as storage:
        async with importing_into(storage, replica="here", clock_ahead_s=-600) as kit:
            yield kit


@contextmanager
def importing_process(url: str) -> Iterator[tuple["Popen[str]", str]]:
    """The process, and the id of its job, which waits for its document."""
    with start_python("-m", "tests.kit.importing_process", url, str(_LEASE_S)) as process:
        try:
            yield process, told(process)
        finally:
            process.kill()


def told(process: "Popen[str]") -> str:
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    assert line or process.stderr is None, process.stderr.read()
    return line


async def lease_has_run_out(kit: ImportsKit, lease: str) -> None:
    async def is_held_no_more() -> bool:
        return not await asyncio.to_thread(kit.storage.leases.held, [lease])

    await eventually(is_held_no_more)


async def test_the_job_of_a_replica_that_was_killed_is_interrupted_and_its_source_is_imported_anew(
    url: str, kit: ImportsKit
) -> None:
    with importing_process(url) as (process, job_id):
        news = kit.imports.jobs.follow(await kit.imports.jobs.get(TENANT, job_id))
        assert [await anext(news), await anext(news)] == [JobStep("waiting"), JobStep("fetching")]
        process.kill()
        process.wait()
        (ended,) = [each async for each in news]

    assert isinstance(ended, Job)
    assert (ended.state, ended.error[-14:]) == ("interrupted", "start it again")
    _, job = await kit.ended(*await kit.imports.upload(TENANT, "default", "pets", petstore("dogs")))
    assert (job.state, kit.tools()) == ("done", {"pets__dogs": "pets"})


async def test_a_replica_that_was_paused_for_too_long_writes_nothing_when_it_goes_on(url: str, kit: ImportsKit) -> None:
    """Although nobody has looked at its job meanwhile, so that nothing in the store has changed."""
    with importing_process(url) as (process, job_id):
        lease = (await kit.imports.jobs.get(TENANT, job_id)).lease
        process.send_signal(signal.SIGSTOP)
        await lease_has_run_out(kit, lease)
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
        process.send_signal(signal.SIGCONT)

        assert await asyncio.to_thread(told, process) == "interrupted"
    assert (await kit.imports.jobs.get(TENANT, job_id)).state == "interrupted"
    source = await kit.imports.sources.get(TENANT, "default", "pets")
    assert (kit.tools(), source.last, source.is_settled) == ({}, None, False)


async def test_a_paused_replica_does_not_write_over_what_was_imported_in_its_place(url: str, kit: ImportsKit) -> None:
    with importing_process(url) as (process, job_id):
        process.send_signal(signal.SIGSTOP)
        await kit.imports.jobs.ended(TENANT, job_id)
        source, _ = await kit.ended(*await kit.imports.upload(TENANT, "default", "pets", petstore("dogs")))
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
        process.send_signal(signal.SIGCONT)

        assert await asyncio.to_thread(told, process) == "interrupted"
    assert kit.tools() == {"pets__dogs": "pets"}
    assert await kit.imports.sources.get(TENANT, "default", "pets") == source
