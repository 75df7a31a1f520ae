"""The semantic arm: the embedded texts of tools and requests, and the cosines of unrelated texts."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from toolsearch_indexes.analysis import STOP_WORDS, stem
from toolsearch_indexes.documents import ToolDocument
from toolsearch_indexes.encoders.protocol import Encoder, knows_word
from toolsearch_indexes.encoders.static import StaticEncoder, parts
from toolsearch_indexes.queries import clauses
from toolsearch_indexes.scores import Unrelated
from toolsearch_indexes.vector_cache import VectorCache
from toolsearch_indexes.vectors import FloatArray

# Stems of words that only say that a server is a server.
_WORDS_OF_EVERY_SERVER = frozenset(stem(word) for word in ("api", "mcp", "server", "service", "tool"))


def telling_words(server: str, knows: Callable[[str], bool]) -> dict[str, str]:
    """Return the words of the name *server* that tell something of its tools, in lower case, by their stems.

    The name is words apart by spaces. A word that the encoder does not know, mostly a vendor's, would be a direction
    without meaning.
    """
    found: dict[str, str] = {}
    for word in server.lower().split():
        term = stem(word)
        if word not in STOP_WORDS and term not in _WORDS_OF_EVERY_SERVER and knows(word):
            found.setdefault(term, word)
    return found


def told_of(tool: str, by_server: Mapping[str, str]) -> str:
    """Return the `telling_words` that the name *tool* does not contain, joined by spaces. Others would count twice."""
    said = set(map(stem, tool.lower().split())) if by_server else set[str]()
    return " ".join(word for term, word in by_server.items() if term not in said)


DoubleArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
FIELDS = 3


# The weight of all requests of a tool together; each other field has the weight 1. Chosen on the agent queries of the
# benchmarks and on tasks for live MCP servers: 1 finds up to .055 less in the first five, and 3 at most .012 more.
REQUESTS_WEIGHT = 2.0
_SEPARATORS = re.compile(r"[_\W]+")
_SENTENCE_END = re.compile(r"[.!?\u3002\uff01\uff1f](?=\s|$)|(?=\n[ \t\r]*\n)")  # or of a heading, at an empty line
_USUAL = 3.75  # deviations by which the built-in encoder puts requests near to the tools that serve them
_MOST_CACHED_SERVERS = 1_024  # servers whose telling words are remembered
_BLOCK = 1_024  # tools whose vectors are made at a time; small blocks save memory


def semantic_fields(document: ToolDocument) -> tuple[str, str, str]:
    """The texts of a tool that are embedded separately: its name, its first sentence, and its whole description.

    A long description alone blurs the name's meaning, and a terse one adds little to the name. Separate texts gain half
    a point to eight points of nDCG. The schema is left to the keyword arm, since parameter text blurs more than it
    adds.
    """
    name = spaced(document.own_name)
    title = f"{document.title}. " if document.title else ""
    whole = f"{name}: {title}{document.description}".strip(": ")
    return name, first_sentence(document.description) or document.title or name, whole


def spaced(name: str) -> str:
    """Return the words of an identifier: ``createIssue_v2`` gives ``create Issue v2``."""
    return _SEPARATORS.sub(" ", parts(name)).strip()


def first_sentence(text: str) -> str:
    text = text.strip()
    end = _SENTENCE_END.search(text, 1)
    return text[: end.end()] if end else text


class Meanings(NamedTuple):
    """The *vectors* (v, d) of requests that are read together, and for each request its *places* among them: of the
    whole, then of each part. A request for one thing has no parts.
    """

    vectors: FloatArray
    places: Sequence[Sequence[int]]


class SemanticArm:
    """An encoder with a cache, and the scale of its cosines."""

    def __init__(self, encoder: Encoder, cache: VectorCache | None = None) -> None:
        self.encoder = encoder
        self.cache = cache or VectorCache(None)
        self._telling = lru_cache(_MOST_CACHED_SERVERS)(partial(_telling_words, encoder))

    def document_vectors(self, documents: Sequence[ToolDocument]) -> FloatArray:
        """Return (n, d) unit rows. Each is the normalised sum of a tool's fields, its server's name and its requests,
        with their weights. Texts that were embedded before come from the cache.
        """
        at_once = _BLOCK if isinstance(self.encoder, StaticEncoder) else len(documents)
        vectors = np.empty((len(documents), self.encoder.dimensions), np.float32)
        for first in range(0, len(documents), at_once):
            vectors[first : first + at_once] = self._vectors(documents[first : first + at_once])
        return vectors

    def _vectors(self, documents: Sequence[ToolDocument]) -> FloatArray:
        fields = [semantic_fields(document) for document in documents]
        texts = list(chain.from_iterable(fields))
        total: FloatArray = self._embedded(texts).reshape(len(documents), FIELDS, -1).sum(axis=1)
        self._add_servers(total, documents, [name for name, *_ in fields])
        self._add_requests(total, documents)
        return _unit(total)

    def _add_servers(self, total: FloatArray, documents: Sequence[ToolDocument], names: Sequence[str]) -> None:
        """Add the vectors of the servers' names to the rows of *total*, with the weight of one word of the tool's own
        name.

        ``loads`` needs its server ``json``, and ``list_remote_branches`` does not. One weight for all tools was tried:
        a weight that brings ``json__loads`` forward for "parse json" blurs names of several words. Like requests,
        servers' names are embedded separately from the fields.
        """
        told = [told_of(name, self._telling(each.server)) for each, name in zip(documents, names, strict=True)]
        rows = [row for row, text in enumerate(told) if text]
        if not rows:
            return
        place = {text: number for number, text in enumerate(dict.fromkeys(told[row] for row in rows))}
        vectors = self._embedded(list(place))[[place[told[row]] for row in rows]]
        words = np.array([max(1, len(names[row].split())) for row in rows], np.float32)
        total[rows] += vectors / words[:, None]

    def _add_requests(self, total: FloatArray, documents: Sequence[ToolDocument]) -> None:
        """Add to the rows of *total* the direction of the tools' requests, however many they are.

        They are embedded apart from the fields: some encoders give a text slightly other numbers in another batch, and
        a tool without requests is to have the vector that it has where no tool has any.
        """
        rows = [row for row, document in enumerate(documents) if document.requests]
        if not rows:
            return
        counts = [len(documents[row].requests) for row in rows]
        vectors = self._embedded([request for row in rows for request in documents[row].searched_requests])
        sums = np.add.reduceat(vectors, np.cumsum([0, *counts[:-1]]), axis=0)
        total[rows] += REQUESTS_WEIGHT * _unit(sums)

    def meanings(self, requests: Sequence[str]) -> Meanings:
        parted = [(request, *clauses(request)) for request in requests]
        place = {text: number for number, text in enumerate(dict.fromkeys(chain.from_iterable(parted)))}
        if isinstance(self.encoder, StaticEncoder):
            vectors = self.encoder.encode_queries(list(place))
        else:
            vectors = np.array([self.cache.embed_query(self.encoder, text) for text in place])
        return Meanings(vectors, [[place[text] for text in texts] for texts in parted])

    def knows(self, word: str) -> bool:
        """Whether the encoder knows *word*. An encoder that cannot say is assumed to know it."""
        return knows_word(self.encoder, word)

    @cached_property
    def unrelated(self) -> Unrelated:
        """The distribution of the cosines of unrelated tools."""
        # Some encoders embed queries differently from documents.
        requests = self.encoder.encode_queries(_UNRELATED_TOOLS)
        cosines = (requests @ self._embedded(_UNRELATED_TOOLS).T)[~np.eye(len(requests), dtype=np.bool_)]
        # Equal cosines say nothing, so the deviation is infinite.
        return Unrelated(float(cosines.mean()), float(cosines.std()) or math.inf)

    @cached_property
    def surplus(self) -> float:
        """The deviations by which the encoder puts requests nearer to the tools that serve them than the built-in one
        does. It puts them nearer to wrong tools, too.
        """
        requests, tools = self.encoder.encode_queries(_SERVED), self._embedded(_UNRELATED_TOOLS)
        served = self.unrelated.deviations_of(float(np.einsum("ij,ij->i", requests, tools).mean()))
        return max(0.0, served - _USUAL)

    def _embedded(self, texts: Sequence[str]) -> FloatArray:
        if isinstance(self.encoder, StaticEncoder):
            return self.encoder.encode_documents(texts)  # embedding is faster than any cache
        return self.cache.embed(self.encoder, texts)


def _telling_words(encoder: Encoder, server: str) -> dict[str, str]:
    return telling_words(spaced(server), partial(knows_word, encoder))


def _unit(rows: FloatArray) -> FloatArray:
    """Scale *rows* (n, d) to unit length, in place; zero rows stay."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    np.divide(rows, lengths, out=rows, where=lengths > 0)
    return rows


