"""What an index is said to take: what the process holds for itself, and not what the system may take back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from toolsearch_indexes import vectors
from toolsearch_indexes.arrays import mapping_of, start_in
from toolsearch_indexes.documents import ToolDocument
from toolsearch_indexes.encoders.static import HashingEncoder
from toolsearch_indexes.index import ToolSearchIndex, index_bytes
from toolsearch_indexes.store import load_index, save_index

ENCODER = HashingEncoder(64)
TOOLS = [ToolDocument(f"send_mail_{n}", "Send an email message", parameter_names=("to",)) for n in range(500)]
OF_VECTORS = 500 * 64 * 4


def stored(folder: Path) -> ToolSearchIndex:
    save_index(ToolSearchIndex(TOOLS, encoder=ENCODER), folder)
    return load_index(folder, encoder=ENCODER)


def test_vectors_names_texts_and_postings_of_an_index_that_was_built_count() -> None:
    with_vectors, without = ToolSearchIndex(TOOLS, encoder=ENCODER), ToolSearchIndex(TOOLS)
    assert index_bytes(with_vectors) - index_bytes(without) == OF_VECTORS
    longer = [ToolDocument(f"{tool.name}{'x' * 100}", tool.description) for tool in TOOLS]
    assert index_bytes(ToolSearchIndex(longer)) > index_bytes(without) + 500 * 100 * 3  # a name is text twice


def test_what_a_stored_index_maps_from_its_files_does_not_count_before_or_after_searches(tmp_path: Path) -> None:
    index = stored(tmp_path)
    before = index_bytes(index)
    assert before < index_bytes(ToolSearchIndex(TOOLS, encoder=ENCODER)) - OF_VECTORS
    for query in ("send mail", "/mail/", "select:send_mail_3"):
        assert index.search(query)
    assert index_bytes(index) == before


def test_what_is_added_to_a_stored_index_counts(tmp_path: Path) -> None:
    index = stored(tmp_path)
    before = index_bytes(index)
    index.update([ToolDocument("watch_volcano", "x" * 10_000)])
    assert index_bytes(index) > before + 2 * 10_000


def test_the_codes_of_vectors_count_as_they_are_never_mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "without").mkdir()
    (tmp_path / "with").mkdir()
    without = index_bytes(stored(tmp_path / "without"))
    monkeypatch.setattr(vectors, "CODED_FROM", 500)
    assert index_bytes(stored(tmp_path / "with")) == without + 500 * 64 // 2


def test_where_a_part_of_a_mapped_file_begins(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(100, dtype=np.uint8))
    array = np.asarray(np.load(tmp_path / "a.npy", mmap_mode="r"))[7:]
    mapping = mapping_of(array)
    assert mapping is not None
    begin = start_in(mapping, array)
    assert mapping[begin : begin + 2] == bytes([7, 8])
    assert mapping_of(np.arange(3)) is None
