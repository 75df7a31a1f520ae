"""An index directory in which a byte flips, in each of its files and at many places of each."""

from pathlib import Path

import pytest

from tests.kit.index_directories import answers, flip, generation, tools
from toolsearch import ToolSearch
from toolsearch.errors import IndexStoreError


def test_a_damaged_catalog_costs_a_start_with_its_sources_nothing(tmp_path: Path) -> None:
    """Wherever in the file a byte flips, the tools come from the catalog at hand, and the answers are right."""
    with ToolSearch(tools(), index_dir=tmp_path) as engine:
        expected = answers(engine)
    whole = (generation(tmp_path) / "catalog.sqlite").read_bytes()

    for place in range(0, len(whole), len(whole) // 9):
        damaged = whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :]
        (generation(tmp_path) / "catalog.sqlite").write_bytes(damaged)
        with ToolSearch(tools(), index_dir=tmp_path) as engine:
            assert answers(engine) == expected, place


def test_wherever_a_byte_flips_answers_are_right_or_the_index_is_refused(tmp_path: Path) -> None:
    """In each file that an index directory has. Damage to the index is told and built anew, all other is refused."""
    with ToolSearch(tools(), index_dir=tmp_path) as engine:
        expected = answers(engine)
    files = [tmp_path / "CURRENT", *sorted(generation(tmp_path).iterdir())]
    refused = {"CURRENT", "generation.json", "catalog.sqlite"}
    assert refused | {"manifest.json", "vectors.matrix.npy"} < {file.name for file in files}

    for file in files:
        whole = file.read_bytes()
        samples = 2 if file.suffix == ".npy" else 12
        for place in range(len(whole) - 1, 0, -(len(whole) // samples)):
            flip(file, place)
            if file.name in refused:
                with pytest.raises(IndexStoreError, match="index it again"):
                    ToolSearch.open(tmp_path)
            else:
                with ToolSearch.open(tmp_path) as opened:
                    assert answers(opened) == expected, (file.name, place)
                    assert "the stored index is not used, a new one is built" in opened.notes[0], (file.name, place)
            file.write_bytes(whole)
