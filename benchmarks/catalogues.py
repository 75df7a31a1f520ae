"""Catalogues to measure on: tens of thousands of real tools from installed packages, or any number of made-up ones."""

from __future__ import annotations

import hashlib
import importlib.util
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from itertools import islice, product
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from benchmarks.sources.aws import aws_tools
from benchmarks.sources.github import github_tools
from benchmarks.sources.google import google_tools
from toolsearch.errors import SourceError
from toolsearch.tools.definition import ToolDefinition
from toolsearch_indexes.documents import ToolDocument

T = TypeVar("T")

_HERE = Path(__file__).parent
_CACHE = _HERE / ".cache"
_OPENAPI = _HERE / "node_modules" / "@octokit" / "openapi"
_TO_INSTALL = "run: pip install -e '.[bench]' && npm ci --prefix benchmarks"

_VOCABULARY = 50_000  # distinct words of synthetic tools
_ZIPF_EXPONENT = 1.1  # of their frequencies; English text is near it
_STOP_WORDS = 30  # the most frequent ranks are left out, since no index keeps a language's stop words


def real_catalogue(limit: int | None = None) -> list[ToolDefinition]:
    """Return about 38,000 real tools of AWS, Google and GitHub, by name; with *limit*, as many evenly spread ones.

    Built once for each set of installed versions, which takes seconds, then read from ``benchmarks/.cache``.
    Raises SourceError if a package that they come from is not installed.
    """
    cache = _CACHE / f"real-{_build_key()}.jsonl"
    if not cache.exists():
        _write(cache, build_real_catalogue())
    lines = cache.read_text(encoding="utf-8").splitlines()
    return [_parse(line) for line in evenly(lines, limit)]


def build_real_catalogue() -> list[ToolDefinition]:
    """Build what `real_catalogue` returns, past the cache."""
    tools = [
        *aws_tools(_package_folder("botocore") / "data"),
        *google_tools(_package_folder("googleapiclient") / "discovery_cache" / "documents"),
        *github_tools(_octokit("generated/api.github.com.json")),
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
    path = _OPENAPI / file
    if not path.exists():
        raise SourceError(f"the npm package @octokit/openapi is not installed; {_TO_INSTALL}")
    return path


def _build_key() -> str:
    """Hash what the catalogue depends on: the versions it is read from, and the code that reads them."""
    try:
        packages = [version("botocore"), version("google-api-python-client")]
    except PackageNotFoundError as error:
        raise SourceError(f"{error}; {_TO_INSTALL}") from error
    packages.append(json.loads(_octokit("package.json").read_bytes())["version"])
    code = [path.read_bytes() for path in sorted((_HERE / "sources").glob("*.py"))]
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
