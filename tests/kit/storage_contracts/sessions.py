"""What a place for sessions owes."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from toolsearch.errors import ConflictError
from toolsearch.storage.sessions import SessionPersistence, StoredSession


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

        with pytest.raises(ConflictError, match="session 'a' has changed meanwhile") as refused:
            kept.save("a", "ours", version=stale)
        assert (refused.value.code, refused.value.name) == ("session_conflict", "a")
        assert kept.load("a") == StoredSession("theirs", version)

    def test_a_session_that_is_gone_is_not_saved_back_to_life(self, kept: SessionPersistence) -> None:
        version = kept.save("a", "1", version=0)
        kept.delete("a")

        with pytest.raises(ConflictError):
            kept.save("a", "2", version=version)
        assert kept.load("a") is None

    def test_a_session_that_ended_and_came_anew_is_not_the_one_that_was_read(self, kept: SessionPersistence) -> None:
        version = kept.save("a", "old", version=0)
        kept.delete("a")
        kept.save("a", "new", version=0)

        with pytest.raises(ConflictError):
            kept.save("a", "stale", version=version)

    def test_of_many_that_save_at_once_over_one_version_one_wins(self, kept: SessionPersistence) -> None:
        version = kept.save("a", "0", version=0)

        def save(number: int) -> int:
            try:
                return kept.save("a", str(number), version=version)
            except ConflictError:
                return 0

        with ThreadPoolExecutor(8) as threads:
            saved = list(threads.map(save, range(1, 9)))

        [(winner, new)] = [(number, new) for number, new in enumerate(saved, start=1) if new]
        assert kept.load("a") == StoredSession(str(winner), new)
