"""The operations of an OpenAPI 3.0 or 3.1 document as a source of tools."""

from __future__ import annotations

import string
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast, get_args

from toolsearch.catalog.source import LoadReport
from toolsearch.catalog.sources.openapi_document import Converted, SchemaLibrary, server_name
from toolsearch.catalog.sources.openapi_requests import (
    PLACEHOLDER,
    Argument,
    ArgumentPlace,
    OpenApiCallback,
    Operation,
    SendRequest,
)
from toolsearch.documents.json_values import as_list, as_object, as_texts, is_object
from toolsearch.documents.reading import read_document
from toolsearch.errors import BadToolError, SourceError
from toolsearch.tools.definition import DESTRUCTIVE, IDEMPOTENT, READ_ONLY, Refusal, Tool, ToolDefinition, legal_name
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.naming import MAX_NAME_LENGTH, all_namespaced, distinct, namespaced, title_with_name

_PLACES = frozenset(get_args(ArgumentPlace)) - {"body", "field"}
_IGNORED_HEADERS = frozenset({"accept", "content-type", "authorization"})  # OpenAPI says to ignore these as parameters


# Characters that model APIs take in property names.
_PROPERTY_CHARACTERS = frozenset(string.ascii_letters + string.digits + "_.-")
_FLAT_KEYWORDS = frozenset({"type", "title", "description", "properties", "required", "default", "deprecated"})
_IDLE_KEYWORDS = frozenset({"example", "examples", "externalDocs", "xml", "nullable", "discriminator"})


@dataclass(frozen=True, slots=True)
class DocumentOperation:
    """One operation of the document.

    method    lower case
    item      the path item, which holds the common part of all methods of the path
    details   the operation itself
    security  the document's default security, for operations without their own
    """

    method: str
    path: str
    item: JsonObject
    details: JsonObject
    security: Json = None

    @property
    def own_name(self) -> str:
        """The operationId or, without one, method and path."""
        given = self.details.get("operationId")
        return given if isinstance(given, str) and given else f"{self.method} {self.path}"


def read_operation(library: SchemaLibrary, endpoint: DocumentOperation, base_url: str) -> tuple[Operation, JsonObject]:
    """Return the operation to send, and the input schema that merges parameters and body.

    If two properties have one name, the later one is prefixed with its place. Raises BadToolError if a reference cannot
    be followed or a path parameter is missing.
    """
    merger = _Merger(library)
    for parameter in _parameters(library, endpoint):
        merger.add_parameter(parameter)
    merger.require_declared(endpoint.path)
    content_type = merger.add_body(as_object(library.follow(endpoint.details.get("requestBody"))))
    operation = Operation(
        endpoint.method.upper(),
        base_url,
        endpoint.path,
        tuple(merger.arguments),
        content_type=content_type,
        security=_security(endpoint),
    )
    return operation, merger.schema()


def _security(endpoint: DocumentOperation) -> tuple[tuple[str, ...], ...]:
    ways = as_list(endpoint.details.get("security", endpoint.security)) or ()
    return tuple(tuple(sorted(way)) for way in ways if is_object(way))


def _parameters(library: SchemaLibrary, endpoint: DocumentOperation) -> list[JsonObject]:
    """Return the parameters of path and operation; those of the operation replace others with the same name and
    place.
    """
    found: dict[tuple[str, str], JsonObject] = {}
    for holder in (endpoint.item, endpoint.details):
        for entry in as_list(holder.get("parameters")) or ():
            parameter = as_object(library.follow(entry))
            if parameter is not None and isinstance(parameter.get("name"), str):
                found[parameter["name"], str(parameter.get("in"))] = parameter
    return list(found.values())


