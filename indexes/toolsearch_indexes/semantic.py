"""The semantic arm: which text of a tool is embedded, how its cosines spread, and from where they mean something."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from toolsearch_indexes.analysis import name_words
from toolsearch_indexes.documents import ToolDocument
from toolsearch_indexes.encoders.protocol import Encoder
from toolsearch_indexes.vector_cache import VectorCache
from toolsearch_indexes.vectors import FloatArray

DoubleArray = NDArray[np.float64]

_DOUBT = 3.0  # deviations; with MiniLM on seven catalogs, most nonsense then finds nothing


def semantic_text(document: ToolDocument) -> str:
    """What is embedded of a tool: name, title and description. Its schema is left to the keyword arm, since parameter
    text blurs a vector more than it adds (measured).
    """
    name = name_words(document.own_name)
    return f"{name}: {document.title + '. ' if document.title else ''}{document.description}".strip(": ")


class SemanticArm:
    """An encoder with a cache in front of it, and the floor below which its cosines say nothing."""

    def __init__(self, encoder: Encoder, cache: VectorCache | None = None) -> None:
        self.encoder = encoder
        self._cache = cache or VectorCache(None)

    def document_vectors(self, documents: Sequence[ToolDocument]) -> FloatArray:
        """Return (n, d) unit rows; what was embedded before comes from the cache."""
        return self._cache.embed(self.encoder, [semantic_text(document) for document in documents])

    def query_vector(self, query: str) -> FloatArray:
        return self._cache.embed_query(self.encoder, query)

    def floor(self, tools: int, *, is_known: bool) -> float:
        """Return the cosine above which one of *tools* tools is related to a query.

        Cosines of nonsense with tools have a mean and a deviation that belong to the encoder; the largest of n such
        numbers is expected near mean + deviation * sqrt(2 ln n), if they are normal. Their upper tail is heavier, so a
        query of which no word is known (*is_known* False), which may well be nonsense, has to clear it by more.
        """
        mean, deviation = self._unrelated
        doubt = 0.0 if is_known else _DOUBT
        return mean + deviation * (math.sqrt(2 * math.log(max(2, tools))) + doubt)

    @cached_property
    def _unrelated(self) -> tuple[float, float]:
        """Mean and standard deviation of the cosines between nonsense and tools."""
        tools = self._cache.embed(self.encoder, _PROBE_TOOLS)
        cosines = self.encoder.encode_queries(_PROBE_NONSENSE) @ tools.T
        return float(cosines.mean()), float(cosines.std())


@dataclass(frozen=True, slots=True)
class SemanticStatistics:
    """Sums over the vectors of all living tools, from which the spread of any query's cosines follows exactly.

    total (d,), products (d, d): the sums of v and of v v^T.
    """

    documents: int
    total: DoubleArray
    products: DoubleArray

    @classmethod
    def empty(cls, dimensions: int) -> SemanticStatistics:
        return cls(0, np.zeros(dimensions), np.zeros((dimensions, dimensions)))

    def with_vectors(self, vectors: FloatArray, *, sign: int) -> SemanticStatistics:
        """Return the sums with *vectors* counted in (sign 1) or out (sign -1)."""
        exact = vectors.astype(np.float64)
        return SemanticStatistics(
            self.documents + sign * len(vectors),
            self.total + sign * exact.sum(axis=0),
            self.products + sign * (exact.T @ exact),
        )

    def spread(self, query: FloatArray) -> tuple[float, float]:
        """Return mean and standard deviation of the cosines of all tools with *query*."""
        exact = query.astype(np.float64)
        count = max(1, self.documents)
        mean = float(exact @ self.total) / count
        variance = float(exact @ self.products @ exact) / count - mean * mean
        return mean, math.sqrt(max(0.0, variance))


_PROBE_NONSENSE = (
    "qwrtz plok vfgh",
    "zxcvb asdf hjkl",
    "blorf snizzle wug",
    "xqj 8831 ppzk",
    "lkjh gfds mnbv",
    "florbin dax quonk teeble",
    "aaaa bbbb cccc dddd",
    "grmpf hnngh ughhh",
    "wibble wobble splunge",
    "tttk oou eeiia nnm",
    "jabberwock slithy toves gimble",
    "vrmt sklp drgn fthm",
    "ooga booga unga",
    "zzyzx quux corge grault",
    "mxyzptlk kltpzyxm",
    "ftaghn rlyeh wgah nagl",
)

_PROBE_TOOLS = (
    "send email: Send an email message to one or more recipients",
    "get weather: Get the current weather for a city",
    "create issue: Create a new issue in a repository",
    "list files: List the files of a directory",
    "convert currency: Convert an amount from one currency to another",
    "search web: Search the web and return result pages",
    "delete user: Delete a user account by its id",
    "translate text: Translate text into another language",
    "create calendar event: Add an event to a calendar",
    "get stock price: Get the latest price of a stock",
    "run query: Run an SQL query against a database",
    "upload object: Upload an object to a storage bucket",
    "resize image: Resize an image to a given width and height",
    "start instance: Start a stopped virtual machine",
    "book flight: Book a flight between two airports",
    "summarize document: Summarise a long document",
    "git commit: Record changes to the repository",
    "play song: Play a song on the speaker",
    "calculate mean: Return the arithmetic mean of numbers",
    "get user profile: Return the profile of a user",
    "transcribe audio: Turn speech into text",
    "create invoice: Create an invoice for a customer",
    "scan ports: Scan the open ports of a host",
    "find restaurant: Find restaurants near a place",
    "set thermostat: Set the temperature of a room",
    "parse date: Parse a date out of a string",
    "list queues: Return the message queues of an account",
    "update record: Update a record of a table",
    "encrypt file: Encrypt a file with a key",
    "track package: Track the delivery of a package",
    "plot chart: Draw a line chart of data",
    "post message: Post a message to a channel",
)
