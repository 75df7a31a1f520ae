"""What a store owes to replicas that follow what the others write."""

from pathlib import Path

import pytest

from tests.kit.storage_contracts.contents import tool
from tests.kit.storage_contracts.pins import seen
from toolsearch.storage.replicas import CONTENTS, PINS, RECORD_KINDS, Change
from toolsearch.storage.storage import Storage


class ChangeFeedContract:
    def make(self, folder: Path) -> Storage:
        raise NotImplementedError

    @pytest.fixture
    def storage(self, tmp_path: Path) -> Storage:
        return self.make(tmp_path)

    def test_the_version_of_everything_that_replicas_hold_can_be_read_at_once(self, storage: Storage) -> None:
        records = [
            Change(tenant, kind, "x", storage.records.put(tenant, kind, "x", {}, over=0, at_s=1.0).version)
            for tenant in ("a", "b")
            for kind in sorted(RECORD_KINDS)
        ]
        contents = [
            Change("a", CONTENTS, "main", storage.contents.change("a", "main", put=[tool("x")])),
            Change("b", CONTENTS, "gone", storage.contents.change("b", "gone")),
        ]
        storage.records.put("a", "session", "s", {}, over=0, at_s=1.0)
        storage.records.put("c", "catalog", "main", {}, over=0, at_s=1.0)
        storage.pins("b").approve("sums@1", "t", "p1", by="ann", at_s=1.0)
        pins = [Change("b", PINS, "", storage.pins("b").version())]

        assert set(storage.changes.current({"a", "b", "nobody"})) == {*records, *contents, *pins}
        assert set(storage.changes.current(["a"])) == {each for each in (*records, *contents) if each.tenant == "a"}
        assert storage.changes.current(()) == []

    def test_a_thousand_tenants_can_be_asked_for_at_once(self, storage: Storage) -> None:
        for number in range(3):
            storage.records.put(f"t{number}", "catalog", "main", {}, over=0, at_s=1.0)

        found = storage.changes.current([f"t{number}" for number in range(1_000)])
        assert sorted(each.tenant for each in found) == ["t0", "t1", "t2"]

    def test_what_is_deleted_has_no_version(self, storage: Storage) -> None:
        storage.records.put("a", "catalog", "main", {}, over=0, at_s=1.0)
        storage.contents.change("a", "main", put=[tool("x")])
        storage.records.delete("a", "catalog", "main")
        storage.contents.drop("a", "main")
        storage.pins("a").keep(approve=[seen("t", "p1")])

        revision = storage.contents.revision("a", "main")
        assert storage.changes.current(["a"]) == [Change("a", CONTENTS, "main", revision)]
