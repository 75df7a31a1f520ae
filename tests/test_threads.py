"""Threads of our own: used again, ended when idle, never waited for."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue

import pytest

from tests.kit.commands import Ran
from toolsearch import threads
from toolsearch.threads import BoundedThreads, ThreadCache, in_thread


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch) -> Iterator[ThreadCache]:
    """Threads that no other test uses."""
    cache = ThreadCache()
    monkeypatch.setattr(threads, "_threads", cache)
    return cache


async def test_a_thread_that_is_idle_is_used_again():
    first = await in_thread(threading.get_ident)
    second = await in_thread(threading.get_ident)

    assert first == second != threading.get_ident()


async def test_functions_run_at_once_whatever_others_do():
    meeting = threading.Barrier(50)

    await asyncio.gather(*(in_thread(meeting.wait, 30) for _ in range(50)))  # broken unless all 50 are there at once


def test_a_thread_ends_when_it_has_been_idle_for_long_enough():
    cache, used, found = ThreadCache(idle_s=0.0), threading.Event(), list[threading.Thread]()

    def job() -> Callable[[], None]:
        found.append(threading.current_thread())
        return used.set

    cache.start(job)
    assert used.wait(30)
    found[0].join(30)

    assert not found[0].is_alive()


def test_a_job_that_comes_just_as_a_thread_is_about_to_end_is_run():
    cache, ran = ThreadCache(idle_s=0.0), threading.Event()

    class Racing(list[SimpleQueue[Callable[[], object]]]):
        """Somebody takes the thread's queue in the moment in which the thread gives up waiting."""

        def remove(self, jobs: SimpleQueue[Callable[[], object]]) -> None:
            super().remove(jobs)
            if not ran.is_set():
                jobs.put(lambda: ran.set)
                raise ValueError

    cache._idle = Racing()
    cache.start(lambda: lambda: None)

    assert ran.wait(30)


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt(), SystemExit(), asyncio.CancelledError()])
async def test_whatever_a_function_raises_reaches_its_caller(error: BaseException):
    def fail() -> None:
        raise error

    async def outcome() -> BaseException | None:  # in a task of its own, which an interrupt would get out of
        try:
            await in_thread(fail)
        except BaseException as raised:  # noqa: BLE001
            return raised
        return None

    assert await outcome() is error


async def test_stop_iteration_is_a_failure_and_not_a_hang():
    with pytest.raises(RuntimeError, match="StopIteration"):
        await asyncio.wait_for(in_thread(next, iter([])), 30)


async def test_a_function_that_nobody_waits_for_any_more_runs_to_its_end(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(threads, "_threads", ThreadCache(idle_s=0.0))
    begun, release, used, ended = threading.Event(), threading.Event(), list[threading.Thread](), list[bool]()
    errors = list[object]()
    asyncio.get_running_loop().set_exception_handler(lambda _, error: errors.append(error))

    def work() -> None:
        used.append(threading.current_thread())
        begun.set()
        ended.append(release.wait(30))

    task = asyncio.create_task(in_thread(work))
    assert await in_thread(begun.wait, 30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    release.set()
    used[0].join(30)
    await asyncio.sleep(0)  # in which the loop is told of the answer

    assert (ended, errors) == ([True], [])


def test_a_function_may_outlive_its_loop(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(threads, "_threads", ThreadCache(idle_s=0.0))
    begun, release, found = threading.Event(), threading.Event(), list[threading.Thread]()

    def work() -> None:
        found.append(threading.current_thread())
        begun.set()
        release.wait(30)

    async def give_up() -> None:
        task = asyncio.create_task(in_thread(work))
        assert await in_thread(begun.wait, 30)
        task.cancel()

    asyncio.run(give_up())
    release.set()
    found[0].join(30)  # pytest reports what a thread raises as an error

    assert not found[0].is_alive()


def test_a_program_ends_although_a_function_hangs(run_python: Callable[..., Ran]):
    code = """
import asyncio, threading
from tests.kit.commands import Ran
from toolsearch.threads import in_thread

async def main():
    try:
        await asyncio.wait_for(in_thread(threading.Event().wait), 0.01)
    except TimeoutError:
        print("given up")

asyncio.run(main())
"""
    assert run_python("-c", code).out == "given up\n"


@pytest.mark.skipif("not hasattr(__import__('os'), 'fork')")
def test_a_forked_process_starts_threads_of_its_own(run_python: Callable[..., Ran]):
    code = """
import asyncio, os, sys
from tests.kit.commands import Ran
from toolsearch.threads import in_thread

asyncio.run(in_thread(print, "parent", flush=True))
child = os.fork()
if not child:
    asyncio.run(asyncio.wait_for(in_thread(print, "child", flush=True), 30))
    os._exit(0)
sys.exit(os.waitpid(child, 0)[1])
"""
    assert run_python("-c", code).out == "parent\nchild\n"


async def test_no_more_than_so_many_bounded_functions_run_at_once_and_in_order():
    bounded, first, release, begun = BoundedThreads(1), threading.Event(), threading.Event(), list[int]()

    def work(number: int) -> None:
        begun.append(number)
        first.set()
        release.wait(30)

    async with asyncio.TaskGroup() as group:
        for number in range(3):
            group.create_task(bounded.run(work, number))
        assert await in_thread(first.wait, 30)
        at_first = list(begun)
        release.set()

    assert (at_first, begun) == ([0], [0, 1, 2])


def test_bounded_threads_serve_one_loop_after_the_other():
    bounded = BoundedThreads(1)

    async def twice() -> list[int]:
        return await asyncio.gather(bounded.run(len, "ab"), bounded.run(len, "abc"))

    assert [asyncio.run(twice()) for _ in range(2)] == [[2, 3], [2, 3]]
