"""A reader judges a request and a tool together, and says whether the tool serves it. `open_reader` finds it
by text.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

from toolsearch_indexes.encoders.opening import AUTO
from toolsearch_indexes.encoders.protocol import FloatArray
from toolsearch_indexes.errors import EncoderError

NO_READER = "none"
_WEIGHTS = "toolsearch_reader"  # a separate distribution, built from indexes/reader


class Reader(Protocol):
    """A cross-encoder: it reads the words of a request and of a tool together, unlike an encoder.

    Safe to share between threads.
    """

    def knows(self, word: str) -> bool:
        """Whether it knows *word*, in lower case. Requests with many unknown words are not given to it."""
        ...

    def read(self, request: str, tools: Sequence[str]) -> FloatArray:
        """Return the log odds that each of *tools*, a name with a description, serves *request*: (len(tools),).

        The result for a tool does not depend on the others. Raises EncoderError if the model fails. A search raises it,
        too, if a number is missing or not a number.
        """
        ...


def open_reader(spec: str | Path) -> Reader | None:
    """Return the reader that *spec* names: ``auto`` (the installed one, if any), ``none``, or a folder with model.onnx
    and tokenizer.json.

    Raises MissingExtraError or EncoderError, which say what to do.
    """
    if spec == NO_READER or (spec == AUTO and find_spec(_WEIGHTS) is None):
        return None
    return _installed() if spec == AUTO else _from_folder(Path(spec))


@cache
def _installed() -> Reader:
    """One for the whole process, out of the package that has its weights."""
    try:
        package = import_module(_WEIGHTS)
    except ImportError as error:
        raise EncoderError(f"the package {_WEIGHTS} cannot be imported: {error}") from error
    return _from_folder(package.FOLDER)


def _from_folder(folder: Path) -> Reader:
    from toolsearch_indexes.encoders.onnx import OnnxReader

    return OnnxReader(folder)
