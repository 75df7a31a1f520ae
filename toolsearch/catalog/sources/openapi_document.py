"""Reads an OpenAPI 3.0 or 3.1 document: its schemas as plain JSON Schema (2020-12), and its server's name.

References within the document are followed, never fetched.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import dropwhile, takewhile
from urllib.parse import unquote, urlsplit

from toolsearch.documents.json_values import as_list, as_object, as_texts, is_list, is_object, name_of_step
from toolsearch.errors import BadToolError
from toolsearch.tools.definition import legal_name
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.naming import in_words

MAX_DEPTH = 30  # levels of nested schemas, references not followed
MAX_NODES = 1_500  # schemas in one tool; the rest becomes schemas that admit any value
LEFT_OUT: JsonObject = {"description": "(left out: the whole schema is too large)"}
_TYPES = frozenset({"null", "boolean", "object", "array", "number", "string", "integer"})
_TEXTS = frozenset({"title", "description", "format", "pattern", "contentEncoding", "contentMediaType"})
_FLAGS = frozenset({"deprecated", "uniqueItems", "writeOnly"})
_NUMBERS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
_COUNTS = frozenset({"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"})
_ANY_VALUE = frozenset({"default", "const"})

_ONE_SCHEMA = frozenset(
    {"items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames", "unevaluatedProperties"}
)

_SCHEMA_LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})


@dataclass(frozen=True, slots=True)
class Converted:
    """A schema, the references in it (``#/...`` pointers into the document, each once), and the number of schemas in
    it.
    """

    schema: JsonObject
    references: tuple[str, ...]
    nodes: int


def convert_schema(schema: Json, definition_name: Callable[[str], str]) -> Converted:
    """Convert *schema* for the data that a client sends: read-only properties are removed.

    definition_name  returns the name in ``$defs`` for a reference, or raises if it cannot be followed
    """
    conversion = _Conversion(definition_name)
    converted = conversion.convert(schema, depth=0)
    root = as_object(converted)
    return Converted(root or {}, tuple(conversion.references), conversion.nodes)


class _Conversion:
    def __init__(self, definition_name: Callable[[str], str]) -> None:
        self._definition_name = definition_name
        self.references: dict[str, None] = {}  # an ordered set
        self.nodes = 0

    def convert(self, value: Json, depth: int) -> Json:
        schema = as_object(value)
        if schema is None:
            return value if isinstance(value, bool) else {}
        self.nodes += 1
        if self.nodes > MAX_NODES or depth > MAX_DEPTH:
            return LEFT_OUT
        reference = schema.get("$ref")
        result = self._reference(reference, schema) if isinstance(reference, str) else self._keywords(schema, depth)
        return _nullable(result) if schema.get("nullable") is True else result

    def _reference(self, reference: str, schema: JsonObject) -> dict[str, Json]:
        name = self._definition_name(reference)
        self.references[reference] = None
        description = schema.get("description")
        beside = {"description": description} if isinstance(description, str) else {}
        return {"$ref": f"#/$defs/{name}", **beside}

    def _keywords(self, schema: JsonObject, depth: int) -> dict[str, Json]:
        result: dict[str, Json] = {}
        for key, value in schema.items():
            if key in _ANY_VALUE or _is_well_formed(key, value):
                result[key] = value
            elif key in _ONE_SCHEMA and isinstance(value, (dict, bool)):
                result[key] = self.convert(value, depth + 1)
            elif key in _SCHEMA_LISTS and as_list(value):
                result[key] = [self.convert(each, depth + 1) for each in as_list(value) or ()]
        result |= _types(schema) | _enum(schema) | self._properties(schema, depth)
        _number_bounds(schema, result)
        return result

    def _properties(self, schema: JsonObject, depth: int) -> dict[str, Json]:
        properties = as_object(schema.get("properties"))
        if properties is None:
            return {}
        writable = {str(name): each for name, each in properties.items() if not _is_read_only(each)}
        required = [name for name in dict.fromkeys(as_texts(schema.get("required"))) if name in writable]
        converted = {name: self.convert(each, depth + 1) for name, each in writable.items()}
        return {"properties": converted} | ({"required": required} if required else {})


def _is_well_formed(keyword: str, value: Json) -> bool:
    """Whether *keyword* has a plain value, and *value* is of the right kind."""
    if isinstance(value, str):
        return keyword in _TEXTS
    if isinstance(value, bool):
        return keyword in _FLAGS
    if isinstance(value, int) and keyword in _COUNTS:
        return value >= 0
    return isinstance(value, (int, float)) and (keyword in _NUMBERS or (keyword == "multipleOf" and value > 0))


def _types(schema: JsonObject) -> dict[str, Json]:
    declared = schema.get("type")
    if isinstance(declared, str):
        return {"type": declared} if declared in _TYPES else {}
    known = [name for name in dict.fromkeys(as_texts(declared)) if name in _TYPES]
    return {"type": known} if known else {}


def _enum(schema: JsonObject) -> dict[str, Json]:
    values = as_list(schema.get("enum"))
    return {"enum": list(values)} if values else {}


def _is_read_only(schema: Json) -> bool:
    return is_object(schema) and schema.get("readOnly") is True


def _number_bounds(schema: JsonObject, result: dict[str, Json]) -> None:
    """OpenAPI 3.0 writes ``exclusiveMinimum: 0`` as ``minimum: 0, exclusiveMinimum: true``."""
    for inclusive, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if schema.get(exclusive) is True and inclusive in result:
            result[exclusive] = result.pop(inclusive)


def _nullable(schema: Json) -> Json:
    """Admit null, which OpenAPI 3.0 writes as ``nullable: true``."""
    if not is_object(schema) or not schema or "$ref" in schema or not isinstance(schema.get("type"), str):
        return {"anyOf": [schema, {"type": "null"}]} if schema else schema
    values: list[Json] | None = schema.get("enum")
    with_null = {"enum": [*values, None]} if values is not None and None not in values else {}
    return {**schema, "type": list(dict.fromkeys([schema["type"], "null"])), **with_null}


_MAX_CHAIN = 20  # references that lead to references


class SchemaLibrary:
    """The schemas of one document. Each is converted once and shared by all tools that use it, also in memory.

    References are kept, so the time grows only with the size of the document, and a cycle of references stays a cycle.
    """

    def __init__(self, document: JsonObject) -> None:
        self._document = document
        self._names: dict[str, str] = {}  # reference -> name
        self._taken: set[str] = set()
        self._converted: dict[str, Converted] = {}

    def convert(self, schema: Json) -> Converted:
        """Raises BadToolError if a reference leads out of the document or nowhere."""
        return convert_schema(schema, self._name)

    def definitions(self, *users: Converted) -> dict[str, Json]:
        """Return the ``$defs`` that *users* need, nearest first; beyond `MAX_NODES` schemas, definitions admit any
        value.
        """
        budget = MAX_NODES - sum(user.nodes for user in users)
        waiting = deque(reference for user in users for reference in user.references)
        definitions: dict[str, Json] = {}
        while waiting:
            reference = waiting.popleft()
            name = self._name(reference)
            if name in definitions:
                continue
            converted = self._component(reference)
            if converted.nodes > budget:
                definitions[name] = LEFT_OUT
                continue
            budget -= converted.nodes
            definitions[name] = converted.schema
            waiting.extend(converted.references)
        return definitions

    def follow(self, value: Json) -> Json:
        """Return *value* or, if it is a reference, its target. Raises BadToolError as `convert` does."""
        for _ in range(_MAX_CHAIN):
            reference = value.get("$ref") if is_object(value) else None
            if not isinstance(reference, str):
                return value
            value = self._look_up(reference)
        raise BadToolError("its references go round in a circle")

    def _component(self, reference: str) -> Converted:
        if reference not in self._converted:
            self._converted[reference] = self.convert(self._look_up(reference))
        return self._converted[reference]

    def _name(self, reference: str) -> str:
        if reference not in self._names:
            self._look_up(reference)
            base = legal_name(unquote(reference.rpartition("/")[2])) or "schema"
            name, number = base, 2
            while name in self._taken:
                name, number = f"{base}_{number}", number + 1
            self._taken.add(name)
            self._names[reference] = name
        return self._names[reference]

    def _look_up(self, reference: str) -> Json:
        if not reference.startswith("#/"):
            raise BadToolError(f"it refers to {reference!r}, outside of this document, and nothing is fetched")
        found: Json = self._document
        for step in reference[2:].split("/"):
            key = name_of_step(unquote(step))
            if is_object(found) and key in found:
                found = found[key]
            elif is_list(found) and key.isdecimal() and int(key) < len(found):
                found = found[int(key)]
            else:
                raise BadToolError(f"it refers to {reference!r}, which is not in the document")
        return found


_MAX_LENGTH = 24  # characters; the name precedes each tool's name, and names have at most 64
_POSSESSIVE = re.compile(r"['’]s\b")  # noqa: RUF001
_VARIABLE = re.compile(r"\{[^{}]*\}")


# Version words, and single letters such as the s of "its".
_VERSION = re.compile(r"v?[0-9]+((alpha|beta|rc)[0-9]*)?|[a-z]")

_FILLER = frozenset(  # words that say nothing about an API
    """
    a an and api apis apiv app application backend beta client clients definition definitions developer developers
    doc docs document documentation fastapi for http https in interface json management my new of official open
    openapi our platform public reference rest restful schema server service services spec specification specs
    swagger the to version web with yaml your
    """.split()  # noqa: SIM905
)

_FILLER_IN_HOSTS = _FILLER | frozenset(  # adds words that say what a host is for or stand for a customer's name
    """
    company demo dev development domain gateway host instance live mock prod production sandbox secure stage staging
    subdomain tenant test testing www
    """.split()  # noqa: SIM905
)

_SHARED_HOSTS = frozenset(  # hosts of examples, and companies that host many APIs or those of others
    """
    amazonaws apigee appspot azure azurestack azurewebsites cloudfront cloudfunctions example githubusercontent
    googleapis herokuapp netlify ngrok onrender pstmn rapidapi swagger swaggerhub vercel workers
    """.split()  # noqa: SIM905
)

_NOBODYS_ENDINGS = frozenset(
    {"arpa", "example", "external", "home", "internal", "invalid", "lan", "local", "localhost", "test"}
)


# First part of two-part endings such as co.uk and com.au.
_SECOND_LEVEL = frozenset({"ac", "co", "com", "edu", "gov", "net", "org"})
_LETTERS_OF_A_COUNTRY = 2
_ANYTHING = "*"


def server_name(document: JsonObject, file_name: str = "") -> str:
    """Return a short name that depends on this document alone: ``github`` for ``https://api.github.com``.

    It is made of the first server's host, or else of the title, of *file_name*, or of the title with all its words;
    "" if none of these has a letter or digit of A-Z, a-z, 0-9.
    """
    title = (as_object(document.get("info")) or {}).get("title")
    words = _words(title) if isinstance(title, str) else []
    candidates = (_telling_of_host(document), _telling(words), _telling(_words(file_name)), words)
    return next((name for telling in candidates if (name := _joined(telling))), "")


def _telling_of_host(document: JsonObject) -> list[str]:
    """``["adyen", "checkout"]`` of ``checkout-test.adyen.com``: the domain's own name comes before its subdomains."""
    labels = _own_labels(document)
    if not labels or labels[-1] in _SHARED_HOSTS:
        return []
    *inner, domain = map(_telling_in_label, labels)
    return [*domain, *(word for label in inner for word in label)] if domain else []


def _telling_in_label(label: str) -> list[str]:
    return [word for word in legal_name(label).split("-") if word and not _is_filler(word, _FILLER_IN_HOSTS)]


def _own_labels(document: JsonObject) -> list[str]:
    """The labels of the first server's host without its ending; none if the host does not show its owner.

    A label with a variable belongs to a customer, and is left out.
    """
    servers = as_list(document.get("servers")) or ()
    url = (as_object(servers[0]) or {}).get("url") if servers else None
    *inner, ending = _host_in(url).rstrip(".").split(".")
    ending = ending.removesuffix(_ANYTHING)  # removes a base path in a variable
    labels = [label for label in inner if _ANYTHING not in label]
    if not labels or not ending.isalpha() or ending in _NOBODYS_ENDINGS:
        return []
    if len(ending) == _LETTERS_OF_A_COUNTRY and labels[-1] in _SECOND_LEVEL:
        labels.pop()
    return labels


def _host_in(url: Json) -> str:
    try:
        return urlsplit(_VARIABLE.sub(_ANYTHING, url)).hostname or "" if isinstance(url, str) else ""
    except ValueError:
        return ""


def _words(text: str) -> list[str]:
    """The words in lower case. An identifier that ends in a filler word is split into its words: ``ComputeClient``."""
    words: list[str] = []
    for word in filter(None, re.split(r"[_-]+", legal_name(_POSSESSIVE.sub("", text)))):
        parts, whole = in_words(word).split(), word.lower()
        words += parts if parts[-1] in _FILLER and whole not in _FILLER else [whole]
    return words


def _telling(words: Iterable[str]) -> list[str]:
    """The first words that are not filler, up to the next filler word."""
    return list(takewhile(lambda word: not _is_filler(word), dropwhile(_is_filler, words)))


def _is_filler(word: str, filler: AbstractSet[str] = _FILLER) -> bool:
    return word in filler or _VERSION.fullmatch(word) is not None


def _joined(words: list[str]) -> str:
    """As many of *words* as fit, at least the beginning of the first."""
    name = "_".join(words)[: _MAX_LENGTH + 1]
    whole, _, _ = name.rpartition("_") if len(name) > _MAX_LENGTH else (name, "", "")
    return whole or name[:_MAX_LENGTH]