@dataclass(frozen=True, slots=True)
class SemanticStatistics:
    """The sum (d,) of the vectors of all living tools. It gives the mean cosine of any request exactly."""

    documents: int
    total: DoubleArray

    @classmethod
    def empty(cls, dimensions: int) -> SemanticStatistics:
        return cls(0, np.zeros(dimensions))

    def with_vectors(self, vectors: FloatArray, *, sign: int) -> SemanticStatistics:
        """Return the sum with *vectors* counted in (sign 1) or out (sign -1)."""
        total = self.total + sign * vectors.sum(axis=0, dtype=np.float64)
        return SemanticStatistics(self.documents + sign * len(vectors), total)

    def mean_cosine(self, query: FloatArray) -> float:
        return float(query.astype(np.float64) @ self.total) / max(1, self.documents)


_UNRELATED_TOOLS = (
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
_SERVED = (  # by the tools above, in their order
    "tell my boss that I am ill today",
    "will it rain in Oslo tomorrow",
    "report this bug to the maintainers",
    "what is in my downloads folder",
    "how many dollars are 50 euros",
    "what do people write about the new phone",
    "throw this account out of the system",
    "say this paragraph in French",
    "put lunch with Anna on Friday at noon",
    "how much is a share of Apple now",
    "which customers ordered more than ten times",
    "put this picture into our cloud storage",
    "make this photo 200 pixels wide",
    "boot the server that we stopped yesterday",
    "get me from Berlin to Madrid on Monday",
    "give me the gist of this long report",
    "save my edits with a note on what changed",
    "put on some jazz",
    "what is the average of these marks",
    "who is the person behind this login",
    "write down what is said in this recording",
    "bill the client for last month",
    "which services can be reached on this machine",
    "where can I eat Thai around here",
    "make it warmer in here",
    "read the day and month out of this text",
    "which message queues do we have",
    "set the phone number of this contact",
    "protect this document with a password",
    "where is my parcel",
    "draw how sales went over the year",
    "tell the team on chat that the release is out",
)