class _Merger:
    def __init__(self, library: SchemaLibrary) -> None:
        self.arguments: list[Argument] = []
        self._library = library
        self._properties: dict[str, Json] = {}
        self._required: list[str] = []
        self._parts: list[Converted] = []

    def add_parameter(self, parameter: JsonObject) -> None:
        name: str = parameter["name"]
        place = parameter.get("in")
        if (
            not isinstance(place, str)
            or place not in _PLACES
            or (place == "header" and name.lower() in _IGNORED_HEADERS)
        ):
            return
        media_type, content = _preferred(as_object(parameter.get("content")) or {})
        schema = content.get("schema") if media_type else parameter.get("schema", {})
        style = str(parameter.get("style") or "form")
        argument = Argument(
            property_name=self._free_name(name, place),
            name=name,
            place=cast("ArgumentPlace", place),
            style=style,
            explode=bool(parameter.get("explode", style == "form")),
            as_json=_is_json(media_type),
        )
        self._put(argument, schema, parameter, required=place == "path" or parameter.get("required") is True)

    def require_declared(self, path: str) -> None:
        declared = {argument.name for argument in self.arguments if argument.place == "path"}
        for name in PLACEHOLDER.findall(path):
            if name not in declared:
                raise BadToolError(f"the path has {{{name}}}, but no path parameter has that name")

    def add_body(self, body: JsonObject | None) -> str:
        """Add the body: the fields of a plain object one by one, anything else as one property; return its type."""
        media_type, content = _preferred(as_object((body or {}).get("content")) or {})
        if body is None or not media_type:
            return ""
        is_required = body.get("required") is True
        schema = as_object(self._library.follow(content.get("schema", {}))) or {}
        properties = as_object(schema.get("properties"))
        if properties and _is_flat(schema):
            required = as_texts(schema.get("required")) if is_required else []
            for name, field_schema in properties.items():
                if (as_object(field_schema) or {}).get("readOnly") is not True:
                    argument = Argument(self._free_name(str(name), "body"), str(name), "field")
                    self._put(argument, field_schema, {}, required=name in required)
        else:
            argument = Argument(self._free_name("body", "request"), "body", "body")
            self._put(argument, content.get("schema", {}), body, required=is_required)
        return media_type

    def schema(self) -> JsonObject:
        definitions = self._library.definitions(*self._parts)
        return {
            "type": "object",
            "properties": self._properties,
            **({"required": self._required} if self._required else {}),
            "additionalProperties": False,
            **({"$defs": definitions} if definitions else {}),
        }

    def _put(self, argument: Argument, schema: Json, holder: JsonObject, *, required: bool) -> None:
        converted = self._library.convert(schema)
        self._parts.append(converted)
        schema_text, holder_text = (_text_of(each.get("description")) for each in (converted.schema, holder))
        description = title_with_name(holder_text or schema_text, argument.name)
        told = {"description": description} if description else {}
        deprecated = {"deprecated": True} if holder.get("deprecated") is True else {}
        self._properties[argument.property_name] = {**converted.schema, **told, **deprecated}
        self.arguments.append(argument)
        if required:
            self._required.append(argument.property_name)

    def _free_name(self, name: str, prefix: str) -> str:
        legal = name if 0 < len(name) <= MAX_NAME_LENGTH and _PROPERTY_CHARACTERS.issuperset(name) else ""
        wanted = legal or (namespaced("", name) if legal_name(name) else distinct(prefix, name))
        if wanted in self._properties:
            wanted = f"{prefix}_{wanted}"
        return distinct(wanted, f"{prefix} {name}") if wanted in self._properties else wanted[:MAX_NAME_LENGTH]


def _is_flat(schema: JsonObject) -> bool:
    """Whether the schema consists of nothing but properties, so that they can become parameters."""
    said = {key for key in schema if not key.startswith("x-")} - _IDLE_KEYWORDS
    if schema.get("additionalProperties") is False:
        said.discard("additionalProperties")
    return said <= _FLAT_KEYWORDS and schema.get("type", "object") == "object"


def _preferred(content: JsonObject) -> tuple[str, JsonObject]:
    """Return the media type to use (JSON if offered, else the first) and its description in the document."""
    offered = {kind: each for kind, value in content.items() if (each := as_object(value)) is not None}
    kind = next((kind for kind in offered if _is_json(kind)), next(iter(offered), ""))
    return kind, offered.get(kind, {})


def _is_json(media_type: str) -> bool:
    kind = media_type.partition(";")[0].strip().lower()
    return kind == "application/json" or kind.endswith("+json")


def _text_of(value: Json) -> str:
    return value if isinstance(value, str) else ""


_REQUESTS = "x-toolsearch-requests"  # key in an operation: requests of users who need it

_HINTS: dict[str, dict[str, bool]] = {  # HTTP defines which methods are safe or idempotent
    "get": {READ_ONLY: True},
    "head": {READ_ONLY: True},
    "options": {READ_ONLY: True},
    "trace": {READ_ONLY: True},
    "post": {READ_ONLY: False},
    "patch": {READ_ONLY: False},
    "put": {READ_ONLY: False, IDEMPOTENT: True},
    "delete": {READ_ONLY: False, DESTRUCTIVE: True, IDEMPOTENT: True},
}


