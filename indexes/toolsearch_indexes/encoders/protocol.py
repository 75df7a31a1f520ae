"""The interface of encoders, and what they share: batches, a progress bar, libraries of extras."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from toolsearch_indexes.errors import EncoderError, MissingExtraError

FloatArray: TypeAlias = NDArray[np.float32]


class Encoder(Protocol):
    """Turns texts into vectors whose inner product is the similarity of the texts. Safe to share between threads.

    Each row has unit length and depends on its own text alone, up to rounding. A blank text has a zero row. Raises
    EncoderError if the model fails.
    """

    @property
    def id(self) -> str:
        """A name that is equal in all processes and machines, and changes whenever the vectors would."""
        ...

    @property
    def dimensions(self) -> int: ...

    def encode_documents(self, texts: Sequence[str]) -> FloatArray:
        """Return (len(texts), dimensions) float32, in the order of *texts*."""
        ...

    def encode_queries(self, texts: Sequence[str]) -> FloatArray:
        """As `encode_documents`, but for search queries: some models encode the two differently."""
        ...


@runtime_checkable
class KnowsWords(Protocol):
    """An encoder that can tell a word it has met from letters it can only cut into pieces.

    A request of words that neither the encoder nor any tool knows finds nothing. An encoder without this is believed to
    know every word, and finds the nearest tools for gibberish, too; one that wraps another has to pass this on.
    """

    def knows(self, word: str) -> bool:
        """Whether the encoder has met *word*: one part of a query, in lower case."""
        ...


def knows_word(encoder: Encoder, word: str) -> bool:
    """Whether *encoder* has met *word*. One that cannot say is believed to know it."""
    return encoder.knows(word) if isinstance(encoder, KnowsWords) else True


_LEAST_FOR_A_BAR = 300  # texts; fewer are embedded too quickly for a progress bar


@contextmanager
def progress_bar(label: str, total: int, *, show: bool | None) -> Generator[Callable[[int], None]]:
    """Yield a function to call with the number of texts just done.

    *show*: None shows the bar if stderr is a terminal, True always. Fewer than 300 texts never have a bar.
    """
    if show is False or total < _LEAST_FOR_A_BAR:
        yield _no_bar
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, disable=show is None and not console.is_terminal) as bar:
        task = bar.add_task(label, total=total)
        yield lambda done: bar.advance(task, done)


def _no_bar(done: int) -> None:
    """Show no progress."""


def encode_in_batches(
    texts: Sequence[str],
    encode: Callable[[list[str]], FloatArray],
    *,
    dimensions: int,
    batch_size: int,
    show_progress: bool | None = False,
) -> FloatArray:
    """Return one unit row per text; *encode* gives (n, dimensions) of any length for at most *batch_size* texts.

    Shortest texts first, so that a batch pads little. Raises EncoderError if a vector is not finite.
    """
    matrix = np.zeros((len(texts), dimensions), dtype=np.float32)
    order = sorted((row for row, text in enumerate(texts) if text.strip()), key=lambda row: len(texts[row]))
    with progress_bar("Embedding tools", len(order), show=show_progress) as advance:
        for start in range(0, len(order), batch_size):
            rows = order[start : start + batch_size]
            matrix[rows] = unit_rows(encode([texts[row] for row in rows]))
            advance(len(rows))
    return matrix


def unit_rows(vectors: FloatArray) -> FloatArray:
    """Return *vectors* (n, d) scaled to unit length; zero rows stay.

    Raises EncoderError if one is not finite.
    """
    if not np.isfinite(vectors).all():
        raise EncoderError("the model gave vectors that are not finite; its files are damaged or it cannot run here")
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: FloatArray = (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)
    return scaled


def require(module: str, *, what: str, extra: str) -> Any:
    """Import *module*, untyped, since type checkers must pass without it.

    Raises MissingExtraError, which names *what* needs it and the *extra* that has it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(what, extra) from error
