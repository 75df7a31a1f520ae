"""Where the service keeps the vectors of texts."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from toolsearch.service.corpora.opening import _vector_cache
from toolsearch.service.settings import ServiceSettings
from toolsearch_indexes.encoders.protocol import FloatArray
from toolsearch_indexes.encoders.static import HashingEncoder
from toolsearch_indexes.vector_store import MemoryVectorStore, VectorStore


class Counting(HashingEncoder):
    asked = 0

    def encode_documents(self, texts: Sequence[str]) -> FloatArray:
        self.asked += len(texts)
        return super().encode_documents(texts)


@pytest.mark.parametrize(
    ("encoder", "is_shared", "asked"), [("some/model", True, 2), ("some/model", False, 4), ("built-in", True, 6)]
)
def test_a_text_is_embedded_once_by_all_replicas_unless_that_is_faster_than_to_fetch_it(
    tmp_path: Path, encoder: str, is_shared: bool, asked: int
) -> None:
    """Two replicas with folders of their own embed two texts each, and the first one does so once more."""
    settings = ServiceSettings.model_validate({"index": {"encoder": encoder}})
    shared: VectorStore | None = MemoryVectorStore(9) if is_shared else None
    counting = Counting(8)
    for replica in ("one", "two", "one"):
        cache = _vector_cache(settings, tmp_path / replica, shared)
        cache.embed(counting, ["list files", "send mail"])
        cache.close()

    assert counting.asked == asked
