"""Vectors of tools: exact nearest rows, deterministic ties, and what an encoder may not give."""

from __future__ import annotations

import numpy as np
import pytest

from toolsearch_indexes.errors import EncoderError, IndexStoreError
from toolsearch_indexes.vectors import VectorPart

EAST, NORTH, NORTH_EAST = (1.0, 0.0), (0.0, 1.0), (0.6, 0.8)


def part(*rows: tuple[float, ...]) -> VectorPart:
    return VectorPart.build(np.array(rows, dtype=np.float32))


def query(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float32)


def random_rows(count: int, dimensions: int, seed: int = 0) -> np.ndarray:
    rows = np.random.default_rng(seed).standard_normal((count, dimensions)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_rows_come_by_cosine_best_first() -> None:
    rows, cosines = part(EAST, NORTH, NORTH_EAST, (-1, 0)).search(query(1, 0), limit=10)
    assert rows.tolist() == [0, 2, 1, 3]
    assert cosines.tolist() == pytest.approx([1, 0.6, 0, -1])
    assert (rows.dtype, cosines.dtype) == (np.int64, np.float32)


def test_only_allowed_rows_are_found_and_never_more_than_the_limit() -> None:
    vectors = part(EAST, NORTH, NORTH_EAST)
    assert vectors.search(query(1, 0), 10, np.array([False, True, True]))[0].tolist() == [2, 1]
    assert vectors.search(query(1, 0), 1, np.array([False, True, True]))[0].tolist() == [2]
    assert vectors.search(query(1, 0), 10, np.array([False, False, False]))[0].tolist() == []


@pytest.mark.parametrize("limit", [1, 3, 20, 150, 1000])
@pytest.mark.parametrize("dimensions", [3, 384])
def test_all_rows_that_tie_with_the_last_wanted_one_come_along_in_order_of_rows(limit: int, dimensions: int) -> None:
    matrix = random_rows(1000, dimensions)
    matrix[[7, 950, 999, *range(100, 300)]] = matrix[3]
    rows, cosines = VectorPart.build(matrix).search(matrix[3], limit)
    assert rows[:204].tolist() == [3, 7, *range(100, 300), 950, 999]
    assert len(set(cosines[:204].tolist())) == 1
    assert len(rows) == max(limit, 204)


def test_equal_rows_go_by_row_under_a_mask() -> None:
    matrix = np.tile(np.array(NORTH_EAST, dtype=np.float32), (500, 1))
    allowed = np.arange(500) % 3 == 2
    assert VectorPart.build(matrix).search(query(1, 0), 4, allowed)[0].tolist() == list(range(2, 500, 3))


@pytest.mark.parametrize("share", [0.01, 0.5, 1.0])
def test_search_equals_a_full_sort_of_every_cosine(share: float) -> None:
    matrix = random_rows(3000, 64)
    vectors, asked = VectorPart.build(matrix), random_rows(1, 64, seed=1)[0]
    allowed = np.random.default_rng(2).random(3000) < share
    rows, cosines = vectors.search(asked, 25, allowed)
    every = np.flatnonzero(allowed)
    expected = every[np.argsort(-vectors.cosines(asked, every), kind="stable")][:25]
    assert rows.tolist() == expected.tolist()
    assert cosines.tolist() == vectors.cosines(asked, rows).tolist()


def test_a_tool_without_text_and_an_empty_query_have_cosine_zero() -> None:
    vectors = part((0, 0), EAST)
    assert vectors.search(query(1, 0), 2)[1].tolist() == [1, 0]
    assert vectors.search(query(0, 0), 2)[1].tolist() == [0, 0]


def test_merged_parts_answer_like_a_fresh_build_of_what_was_kept() -> None:
    merged = VectorPart.merge([part(EAST, NORTH), part(NORTH_EAST)], [np.array([False, True]), np.array([True])])
    assert merged.arrays()["matrix"].tolist() == part(NORTH, NORTH_EAST).arrays()["matrix"].tolist()
    assert VectorPart.merge([], []).rows == 0


def test_vectors_of_different_encoders_cannot_be_merged() -> None:
    with pytest.raises(EncoderError, match="2, 3 dimensions"):
        VectorPart.merge([part(EAST), part((1, 0, 0))], [np.array([True]), np.array([True])])


def test_an_empty_part_finds_nothing() -> None:
    assert VectorPart.build(np.empty((0, 2), dtype=np.float32)).search(query(1, 0), 5)[0].tolist() == []


def test_stored_vectors_are_searched_where_they_lie(tmp_path) -> None:
    np.save(tmp_path / "matrix.npy", part(EAST, NORTH_EAST).arrays()["matrix"])
    mapped = np.load(tmp_path / "matrix.npy", mmap_mode="r")
    stored = VectorPart.from_arrays({"matrix": mapped})
    assert np.shares_memory(stored.arrays()["matrix"], mapped)
    assert stored.search(query(0, 1), 1)[0].tolist() == [1]


def test_what_is_not_a_stored_matrix_is_refused() -> None:
    with pytest.raises(IndexStoreError):
        VectorPart.from_arrays({})
    with pytest.raises(IndexStoreError):
        VectorPart.from_arrays({"matrix": np.ones((2, 2))})


@pytest.mark.parametrize(
    ("matrix", "problem"),
    [
        ([[1, 0], [3, 4]], "row 1, of length 5"),
        ([[np.nan, 0]], "row 0, of length nan"),
        ([[np.inf, 0]], "row 0, of length inf"),
        ([1, 0], "shape"),
    ],
)
def test_vectors_that_are_not_unit_rows_are_the_encoders_error(matrix: list, problem: str) -> None:
    with pytest.raises(EncoderError, match=problem):
        VectorPart.build(np.array(matrix, dtype=np.float32))


def test_a_query_of_another_encoder_or_not_finite_is_refused() -> None:
    with pytest.raises(EncoderError, match="2 dimensions"):
        part(EAST).search(query(1, 0, 0), 1)
    with pytest.raises(EncoderError, match="not finite"):
        part(EAST).search(query(np.nan, 0), 1)
