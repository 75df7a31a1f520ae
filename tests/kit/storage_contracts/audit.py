"""What a record of decisions owes."""

from pathlib import Path

import pytest

from toolsearch.storage.audit import AuditLog, AuditRecord


def decision(at_s: float, tenant: str = "") -> AuditRecord:
    return AuditRecord(at_s, "ann", "approve", f"sums: t{at_s}", "done", tenant)


class AuditLogContract:
    def make(self, folder: Path) -> AuditLog:
        raise NotImplementedError

    @pytest.fixture
    def log(self, tmp_path: Path) -> AuditLog:
        return self.make(tmp_path)

    def test_the_newest_records_come_in_the_order_in_which_they_were_appended(self, log: AuditLog) -> None:
        """Also where a clock was put back in between."""
        records = [decision(at_s) for at_s in (2.0, 3.5, 1.0)]
        for record in records:
            log.append(record)

        assert log.records(limit=10) == records
        assert log.records(limit=2) == records[1:]

    def test_a_tenant_is_shown_its_own_records_alone(self, log: AuditLog) -> None:
        for record in (decision(1.0, "a"), decision(2.0, "b"), decision(3.0), decision(4.0, "a")):
            log.append(record)

        assert log.records(limit=10, tenant="a") == [decision(1.0, "a"), decision(4.0, "a")]
        assert log.records(limit=1, tenant="a") == [decision(4.0, "a")]
        assert log.records(limit=10, tenant="") == [decision(3.0)]
        assert log.records(limit=10, tenant="nobody") == []

    def test_earlier_records_are_asked_for_by_the_position_of_the_first_that_is_known(self, log: AuditLog) -> None:
        for at_s in (1.0, 2.0, 3.0, 4.0):
            log.append(decision(at_s, "a"))

        newest = log.records(limit=2)
        assert log.records(limit=2, before=newest[0].position) == [decision(1.0, "a"), decision(2.0, "a")]
        assert log.records(limit=1, tenant="a", before=newest[1].position) == [decision(3.0, "a")]
        assert log.records(limit=2, before=log.records(limit=10)[0].position) == []

    def test_records_are_asked_for_by_who_did_it_and_by_what_they_hold(self, log: AuditLog) -> None:
        """A search for ``%`` or ``_`` finds these signs alone."""
        records = [
            AuditRecord(1.0, "ann", "POST /catalogs", "50%_off", "done", "a"),
            AuditRecord(2.0, "ben", "POST /keys", "none", "refused: 403", "a"),
            AuditRecord(3.0, "ann", "DELETE /catalogs", "old\\new", "done", "a"),
            AuditRecord(4.0, "ann", "POST /catalogs", "other", "done", "b"),
        ]
        for record in records:
            log.append(record)

        def found(**asked: str) -> list[AuditRecord]:
            return log.records(limit=10, tenant="a", **asked)

        assert found(who="ann") == [records[0], records[2]]
        assert found(holding="CATalogs") == [records[0], records[2]]
        assert found(holding="refused", who="ann") == []
        assert found(holding="0%_") == [records[0]]
        assert found(holding="d\\n") == [records[2]]
        newest = found(who="ann")[-1]
        assert log.records(limit=1, tenant="a", who="ann", before=newest.position) == [records[0]]

    def test_old_records_are_pruned_and_at_most_so_many_at_once(self, log: AuditLog) -> None:
        for at_s in (1.0, 2.0, 3.0, 4.0):
            log.append(decision(at_s, "a"))

        assert log.prune(before_s=4.0, limit=2) == 2
        assert log.records(limit=10) == [decision(3.0, "a"), decision(4.0, "a")]
        assert (log.prune(before_s=4.0, limit=2), log.prune(before_s=4.0, limit=2)) == (1, 0)
        assert log.records(limit=10) == [decision(4.0, "a")]
