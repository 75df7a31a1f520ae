"""The vector cache: nothing is embedded twice, in memory, on disk, by several threads and processes."""

from __future__ import annotations

import logging
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import numpy as np
import pytest

from toolsearch_indexes import vector_cache
from toolsearch_indexes.encoders.static import HashingEncoder
from toolsearch_indexes.errors import EncoderError, IndexStoreError
from toolsearch_indexes.vector_cache import VectorCache

TEXTS = ["list files", "send mail", "list files", ""]


class CountingEncoder(HashingEncoder):
    """Notes what it is asked, and fails on the text *fail_on*."""

    def __init__(self, dimensions: int = 64, fail_on: str = "") -> None:
        super().__init__(dimensions)
        self.asked: list[str] = []
        self.fail_on = fail_on

    def encode_documents(self, texts):
        if self.fail_on and self.fail_on in texts:
            raise KeyboardInterrupt
        self.asked += texts
        return super().encode_documents(texts)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "deep" / "vectors.db"


def embed(path, texts, encoder=None):
    with VectorCache(path) as cache:
        return cache.embed(encoder or HashingEncoder(), texts)


def test_rows_are_the_encoders_own_in_the_order_of_the_texts(path) -> None:
    expected = HashingEncoder().encode_documents(TEXTS)
    assert np.array_equal(embed(path, TEXTS), expected)
    assert np.array_equal(embed(path, TEXTS), expected)  # now out of the file
    assert np.array_equal(embed(None, TEXTS), expected)


def test_equal_texts_are_embedded_once_and_known_ones_not_at_all(path) -> None:
    encoder = CountingEncoder()
    embed(path, TEXTS, encoder)
    assert encoder.asked == ["list files", "send mail", ""]
    embed(path, ["send mail", "new"], encoder)
    assert encoder.asked == ["list files", "send mail", "", "new"]


def test_another_encoder_gets_its_own_vectors(path) -> None:
    embed(path, TEXTS)
    assert embed(path, TEXTS, HashingEncoder(8)).shape == (4, 8)


def test_no_texts_give_an_empty_matrix_of_the_encoders_width(path) -> None:
    assert embed(path, []).shape == (0, 64)


def test_a_run_that_is_cut_off_keeps_its_finished_batches(path, monkeypatch) -> None:
    monkeypatch.setattr(vector_cache, "_BATCH", 2)
    texts = ["a", "b", "c", "d", "e"]
    with pytest.raises(KeyboardInterrupt):
        embed(path, texts, CountingEncoder(fail_on="e"))
    again = CountingEncoder()
    embed(path, texts, again)
    assert again.asked == ["e"]


def test_a_query_is_embedded_once_and_never_written_to_the_file(path) -> None:
    encoder = CountingEncoder()
    with VectorCache(path) as cache:
        first = cache.embed_query(encoder, "list files")
        assert np.array_equal(cache.embed_query(encoder, "list files"), first)
    assert encoder.asked == ["list files"]  # a hashing encoder takes queries as documents
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM vectors").fetchone() == (0,)


def test_memory_forgets_what_was_used_least_recently(monkeypatch) -> None:
    monkeypatch.setattr(vector_cache, "_MAX_DOCUMENTS_IN_MEMORY", 2)
    encoder, cache = CountingEncoder(), VectorCache()
    for text in ("a", "b", "a", "c", "a", "b"):
        cache.embed(encoder, [text])
    assert encoder.asked == ["a", "b", "c", "b"]


