"""Both places for the listings of servers."""

from pathlib import Path

import pytest

from tests.kit import storage_contracts as contracts
from tests.kit.clock import Clock
from toolsearch.service.catalogs.imports.servers import LISTING, KeptListings
from toolsearch.storage.files import ListingFiles
from toolsearch.storage.sqlite.place import SqliteStorage


class TestFiles(contracts.ListingPersistenceContract):
    def make(self, folder: Path) -> ListingFiles:
        return ListingFiles(folder / "listings")

    def test_only_their_owner_can_read_them(self, tmp_path: Path) -> None:
        self.make(tmp_path).save("a", {})
        assert (tmp_path / "listings" / "a.json").stat().st_mode & 0o077 == 0

    def test_a_file_that_holds_something_else_is_an_error_and_not_a_listing(self, tmp_path: Path) -> None:
        files = self.make(tmp_path)
        files.save("a", {})
        (tmp_path / "listings" / "a.json").write_text("[]")
        with pytest.raises(ValueError, match="no JSON object"):
            files.load("a")


class TestRecords(contracts.ListingPersistenceContract):
    def make(self, folder: Path) -> KeptListings:
        return KeptListings(SqliteStorage(folder / "records.db").records, "acme", Clock())

    def test_tenants_do_not_see_what_servers_listed_to_others(self, tmp_path: Path) -> None:
        records = SqliteStorage(tmp_path / "records.db").records
        KeptListings(records, "acme", Clock()).save("a", {"tools": []})
        assert KeptListings(records, "umbrella", Clock()).load("a") is None

    def test_what_several_replicas_see_alike_is_written_once_a_day(self, tmp_path: Path) -> None:
        records, clock = SqliteStorage(tmp_path / "records.db").records, Clock(1_000.0)
        one, two = KeptListings(records, "acme", clock), KeptListings(records, "acme", clock)
        versions: list[int] = []
        for kept, tools, passed_s in ((one, [1], 0), (two, [1], 0), (two, [2], 0), (one, [2], 86_400)):
            clock.now_s += passed_s
            kept.save("a", {"tools": tools})
            record = records.get("acme", LISTING, "a", at_s=clock.now_s)
            assert record is not None
            versions.append(record.version)

        assert versions[0] == versions[1] < versions[2] < versions[3]
