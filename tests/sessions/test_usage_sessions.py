"""Learning from use, seen from sessions: what they search for and call moves what they find later."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from toolsearch import Catalog, PassThrough, SessionOptions, SessionStore, SqliteSessionPersistence, ToolSearch
from toolsearch.access.principals import LOCAL, Principal
from toolsearch.access.reach import Reach
from toolsearch.errors import UnknownSessionError
from toolsearch.sessions.usage import UsageLog
from toolsearch.storage.sqlite.stores import SqliteUsageStore

SEARCH = "toolSearchTool"
QUERY = "send a message"
ACME, OTHER = Principal("acme"), Principal("other")


def send_chat(text: str) -> str:
    """Send a message to a chat."""
    return text


def send_mail(text: str) -> str:
    """Send a message by mail."""
    if text == "fail":
        raise RuntimeError("no mail server")
    return text


def list_events(day: str) -> str:
    """List the events of a day."""
    return day


def engine_of(usage: UsageLog | None, sessions: SessionStore | None = None) -> ToolSearch:
    return ToolSearch(
        Catalog.from_functions([send_chat, send_mail, list_events]),
        strategy="keyword",
        sessions=sessions,
        options=SessionOptions(pass_through=PassThrough(max_tools=0)),
        usage=usage,
    )


@pytest.fixture
def engine() -> Iterator[ToolSearch]:
    with engine_of(UsageLog(clock=lambda: 0.0)) as engine:
        yield engine


async def use(engine: ToolSearch, tool: str = "send_mail", *, sessions: int = 8, principal: Principal = LOCAL) -> None:
    for number in range(sessions):
        session = engine.session(f"{principal.id} {tool} {number}", principal=principal)
        await session.call(SEARCH, {"query": QUERY})
        await session.call(tool, {"text": "hello"})


def contents(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.iterdir()))


def found(engine: ToolSearch, principal: Principal | None, **options: Reach) -> list[str]:
    return [reference.name for reference in engine.search(QUERY, principal=principal, **options)]


async def test_what_sessions_call_ranks_higher_later_for_their_principal_only(engine: ToolSearch) -> None:
    before = found(engine, ACME)
    await use(engine, before[-1], principal=ACME)
    # the calendar is used as well, for use of one tool alone says nothing
    for number in range(8):
        session = engine.session(f"calendar {number}", principal=ACME)
        session.search("list events")
        await session.call("list_events", {"day": "monday"})

    assert sorted(before) == ["send_chat", "send_mail"]
    assert found(engine, ACME) == before[::-1]
    assert found(engine, OTHER) == found(engine, None) == before
    assert engine.explain(QUERY, before[-1], principal=ACME).place == 1
    assert engine.explain(QUERY, before[-1], principal=OTHER).place == engine.explain(QUERY, before[-1]).place == 2


async def test_a_failed_call_and_one_without_a_search_count_nothing(engine: ToolSearch) -> None:
    session = engine.session("s")
    await session.call("send_chat", {"text": "hello"})
    session.search(QUERY)
    result = await session.call("send_mail", {"text": "fail"})

    assert result.is_error
    assert engine.usage is not None
    assert engine.usage.inspect(LOCAL.id) == []


async def test_only_words_of_the_catalogue_are_learnt(tmp_path: Path) -> None:
    with SqliteUsageStore(tmp_path / "usage.sqlite") as store, engine_of(UsageLog(store)) as engine:
        session = engine.session("s")
        await session.call(SEARCH, {"query": "send a message with the password hunter2 to Alice"})
        await session.call("send_mail", {"text": "hello"})

        assert engine.usage is not None
        assert sorted(row.term for row in engine.usage.inspect(LOCAL.id)) == ["messag", "send"]
    assert b"hunter2" not in contents(tmp_path)


async def test_a_tool_out_of_reach_stays_out_however_much_it_is_used(engine: ToolSearch) -> None:
    await use(engine, principal=ACME)

    assert found(engine, ACME, reach=Reach.parse(deny=["send_mail"])) == ["send_chat"]


async def test_nothing_is_learnt_unless_it_is_switched_on() -> None:
    with engine_of(None) as engine:
        before = found(engine, LOCAL)
        await use(engine)
        assert found(engine, LOCAL) == before


async def test_a_session_stays_with_its_principal_over_a_restart(tmp_path: Path) -> None:
    with SqliteSessionPersistence(tmp_path / "sessions.sqlite") as kept:
        with engine_of(None, SessionStore(persistence=kept)) as engine:
            engine.session("s", principal=ACME)
        with engine_of(None, SessionStore(persistence=kept)) as engine:
            assert engine.session("s", principal=ACME).state.principal == "acme"
            for other in (OTHER, LOCAL):
                with pytest.raises(UnknownSessionError):
                    engine.session("s", principal=other)
