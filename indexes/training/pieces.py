"""The pieces that the built-in encoder cuts words into.

These are MiniLM's own pieces in a-z and 0-9, and two kinds that it lacks: words of software (*delete*, *json* and
*webhook* are not among its 30,000), and a dictionary of other languages, whose words are other names of English pieces.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from toolsearch_indexes.encoders.static import WordPieces, folded, parts

UNKNOWN = "[UNK]"
_ENGLISH = re.compile(r"(?:##)?[a-z0-9]+")
_WORD = re.compile(r"[a-z0-9]+")
_LEAST_TOOLS = 5  # tools that must say a new word
_LONGEST_NEW_WORD = 20


def english_pieces(base: Mapping[str, int], counts: Counter[str]) -> list[str]:
    """Return the pieces by row: UNKNOWN, then MiniLM's in its order, then the new words by name."""
    kept = [piece for piece, _ in sorted(base.items(), key=lambda item: item[1]) if _ENGLISH.fullmatch(piece)]
    new = sorted(
        word
        for word, count in counts.items()
        if count >= _LEAST_TOOLS and 2 < len(word) <= _LONGEST_NEW_WORD and not word.isdigit() and word not in base
    )
    return [UNKNOWN, *kept, *new]


def word_counts(texts: Iterable[str]) -> Counter[str]:
    """Count, for each word, the texts that say it; identifiers are split as the encoder splits them."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(set(_WORD.findall(parts(text).lower())))
    return counts


def foreign_pieces(dictionary: Path, english: Mapping[str, int]) -> dict[str, int]:
    """Return a row for each foreign word in *dictionary* that is no piece yet: the row of the English word.

    If a word translates several English words, the first counts. Translations of two words are left out, and so are
    English words that are not one piece.
    """
    found: dict[str, int] = {}
    with dictionary.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        next(rows)
        for word, *languages in rows:
            row = english.get(word)
            if row is None:
                continue
            for translation in (t for cell in languages for t in cell.split("|")):
                piece = folded(translation)
                if piece.isalnum() and piece not in english:
                    found.setdefault(piece, row)
    return found


def cutter(pieces: Mapping[str, int]) -> WordPieces:
    return WordPieces({piece: row for piece, row in pieces.items() if piece != UNKNOWN})
