"""Codes of many vectors: they choose which rows are compared, and the answer is that of comparing all."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

from toolsearch_indexes import vectors as module
from toolsearch_indexes.errors import IndexStoreError
from toolsearch_indexes.vector_codes import VectorCodes, products
from toolsearch_indexes.vectors import VectorPart

ROWS, DIMENSIONS = 40_000, 32


def unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def clustered(count: int = ROWS, seed: int = 0) -> np.ndarray:
    """Rows as encoders give them: many tools of few kinds."""
    generator = np.random.default_rng(seed)
    kinds = generator.standard_normal((200, DIMENSIONS))
    return unit(kinds[generator.integers(0, 200, count)] + 0.5 * generator.standard_normal((count, DIMENSIONS)))


@pytest.fixture(scope="module")
def matrix() -> np.ndarray:
    return clustered()


@pytest.fixture(scope="module", params=[2, 4], ids="{} bits".format)
def bits(request: pytest.FixtureRequest) -> Literal[2, 4]:
    """For each dimension."""
    return request.param


@pytest.fixture(scope="module")
def coded(matrix: np.ndarray, bits: Literal[2, 4]) -> VectorPart:
    return VectorPart(matrix, VectorCodes.build(matrix, bits))


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each search has compared by their vectors."""
    counts: list[int] = []
    cosines = VectorPart.cosines

    def counted(self: VectorPart, query: np.ndarray, rows: np.ndarray) -> np.ndarray:
        counts.append(len(rows))
        return cosines(self, query, rows)

    monkeypatch.setattr(VectorPart, "cosines", counted)
    return counts


