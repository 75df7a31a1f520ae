"""What a place for approvals owes."""

from pathlib import Path

import pytest

from toolsearch.storage.audit import AuditLog, AuditRecord
from toolsearch.storage.pins import FIRST_SIGHT, Pin, PinPersistence, SeenEntry


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

    def test_a_refusal_lasts_until_another_definition_waits_or_somebody_approves_it(self, kept: PinPersistence) -> None:
        kept.keep(hold=[seen("a", "p1")])
        assert not kept.refuse("sums@1", "a", "p0", by="ann", at_s=6.0)
        assert kept.waiting("sums@1")["a"].refused_by == ""

        assert kept.refuse("sums@1", "a", "p1", by="ann", at_s=7.0)
        kept.keep(hold=[seen("a", "p1", seen_s=8.0)])
        assert kept.waiting("sums@1") == {"a": Pin("a", "p1", 8.0, refused_by="ann")}
        kept.keep(hold=[seen("a", "p2")])
        assert kept.waiting("sums@1") == {"a": Pin("a", "p2", 5.0)}

        assert kept.refuse("sums@1", "a", "p2", by="ann", at_s=9.0)
        assert kept.approve("sums@1", "a", "p2", by="bob", at_s=10.0)
        assert (kept.approved("sums@1")["a"].by, kept.waiting("sums@1")) == ("bob", {})

    def test_what_was_refused_is_not_approved_by_who_judged_it_before_that(self, kept: PinPersistence) -> None:
        kept.keep(hold=[seen("a", "p1")])
        kept.refuse("sums@1", "a", "p1", by="ann", at_s=7.0)
        kept.keep(approve=[seen("a", "p1")], forget=[seen("a", "p1")])
        assert (kept.approved("sums@1"), kept.waiting("sums@1")["a"].refused_by) == ({}, "ann")

        kept.keep(approve=[seen("a", "p2")], forget=[seen("a", "p2")])  # nobody has refused this one
        assert (kept.approved("sums@1")["a"].pin, kept.waiting("sums@1")) == ("p2", {})

    def test_a_withdrawal_stays_with_what_waits_later(self, kept: PinPersistence) -> None:
        kept.keep(approve=[seen("a", "p1")])

        assert kept.revoke("sums@1", "a", by="ann", at_s=7.0)
        assert not kept.revoke("sums@1", "a", by="ann", at_s=8.0)
        kept.keep(hold=[seen("a", "p2")])
        assert (kept.approved("sums@1"), kept.waiting("sums@1")) == ({}, {"a": Pin("a", "p2", 5.0, "ann")})

    def test_what_was_withdrawn_is_not_approved_by_who_judged_it_before_that(self, kept: PinPersistence) -> None:
        """Another replica sees the same server, and writes a moment later what it thinks of it."""
        kept.keep(approve=[seen("a", "p1"), seen("b", "p1")])
        kept.revoke("sums@1", "a", by="ann", at_s=2.0)
        kept.keep(approve=[seen("a", "p1")], forget=[seen("a", "p1")])

        assert list(kept.approved("sums@1")) == ["b"]
        assert kept.waiting("sums@1")["a"].by == "ann"

    def test_only_decisions_give_another_version_even_if_a_clock_was_put_back(self, kept: PinPersistence) -> None:
        versions = [kept.version()]
        kept.keep(approve=[seen("a", "p1")], hold=[seen("b", "p2")])
        assert kept.version() == versions[0]

        for at_s in (9.0, 8.0):
            kept.approve("sums@1", "b", "p2", by="ann", at_s=at_s)
            versions.append(kept.version())
            kept.revoke("sums@1", "b", by="ann", at_s=at_s)
            versions.append(kept.version())
            kept.refuse("sums@1", "b", "p2", by="ann", at_s=at_s)
            versions.append(kept.version())
        assert len(set(versions)) == 7

    def test_every_decision_is_in_the_audit_also_one_that_came_too_late(self, tmp_path: Path) -> None:
        kept, log = self.make(tmp_path)
        kept.keep(hold=[seen("a", "p1"), seen("", "p2", owner="sums@1 instructions")])
        kept.approve("sums@1", "a", "p0", by="ann", at_s=7.0)
        kept.approve("sums@1", "a", "p1", by="ann", at_s=8.0)
        kept.approve("sums@1 instructions", "", "p2", by="ann", at_s=8.5)
        kept.revoke("sums@1", "a", by="bob", at_s=9.0)
        kept.revoke("sums@1", "a", by="bob", at_s=9.5)
        kept.refuse("sums@1", "a", "p0", by="bob", at_s=10.0)
        kept.refuse("sums@1", "a", "p1", by="bob", at_s=10.5)

        assert log.records(limit=10) == [
            AuditRecord(7.0, "ann", "approve", "sums@1: a", "changed meanwhile"),
            AuditRecord(8.0, "ann", "approve", "sums@1: a", "done"),
            AuditRecord(8.5, "ann", "approve", "sums@1 instructions", "done"),
            AuditRecord(9.0, "bob", "revoke", "sums@1: a", "done"),
            AuditRecord(9.5, "bob", "revoke", "sums@1: a", "was not approved"),
            AuditRecord(10.0, "bob", "refuse", "sums@1: a", "changed meanwhile"),
            AuditRecord(10.5, "bob", "refuse", "sums@1: a", "done"),
        ]
