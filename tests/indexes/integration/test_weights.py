"""The weights that are distributions of their own, as they are in the repository."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

DISTRIBUTIONS = Path(__file__).parents[3] / "indexes"
FILES = {"__init__.py", "model.onnx", "tokenizer.json", "sentence_bert_config.json", "METADATA", "LICENSE"}


@pytest.mark.parametrize("name", ["transformer", "reader"])
def test_a_wheel_holds_the_weights_and_their_licence_and_is_small(name, tmp_path) -> None:
    [wheel] = WheelBuilder(str(DISTRIBUTIONS / name)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(wheel) as packed:
        entries = packed.infolist()
    assert {entry.filename.rpartition("/")[2] for entry in entries} >= FILES
    assert sum(entry.file_size for entry in entries) < 18.1e6
    assert not [entry.filename for entry in entries if entry.filename.endswith(".pt")]
