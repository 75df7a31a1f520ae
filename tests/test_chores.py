"""Background tasks, and their end."""

import asyncio

from toolsearch.chores import is_set_within, running


async def test_work_runs_while_the_block_does_and_has_ended_after_it() -> None:
    begun, ended = asyncio.Event(), list[str]()

    async def work(name: str) -> None:
        try:
            begun.set()
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append(name)

    async with running(work("first"), work("second")):
        await begun.wait()
        assert ended == []

    assert ended == ["first", "second"]


async def test_work_that_fails_leaves_the_block_alone() -> None:
    async def work() -> None:
        raise ValueError

    async with running(work()):
        await asyncio.sleep(0)
        is_at_its_end = True

    assert is_at_its_end


async def test_an_event_is_waited_for_as_long_as_is_given() -> None:
    event = asyncio.Event()
    assert not await is_set_within(event, 0)

    asyncio.get_running_loop().call_soon(event.set)
    assert await is_set_within(event, None)
    assert await is_set_within(event, 0)