class OpenApiSource:
    """Each operation is a tool, named by its operationId or by method and path.

    server  prefix of the names; ``""`` leaves it out. None makes one of the document's host, title or file, see
            `server_name`
    caller  sends the requests and returns the answer for the model; without it the tools can only be found and shown
    """

    def __init__(
        self,
        document: str | Path | Mapping[str, Json],
        *,
        server: str | None = None,
        caller: SendRequest | None = None,
        description: str = "an OpenAPI document",
    ) -> None:
        self._document = Path(document) if isinstance(document, str) else document
        self._server = server
        self._caller = caller
        self.description = str(self._document) if isinstance(self._document, Path) else description

    def load(self) -> LoadReport:
        """Raises SourceError if the document cannot be read or is of another version."""
        document = _supported(self._read(), self.description)
        file_name = self._document.stem if isinstance(self._document, Path) else ""
        server = server_name(document, file_name) if self._server is None else self._server
        reader = _Reader(document, server, self._caller, self.description)
        reader.read()
        return LoadReport(tuple(reader.tools), tuple(reader.refused), {server: _purpose(document)})

    def close(self) -> None:
        """Does nothing; the owner of *caller* has to close it."""

    def _read(self) -> Json:
        return read_document(self._document) if isinstance(self._document, Path) else self._document


class _Reader:
    """Goes through one document once."""

    def __init__(self, document: JsonObject, server: str, caller: SendRequest | None, description: str) -> None:
        self.tools: list[Tool] = []
        self.refused: list[Refusal] = []
        self._document = document
        self._library = SchemaLibrary(document)
        self._server = server
        self._caller = caller
        self._description = description

    def read(self) -> None:
        endpoints = list(self._endpoints())
        names = all_namespaced(self._server, (endpoint.own_name for endpoint in endpoints))
        for endpoint in endpoints:
            self._take(names[endpoint.own_name], endpoint)

    def _endpoints(self) -> Iterator[DocumentOperation]:
        for path, entry in (as_object(self._document.get("paths")) or {}).items():
            try:
                item = as_object(self._library.follow(entry)) or {}
            except BadToolError as error:
                self.refused.append(Refusal(path, self._description, str(error)))
                continue
            for method in _HINTS:
                details = as_object(item.get(method))
                if details is not None:
                    yield DocumentOperation(method, path, item, details, self._document.get("security"))

    def _take(self, name: str, endpoint: DocumentOperation) -> None:
        try:
            self.tools.append(self._make_tool(name, endpoint))
        except BadToolError as error:
            self.refused.append(Refusal(name, self._description, str(error)))

    def _make_tool(self, name: str, endpoint: DocumentOperation) -> Tool:
        base_url = _base_url(endpoint.details, endpoint.item, self._document)
        operation, input_schema = read_operation(self._library, endpoint, base_url)
        definition = ToolDefinition(
            name=name,
            description=_description(endpoint.details),
            input_schema=input_schema,
            title=title_with_name("", endpoint.own_name, self._server),
            annotations=_HINTS[endpoint.method],
            server=self._server,
            tags=tuple(as_texts(endpoint.details.get("tags"))),
            requests=tuple(as_texts(endpoint.details.get(_REQUESTS))),
        )
        callback = OpenApiCallback(operation, self._caller) if self._caller else None
        return Tool(definition, callback, source=f"{self._description}#{endpoint.method.upper()} {endpoint.path}")


def _supported(document: Json, description: str) -> JsonObject:
    fields = as_object(document) or {}
    version = str(fields.get("openapi") or fields.get("swagger") or "none")
    if not version.startswith("3."):
        raise SourceError(f"{description} says OpenAPI version {version}; only 3.x can be read: convert it first")
    return fields


def _purpose(document: JsonObject) -> str:
    """The purpose of the whole API, from the document's ``info``."""
    info = as_object(document.get("info")) or {}
    return next(filter(None, (_text(info.get(key)) for key in ("summary", "description", "title"))), "")


def _description(details: JsonObject) -> str:
    summary, description = (_text(details.get(key)) for key in ("summary", "description"))
    parts = [description] if description.startswith(summary) else [summary, description]
    if details.get("deprecated") is True:
        parts.insert(0, "Deprecated.")
    return "\n\n".join(part for part in parts if part)


def _base_url(*holders: JsonObject) -> str:
    """Return the first server's address, with its variables at their defaults; the innermost level with servers
    wins.
    """
    for holder in holders:
        for entry in as_list(holder.get("servers")) or ():
            server = as_object(entry) or {}
            url = _text(server.get("url"))
            for name, variable in (as_object(server.get("variables")) or {}).items():
                url = url.replace(f"{{{name}}}", _text((as_object(variable) or {}).get("default")))
            return url
    return ""


def _text(value: Json) -> str:
    return value.strip() if isinstance(value, str) else ""