@pytest.mark.parametrize("damage", [b"this is no database at all", b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_damaged_file_is_set_aside_with_a_warning_and_begun_anew(path, damage: bytes, caplog) -> None:
    path.parent.mkdir()
    path.write_bytes(damage)
    with caplog.at_level(logging.WARNING):
        embed(path, TEXTS)
    assert "damaged" in caplog.text
    assert path.with_name("vectors.db.damaged").read_bytes() == damage
    again = CountingEncoder()
    embed(path, TEXTS, again)
    assert again.asked == []


def test_damage_found_in_the_middle_of_the_work_is_survived(path, caplog) -> None:
    many = [f"text number {n}" for n in range(2000)]
    expected = embed(path, many)
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(8192)
        file.write(b"\xaa" * (size - 8192))
    assert np.array_equal(embed(path, many), expected)
    assert "damaged" in caplog.text


def test_a_vector_whose_bytes_changed_is_embedded_again(path) -> None:
    expected = embed(path, TEXTS)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE vectors SET value = zeroblob(length(value))")
    assert np.array_equal(embed(path, TEXTS), expected)


def test_the_vector_of_another_text_is_not_taken(path) -> None:
    expected = embed(path, ["list files", "send mail"])
    with closing(sqlite3.connect(path)) as connection, connection:
        (value,) = connection.execute("SELECT value FROM vectors LIMIT 1").fetchone()
        connection.execute("UPDATE vectors SET value = ?", [value])
    assert np.array_equal(embed(path, ["list files", "send mail"]), expected)


def test_a_file_whose_table_is_damaged_is_set_aside(path, caplog) -> None:
    embed(path, TEXTS)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("ALTER TABLE vectors RENAME COLUMN value TO valuf")
    with caplog.at_level(logging.WARNING):
        embed(path, TEXTS)
    assert "set aside" in caplog.text


def test_a_closed_cache_is_an_error_and_costs_the_file_nothing(path) -> None:
    cache = VectorCache(path)
    cache.embed(HashingEncoder(), TEXTS)
    cache.close()
    with pytest.raises(IndexStoreError, match="closed"):
        cache.embed(HashingEncoder(), TEXTS)
    assert list(path.parent.iterdir()) == [path]


def test_a_database_of_something_else_is_left_alone(tmp_path) -> None:
    path = tmp_path / "accounts.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE accounts (name)")
    before = path.read_bytes()
    with pytest.raises(IndexStoreError, match="something else"):
        VectorCache(path)
    assert path.read_bytes() == before


def test_a_file_of_an_older_format_is_emptied_with_a_warning(path, caplog) -> None:
    embed(path, TEXTS)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA user_version = 0")
    again = CountingEncoder()
    embed(path, TEXTS, again)
    assert len(again.asked) == 3
    assert "format 0" in caplog.text


def test_a_path_that_cannot_be_a_file_is_an_error(tmp_path) -> None:
    with pytest.raises(IndexStoreError, match="cannot be used"):
        VectorCache(tmp_path)


@pytest.mark.parametrize(
    ("matrix", "problem"),
    [(np.ones((1, 3), np.float32), "promised 64"), (np.full((1, 64), np.nan, np.float32), "length nan")],
)
def test_vectors_that_an_encoder_may_not_give_are_refused_and_not_stored(path, matrix, problem: str) -> None:
    class Bad(HashingEncoder):
        def encode_documents(self, texts):  # noqa: ARG002
            return matrix

    with pytest.raises(EncoderError, match=problem):
        embed(path, ["a"], Bad())
    good = CountingEncoder()
    embed(path, ["a"], good)
    assert good.asked == ["a"]


def test_threads_share_a_cache(path) -> None:
    texts = [f"text {n}" for n in range(50)]
    expected = HashingEncoder().encode_documents(texts)
    with VectorCache(path) as cache, ThreadPoolExecutor(8) as pool:
        for matrix in pool.map(lambda _: cache.embed(HashingEncoder(), texts), range(16)):
            assert np.array_equal(matrix, expected)


def test_processes_share_a_file(path, start_python) -> None:
    """Four start at once on a file that is not there yet; afterwards everything is known."""
    program = (
        "import sys, pathlib; from toolsearch_indexes.vector_cache import VectorCache;"
        "from toolsearch_indexes.encoders.static import HashingEncoder;"
        "cache = VectorCache(pathlib.Path(sys.argv[1]));"
        "cache.embed(HashingEncoder(), [f'{sys.argv[2]} {n}' for n in range(600)]); cache.close()"
    )
    running = [start_python("-c", program, str(path), name) for name in "abcd"]
    assert [process.wait(60) for process in running] == [0, 0, 0, 0]
    again = CountingEncoder()
    embed(path, [f"{name} {n}" for name in "abcd" for n in range(600)], again)
    assert again.asked == []
