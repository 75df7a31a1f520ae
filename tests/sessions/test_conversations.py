"""A session as a unit of work: read once, worked with in memory, written once, also if it ends meanwhile."""

import pytest

from tests.kit.fake_servers import EXPANDING, call, gateway_of, names, search
from tests.kit.kept_sessions import SEARCH, Counted, engine_of, select, stored
from toolsearch import (
    LruEvictionStrategy,
    SessionStore,
    ToolSearch,
)
from toolsearch.errors import UnknownSessionError
from toolsearch.storage.memory import InMemorySessionPersistence

# How often a session is read and written


@pytest.mark.usefixtures("views")
async def test_a_search_reply_reads_the_session_once_and_writes_it_once(kept: Counted) -> None:
    session = engine_of(kept).session("a")
    kept.done.clear()
    await session.execute([select("send_mail"), select("pay_bill")])

    assert kept.done == {"read": 1, "written": 1, "views": 3}  # of which one for each search
    assert stored(kept) == ["send_mail", "pay_bill"]


@pytest.mark.usefixtures("views")
async def test_a_reply_that_calls_tools_reads_the_session_once_and_writes_it_once(kept: Counted) -> None:
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    session = engine_of(kept, add).session("a")
    kept.done.clear()
    await session.execute([{"name": "add", "arguments": {"a": 1, "b": 2}}] * 2)

    assert kept.done == {"read": 1, "written": 1, "views": 1}


async def test_a_search_and_a_call_through_the_gateway_read_the_session_once_and_write_it_once(kept: Counted) -> None:
    caller = EXPANDING
    async with gateway_of("a") as (gateway, servers):
        gateway.engine.sessions = SessionStore(persistence=kept)
        await servers["a"].lists("send_mail", "pay_bill")
        await search(gateway, caller, "mail")
        kept.done.clear()

        await search(gateway, caller, "bill")
        assert {each: kept.done[each] for each in ("read", "written")} == {"read": 1, "written": 1}
        kept.done.clear()
        await call(gateway, "a__pay_bill", {}, caller)
        assert {each: kept.done[each] for each in ("read", "written")} == {"read": 1, "written": 1}
        kept.done.clear()
        await names(gateway, caller)
        assert (kept.done["read"], kept.done["written"]) == (1, 0)


def test_opening_a_session_again_writes_nothing_unless_something_changes(kept: Counted) -> None:
    engine = engine_of(kept)
    engine.session("a")
    engine.session("a")
    assert kept.done["written"] == 1
    engine.session("a", deny=["pay_bill"])
    assert kept.done["written"] == 2


def test_looking_at_what_is_shown_changes_and_reads_nothing(kept: Counted) -> None:
    engine = engine_of(kept)
    session = engine.session("a")
    session.search("select:send_mail,pay_bill")
    engine.catalog.remove("send_mail")
    kept.done.clear()

    assert [tool.name for tool in session.shown()] == [SEARCH, "pay_bill"]
    assert session.discovered == ["send_mail", "pay_bill"]
    assert kept.done == {}

    session.end_turn()  # a unit of work, which drops what is gone
    assert (session.discovered, stored(kept)) == (["pay_bill"], ["pay_bill"])


# Sessions that end meanwhile


@pytest.mark.parametrize("is_kept", [False, True])
async def test_a_session_that_is_evicted_between_two_steps_of_a_reply_finishes_it(*, is_kept: bool) -> None:
    engines: list[ToolSearch] = []

    def crowd_out() -> str:
        """Open another session, where there is room for one."""
        engines[0].session("b")
        return "done"

    kept = InMemorySessionPersistence() if is_kept else None
    engine = engine_of(kept, crowd_out)
    engine.sessions = SessionStore(LruEvictionStrategy(1), kept)
    engines.append(engine)
    session = engine.session("a")

    messages = await session.execute([{"name": "crowd_out"}, select("send_mail"), {"name": "pay_bill"}])

    done, selected, refused = [message["content"][0]["text"] for message in messages]
    assert (done, selected.splitlines()[1].partition(" [")[0], refused) == (
        "done",
        "- send_mail()",
        "the tool 'pay_bill' can be found, but not called: its source gives no way to run it",
    )
    if kept is not None:
        assert stored(kept) == ["crowd_out", "pay_bill", "send_mail"]
        assert session.discovered == ["crowd_out", "pay_bill", "send_mail"]
    else:
        with pytest.raises(UnknownSessionError):
            _ = session.discovered


async def test_a_session_that_is_ended_during_a_reply_is_not_brought_back_by_it(kept: Counted) -> None:
    engines: list[ToolSearch] = []

    def end() -> str:
        """End the session in another process."""
        return str(engine_of(kept).sessions.evict("a"))

    engines.append(engine_of(kept, end))
    session = engines[0].session("a")

    assert (await session.call("end")).text == "True"
    assert (kept.ids(), engines[0].sessions.ids()) == ([], [])
    with pytest.raises(UnknownSessionError):
        session.search("mail")
