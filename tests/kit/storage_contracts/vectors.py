"""What a place for vectors owes."""

from pathlib import Path

from toolsearch_indexes.vector_store import VectorStore


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
