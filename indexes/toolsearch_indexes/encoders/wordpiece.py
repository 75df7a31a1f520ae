"""Text into the pieces that a static encoder knows: identifiers split at their case, words cut greedily, longest first.

What `tokenizers` does with the `tokenizer.json` that training writes, to the letter; without it, since this much is
quick enough in Python: tools and requests say the same words over and over, and a word is cut once.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain

_WORD = re.compile(r"[^\W_]+")
_GAPS = bytes(byte if byte < 128 and chr(byte).isalnum() else ord(" ") for byte in range(256))  # between words
CASE = r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])"  # where an identifier's case begins a word
_CASE = re.compile(CASE)
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]")  # no space between words
LONGEST_WORD = 100  # characters; longer ones are data, not words
_TELLING = 4  # letters of a word's beginning that tell what it is about: ``calendarevents``
_REMEMBERED_WORDS = 100_000


class WordPieces:
    """Cuts texts into the numbers of known pieces; what cannot be cut is left out. Safe to share between threads."""

    def __init__(self, pieces: Mapping[str, int]) -> None:
        """*pieces*: numbers by piece; one that continues a word begins with ``##``, as in BERT's vocabularies."""
        self._pieces = pieces
        self._known = _KnownWords(self._numbers_of)
        unspaced = unspaced_pieces(pieces)
        self._unspaced = re.compile(f"({'|'.join(unspaced)})") if unspaced else None

    def numbers(self, text: str) -> list[int]:
        """Return the numbers of the pieces of *text*, in order."""
        words = text.encode().translate(_GAPS).decode().split() if text.isascii() else _WORD.findall(folded(text))
        return list(chain.from_iterable(map(self._known.__getitem__, words)))

    def knows(self, word: str) -> bool:
        """Whether *word*, or at least a beginning of some letters, means something; gibberish falls into shreds."""
        if self._unspaced is not None and _UNSPACED.search(word):
            return self._unspaced.search(word) is not None
        return all(self._knows_part(part) for part in (word if word.isascii() else folded(word)).lower().split())

    def _knows_part(self, part: str) -> bool:
        return part in self._pieces or any(part[:end] in self._pieces for end in range(_TELLING, len(part)))

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
                    return ()  # a word with one unknown piece is unknown
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
    """The pieces of scripts without spaces, longest first, which such text is cut into wherever one is found."""
    return sorted((piece for piece in pieces if _UNSPACED.match(piece)), key=lambda piece: (-len(piece), piece))


def parts(text: str) -> str:
    """Return *text* with a space wherever an identifier's case begins a word: ``getHTTPServer`` is three."""
    return text if text.islower() else _CASE.sub(" ", text)


def folded(text: str) -> str:
    """Split case first, which folding takes away; then NFKC, lower case, and no accents."""
    text = parts(unicodedata.normalize("NFKC", text))
    bare = "".join(c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c)[0] != "M")
    return unicodedata.normalize("NFC", bare.lower())
