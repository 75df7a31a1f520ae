"""What a place for the listings of servers owes."""

from pathlib import Path

import pytest

from toolsearch.storage.files import ListingPersistence


class ListingPersistenceContract:
    def make(self, folder: Path) -> ListingPersistence:
        raise NotImplementedError

    @pytest.fixture
    def kept(self, tmp_path: Path) -> ListingPersistence:
        return self.make(tmp_path)

    def test_what_was_saved_last_is_loaded_by_name(self, kept: ListingPersistence) -> None:
        kept.save("a", {"tools": [1]})
        kept.save("b", {"tools": []})
        kept.save("a", {"tools": [{"name": "lone \ud800 surrogate"}], "is_old": False})

        assert kept.load("a") == {"tools": [{"name": "lone \ud800 surrogate"}], "is_old": False}
        assert kept.load("b") == {"tools": []}

    def test_of_a_name_that_was_never_saved_there_is_nothing(self, kept: ListingPersistence) -> None:
        assert kept.load("a") is None
