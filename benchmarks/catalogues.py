"""Catalogues to measure on: tens of thousands of real tools from installed packages, or any number of made-up ones."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from importlib.metadata import PackageNotFoundError, version
from itertools import islice, product
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import OCTOKIT
from benchmarks.sources.aws import aws_tools
from benchmarks.sources.google import google_tools
from toolsearch.catalog.sources.openapi import OpenApiSource
from toolsearch.errors import SourceError
from toolsearch.tools import naming
from toolsearch.tools.definition import ToolDefinition
from toolsearch_indexes.documents import ToolDocument

T = TypeVar("T")

_HERE = Path(__file__).parent
_CACHE = _HERE / ".cache"
_TO_INSTALL = "run: pip install -e '.[bench]' && npm ci --prefix benchmarks"

_VOCABULARY = 50_000  # distinct words of synthetic tools
_ZIPF_EXPONENT = 1.1  # of their frequencies; English text is near it
_STOP_WORDS = 30  # the most frequent ranks are left out, since no index keeps a language's stop words

_WORD = re.compile(r"([A-Z]?[a-z]{2,}|[A-Z]{3,})")  # also within an identifier
_WORDS_KEPT = 300  # the most frequent of real tools: their verbs, and what holds sentences together
_ENDINGS = ("ing", "ed", "tion", "ies", "s")
_ALIKE = 64
_CHANGED = 0.7


def real_catalogue(limit: int | None = None) -> list[ToolDefinition]:
    """Return about 38,000 real tools of AWS, Google and GitHub, by name; with *limit*, as many evenly spread ones.

    GitHub's OpenAPI document is loaded as users load it. What AWS and Google publish is in formats of their own, for
    which there is no source; it is converted once for each set of installed versions, and then read from
    ``benchmarks/.cache``. Raises SourceError if a package that they come from is not installed.
    """
    cache = _CACHE / f"real-{_build_key()}.jsonl"
    if not cache.exists():
        _write(cache, converted_tools())
    tools = [*map(_parse, cache.read_text(encoding="utf-8").splitlines()), *github_tools()]
    return evenly(sorted(tools, key=lambda tool: tool.name), limit)


def github_tools() -> list[ToolDefinition]:
    """Each operation of GitHub's REST API, as this package loads GitHub's OpenAPI document."""
    loaded = OpenApiSource(_octokit("generated/api.github.com.json"), server="github").load()
    return [tool.definition for tool in loaded.tools]


def converted_tools() -> list[ToolDefinition]:
    """The tools of AWS and Google, past the cache."""
    tools = [
        *aws_tools(_package_folder("botocore") / "data"),
        *google_tools(_package_folder("googleapiclient") / "discovery_cache" / "documents"),
    ]
    return sorted({tool.name: tool for tool in tools}.values(), key=lambda tool: tool.name)


def evenly(items: list[T], limit: int | None) -> list[T]:
    """Return *limit* of *items*, evenly spread and in their order; all if there are no more than that."""
    if limit is None or limit >= len(items):
        return items
    return [items[i * len(items) // limit] for i in range(limit)]


def synthetic_documents(n: int, seed: int = 0) -> Iterator[ToolDocument]:
    """Make *n* documents, at most 50 million: 16 words of description, 4 parameters, a name of 4 words.

    The words are made up and their frequencies follow Zipf, except the name's last two, which number the document. The
    same *seed* gives the same documents, and a larger *n* only appends.
    """
    words = _made_up_words(_VOCABULARY)
    cumulative = np.cumsum(np.arange(_STOP_WORDS, _STOP_WORDS + _VOCABULARY, dtype=np.float64) ** -_ZIPF_EXPONENT)
    generator = np.random.default_rng(seed)
    for number in range(n):
        drawn = words[np.searchsorted(cumulative, generator.random(2 + 16 + 4) * cumulative[-1])]
        yield ToolDocument(
            name="_".join([*drawn[:2], words[number // 1_000], words[number % 1_000]]),
            description=" ".join(drawn[2:18]),
            parameter_names=tuple(drawn[18:]),
            server=f"server{number % 100}",
        )


def varied_documents(n: int, originals: Sequence[ToolDocument]) -> Iterator[ToolDocument]:
    """Make *n* documents out of *originals*: these first, then the same tools of other vendors, as many as it takes.

    A vendor says the same in words of its own: it has others for 70 % of those that are not among the 300
    most frequent, each an original word that is about as frequent and ends alike. So texts, names and frequencies
    of words are as those of the originals, and vectors lie around theirs without being theirs. The same *originals*
    give the same documents, and a larger *n* only appends.
    """
    pieces = [[_WORD.split(text) for text in _texts_of(document)] for document in originals]
    blocks = _like_words(piece for texts in pieces for text in texts for piece in text[1::2])
    other: dict[str, str] = {}
    names: set[str] = set()
    for number in range(n):
        vendor, place = divmod(number, len(originals))
        if place == 0:
            other = _words_of_vendor(vendor, blocks)
        document = _with_texts(originals[place], ["".join([other.get(p, p) for p in text]) for text in pieces[place]])
        if document.name in names:
            document = replace(document, name=f"{document.name}_{number}", local_name=f"{document.local_name}_{number}")
        names.add(document.name)
        yield document


def _texts_of(document: ToolDocument) -> list[str]:
    parameters = "\n".join(document.parameter_names)
    server = document.server or "tools"
    return [server, document.own_name, document.title, document.description, parameters, document.parameter_text]


def _with_texts(original: ToolDocument, texts: list[str]) -> ToolDocument:
    server, own_name, title, description, parameters, parameter_text = texts
    return ToolDocument(
        name=f"{server}__{own_name}",
        description=description,
        title=title,
        parameter_names=tuple(parameters.split("\n")) if parameters else (),
        parameter_text=parameter_text,
        server=server,
        tags=original.tags,
        local_name=own_name,
    )


def _like_words(words: Iterable[str]) -> list[list[str]]:
    """The distinct words but for the most frequent, in groups of about 64 of one ending and about one frequency."""
    counts = Counter(word.lower() for word in words)
    ranked = sorted(counts, key=lambda word: (-counts[word], word))[_WORDS_KEPT:]
    by_ending: defaultdict[str, list[str]] = defaultdict(list)
    for word in ranked:
        by_ending[next((ending for ending in _ENDINGS if word.endswith(ending)), "")].append(word)
    return [
        alike[first : first + _ALIKE]
        for _, alike in sorted(by_ending.items())
        for first in range(0, len(alike), _ALIKE)
    ]


def _words_of_vendor(vendor: int, blocks: Iterable[list[str]]) -> dict[str, str]:
    """What a vendor says for a word, in each of three cases; vendor 0 says what the originals say."""
    other: dict[str, str] = {}
    if vendor == 0:
        return other
    generator = np.random.default_rng(vendor)
    for block in blocks:
        for word, place in zip(block, generator.permutation(len(block)).tolist(), strict=True):
            if generator.random() < _CHANGED:
                for cased in (str.lower, str.capitalize, str.upper):
                    other[cased(word)] = cased(block[place])
    return other


def _made_up_words(n: int) -> NDArray[np.object_]:
    """Make *n* different words, up to 343,000, such as ``bababak``: an end that no stemmer takes for a suffix."""
    syllables = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]
    made = ("".join(parts) + "k" for parts in product(syllables, repeat=3))
    return np.array(list(islice(made, n)), dtype=object)


def _package_folder(package: str) -> Path:
    """Find an installed package without importing it: only its data is read."""
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise SourceError(f"the package {package} is not installed; {_TO_INSTALL}")
    return Path(found.submodule_search_locations[0])


def _octokit(file: str) -> Path:
    path = OCTOKIT / file
    if not path.exists():
        raise SourceError(f"the npm package @octokit/openapi is not installed; {_TO_INSTALL}")
    return path


def _build_key() -> str:
    """Hash what converted tools depend on: the versions they are read from, and the code that reads them."""
    try:
        packages = [version("botocore"), version("google-api-python-client")]
    except PackageNotFoundError as error:
        raise SourceError(f"{error}; {_TO_INSTALL}") from error
    code = [path.read_bytes() for path in (*sorted((_HERE / "sources").glob("*.py")), Path(naming.__file__))]
    return hashlib.sha256(b"\0".join([*map(str.encode, packages), *code])).hexdigest()[:12]


def _write(cache: Path, tools: Iterable[ToolDefinition]) -> None:
    cache.parent.mkdir(exist_ok=True)
    unfinished = cache.with_suffix(".partial")
    with unfinished.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(asdict(tool)) + "\n" for tool in tools)
    unfinished.replace(cache)


def _parse(line: str) -> ToolDefinition:
    fields = json.loads(line)
    return ToolDefinition(**fields | {"tags": tuple(fields["tags"])})
