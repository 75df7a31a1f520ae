"""What a place for small documents owes."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from toolsearch.errors import ConflictError
from toolsearch.storage.records import Record, RecordStore


class RecordStoreContract:
    def make(self, folder: Path) -> RecordStore:
        raise NotImplementedError

    @pytest.fixture
    def kept(self, tmp_path: Path) -> RecordStore:
        return self.make(tmp_path)

    def test_what_was_written_last_is_read_by_tenant_kind_and_id(self, kept: RecordStore) -> None:
        first = kept.put("a", "toolset", "x", {"n": 1}, over=0, at_s=1.0)
        second = kept.put("a", "toolset", "x", {"n": 2, "ü": [None]}, over=first.version, at_s=2.0)
        kept.put("b", "toolset", "x", {"n": 3}, over=0, at_s=3.0)
        kept.put("a", "source", "x", {"n": 4}, over=0, at_s=4.0)

        assert second == Record("x", {"n": 2, "ü": [None]}, second.version, 2.0)
        assert kept.get("a", "toolset", "x", at_s=9.0) == second
        assert kept.get("a", "toolset", "y", at_s=9.0) is None
        assert kept.get("c", "toolset", "x", at_s=9.0) is None

    @pytest.mark.parametrize("stale", [0, 99])
    def test_a_writing_over_what_was_not_read_is_refused_and_changes_nothing(
        self, kept: RecordStore, stale: int
    ) -> None:
        there = kept.put("a", "toolset", "x", {"n": 1}, over=0, at_s=1.0)

        with pytest.raises(ConflictError, match="toolset 'x' has changed meanwhile"):
            kept.put("a", "toolset", "x", {"n": 2}, over=stale, at_s=2.0)
        with pytest.raises(ConflictError):
            kept.delete("a", "toolset", "x", over=stale)
        assert kept.get("a", "toolset", "x", at_s=9.0) == there

    def test_a_writing_over_whatever_is_there_always_goes(self, kept: RecordStore) -> None:
        kept.put("a", "toolset", "x", {"n": 1}, over=None, at_s=1.0)
        last = kept.put("a", "toolset", "x", {"n": 2}, over=None, at_s=2.0)

        assert kept.get("a", "toolset", "x", at_s=9.0) == last

    def test_no_two_writings_under_one_id_have_the_same_version_also_after_a_deletion(self, kept: RecordStore) -> None:
        versions = [kept.put("a", "toolset", "x", {}, over=None, at_s=1.0).version for _ in range(2)]
        assert kept.delete("a", "toolset", "x", over=versions[1])
        assert not kept.delete("a", "toolset", "x")
        versions.append(kept.put("a", "toolset", "x", {}, over=0, at_s=1.0).version)

        assert min(versions) >= 1
        assert len(set(versions)) == 3

    def test_nobody_can_tell_from_versions_what_another_tenant_does(self, kept: RecordStore) -> None:
        before = kept.put("a", "toolset", "x", {}, over=None, at_s=1.0).version
        for _ in range(5):
            kept.put("b", "toolset", "x", {}, over=None, at_s=1.0)

        assert kept.put("a", "toolset", "x", {}, over=None, at_s=1.0).version == before + 1

    def test_a_record_is_gone_from_the_moment_at_which_it_expires(self, kept: RecordStore) -> None:
        kept.put("a", "session", "x", {}, over=0, at_s=1.0, expires_s=5.0)

        assert kept.get("a", "session", "x", at_s=4.9) is not None
        assert kept.count("a", "session", at_s=4.9) == 1
        assert kept.get("a", "session", "x", at_s=5.0) is None
        assert (kept.count("a", "session", at_s=5.0), kept.page("a", "session", limit=9, at_s=5.0)) == (0, [])
        kept.put("a", "session", "x", {"new": True}, over=0, at_s=5.0)
        assert kept.get("a", "session", "x", at_s=9.0) is not None

    def test_pages_go_by_id(self, kept: RecordStore) -> None:
        for record_id in ("b", "c", "a"):
            kept.put("a", "toolset", record_id, {}, over=0, at_s=1.0)
        kept.put("b", "toolset", "aa", {}, over=0, at_s=1.0)

        assert [each.id for each in kept.page("a", "toolset", limit=2, at_s=9.0)] == ["a", "b"]
        assert [each.id for each in kept.page("a", "toolset", after="b", limit=2, at_s=9.0)] == ["c"]
        assert kept.page("a", "toolset", after="c", limit=2, at_s=9.0) == []
        assert kept.count("a", "toolset", at_s=9.0) == 3

    def test_upkeep_goes_through_the_records_of_all_tenants_in_pages(self, kept: RecordStore) -> None:
        for tenant, kind, record_id in (("b", "k", "x"), ("a", "l", "x"), ("a", "k", "y"), ("a", "k", "x")):
            kept.put(tenant, kind, record_id, {}, over=0, at_s=1.0, expires_s=2.0)

        first, second = kept.scan(limit=2)
        assert [(*each[:2], each[2].id) for each in (first, second)] == [("a", "k", "x"), ("a", "k", "y")]
        rest = kept.scan(after=("a", "k", "y"), limit=9)
        assert [(*each[:2], each[2].id) for each in rest] == [("a", "l", "x"), ("b", "k", "x")]

    def test_what_has_expired_is_pruned_and_named_and_at_most_so_many_at_once(self, kept: RecordStore) -> None:
        for tenant, record_id, expires_s in (("a", "y", 5.0), ("b", "x", 4.0), ("a", "z", 9.0), ("a", "v", None)):
            kept.put(tenant, "session", record_id, {}, over=0, at_s=1.0, expires_s=expires_s)

        assert kept.prune(at_s=5.0, limit=1) == [("b", "session", "x")]
        assert kept.prune(at_s=5.0, limit=9) == [("a", "session", "y")]
        assert kept.prune(at_s=5.0, limit=9) == []
        assert [each.id for each in kept.page("a", "session", limit=9, at_s=1.0)] == ["v", "z"]

    def test_of_many_that_write_at_once_over_one_version_one_wins(self, kept: RecordStore) -> None:
        there = kept.put("a", "toolset", "x", {"n": 0}, over=0, at_s=1.0)

        def put(number: int) -> int:
            try:
                return kept.put("a", "toolset", "x", {"n": number}, over=there.version, at_s=2.0).version
            except ConflictError:
                return 0

        with ThreadPoolExecutor(8) as threads:
            versions = list(threads.map(put, range(1, 9)))

        [(winner, version)] = [(number, version) for number, version in enumerate(versions, start=1) if version]
        assert kept.get("a", "toolset", "x", at_s=9.0) == Record("x", {"n": winner}, version, 2.0)
