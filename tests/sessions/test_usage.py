"""Learning from use: what counts, how much, for whom, and what is kept of it."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

import pytest

from tests.kit.clock import Clock
from toolsearch.errors import BadSettingError, Kept, StorageError
from toolsearch.sessions.usage import DAY_S, Credit, SessionContribution, UsageLog
from toolsearch.sessions.usage_evidence import IndexVocabulary, LearntUse
from toolsearch.storage.sqlite.stores import SqliteUsageStore
from toolsearch.storage.usage import UsageCell
from toolsearch_indexes.documents import ToolDocument
from toolsearch_indexes.index import ToolSearchIndex

_P = ParamSpec("_P")
_T = TypeVar("_T")

MAIL = frozenset({"mail"})
EVENT = frozenset({"event"})
BOTH = ["send_mail", "list_events"]


def use(
    log: UsageLog,
    terms: frozenset[str],
    tool: str,
    *,
    sessions: int,
    principal: str = "",
    found: list[str] | None = None,
    who: object = "",
) -> None:
    """Let as many new sessions search once and call what they were shown."""
    for number in range(sessions):
        session_id = f"{who} {sorted(terms)} {tool} {number}"
        log.discovered(principal, session_id, terms, found or BOTH)
        log.called(principal, session_id, tool)


def use_of_two_tools(log: UsageLog, who: object = "") -> None:
    use(log, MAIL, "send_mail", sessions=4, who=who)
    use(log, EVENT, "list_events", sessions=4, who=who)


def test_a_tool_that_was_found_and_called_is_favoured_for_such_queries() -> None:
    """Odds of send_mail: 4 calls x (1 + 4 / (5 x 4/28)) x 5/9 = 14.67; of others 5. Base 4/28, support 4/(4 + 3)."""
    log = UsageLog(clock=lambda: 0.0)
    use_of_two_tools(log)

    odds = 4 * (1 + 4 / (5 * 4 / 28)) * 5 / 9
    expected = 4 / 7 * (odds / (odds + 5) - 2 * 4 / 28)
    assert log.favour("", MAIL) == pytest.approx({"send_mail": expected})
    assert 0.26 < expected < 0.27


def test_one_event_moves_little_and_the_favour_grows_with_each() -> None:
    favours = []
    for sessions in (1, 2, 4, 8, 16):
        log = UsageLog(clock=lambda: 0.0)
        for number in range(20):
            use(log, frozenset({f"word_{number}"}), f"tool_{number}", sessions=10, found=[f"tool_{number}"])
        use(log, MAIL, "send_mail", sessions=sessions)
        favours.append(log.favour("", MAIL).get("send_mail", 0.0))

    assert favours[0] < 1 / 4
    assert favours == sorted(favours)
    assert favours[-1] < 1


def test_what_was_not_found_by_a_search_of_the_session_before_counts_nothing() -> None:
    log = UsageLog(clock=lambda: 0.0)
    log.called("", "s", "send_mail")
    log.discovered("", "s", MAIL, ["list_events"])
    log.called("", "s", "send_mail")
    log.discovered("", "other", MAIL, BOTH)
    log.called("", "s", "send_mail")

    assert log.inspect("") == []


def test_a_call_is_credited_to_the_latest_search_that_found_the_tool() -> None:
    session = SessionContribution()
    session.discovered(EVENT, BOTH)
    session.discovered(MAIL, BOTH)

    assert session.called("send_mail") == Credit(MAIL, "send_mail", called=1.0, asked=1.0)


def test_each_further_credit_of_a_session_for_one_tool_is_halved_and_the_fifth_is_none() -> None:
    session = SessionContribution()
    given = []
    for word in ("one", "two", "three", "four", "five"):
        session.discovered(frozenset({word}), ["send_mail"])
        given.append(session.called("send_mail"))

    assert [credit and credit.called for credit in given] == [1.0, 0.5, 0.25, 0.125, None]


def test_ten_thousand_calls_for_one_query_count_as_one() -> None:
    log = UsageLog(clock=lambda: 0.0)
    for _ in range(10_000):
        log.discovered("", "s", MAIL, BOTH)
        log.called("", "s", "send_mail")

    assert log.inspect("") == [LearntUse("mail", "send_mail", called=1.0, asked=1.0)]


def test_a_query_that_led_to_two_tools_was_asked_once() -> None:
    log = UsageLog(clock=lambda: 0.0)
    log.discovered("", "s", MAIL, BOTH)
    log.called("", "s", "send_mail")
    log.called("", "s", "list_events")

    assert [(row.tool, row.called, row.asked) for row in log.inspect("")] == [
        ("list_events", 1.0, 1.0),
        ("send_mail", 1.0, 1.0),
    ]


def test_a_tool_that_is_called_for_everything_is_favoured_for_nothing() -> None:
    log = UsageLog(clock=lambda: 0.0)
    for word in ("one", "two", "three", "four", "five"):
        use(log, frozenset({word}), "helper", sessions=40, found=["helper"])
    use(log, MAIL, "send_mail", sessions=5)

    assert "helper" not in log.favour("", frozenset({"one"}))
    assert list(log.favour("", MAIL)) == ["send_mail"]


def test_a_word_for_which_many_tools_are_called_says_nothing() -> None:
    log = UsageLog(clock=lambda: 0.0)
    tools = [f"tool_{number}" for number in range(20)]
    for tool in tools:
        use(log, frozenset({"get", tool}), tool, sessions=3, found=tools)

    assert all(favour < 0.02 for favour in log.favour("", frozenset({"get"})).values())
    assert log.favour("", frozenset({"get", "tool_3"}))["tool_3"] > 0.15


def test_where_no_tool_is_called_twice_nothing_is_favoured() -> None:
    log = UsageLog(clock=lambda: 0.0)
    for number in range(30):
        use(log, frozenset({"get", f"word_{number}"}), f"tool_{number}", sessions=1, found=[f"tool_{number}"])

    assert log.favour("", frozenset({"get", "word_3"})) == {}


def test_an_event_counts_half_after_a_half_life_and_nothing_in_the_end(clock: Clock) -> None:
    log = UsageLog(half_life_s=10 * DAY_S, clock=clock)
    use_of_two_tools(log)
    fresh = log.favour("", MAIL)["send_mail"]

    clock.now_s = 10 * DAY_S
    assert [row.called for row in log.inspect("")] == pytest.approx([2.0, 2.0])
    assert log.favour("", MAIL)["send_mail"] < fresh

    clock.now_s = 1e9 * DAY_S
    assert log.favour("", MAIL) == {}


def test_time_can_pass_for_ever_and_may_even_go_back(clock: Clock) -> None:
    """A thousand half-lives overflow no number, and what is old is left behind."""
    log = UsageLog(half_life_s=1.0, clock=clock)
    for start_s in (0.0, 100.0, 5_000.0, 1e9):
        clock.now_s = start_s
        use_of_two_tools(log, who=start_s)
    expected = log.favour("", MAIL)
    fresh = UsageLog(half_life_s=1.0, clock=clock)
    use_of_two_tools(fresh)
    assert expected == fresh.favour("", MAIL)

    clock.now_s = 0.0
    assert all(0 <= favour < 1 for favour in log.favour("", MAIL).values())


def test_principals_learn_nothing_of_each_other() -> None:
    log = UsageLog(clock=lambda: 0.0)
    use(log, MAIL, "send_mail", sessions=4, principal="a")
    log.discovered("a", "s", EVENT, BOTH)
    log.called("b", "s", "list_events")

    assert log.principals() == ["a"]
    assert log.favour("a", MAIL)
    assert (log.has_evidence("a"), log.has_evidence("b")) == (True, False)
    assert (log.favour("b", MAIL), log.inspect("b")) == ({}, [])


def test_the_faintest_words_go_when_there_are_too_many() -> None:
    log = UsageLog(max_cells=10, clock=lambda: 0.0)
    use(log, MAIL, "send_mail", sessions=2)
    for number in range(10):
        use(log, frozenset({f"word_{number}"}), "list_events", sessions=1)

    rows = log.inspect("")
    assert len(rows) == 9
    assert rows[0] == LearntUse("mail", "send_mail", called=2.0, asked=2.0)
    assert [row.term for row in rows[1:]] == [f"word_{number}" for number in range(2, 10)]


def test_a_restart_brings_everything_back(tmp_path: Path, clock: Clock) -> None:
    with SqliteUsageStore(tmp_path / "usage.sqlite") as store:
        log = UsageLog(store, clock=clock)
        use_of_two_tools(log)
        clock.now_s = 3 * DAY_S
        use(log, MAIL, "list_events", sessions=1, principal="b")
        before, favour = log.inspect(""), log.favour("", MAIL)

    with SqliteUsageStore(tmp_path / "usage.sqlite") as store:
        log = UsageLog(store, clock=clock)
        assert log.principals() == ["", "b"]
        assert [(row.term, row.tool) for row in log.inspect("")] == [(row.term, row.tool) for row in before]
        assert log.favour("", MAIL) == pytest.approx(favour)


def test_two_processes_add_to_one_file(tmp_path: Path) -> None:
    with SqliteUsageStore(tmp_path / "usage.sqlite") as one, SqliteUsageStore(tmp_path / "usage.sqlite") as two:
        logs = [UsageLog(store, clock=lambda: 0.0) for store in (one, two)]
        for log in logs:
            log.inspect("")
        for log in logs:
            use(log, MAIL, "send_mail", sessions=2)

        assert UsageLog(one, clock=lambda: 0.0).inspect("") == [LearntUse("mail", "send_mail", called=4.0, asked=4.0)]


def test_a_sum_that_another_process_dropped_is_mended(tmp_path: Path) -> None:
    with SqliteUsageStore(tmp_path / "usage.sqlite") as store:
        use_of_two_tools(UsageLog(store, clock=lambda: 0.0))
        store.drop("", [UsageCell("mail", ""), UsageCell("", "send_mail"), UsageCell("", "")])

        log = UsageLog(store, clock=lambda: 0.0)
        assert log.inspect("")[1] == LearntUse("mail", "send_mail", called=4.0, asked=4.0)
        assert log.favour("", MAIL)


def test_what_was_dropped_does_not_come_back(tmp_path: Path) -> None:
    with SqliteUsageStore(tmp_path / "usage.sqlite") as store:
        log = UsageLog(store, max_cells=10, clock=lambda: 0.0)
        for number in range(11):
            use(log, frozenset({f"word_{number}"}), "list_events", sessions=1)

        assert UsageLog(store, max_cells=10, clock=lambda: 0.0).inspect("") == log.inspect("")


def test_a_reset_forgets_one_principal_or_all_and_in_the_file_too(tmp_path: Path) -> None:
    with SqliteUsageStore(tmp_path / "usage.sqlite") as store:
        log = UsageLog(store, clock=lambda: 0.0)
        for principal in ("a", "b", "c"):
            use(log, MAIL, "send_mail", sessions=1, principal=principal)

        log.reset("a")
        assert (log.inspect("a"), log.principals(), store.principals()) == ([], ["b", "c"], ["b", "c"])
        log.reset()
        assert (log.principals(), store.principals()) == ([], [])


def test_a_session_that_goes_on_after_a_reset_is_counted_anew() -> None:
    log = UsageLog(clock=lambda: 0.0)
    use(log, MAIL, "send_mail", sessions=1)
    log.reset("")
    use(log, MAIL, "send_mail", sessions=1)

    assert [row.called for row in log.inspect("")] == [1.0]


def test_a_file_that_fails_is_logged_and_fails_no_call(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = SqliteUsageStore(tmp_path / "usage.sqlite")
    log = UsageLog(store, clock=lambda: 0.0)
    store.close()
    use_of_two_tools(log)

    assert log.favour("", MAIL)
    assert "in memory only" in caplog.text
    with pytest.raises(StorageError):
        log.reset()


def test_a_file_of_another_version_is_refused(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "usage.sqlite")
    database.execute("PRAGMA user_version = 7")
    database.close()

    with pytest.raises(StorageError, match="counts of use"):
        SqliteUsageStore(tmp_path / "usage.sqlite")


@pytest.mark.parametrize("setting", [{"half_life_s": 0.0}, {"half_life_s": float("nan")}, {"max_cells": 0}])
def test_a_setting_that_cannot_be_used_is_refused(setting: dict[str, float]) -> None:
    with pytest.raises(BadSettingError):
        UsageLog(**setting)  # type: ignore[arg-type]


def index_of_two() -> ToolSearchIndex:
    return ToolSearchIndex(
        [
            ToolDocument("send_mail", description="Send an email to a person."),
            ToolDocument("list_events", description="List the events of a day."),
        ]
    )


def test_of_a_query_only_words_of_the_catalogue_are_kept() -> None:
    vocabulary = IndexVocabulary(index_of_two())

    assert vocabulary.terms_of("send hunter2 sk-4f9a to Alice's mail") == {"send", "mail"}
    assert vocabulary.terms_of("hunter2") == frozenset()


@pytest.mark.parametrize("query", ["select:send_mail", "/send/", "", "   ", "of the"])
def test_nothing_is_learnt_of_names_patterns_and_empty_words(query: str) -> None:
    assert IndexVocabulary(index_of_two()).terms_of(query) == frozenset()


def test_a_word_is_forgotten_with_the_last_tool_that_holds_it() -> None:
    index = index_of_two()
    index.update(remove=["send_mail"])

    assert IndexVocabulary(index).terms_of("send mail on a day") == {"day"}


def test_a_long_request_is_known_by_its_rarest_words() -> None:
    words = [f"w{chr(97 + number)}x" for number in range(20)]
    documents = [ToolDocument(f"t{number}", description=" ".join(words[number:])) for number in range(20)]
    vocabulary = IndexVocabulary(ToolSearchIndex(documents))

    assert vocabulary.terms_of(" ".join(words)) == set(words[:16])


def test_what_another_process_has_seen_is_known_after_a_refresh(tmp_path: Path) -> None:
    with SqliteUsageStore(tmp_path / "usage.db") as store:
        ours, theirs = (UsageLog(store, clock=lambda: 0.0) for _ in range(2))
        assert ours.favour("", MAIL) == {}
        use_of_two_tools(theirs)
        assert ours.favour("", MAIL) == {}

        ours.refresh()
        assert ours.favour("", MAIL) == theirs.favour("", MAIL) != {}


def test_a_refresh_that_fails_keeps_what_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with SqliteUsageStore(tmp_path / "usage.db") as store:
        log = UsageLog(store, clock=lambda: 0.0)
        use_of_two_tools(log)
        known = log.favour("", MAIL)

        def fail(_: str) -> None:
            raise StorageError("the disk is gone", Kept.USAGE)

        monkeypatch.setattr(store, "load", fail)
        log.refresh()
        assert log.favour("", MAIL) == known


def test_a_call_during_a_refresh_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with SqliteUsageStore(tmp_path / "usage.db") as store:
        log = UsageLog(store, clock=lambda: 0.0)
        use(log, EVENT, "list_events", sessions=4)
        load = store.load

        def load_and_be_overtaken(principal: str) -> object:
            loaded = load(principal)
            use(log, MAIL, "send_mail", sessions=4)
            return loaded

        monkeypatch.setattr(store, "load", load_and_be_overtaken)
        log.refresh()
        assert "send_mail" in log.favour("", MAIL)


def test_a_principal_who_was_deleted_from_the_store_leaves_memory(tmp_path: Path) -> None:
    with SqliteUsageStore(tmp_path / "usage.db") as store:
        log = UsageLog(store, clock=lambda: 0.0)
        use_of_two_tools(log)
        store.reset("")
        assert log.favour("", MAIL) != {}

        log.forget("")
        assert log.favour("", MAIL) == {}


def test_evidence_is_at_hand_once_it_was_read_and_while_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteUsageStore(tmp_path / "usage.db")
    log, at_hand = UsageLog(store), list[bool]()

    def noted(method: Callable[_P, _T]) -> Callable[_P, _T]:
        def asking(*given: _P.args, **named: _P.kwargs) -> _T:
            at_hand.append(log.is_at_hand("ann"))
            return method(*given, **named)

        return asking

    monkeypatch.setattr(store, "load", noted(store.load))
    monkeypatch.setattr(store, "add", noted(store.add))
    log.favour("ann", MAIL)
    assert log.is_at_hand("ann")
    assert not log.is_at_hand("bob")
    use(log, MAIL, "send_mail", sessions=1, principal="ann")

    assert at_hand == [False, False]  # while it is read, and while it is written
    assert log.is_at_hand("ann")
