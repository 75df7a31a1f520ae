"""Encoders without a model: vectors out of a table of pieces of words, or (for tests) out of hashes of words."""

from __future__ import annotations

import json
import mmap
import re
import unicodedata
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toolsearch_indexes.arrays import PackedTexts, mapping_of
from toolsearch_indexes.encoders.protocol import FloatArray, unit_rows
from toolsearch_indexes.errors import EncoderError

_WORD = re.compile(r"[^\W_]+")


# Everything between words becomes a space.
_GAPS = bytes(byte if byte < 128 and chr(byte).isalnum() else ord(" ") for byte in range(256))
CASE = r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])"  # places in an identifier where a capital begins a word
_CASE = re.compile(CASE)


# Scripts without spaces between words.
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]")
LONGEST_WORD = 100  # characters; longer ones are data, not words
_MEANINGFUL_LETTERS = 4  # letters at the beginning of a word that show its subject: ``calendarevents``
_REMEMBERED_WORDS = 100_000


class WordPieces:
    """Cuts texts into the numbers of known pieces. Unknown words are left out. Safe to share between threads."""

    def __init__(self, pieces: Mapping[str, int]) -> None:
        """*pieces* maps pieces to numbers. A piece that continues a word begins with ``##``, as in BERT's
        vocabularies.
        """
        self._pieces = pieces
        self._known = _KnownWords(self._numbers_of)
        unspaced = unspaced_pieces(pieces)
        self._unspaced = re.compile(f"({'|'.join(unspaced)})") if unspaced else None

    def numbers(self, text: str) -> list[int]:
        """Return the numbers of the pieces of *text*, in order."""
        words = text.encode().translate(_GAPS).decode().split() if text.isascii() else _WORD.findall(folded(text))
        return list(chain.from_iterable(map(self._known.__getitem__, words)))

    def knows(self, word: str) -> bool:
        """Whether *word*, or a beginning of it with some letters, has a meaning; gibberish has only short pieces."""
        if self._unspaced is not None and _UNSPACED.search(word):
            return self._unspaced.search(word) is not None
        return all(self._knows_part(part) for part in (word if word.isascii() else folded(word)).lower().split())

    def _knows_part(self, part: str) -> bool:
        return part in self._pieces or any(part[:end] in self._pieces for end in range(_MEANINGFUL_LETTERS, len(part)))

    def _numbers_of(self, word: str) -> tuple[int, ...]:
        return tuple(number for part in parts(word).split() for number in self._cut(part.lower()))

    def _cut(self, word: str) -> Sequence[int]:
        if self._unspaced is not None and _UNSPACED.search(word):
            return [number for run in self._unspaced.split(word) if run for number in self._cut_spaced(run)]
        return self._cut_spaced(word)

    def _cut_spaced(self, word: str) -> Sequence[int]:
        if len(word) > LONGEST_WORD:
            return ()
        found: list[int] = []
        start, prefix = 0, ""
        while start < len(word):
            end = len(word)
            while (number := self._pieces.get(prefix + word[start:end])) is None:
                end -= 1
                if end == start:
                    return ()  # one unknown piece makes the whole word unknown
            found.append(number)
            start, prefix = end, "##"
        return found


class _KnownWords(dict[str, tuple[int, ...]]):
    """The numbers of the pieces of words, cut when they are first asked for."""

    def __init__(self, cut: Callable[[str], tuple[int, ...]]) -> None:
        super().__init__()
        self._cut = cut

    def __missing__(self, word: str) -> tuple[int, ...]:
        if len(self) >= _REMEMBERED_WORDS:
            self.clear()
        return self.setdefault(word, self._cut(word))


def unspaced_pieces(pieces: Iterable[str]) -> list[str]:
    """The pieces of scripts without spaces, longest first. Text in these scripts is cut wherever one is found."""
    return sorted((piece for piece in pieces if _UNSPACED.match(piece)), key=lambda piece: (-len(piece), piece))


def parts(text: str) -> str:
    """Return *text* with a space wherever an identifier's case begins a word: ``getHTTPServer`` is three."""
    return text if text.islower() else _CASE.sub(" ", text)


def folded(text: str) -> str:
    """Split words at capitals, which lower case would hide; then apply NFKC and lower case, and remove accents."""
    text = parts(unicodedata.normalize("NFKC", text))
    bare = "".join(c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c)[0] != "M")
    return unicodedata.normalize("NFC", bare.lower())


BUILT_IN_FOLDER = Path(__file__).parent / "built_in"
_TABLE, _PIECES, _ABOUT = "table.npy", "pieces.json", "about.json"
_LONGEST_TEXT = 4_000  # characters; the rest of the text is not read
_SUMMED_IN_16_BITS = 255  # pieces; a sum of that many 8-bit numbers fits in 16 bits
_SUMMED_AT_ONCE = 1_024  # pieces; so few stay in the processor's cache


def is_static(folder: Path) -> bool:
    return (folder / _TABLE).is_file() and (folder / _PIECES).is_file()


