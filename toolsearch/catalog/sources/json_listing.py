"""Listings of tool definitions as JSON, in the shapes of OpenAI, Anthropic, Gemini and MCP."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias, TypeGuard

from toolsearch.catalog.source import LoadReport
from toolsearch.documents.json_values import as_list, as_object, as_texts
from toolsearch.documents.reading import BadLine, is_json_lines, read_document, read_json_lines
from toolsearch.errors import BadToolError, SourceError
from toolsearch.tools.definition import Refusal, Tool
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.naming import distinct, namespaced, title_with_name
from toolsearch.wire.formats import read_tool
from toolsearch.wire.gemini import with_json_schema
from toolsearch.wire.openai_chat import tool_fields
from toolsearch.wire.request_parts import text_in

ListingInput: TypeAlias = str | Path | Iterable[Json] | Mapping[str, Json]

# Keys of an object around the list, such as the result of MCP's tools/list; the last two are Gemini's.
_LIST_KEYS = ("tools", "functions", "function_declarations", "functionDeclarations")
_MOST_WRAPPERS = 4  # nested wrappers around a definition: a JSON-RPC answer, its result, an entry of its tools


class JsonListingSource:
    """A path to a JSON, JSONL or YAML file, or its value: a list of definitions, an object with ``tools``, or one; also
    the answer of MCP's ``tools/list`` with JSON-RPC's envelope, and Gemini's ``function_declarations``.

    A line of a JSONL file that is not JSON is refused; other lines are still read. An entry may have a ``server``
    (otherwise *server* is used), and an ``id`` that distinguishes it from others of the same name. Such tools can be
    found and shown, not called.
    """

    def __init__(self, listing: ListingInput, *, server: str = "", description: str = "a JSON listing") -> None:
        self._listing = Path(listing) if isinstance(listing, str) else listing
        self._server = server
        self.description = str(self._listing) if isinstance(self._listing, Path) else description

    def load(self) -> LoadReport:
        """Raises SourceError if the file cannot be read or holds no list of definitions."""
        document, bad_lines = self._read()
        reader = ListingReader(self.description, server=self._server)
        tools: list[Tool] = []
        refused = [Refusal(f"line {bad.line}", self.description, f"it is no JSON: {bad.reason}") for bad in bad_lines]
        for place, entry in enumerate(self._entries(document)):
            try:
                tools.append(reader.read(entry))
            except BadToolError as error:
                refused.append(Refusal(reader.name_for_people(entry, place), self.description, str(error)))
        return LoadReport(tuple(tools), tuple(refused))

    def close(self) -> None:
        """Does nothing, because nothing is open."""

    def _read(self) -> tuple[Json, Sequence[BadLine]]:
        if not isinstance(self._listing, Path):
            return self._listing, ()
        if not is_json_lines(self._listing):
            return read_document(self._listing), ()
        lines = read_json_lines(self._listing)
        return lines.values, lines.bad

    def _entries(self, document: Json) -> list[Json]:
        wrapper = as_object(document)
        if wrapper is None:
            if _is_collection(document):
                return [entry for each in document for entry in _unwrapped(each)]
        elif _is_wrapper(wrapper):
            return list(_unwrapped(wrapper))
        elif "name" in wrapper or "function" in wrapper:
            return [wrapper]
        elif "jsonrpc" in wrapper and "error" in wrapper:
            raise SourceError(f"{self.description} is an answer of JSON-RPC with an error, not with tools")
        raise SourceError(
            f"{self.description} is no listing of tools; give a list of definitions, or an object with 'tools'"
        )


class ListingReader:
    """Reads the entries of one listing, whose tools must have different names."""

    def __init__(self, description: str, *, server: str = "") -> None:
        self._description = description
        self._server = server
        self._taken: dict[str, str] = {}  # legal name -> the name in the listing

    def read(self, entry: Json, *, is_full_name: bool = False) -> Tool:
        """Read one entry. *is_full_name*: the name already begins with its server's name. Raises BadToolError."""
        fields = _fields(entry)
        read = read_tool(fields)
        server = text_in(fields, "server") or self._server
        name, title = read.name, read.title
        if not is_full_name:
            name, title = namespaced(server, name), title_with_name(title, name, server)
        if name in self._taken:
            name = self._another_name(name, read.name, fields)
        requests = tuple(as_texts(fields.get("requests")))
        definition = replace(read, name=name, title=title, server=server, tags=_tags(fields), requests=requests)
        self._taken[name] = read.name
        return Tool(definition, source=f"{self._description}#{read.name}")

    def _another_name(self, name: str, listed: str, fields: JsonObject) -> str:
        """Return *name* with a tail. The tail comes from the entry's id or, if only the legal names are equal, from its
        name.
        """
        identity = fields.get("id")
        if not isinstance(identity, (str, int)):
            if self._taken[name] == listed:
                raise BadToolError(f"another tool of this listing is named {name!r} too, and no id tells them apart")
            identity = listed
        other = distinct(name, str(identity))
        if other in self._taken:
            raise BadToolError(f"another tool of this listing has the same name {name!r} and the same id")
        return other

    def name_for_people(self, entry: Json, place: int) -> str:
        return _name_for_people(entry, place)


def _is_wrapper(entry: JsonObject) -> bool:
    """Whether *entry* contains definitions and is none itself."""
    if "name" in entry or "function" in entry:
        return False
    result = as_object(entry.get("result"))
    return any(as_list(entry.get(key)) is not None for key in _LIST_KEYS) or (
        result is not None and _is_wrapper(result)
    )


def _unwrapped(entry: Json, wrappers: int = _MOST_WRAPPERS) -> Iterator[Json]:
    fields = as_object(entry)
    if fields is None or not wrappers or not _is_wrapper(fields):
        yield entry
        return
    inner = [each for key in _LIST_KEYS for each in as_list(fields.get(key)) or ()]
    result = fields.get("result")
    for each in inner if result is None else [*inner, result]:
        yield from _unwrapped(each, wrappers - 1)


def _is_collection(value: Json) -> TypeGuard[Iterable[Json]]:
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes))


def _fields(entry: Json) -> JsonObject:
    fields = as_object(entry)
    if fields is None:
        raise BadToolError("it is not an object")
    return with_json_schema(tool_fields(fields))


def _tags(fields: JsonObject) -> tuple[str, ...]:
    if isinstance(fields.get("tags"), str):  # left out, a rule that denies the tag would let the tool through
        raise BadToolError("its tags must be a list of texts, not one text")
    tags = as_texts(fields.get("tags"))
    category = fields.get("category")
    return tuple(dict.fromkeys([*tags, category] if isinstance(category, str) and category else tags))


def _name_for_people(entry: Json, place: int) -> str:
    try:
        return text_in(_fields(entry), "name") or f"entry {place}"
    except BadToolError:
        return f"entry {place}"
