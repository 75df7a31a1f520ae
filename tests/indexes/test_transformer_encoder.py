"""The transformer whose weights are a distribution of their own, as it is in the repository."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.recall import encoders_to_measure
from toolsearch import Catalog, ToolSearch
from toolsearch_indexes.encoders import opening
from toolsearch_indexes.encoders.opening import chosen, is_quick, open_encoder
from toolsearch_indexes.encoders.protocol import Encoder
from toolsearch_indexes.encoders.static import HashingEncoder
from toolsearch_indexes.errors import EncoderError

DISTRIBUTION = Path(__file__).parents[2] / "indexes" / "transformer"
MODULE = "toolsearch_transformer"


@pytest.fixture(autouse=True)
def not_installed_for_others():
    """A module that was imported once would be found again."""
    sys.modules.pop(MODULE, None)
    opening._transformer.cache_clear()
    yield
    sys.modules.pop(MODULE, None)
    opening._transformer.cache_clear()


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
    assert "onnx:model:" in transformer.id


def test_it_keeps_the_words_of_other_languages_that_the_built_in_encoder_knows(transformer) -> None:
    tools = transformer.encode_documents(["delete file", "read calendar", "translate text", "create issue"])
    requests = transformer.encode_queries(["datei löschen", "kalender lesen", "supprimer le fichier"])
    assert (requests @ tools.T).argmax(axis=1).tolist() == [0, 1, 0]


def test_a_search_uses_it(transformer) -> None:
    with Catalog.from_module("statistics") as catalog, ToolSearch(catalog, encoder=transformer) as engine:
        assert not engine.notes
        assert engine.search("value in the middle", limit=1)[0].name.startswith("statistics__median")
        assert 0.3 < engine.index.arm.surplus < 1  # the scales were fitted with 0.55


def test_a_benchmark_joins_it_with_the_encoder_that_is_left_out(transformer) -> None:
    beside = encoders_to_measure(["transformer"], left_out=HashingEncoder(8))[" (transformer)"]
    assert transformer.dimensions - beside.dimensions == open_encoder("built-in").dimensions - 8


def test_without_its_weights_it_says_how_to_install_them(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, MODULE, None)
    with pytest.raises(EncoderError, match=r"pip install \./indexes/transformer"):
        open_encoder("transformer")


def test_it_is_used_by_itself_where_it_is_installed(monkeypatch) -> None:
    assert chosen("auto") == "built-in"
    assert is_quick("auto")
    with Catalog.from_module("statistics") as catalog:
        with ToolSearch(catalog) as engine:
            assert engine.index.arm.encoder.id == open_encoder("built-in").id

        monkeypatch.syspath_prepend(str(DISTRIBUTION))
        assert chosen("auto") == "transformer"
        assert not is_quick("auto")
        with ToolSearch(catalog) as engine:
            assert engine.index.arm.encoder.id == open_encoder("transformer").id


def test_an_index_is_built_anew_when_it_is_installed(monkeypatch, tmp_path) -> None:
    with Catalog.from_module("statistics") as catalog, ToolSearch(catalog, index_dir=tmp_path):
        pass
    monkeypatch.syspath_prepend(str(DISTRIBUTION))
    with ToolSearch.open(tmp_path) as engine:
        assert engine.index.arm.encoder.id == open_encoder("transformer").id
        assert engine.search("value in the middle", limit=1)[0].name.startswith("statistics__median")
