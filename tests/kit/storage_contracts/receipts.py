"""What a place for receipts of calls owes."""

from dataclasses import astuple
from pathlib import Path

import pytest

from toolsearch.storage.activity import CallNote, Receipt, ReceiptLog


def receipt(receipt_id: str, at_s: float = 1.0, *, session: str = "s1", key: str = "k1", tool: str = "t1") -> Receipt:
    note = CallNote(tool, "skill", "f1", "allowed", "ok", "", 12.5)
    return Receipt(*astuple(note), receipt_id, key, session, "catalog/main", "req_1", at_s)


class ReceiptLogContract:
    def make(self, folder: Path) -> ReceiptLog:
        raise NotImplementedError

    @pytest.fixture
    def kept(self, tmp_path: Path) -> ReceiptLog:
        return self.make(tmp_path)

    def test_receipts_come_newest_first_in_pages_of_their_tenant(self, kept: ReceiptLog) -> None:
        kept.append("a", [receipt("r1"), receipt("r2"), receipt("r3")])
        kept.append("b", [receipt("r2")])

        assert kept.page("a", limit=2) == [receipt("r3"), receipt("r2")]
        assert kept.page("a", before="r2", limit=2) == [receipt("r1")]
        assert kept.page("b", limit=9) == [receipt("r2")]
        assert kept.page("c", limit=9) == []

    def test_receipts_are_chosen_by_session_key_and_tool(self, kept: ReceiptLog) -> None:
        kept.append(
            "a", [receipt("r1"), receipt("r2", session="s2"), receipt("r3", key="k2"), receipt("r4", tool="t2")]
        )

        assert [each.id for each in kept.page("a", limit=9, session="s1")] == ["r4", "r3", "r1"]
        assert [each.id for each in kept.page("a", limit=9, session="s1", key="k1")] == ["r4", "r1"]
        assert [each.id for each in kept.page("a", limit=9, session="s1", key="k1", tool="t1")] == ["r1"]
        assert [each.id for each in kept.page("a", limit=9, session="s1", before="r4")] == ["r3", "r1"]
        assert kept.page("a", limit=9, session="") == []

    def test_old_receipts_are_pruned_of_all_tenants_and_at_most_so_many_at_once(self, kept: ReceiptLog) -> None:
        kept.append("a", [receipt("r1", 1.0), receipt("r3", 3.0), receipt("r4", 4.0)])
        kept.append("b", [receipt("r2", 2.0)])

        assert kept.prune(before_s=4.0, limit=2) == 2
        assert ([each.id for each in kept.page("a", limit=9)], kept.page("b", limit=9)) == (["r4", "r3"], [])
        assert (kept.prune(before_s=4.0, limit=2), kept.prune(before_s=4.0, limit=2)) == (1, 0)
