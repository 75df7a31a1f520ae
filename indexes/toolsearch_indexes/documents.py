"""The text of a tool as an index knows it, by fields and with its input schema; and the hits of a search, explained."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, TypeGuard
from urllib.parse import unquote

from toolsearch_indexes.values import without_values

Confidence: TypeAlias = Literal["high", "medium", "low"]


@dataclass(frozen=True, slots=True)
class ToolDocument:
    """One tool as text.

    name              unique in its index, such as ``git__git_status``; ties in a ranking are broken by it
    local_name        the name without its server's prefix (``git_status``); empty means *name* itself
    parameter_names   every property name of the input schema, at any depth, in schema order
    parameter_text    titles, descriptions and enum values of the parameters, at any depth; of a skill, its text
    requests          example requests of users that need this tool; searched by keyword and by meaning, never
                      by pattern, and shown to nobody but a reader (see `Reader`)
    """

    name: str
    description: str = ""
    title: str = ""
    parameter_names: tuple[str, ...] = ()
    parameter_text: str = ""
    server: str = ""
    tags: tuple[str, ...] = ()
    local_name: str = ""
    requests: tuple[str, ...] = ()

    @property
    def own_name(self) -> str:
        """The name whose words are indexed. The server's name is left out, since it has a field of its own."""
        return self.local_name or self.name

    @property
    def searched_requests(self) -> tuple[str, ...]:
        """The requests as they are indexed. Their values are the users' own, and tell nothing of the tool."""
        return tuple(map(without_values, self.requests))


@dataclass(frozen=True, slots=True)
class Hit:
    """One match.

    score       the probability that a tool with such a match serves the request, in (0, 1]; for names and patterns,
                how good a match it is
    confidence  "high" if this very tool is probably the one meant. "medium" if it fits, but others fit nearly as well:
                look at the first few. "low" if requests that no tool serves often have a best hit with such a score, or
                if the index does not know. If the best hit of an answer is "low", all are, and the query is worth
                rewording
    """

    name: str
    score: float
    confidence: Confidence = "low"


RankOutcome: TypeAlias = Literal[
    "found",
    "by its words",
    "by a part",
    "by name",
    "by pattern",
    "does not fit",
    "no match",
    "below min_score",
    "out of reach",
    "no such tool",
]


@dataclass(frozen=True, slots=True)
class WordMatch:
    """A query word in the tool: the *terms* it was read as, the *fields* that contain one of them, and its worth."""

    word: str
    terms: tuple[str, ...]
    fields: tuple[str, ...]
    score: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """How *tool* is ranked for a query, and why.

    outcome     "found": by its score; "by its words": that would be further behind, but of all tools it has the words
                best, and these are sure enough to be the fifth; "by a part": likewise, but it serves a step of the
                request; "by name", "by pattern": the query names it, or its pattern matches; "does not fit": its
                *raw* score is not the *least* that it needs, or that of the best tool is not, or a reader says no;
                "no match": nothing of the query is in it; "below min_score": the engine's options ask for more; "out
                of reach": it may not be seen; "no such tool"
    place       1 the best; a search gives as many as its limit. None if it is not found
    score       as of a hit, in (0, 1]; 0 without a match
    words       the words of the query that it holds; *missing* are the others, as far as any tool holds them
    word_score  what *words* are worth together; more than their sum where no other tool holds one of them, less where
                it has requests of users
    cosine      of the query with the tool; None by keyword
    deviations  how far *cosine* lies above that of unrelated texts, in their standard deviations; less where it has
                requests of users
    weight      what one deviation is worth: raw = word_score + weight * deviations
    raw, least  the sum, and what it has to be: more for the best of all tools, on which hangs whether there is an
                answer, than for the others
    favoured    what favour adds to *raw* if it is among the first
    read        the log odds that it serves the request, by a reader that reads the first tools of an answer; None where
                there is none, or it was not among these. The *score* of a tool that is found is then of both
    """

    tool: str
    strategy: str
    outcome: RankOutcome
    place: int | None = None
    score: float = 0.0
    words: tuple[WordMatch, ...] = ()
    missing: tuple[str, ...] = ()
    word_score: float = 0.0
    cosine: float | None = None
    deviations: float = 0.0
    weight: float = 0.0
    raw: float = 0.0
    least: float = 0.0
    favoured: float = 0.0
    read: float | None = None


