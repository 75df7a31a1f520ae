"""The benchmark of large catalogues measures what it says, and its page tells what was stored."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from benchmarks import large
from benchmarks.catalogues import varied_documents
from benchmarks.results import FIGURES, read_figures
from toolsearch import ToolDocument

_BENCHMARKS = Path(large.__file__).parent

# Words beyond the 300 most frequent, so that vendors differ.
_SYLLABLES = [first + vowel for first in "bdfgklmnprstvz" for vowel in "aeiou"]
ORIGINALS = [
    ToolDocument(
        f"shop__get{first.title()}{second}", f"Return the {first}{second} of a shop.", server="shop",
        local_name=f"get{first.title()}{second}", parameter_names=(f"{second}{first}",),
    )
    for first in _SYLLABLES for second in _SYLLABLES[:20]
]  # fmt: skip


def test_the_first_tools_are_the_originals_and_then_other_vendors_say_the_same_in_other_words() -> None:
    documents = list(varied_documents(3 * len(ORIGINALS), ORIGINALS))
    assert documents[: len(ORIGINALS)] == ORIGINALS
    assert len({document.name for document in documents}) == len(documents)
    for original, varied in zip(ORIGINALS, documents[len(ORIGINALS) :], strict=False):
        assert varied.description.startswith("Return the ")
        assert len(varied.description.split()) == len(original.description.split())
        assert varied != original


def test_the_same_tools_come_each_time_and_a_larger_number_only_appends() -> None:
    some = list(varied_documents(2_000, ORIGINALS))
    assert list(islice(varied_documents(3_000, ORIGINALS), 2_000)) == some


def test_what_is_stored_keeps_what_is_promised() -> None:
    """Recall of the nearest vectors, at each size and reach."""
    for figures in read_figures(FIGURES / "large.json"):
        assert min(figures["recall"].values()) >= 0.99
