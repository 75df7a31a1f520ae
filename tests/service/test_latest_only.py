"""Work that is asked for while it is done: only the last of it is done, and nothing is done twice at once."""

import asyncio

from toolsearch.service.replica_changes import LatestOnly


class Slow:
    """Work that goes on when it is told to."""

    def __init__(self) -> None:
        self.begun: list[tuple[str, int]] = []
        self.go_on = asyncio.Semaphore(0)

    async def do(self, key: str, value: int) -> None:
        self.begun.append((key, value))
        await self.go_on.acquire()


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_of_what_is_asked_for_meanwhile_only_the_last_is_done() -> None:
    slow = Slow()
    work = LatestOnly(slow.do)
    work.put("a", 1)
    await turns()
    for value in (2, 3, 4):
        work.put("a", value)
    slow.go_on.release()
    await turns()

    assert slow.begun == [("a", 1), ("a", 4)]
    slow.go_on.release()
    await turns()
    assert work.is_idle


async def test_one_key_does_not_wait_for_another() -> None:
    slow = Slow()
    work = LatestOnly(slow.do)
    work.put("a", 1)
    work.put("b", 1)
    await turns()

    assert slow.begun == [("a", 1), ("b", 1)]
    await work.aclose()


async def test_what_waits_is_forgotten_at_the_end_and_what_runs_is_broken_off() -> None:
    slow = Slow()
    work = LatestOnly(slow.do)
    work.put("a", 1)
    await turns()
    work.put("a", 2)
    await work.aclose()

    assert slow.begun == [("a", 1)]
    assert work.is_idle