@pytest.mark.parametrize(("rows", "dimensions"), [(0, 0), (0, 8), (1, 8), (515, 8), (100, 384), (3, 5_000)])
def test_products_in_pieces_are_those_of_the_whole(rows: int, dimensions: int) -> None:
    numbers = np.random.default_rng(0)
    matrix = numbers.standard_normal((rows, dimensions)).astype(np.float32)
    queries = numbers.standard_normal((3, dimensions)).astype(np.float32)
    np.testing.assert_allclose(products(queries, matrix), queries @ matrix.T, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("limit", [1, 10, 100])
@pytest.mark.parametrize("share", [None, 0.9, 0.5])
def test_what_is_found_by_codes_equals_what_comparing_every_vector_finds(
    matrix: np.ndarray, coded: VectorPart, limit: int, share: float | None
) -> None:
    allowed = None if share is None else np.random.default_rng(1).random(ROWS) < share
    exact = VectorPart(matrix)
    for query in clustered(20, seed=2):
        rows, cosines = coded.search(query, limit, allowed)
        expected, their_cosines = exact.search(query, limit, allowed)
        assert rows.tolist() == expected.tolist()
        assert cosines.tolist() == their_cosines.tolist()


def test_the_cosine_that_codes_tell_is_neither_too_low_nor_too_high_for_a_vector_that_is_near(
    bits: Literal[2, 4],
) -> None:
    """Four levels have but 88 % of what a vector has in its own direction, unless that is made up for."""
    matrix = unit(np.random.default_rng(4).standard_normal((5_000, 128)))
    codes = VectorCodes.build(matrix, bits)
    _, likely = codes.nearest(matrix[:50], 1)
    assert float(likely.mean()) == pytest.approx(1, abs=0.02)


def test_few_vectors_are_compared(matrix: np.ndarray, coded: VectorPart, compared: list[int]) -> None:
    coded.search(matrix[5], 10)
    assert sum(compared) < ROWS / 40


def test_only_rows_in_reach_are_compared_and_as_many_found_as_there_are(
    coded: VectorPart, matrix: np.ndarray, compared: list[int]
) -> None:
    """The rows out of reach are the nearest: what is cut to the reach only after ranking would find nothing."""
    query = matrix[5]
    nearest = np.argsort(-(matrix @ query))
    allowed = np.ones(ROWS, np.bool_)
    allowed[nearest[:1_000]] = False
    assert coded.search(query, 3, allowed)[0].tolist() == nearest[1_000:1_003].tolist()
    few = np.zeros(ROWS, np.bool_)
    few[nearest[-5:]] = True
    assert coded.search(query, 3, few)[0].tolist() == nearest[-5:-2].tolist()
    assert coded.search(query, 9, few)[0].tolist() == nearest[-5:].tolist()
    assert coded.search(query, 9, np.zeros(ROWS, np.bool_))[0].tolist() == []


def test_all_of_many_rows_that_tie_come_along_in_order_of_rows(matrix: np.ndarray, bits: Literal[2, 4]) -> None:
    tied = matrix.copy()
    places = np.arange(3, ROWS, 3)  # 13,333 equal rows are more than may be fetched by their codes
    tied[places] = matrix[5]
    rows, cosines = VectorPart(tied, VectorCodes.build(tied, bits)).search(matrix[5], 2)
    assert rows.tolist() == sorted([5, *places.tolist()])
    assert len(set(cosines.tolist())) == 1


def test_an_empty_query_is_as_near_to_all(coded: VectorPart) -> None:
    rows, cosines = coded.search(np.zeros(DIMENSIONS, np.float32), 3)
    assert (len(rows), cosines.max(), cosines.min()) == (ROWS, 0, 0)


def test_how_far_codes_are_off_is_known_for_each_query(matrix: np.ndarray, bits: Literal[2, 4]) -> None:
    codes = VectorCodes.build(matrix, bits)
    queries = clustered(5, seed=3)
    for query, rows, likely, deviation in zip(
        queries, *codes.nearest(queries, ROWS), codes.deviations(queries), strict=True
    ):
        errors = likely - matrix[rows] @ query
        assert float(np.sqrt(np.mean(errors**2))) == pytest.approx(deviation, rel=0.15)


def test_large_parts_have_codes_however_they_came_to_be(
    monkeypatch: pytest.MonkeyPatch, matrix: np.ndarray, compared: list[int]
) -> None:
    monkeypatch.setattr(module, "CODED_FROM", ROWS)
    halves = [VectorPart.build(matrix[: ROWS // 2]), VectorPart.build(matrix[ROWS // 2 :])]
    assert not any("codes" in half.arrays() for half in halves)
    merged = VectorPart.merge(halves, [np.ones(ROWS // 2, np.bool_)] * 2)
    stored = VectorPart.from_arrays(merged.arrays())
    for part in (VectorPart.build(matrix), merged, stored):
        compared.clear()
        assert part.search(matrix[5], 1)[0].tolist() == [5]
        assert sum(compared) < ROWS / 40


def test_vectors_of_odd_dimensions_are_searched_without_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CODED_FROM", 100)
    odd = unit(np.random.default_rng(0).standard_normal((200, 7)))
    part = VectorPart.build(odd)
    assert list(part.arrays()) == ["matrix"]
    assert part.search(odd[9], 1)[0].tolist() == [9]


def test_codes_are_finer_where_there_are_fewer_vectors(monkeypatch: pytest.MonkeyPatch, matrix: np.ndarray) -> None:
    monkeypatch.setattr(module, "_COARSE_FROM", ROWS)
    few, many = VectorPart.build(matrix[1:]), VectorPart.build(matrix)
    assert (few.code_bytes, many.code_bytes) == ((ROWS - 1) * DIMENSIONS // 2, ROWS * DIMENSIONS // 4)


def test_the_same_vectors_get_the_same_codes(matrix: np.ndarray, bits: Literal[2, 4]) -> None:
    first, second = VectorCodes.build(matrix, bits).arrays(), VectorCodes.build(matrix, bits).arrays()
    assert all(np.array_equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("codes", lambda array: array[:-1]),
        ("codes", lambda array: array[:, :-1]),
        ("codes", lambda array: array.astype(np.int64)),
        ("code_levels", lambda array: array[:-1]),
        ("code_levels", lambda array: array[:, :-1]),
        ("code_errors", lambda array: array[:-1, :-1]),
        ("code_errors", lambda _: None),
    ],
)
def test_stored_codes_that_do_not_fit_are_refused(coded: VectorPart, name: str, change) -> None:
    arrays = coded.arrays()
    changed = {other: array for other, array in arrays.items() if other != name}
    if (value := change(arrays[name])) is not None:
        changed[name] = value
    with pytest.raises(IndexStoreError, match="build the index again"):
        VectorPart.from_arrays(changed)