_MAX_DEPTH = 16
_MAX_NODES = 2_000
_MAX_CHARACTERS = 40_000
_LONGEST_NAME = 200
_ONE_SCHEMA = ("items", "additionalProperties", "contains", "not", "if", "then", "else", "propertyNames")
_MANY_SCHEMAS = ("allOf", "anyOf", "oneOf", "prefixItems")
_INNER = frozenset((*_ONE_SCHEMA, *_MANY_SCHEMAS, "properties", "patternProperties", "$ref"))


def document_from_schema(
    *,
    name: str,
    description: str = "",
    input_schema: Mapping[str, Any] | None = None,
    title: str = "",
    server: str = "",
    tags: tuple[str, ...] = (),
    local_name: str = "",
    requests: tuple[str, ...] = (),
) -> ToolDocument:
    """Return the document of a tool with the parameters of *input_schema*. Parts that are not valid schemas are
    skipped.
    """
    walk = _Walk(input_schema or {})
    walk.visit(walk.root, depth=0)
    return ToolDocument(
        name=name,
        description=description,
        title=title,
        parameter_names=tuple(walk.names),
        parameter_text="\n".join(walk.texts),
        server=server,
        tags=tags,
        local_name=local_name,
        requests=requests,
    )


@dataclass(slots=True)
class _Walk:
    root: Any
    names: list[str] = field(default_factory=list[str])
    texts: list[str] = field(default_factory=list[str])
    followed: set[str] = field(default_factory=set[str])
    nodes_left: int = _MAX_NODES
    characters_left: int = _MAX_CHARACTERS

    def visit(self, node: Any, depth: int) -> None:
        self.nodes_left -= 1
        if not _is_object(node) or depth > _MAX_DEPTH or self.nodes_left < 0 or self.characters_left <= 0:
            return
        if depth:  # the root's title and description repeat the tool's own
            self._take(node.get("title"))
            self._take(node.get("description"))
        if "enum" in node or "const" in node:
            for value in _strings(node.get("enum"), node.get("const")):
                self._take(value)
        if _INNER.isdisjoint(node):  # most schemas have no inner schemas
            return
        properties = node.get("properties")
        if _is_object(properties):
            for name, schema in properties.items():
                if self.nodes_left <= 0:
                    return
                self.names.append(str(name)[:_LONGEST_NAME])
                self.visit(schema, depth + 1)
        for schema in _subschemas(node):
            self.visit(schema, depth + 1)
        self._follow(node.get("$ref"), depth)

    def _take(self, text: Any) -> None:
        if isinstance(text, str) and text and self.characters_left > 0:
            self.texts.append(text[: self.characters_left])
            self.characters_left -= len(text)

    def _follow(self, reference: Any, depth: int) -> None:
        """Visit the target of a local *reference*, unless it was visited before."""
        if not isinstance(reference, str) or not reference.startswith("#/") or reference in self.followed:
            return
        self.followed.add(reference)
        node = self.root
        for step in reference[2:].split("/"):
            key = unquote(step).replace("~1", "/").replace("~0", "~")
            if not _is_object(node) or key not in node:
                return
            node = node[key]
        self.visit(node, depth + 1)


def _strings(*values: Any) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif _is_list(value):
            yield from (item for item in value if isinstance(item, str))


def _subschemas(node: Mapping[str, Any]) -> Iterator[Any]:
    yield from (node[key] for key in _ONE_SCHEMA if key in node)
    for key in _MANY_SCHEMAS:
        schemas = node.get(key)
        if _is_list(schemas):
            yield from schemas
    patterns = node.get("patternProperties")
    if _is_object(patterns):
        yield from patterns.values()


def _is_object(value: Any) -> TypeGuard[Mapping[str, Any]]:
    return type(value) is dict or isinstance(value, Mapping)  # `type` is much faster than `isinstance` with Mapping


def _is_list(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)
