"""The transformer whose weights are a distribution of their own, as it is in the repository."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from toolsearch import Catalog, ToolSearch
from toolsearch_indexes.encoders.opening import open_encoder
from toolsearch_indexes.encoders.protocol import Encoder
from toolsearch_indexes.errors import EncoderError

DISTRIBUTION = Path(__file__).parents[2] / "indexes" / "transformer"
MODULE = "toolsearch_transformer"


@pytest.fixture
def transformer(monkeypatch) -> Encoder:
    monkeypatch.syspath_prepend(str(DISTRIBUTION))
    return open_encoder("transformer")


def test_it_puts_requests_near_the_tools_that_serve_them(transformer) -> None:
    requests = transformer.encode_queries(["how far apart are the values?", "text to speech", ""])
    tools = transformer.encode_documents(["stdev: Standard deviation of a sample.", "read aloud: Speak a text."])
    assert requests.shape == (3, transformer.dimensions)
    assert np.linalg.norm(requests, axis=1) == pytest.approx([1, 1, 0], abs=1e-5)
    assert (requests[:2] @ tools.T).argmax(axis=1).tolist() == [0, 1]
    assert transformer.id.startswith("onnx:model:")


def test_a_search_uses_it(transformer) -> None:
    with Catalog.from_module("statistics") as catalog, ToolSearch(catalog, encoder=transformer) as engine:
        assert not engine.notes
        assert engine.search("value in the middle", limit=1)[0].name.startswith("statistics__median")


def test_its_weights_are_small() -> None:
    assert sum(file.stat().st_size for file in (DISTRIBUTION / MODULE).rglob("*") if file.is_file()) < 18e6


def test_without_its_weights_it_says_how_to_install_them(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, MODULE, None)
    with pytest.raises(EncoderError, match=r"pip install \./indexes/transformer"):
        open_encoder("transformer")