class StaticEncoder:
    """Reads a folder with *table.npy* (rows, dimensions; int8), *pieces.json* (the row of each piece; several may
    share one) and *about.json*.
    """

    def __init__(self, folder: str | Path = BUILT_IN_FOLDER) -> None:
        """Raises EncoderError if *folder* does not hold such an encoder."""
        folder = Path(folder)
        try:
            self.table = _Table(folder / _TABLE)
            numbers: dict[str, int] = json.loads((folder / _PIECES).read_bytes())
            about: Mapping[str, Any] = json.loads((folder / _ABOUT).read_bytes())
            self.id = f"static:{about['name']}:{about['digest']}"
            last = max(numbers.values())
            rows, self.dimensions = self.table.shape
        except (OSError, ValueError, KeyError) as error:
            raise EncoderError(f"there is no usable static encoder in {str(folder)!r}: {error}") from error
        if last >= rows:
            raise EncoderError(f"there is no usable static encoder in {str(folder)!r}: a piece has no row in its table")
        self.pieces: Mapping[str, int] = _Pieces(numbers)
        self._words = WordPieces(self.pieces)

    def encode_queries(self, texts: Sequence[str]) -> FloatArray:
        """As `encode_documents`, which takes longer for a few texts."""
        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        for vector, text in zip(vectors, texts, strict=True):
            numbers = self._words.numbers(text[:_LONGEST_TEXT])
            if numbers:
                np.add.reduce(self.table.rows(numbers), axis=0, dtype=np.float32, out=vector)
        return _scaled(vectors)

    def knows(self, word: str) -> bool:
        return self._words.knows(word)

    def encode_documents(self, texts: Sequence[str]) -> FloatArray:
        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        numbers = [self._words.numbers(text[:_LONGEST_TEXT]) for text in texts]
        by_count: defaultdict[int, list[int]] = defaultdict(list)
        for row, found in enumerate(numbers):
            by_count[len(found)].append(row)
        by_count.pop(0, None)
        for count, rows in by_count.items():  # texts with the same number of pieces are added up together
            kind = np.int16 if count <= _SUMMED_IN_16_BITS else np.int32
            at_once = max(1, _SUMMED_AT_ONCE // count)
            for some in (rows[first : first + at_once] for first in range(0, len(rows), at_once)):
                pieces = self.table.rows([numbers[row] for row in some]).astype(kind)
                vectors[some] = pieces.sum(axis=1, dtype=kind)
        return _scaled(vectors)


def _scaled(vectors: FloatArray) -> FloatArray:
    """Scale *vectors* (n, d) to unit length, in place; zero rows stay."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    np.divide(vectors, lengths, out=vectors, where=lengths > 0)
    return vectors


class _Pieces(Mapping[str, int]):
    """Pieces and their numbers, in a fifth of the memory of a dictionary. Numbers are in the order of the pieces."""

    def __init__(self, numbers: Mapping[str, int]) -> None:
        self._pieces = PackedTexts.of(numbers)
        self._numbers = array("i", numbers.values())

    def __getitem__(self, piece: str) -> int:
        if (place := self._pieces.place_of(piece)) is None:
            raise KeyError(piece)
        return self._numbers[place]

    def get(self, key: str, default: Any = None, /) -> Any:  # the inherited one raises and catches an error for a miss
        place = self._pieces.place_of(key)
        return default if place is None else self._numbers[place]

    def __contains__(self, piece: object) -> bool:
        return isinstance(piece, str) and self._pieces.place_of(piece) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self._pieces)

    def __len__(self) -> int:
        return len(self._numbers)


class _Table:
    """The rows of a table in a file. A row is copied when it is first asked for: most processes need one in ten.

    The file is mapped. Without the copies, the system would count its neighbours in the file as this process's memory.
    """

    def __init__(self, file: Path) -> None:
        self._mapped: NDArray[np.int8] = np.load(file, mmap_mode="r")
        self.shape = rows, dimensions = self._mapped.shape
        self._copied = np.zeros((rows + 1, dimensions), np.int8)  # takes memory only where it is written
        self._places = np.zeros(rows, np.int32)  # of each row in *_copied*; 0 if it is not there
        self._count = 0
        self._lock = Lock()

    def rows(self, numbers: ArrayLike) -> NDArray[np.int8]:
        """Return the rows (..., dimensions) of *numbers* (...)."""
        wanted = np.asarray(numbers)
        places = self._places.take(wanted)
        if not places.all():
            self._copy(np.atleast_1d(wanted)[np.atleast_1d(places) == 0])
            places = self._places.take(wanted)
        return self._copied.take(places, axis=0)

    def _copy(self, numbers: NDArray[np.int64]) -> None:
        with self._lock:
            new = np.unique(numbers[self._places[numbers] == 0])
            first, self._count = self._count + 1, self._count + len(new)
            self._copied[first : self._count + 1] = self._mapped[new]
            self._places[new] = np.arange(first, self._count + 1)  # last, so that other threads see rows that are there
            if (mapping := mapping_of(self._mapped)) is not None and hasattr(mmap, "MADV_DONTNEED"):
                mapping.madvise(mmap.MADV_DONTNEED)


class HashingEncoder:
    """Adds or takes one, by the word's hash, in the bucket that the word's hash names. Knows no synonyms, no stems."""

    def __init__(self, dimensions: int = 64) -> None:
        if dimensions < 1:
            raise ValueError(f"dimensions must be at least 1, got {dimensions}")
        self.dimensions = dimensions
        self.id = f"hashing:{dimensions}"

    def encode_documents(self, texts: Sequence[str]) -> FloatArray:
        matrix = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in _words(text):
                number = int.from_bytes(blake2b(word.encode(errors="replace"), digest_size=8).digest(), "big")
                bucket, sign = divmod(number, 2)
                matrix[row, bucket % self.dimensions] += 1 if sign else -1
        return unit_rows(matrix)

    def encode_queries(self, texts: Sequence[str]) -> FloatArray:
        return self.encode_documents(texts)


def _words(text: str) -> list[str]:
    return "".join(character if character.isalnum() else " " for character in text.casefold()).split()
