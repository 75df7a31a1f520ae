"""What a record of decisions owes."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from toolsearch.storage.audit import AuditCheck, AuditLog, AuditRecord, digest_of


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

        assert log.prune(before_s=4.0, limit=2, at_s=100.0) == 2
        assert _decisions(log) == [decision(3.0, "a"), decision(4.0, "a")]
        assert (log.prune(before_s=4.0, limit=2, at_s=100.0), log.prune(before_s=4.0, limit=2, at_s=100.0)) == (1, 0)
        assert _decisions(log) == [decision(4.0, "a")]

    def test_a_record_of_a_wrong_future_time_stops_no_pruning(self, log: AuditLog) -> None:
        """It goes with the old ones that stand behind it. What is new stays, also behind one of the past."""
        for at_s in (1_000.0, 1.0, 2.0, 50.0, 1_000.0, 1.0):
            log.append(decision(at_s, "a"))

        assert log.prune(before_s=4.0, limit=9, at_s=100.0) == 3
        assert log.prune(before_s=4.0, limit=9, at_s=100.0) == 0
        assert _decisions(log) == [decision(50.0, "a"), decision(1_000.0, "a"), decision(1.0, "a")]
        assert log.prune(before_s=60.0, limit=9, at_s=160.0) == 3
        assert not log.verify("a").fault

    def test_nothing_is_pruned_that_stands_behind_a_later_record(self, log: AuditLog) -> None:
        """A clock was put back in between; what would be left has no gaps."""
        for at_s in (1.0, 5.0, 2.0):
            log.append(decision(at_s, "a"))
        log.append(decision(1.0, "b"))

        assert (log.prune(before_s=4.0, limit=9, at_s=100.0), log.prune(before_s=4.0, limit=9, at_s=100.0)) == (2, 0)
        assert _decisions(log) == [decision(5.0, "a"), decision(2.0, "a")]
        assert [log.verify(tenant)[2:] for tenant in "ab"] == [("", 1), ("", 1)]

    def test_every_field_of_a_record_is_kept(self, log: AuditLog) -> None:
        record = AuditRecord(1.5, "ann", "call", "git__log", "done", "a", "git", "s1", 0.25, "req_1")
        log.append(record)

        assert log.records(limit=1) == [record]
        assert list(log.all_of("a")) == [record]
        assert list(log.all_of("b")) == []

    # The chain

    @pytest.fixture
    def chained(self, log: AuditLog) -> AuditLog:
        """Of tenant *a* five records, and of *b* two between them."""
        log.append(decision(1.0, "a"), decision(2.0, "b"), decision(3.0, "a"), replace(decision(4.0, "a"), who="ü\0"))
        log.append(decision(5.0, "b"), decision(6.0, "a"))
        log.append(decision(7.0, "a"))
        return log

    def test_each_tenant_has_a_chain_that_ends_with_its_newest_record(self, chained: AuditLog) -> None:
        newest = chained.records(limit=1, tenant="a")[0].digest
        one = decision(2.0, "b")

        assert chained.verify("a") == AuditCheck(5, newest)
        assert chained.verify("b") == AuditCheck(2, digest_of(decision(5.0, "b"), digest_of(one, "")))
        assert chained.verify("nobody") == AuditCheck(0, "")

    @pytest.mark.parametrize("column", ["at_us", "took_us"])
    def test_a_changed_number_is_found(self, chained: AuditLog, column: str) -> None:
        third = list(chained.all_of("a"))[2]
        changed(chained, f"UPDATE audit SET {column} = 9 WHERE position = ?", third.position)  # noqa: S608

        assert chained.verify("a") == AuditCheck(2, _head(chained), _broken(third))
        assert not chained.verify("b").fault

    @pytest.mark.parametrize(
        "column", ["who", "action", "subject", "outcome", "server", "session", "request_id", "digest"]
    )
    def test_a_changed_text_is_found(self, chained: AuditLog, column: str) -> None:
        third = list(chained.all_of("a"))[2]
        changed(chained, f"UPDATE audit SET {column} = 'other' WHERE position = ?", third.position)  # noqa: S608

        assert chained.verify("a") == AuditCheck(2, _head(chained), _broken(third))

    @pytest.mark.parametrize("taken", [0, 1, 3])
    def test_a_record_that_was_taken_out_is_found(self, chained: AuditLog, taken: int) -> None:
        records = list(chained.all_of("a"))
        changed(chained, "DELETE FROM audit WHERE position = ?", records[taken].position)

        assert chained.verify("a") == AuditCheck(taken, _head(chained), _broken(records[taken + 1]))

    def test_newest_records_that_were_taken_out_are_found(self, chained: AuditLog) -> None:
        changed(chained, "DELETE FROM audit WHERE tenant = 'a' AND at_us >= ?", 6_000_000)

        assert chained.verify("a") == AuditCheck(3, _head(chained), "3 records are left of 5 at the end")

    def test_records_that_all_were_taken_out_are_found(self, chained: AuditLog) -> None:
        changed(chained, "DELETE FROM audit")

        assert "0 records are left of 5" in chained.verify("a").fault

    def test_an_audit_whose_chain_was_removed_with_all_its_records_is_not_taken_for_a_new_one(
        self, chained: AuditLog
    ) -> None:
        """Neither while it is empty nor when new records have begun another chain."""
        for table in ("audit", "audit_chains"):
            changed(chained, f"DELETE FROM {table} WHERE tenant = 'a'")  # noqa: S608

        assert chained.verify("a") == AuditCheck(0, "", "all earlier records were taken out")
        chained.append(decision(8.0, "a"))
        assert chained.verify("a") == AuditCheck(1, _head(chained), "all earlier records were taken out")
        assert not chained.verify("b").fault

    def test_a_chain_whose_beginning_was_not_counted_is_found(self, chained: AuditLog) -> None:
        changed(chained, "DELETE FROM counters")

        assert chained.verify("a").fault

    def test_a_record_that_was_put_between_is_found(self, chained: AuditLog) -> None:
        """Even one with a digest that fits the record before it: the next one does not fit any more."""
        changed(chained, "UPDATE audit SET position = position * 100")
        before, after = list(chained.all_of("a"))[:2]
        changed(
            chained,
            "INSERT INTO audit (position, at_us, who, action, subject, outcome, tenant, server, session, took_us, "
            "request_id, digest) VALUES (?, 1, 'eve', '', '', '', 'a', '', '', 0, '', ?)",
            *(before.position + 1, digest_of(AuditRecord(0.000001, "eve", "", "", "", "a"), before.digest)),
        )

        assert chained.verify("a") == AuditCheck(2, _head(chained), _broken(after))

    def test_what_is_left_after_pruning_is_still_verified(self, chained: AuditLog) -> None:
        assert chained.prune(before_s=6.0, limit=2, at_s=100.0) == 2
        assert chained.verify("a") == AuditCheck(4, _head(chained), "", 2)
        assert chained.prune(before_s=6.0, limit=9, at_s=100.0) == 3
        assert [chained.verify(tenant)[2:] for tenant in "ab"] == [("", 3), ("", 2)]
        assert chained.prune(before_s=99.0, limit=9, at_s=100.0) == 2
        assert chained.verify("a") == AuditCheck(3, _head(chained), "", 5)

        chained.append(decision(8.0, "a"))
        assert chained.verify("a") == AuditCheck(4, _head(chained), "", 5)
        changed(chained, "UPDATE audit SET who = 'eve'")
        assert chained.verify("a").fault

    def test_pruning_is_recorded_in_the_chain(self, chained: AuditLog) -> None:
        anchor = list(chained.all_of("a"))[1].digest
        chained.prune(before_s=4.0, limit=9, at_s=100.0)

        assert chained.records(limit=1, tenant="a") == [
            AuditRecord(100.0, "", "prune", f"2 records up to {anchor}", "done", "a")
        ]

    @pytest.mark.parametrize("is_pruned_before", [False, True])
    def test_first_records_that_were_taken_out_as_if_they_were_pruned_are_found(
        self, chained: AuditLog, *, is_pruned_before: bool
    ) -> None:
        """Also if what is kept of the chain is changed to fit, and the newest digest stays the same."""
        if is_pruned_before:
            chained.prune(before_s=2.0, limit=9, at_s=100.0)
        head, first = _head(chained), next(chained.all_of("a"))
        changed(chained, "DELETE FROM audit WHERE position = ?", first.position)
        changed(
            chained,
            "UPDATE audit_chains SET anchor = ?, kept = kept - 1, pruned = pruned + 1 WHERE tenant = 'a'",
            first.digest,
        )

        checked = chained.verify("a")
        assert (checked.head, checked.fault) == (head, "the first records were taken out, and not because of their age")

    def test_records_that_are_appended_at_once_are_one_chain(self, log: AuditLog) -> None:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda n: log.append(decision(float(n), "a"), decision(float(n), "b")), range(40)))

        assert (log.verify("a").records, log.verify("a").fault) == (40, "")
        assert (log.verify("b").records, log.verify("b").fault) == (40, "")


def changed(log: AuditLog, statement: str, *values: object) -> None:
    """Change the database behind the back of *log*."""
    database: Any = vars(log)["_database"]
    with database.transaction() as connection:
        connection.execute(statement, values)


def _decisions(log: AuditLog) -> list[AuditRecord]:
    return [each for each in log.records(limit=10) if each.action != "prune"]


def _head(log: AuditLog) -> str:
    return log.verify("a").head


def _broken(record: AuditRecord) -> str:
    return f"record {record.position} was changed, or one before it was taken out"
