"""What each place that keeps something owes, whatever it is made of: subclass a contract and say what makes one."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from toolsearch.errors import SessionConflictError
from toolsearch.storage.audit import AuditLog, AuditRecord
from toolsearch.storage.messages import MessageStore
from toolsearch.storage.pins import FIRST_SIGHT, Pin, PinPersistence, SeenEntry
from toolsearch.storage.sessions import SessionPersistence, StoredSession
from toolsearch.storage.usage import StoredWeight, UsageCell, UsageStore
from toolsearch_indexes.vector_store import VectorStore


class SessionPersistenceContract:
    def make(self, folder: Path) -> SessionPersistence:
        raise NotImplementedError

    @pytest.fixture
    def kept(self, tmp_path: Path) -> SessionPersistence:
        return self.make(tmp_path)

    def test_what_was_saved_last_is_loaded_by_its_id(self, kept: SessionPersistence) -> None:
        first = kept.save("b", "1", version=0)
        kept.save("a", "2", version=0)
        second = kept.save("b", "3", version=first)

        assert kept.load("b") == StoredSession("3", second)
        assert kept.load("missing") is None
        assert kept.ids() == ["a", "b"]

    def test_a_session_that_was_deleted_is_gone(self, kept: SessionPersistence) -> None:
        kept.save("b", "1", version=0)

        assert (kept.delete("b"), kept.delete("b")) == (True, False)
        assert (kept.load("b"), kept.ids()) == (None, [])

    def test_a_version_is_one_or_more_and_another_with_each_saving(self, kept: SessionPersistence) -> None:
        versions = [first := kept.save("a", "same", version=0), kept.save("a", "same", version=first)]

        assert min(versions) >= 1
        assert len(set(versions)) == 2

    @pytest.mark.parametrize("stale", [0, 99])
    def test_a_saving_over_what_was_not_read_is_refused_and_changes_nothing(
        self, kept: SessionPersistence, stale: int
    ) -> None:
        version = kept.save("a", "theirs", version=0)

        with pytest.raises(SessionConflictError, match="'a' was changed by another writer") as refused:
            kept.save("a", "ours", version=stale)
        assert refused.value.session_id == "a"
        assert kept.load("a") == StoredSession("theirs", version)

    def test_a_session_that_is_gone_is_not_saved_back_to_life(self, kept: SessionPersistence) -> None:
        version = kept.save("a", "1", version=0)
        kept.delete("a")

        with pytest.raises(SessionConflictError):
            kept.save("a", "2", version=version)
        assert kept.load("a") is None

    def test_a_session_that_ended_and_came_anew_is_not_the_one_that_was_read(self, kept: SessionPersistence) -> None:
        version = kept.save("a", "old", version=0)
        kept.delete("a")
        kept.save("a", "new", version=0)

        with pytest.raises(SessionConflictError):
            kept.save("a", "stale", version=version)

    def test_of_many_that_save_at_once_over_one_version_one_wins(self, kept: SessionPersistence) -> None:
        version = kept.save("a", "0", version=0)

        def save(number: int) -> int:
            try:
                return kept.save("a", str(number), version=version)
            except SessionConflictError:
                return 0

        with ThreadPoolExecutor(8) as threads:
            saved = list(threads.map(save, range(1, 9)))

        [(winner, new)] = [(number, new) for number, new in enumerate(saved, start=1) if new]
        assert kept.load("a") == StoredSession(str(winner), new)


MAIL, EVENT = UsageCell("mail", "send_mail"), UsageCell("event", "list_events")


class UsageStoreContract:
    def make(self, folder: Path) -> UsageStore:
        raise NotImplementedError

    @pytest.fixture
    def kept(self, tmp_path: Path) -> UsageStore:
        return self.make(tmp_path)

    def test_weights_add_up_after_what_was_there_has_faded(self, kept: UsageStore) -> None:
        """Two half-lives leave a quarter of 4."""
        kept.add("shop", {MAIL: 4.0}, at_s=0.0, half_life_s=10.0)
        kept.add("shop", {MAIL: 1.0, EVENT: 3.0}, at_s=20.0, half_life_s=10.0)

        assert kept.load("shop") == [StoredWeight(EVENT, 3.0, 20.0), StoredWeight(MAIL, 2.0, 20.0)]

    def test_each_keeps_its_own(self, kept: UsageStore) -> None:
        kept.add("shop", {MAIL: 1.0}, at_s=0.0, half_life_s=1.0)
        kept.add("", {EVENT: 1.0}, at_s=0.0, half_life_s=1.0)

        assert kept.load("shop") == [StoredWeight(MAIL, 1.0, 0.0)]
        assert (kept.load("nobody"), kept.principals()) == ([], ["", "shop"])

    def test_what_is_dropped_or_reset_is_gone(self, kept: UsageStore) -> None:
        for who in ("a", "b", "c"):
            kept.add(who, {MAIL: 1.0, EVENT: 1.0}, at_s=0.0, half_life_s=1.0)
        kept.drop("a", [MAIL, UsageCell("never", "was")])
        kept.drop("nobody", [MAIL])
        kept.reset("b")

        assert kept.load("a") == [StoredWeight(EVENT, 1.0, 0.0)]
        assert kept.principals() == ["a", "c"]
        kept.drop("a", [EVENT])
        assert kept.principals() == ["c"]
        kept.reset(None)
        assert kept.principals() == []


class MessageStoreContract:
    def make(self, folder: Path) -> MessageStore[str]:
        raise NotImplementedError

    @pytest.fixture
    def kept(self, tmp_path: Path) -> MessageStore[str]:
        return self.make(tmp_path)

    def test_a_conversation_is_what_the_last_change_made_of_it(self, kept: MessageStore[str]) -> None:
        kept.update("a", lambda messages: [*messages, "one"])
        kept.update("b", lambda messages: [*messages, "other"])
        kept.update("a", lambda messages: [*messages, "two"])

        assert (kept.load("a"), kept.load("b"), kept.load("never was")) == (["one", "two"], ["other"], [])

    def test_a_deleted_conversation_is_empty(self, kept: MessageStore[str]) -> None:
        kept.update("a", lambda _: ["one"])
        kept.delete("a")
        kept.delete("never was")

        assert kept.load("a") == []

    def test_a_change_that_fails_changes_nothing(self, kept: MessageStore[str]) -> None:
        def fail(messages: list[str]) -> list[str]:
            messages.append("two")
            raise RuntimeError("no")

        kept.update("a", lambda _: ["one"])
        with pytest.raises(RuntimeError):
            kept.update("a", fail)
        kept.update("b", lambda _: ["other"])

        assert (kept.load("a"), kept.load("b")) == (["one"], ["other"])

    def test_of_many_that_change_at_once_none_is_lost(self, kept: MessageStore[str]) -> None:
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(lambda n: kept.update("a", lambda messages: [*messages, str(n)]), range(20)))

        assert sorted(kept.load("a"), key=int) == [str(n) for n in range(20)]


class AuditLogContract:
    def make(self, folder: Path) -> AuditLog:
        raise NotImplementedError

    def test_the_newest_records_come_in_the_order_in_which_they_were_appended(self, tmp_path: Path) -> None:
        """Also where a clock was put back in between."""
        log = self.make(tmp_path)
        records = [AuditRecord(at_s, "ann", "approve", f"sums: t{at_s}", "done") for at_s in (2.0, 3.5, 1.0)]
        for record in records:
            log.append(record)

        assert log.records(limit=10) == records
        assert log.records(limit=2) == records[1:]


def seen(name: str, pin: str, owner: str = "sums@1", seen_s: float = 5.0) -> SeenEntry:
    return SeenEntry(owner, name, pin, {"name": name, "description": f"is {pin}"}, seen_s)


class PinPersistenceContract:
    def make(self, folder: Path) -> tuple[PinPersistence, AuditLog]:
        raise NotImplementedError

    @pytest.fixture
    def kept(self, tmp_path: Path) -> PinPersistence:
        return self.make(tmp_path)[0]

    def test_what_is_approved_and_what_waits_is_told_by_owner_and_name(self, kept: PinPersistence) -> None:
        kept.keep(approve=[seen("b", "p1"), seen("a", "p2")], hold=[seen("c", "p3"), seen("a", "p4", owner="other@1")])

        assert list(kept.approved("sums@1").items()) == [
            ("a", Pin("a", "p2", 5.0, FIRST_SIGHT)),
            ("b", Pin("b", "p1", 5.0, FIRST_SIGHT)),
        ]
        assert kept.waiting("sums@1") == {"c": Pin("c", "p3", 5.0)}
        assert kept.entry("sums@1", "b", is_approved=True) == {"name": "b", "description": "is p1"}
        assert kept.entry("sums@1", "b", is_approved=False) is None
        assert (kept.approved("nobody"), kept.waiting("nobody")) == ({}, {})

    def test_only_the_last_definition_waits_until_it_is_forgotten(self, kept: PinPersistence) -> None:
        kept.keep(hold=[seen("a", "p1")])
        kept.keep(hold=[seen("a", "p2", seen_s=6.0)])
        assert kept.waiting("sums@1") == {"a": Pin("a", "p2", 6.0)}

        kept.keep(forget=[seen("a", "p3")])
        assert kept.waiting("sums@1") == {}

    def test_an_approval_is_of_one_definition(self, kept: PinPersistence) -> None:
        kept.keep(hold=[seen("a", "p1")])

        assert not kept.approve("sums@1", "a", "p0", by="ann", at_s=7.0)
        assert kept.waiting("sums@1")["a"].pin == "p1"
        assert kept.approve("sums@1", "a", "p1", by="ann", at_s=7.0)
        assert kept.approved("sums@1") == {"a": Pin("a", "p1", 5.0, "ann")}
        assert (kept.waiting("sums@1"), kept.entry("sums@1", "a", is_approved=True)) == ({}, seen("a", "p1").raw)

    def test_what_was_approved_on_first_sight_can_be_approved_by_a_person(self, kept: PinPersistence) -> None:
        kept.keep(approve=[seen("a", "p1")])

        assert kept.approve("sums@1", "a", "p1", by="ann", at_s=7.0)
        assert kept.approved("sums@1")["a"].by == "ann"

    def test_a_withdrawal_stays_with_what_waits_later(self, kept: PinPersistence) -> None:
        kept.keep(approve=[seen("a", "p1")])

        assert kept.revoke("sums@1", "a", by="ann", at_s=7.0)
        assert not kept.revoke("sums@1", "a", by="ann", at_s=8.0)
        kept.keep(hold=[seen("a", "p2")])
        assert (kept.approved("sums@1"), kept.waiting("sums@1")) == ({}, {"a": Pin("a", "p2", 5.0, "ann")})

    def test_only_decisions_give_another_version_even_if_a_clock_was_put_back(self, kept: PinPersistence) -> None:
        versions = [kept.version()]
        kept.keep(approve=[seen("a", "p1")], hold=[seen("b", "p2")])
        assert kept.version() == versions[0]

        for at_s in (9.0, 8.0):
            kept.approve("sums@1", "b", "p2", by="ann", at_s=at_s)
            versions.append(kept.version())
            kept.revoke("sums@1", "b", by="ann", at_s=at_s)
            versions.append(kept.version())
        assert len(set(versions)) == 5

    def test_every_decision_is_in_the_audit_also_one_that_came_too_late(self, tmp_path: Path) -> None:
        kept, log = self.make(tmp_path)
        kept.keep(hold=[seen("a", "p1"), seen("", "p2", owner="sums@1 instructions")])
        kept.approve("sums@1", "a", "p0", by="ann", at_s=7.0)
        kept.approve("sums@1", "a", "p1", by="ann", at_s=8.0)
        kept.approve("sums@1 instructions", "", "p2", by="ann", at_s=8.5)
        kept.revoke("sums@1", "a", by="bob", at_s=9.0)
        kept.revoke("sums@1", "a", by="bob", at_s=9.5)

        assert log.records(limit=10) == [
            AuditRecord(7.0, "ann", "approve", "sums@1: a", "changed meanwhile"),
            AuditRecord(8.0, "ann", "approve", "sums@1: a", "done"),
            AuditRecord(8.5, "ann", "approve", "sums@1 instructions", "done"),
            AuditRecord(9.0, "bob", "revoke", "sums@1: a", "done"),
            AuditRecord(9.5, "bob", "revoke", "sums@1: a", "was not approved"),
        ]


class VectorStoreContract:
    def make(self, folder: Path) -> VectorStore:
        raise NotImplementedError

    def test_what_is_stored_of_the_keys_is_returned(self, tmp_path: Path) -> None:
        kept = self.make(tmp_path)
        kept.put({b"a": b"1", b"b": b"2"})
        kept.put({b"b": b"3"})

        assert kept.get([b"b", b"never", b"a"]) == {b"a": b"1", b"b": b"3"}
        assert kept.get([]) == {}

    def test_thousands_of_keys_can_be_asked_for_at_once(self, tmp_path: Path) -> None:
        """More than a statement of SQLite takes parameters."""
        kept = self.make(tmp_path)
        values = {b"%d" % n: b"v%d" % n for n in range(2_500)}
        kept.put(values)

        assert kept.get(list(values)) == values
