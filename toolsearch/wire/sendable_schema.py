"""The input schema of a tool in a form that every model API takes (see `toolsearch.wire.tool_rules`).

Older drafts are translated, missing keywords are added, and constraints that cannot be expressed are left out.
Arguments are validated against the original, so a looser schema only costs the model a hint. Nothing is fetched.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import isfinite
from typing import Final, TypeAlias, cast

from toolsearch.documents.json_values import as_texts, is_list
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.wire.request_parts import is_plain_object, itself_if_plain
from toolsearch.wire.tool_rules import MOST_LEVELS, MOST_SCHEMAS, References, is_common_pattern, sendable_keys

_Rewritten: TypeAlias = dict[str, Json]
_KeywordRewriter: TypeAlias = Callable[[_Rewritten, Json, JsonObject, str, int], None]

_LATEST: Final = "https://json-schema.org/draft/2020-12/schema"
_DEFINITIONS: Final = ("$defs", "definitions")
_TO_DEFINITION: Final = "#/$defs/"
_NAMES_OF_A_BASE: Final = frozenset({"$anchor", "$dynamicAnchor", "$id", "$recursiveAnchor", "$vocabulary"})
_FLAGS_OR_SCHEMAS: Final = frozenset({"additionalProperties", "unevaluatedItems", "unevaluatedProperties"})
_ONE_SCHEMA: Final = _FLAGS_OR_SCHEMAS | {"contains", "contentSchema", "else", "if", "not", "propertyNames", "then"}
_SCHEMA_LISTS: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_IN_PLACE: Final = ("$ref", "allOf", "anyOf", "oneOf", "not", "if", "then", "else")
_NOT_AT_THE_ROOT: Final = ("$ref", "allOf", "anyOf", "oneOf", "enum", "const", "not")

_TYPES: Final = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
_OTHER_TYPES: Final = {
    "bool": "boolean", "decimal": "number", "dict": "object", "double": "number", "float": "number", "int": "integer",
    "int32": "integer", "int64": "integer", "list": "array", "long": "integer", "map": "object", "none": "null",
    "str": "string", "text": "string", "tuple": "array",
}  # fmt: skip

_MOST_NOTES = 20
_SHOWN = 60  # characters of a name that a note shows


@dataclass(frozen=True, slots=True)
class SendableSchema:
    """*schema* is the one that was given if that can be sent.

    own_names  the tool's own name of each property that is sent under another one, by the sent name. No property has
               one of these names itself
    notes      sentences for people: constraints that were left out, and properties that were renamed
    """

    schema: JsonObject
    own_names: Mapping[str, str] = field(default_factory=dict[str, str])
    notes: tuple[str, ...] = ()


def sendable_schema(schema: JsonObject) -> SendableSchema:
    """Return *schema* as models may be sent it. Equal schemas give equal results; each is rewritten once."""
    return _looked_at(_Identity(schema))


@lru_cache(maxsize=20_000)
def _looked_at(key: _Identity) -> SendableSchema:
    root = itself_if_plain(key.schema)
    made = _Rewriting(root).whole()
    return replace(made, schema=key.schema) if made.schema is root else made


class _Identity:
    """A schema as the key of a cache, by identity. The key holds the schema, so that its id is not reused."""

    __slots__ = ("schema",)

    def __init__(self, schema: JsonObject) -> None:
        self.schema = schema

    def __hash__(self) -> int:
        return id(self.schema)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and other.schema is self.schema


class _Rewriting:
    """Rewrites one schema. Parts that need no change are returned as they are, not copied."""

    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._sent_names = sendable_keys(root)
        self._references = References(root)
        self._notes: dict[str, None] = {
            f"its parameter {_shown(own)} is called {sent!r}": None for own, sent in self._sent_names.items()
        }
        self._left = MOST_SCHEMAS
        self._keyword_rewriters: Mapping[str, _KeywordRewriter] = {
            "$ref": self._ref,
            "$dynamicRef": self._ref,
            "$recursiveRef": self._ref,
            "additionalItems": self._additional_items,
            "dependencies": self._dependencies,
            "dependentRequired": self._dependencies,
            "dependentSchemas": self._dependencies,
            "discriminator": self._discriminator,
            "enum": self._enum,
            "exclusiveMaximum": self._upper,
            "exclusiveMinimum": self._lower,
            "items": self._items,
            "maxItems": self._max_items,
            "maximum": self._upper,
            "minimum": self._lower,
            "pattern": self._pattern,
            "patternProperties": self._pattern_properties,
            "properties": self._properties,
            "required": self._required,
            "type": self._type,
        }

    def whole(self) -> SendableSchema:
        made = dict(self._schema(self._root, "", 0))
        definitions = self._all_definitions()
        if any(keyword in made for keyword in _NOT_AT_THE_ROOT):
            self._merge_alternatives(made, definitions)
        if made.get("type") != "object":
            made["type"] = "object"
        required = made.get("required", ())
        declared: JsonObject = made.get("properties", {})
        missing: _Rewritten = {name: {} for name in required if name not in declared}
        if missing or "properties" not in made:
            made["properties"] = {**declared, **missing}
        if definitions:
            given = self._root.get("$defs")
            made["$defs"] = given if is_plain_object(given) and _is_same(definitions, given) else definitions
        schema = self._with_dialect(made)
        return SendableSchema(_in_json(schema), _inverted(self._sent_names), self._note_texts())

    def _with_dialect(self, made: _Rewritten) -> JsonObject:
        """An older dialect is kept if the schema is valid in both; it would misread a translated schema."""
        declared = self._root.get("$schema")
        if isinstance(declared, str) and (declared == _LATEST or _is_same({**made, "$schema": declared}, self._root)):
            made = {"$schema": declared, **made}
        return self._root if _is_same(made, self._root) else made

    def _note_texts(self) -> tuple[str, ...]:
        notes = list(self._notes)
        more = [f"and {len(notes) - _MOST_NOTES} more changes"] if len(notes) > _MOST_NOTES else []
        return (*notes[:_MOST_NOTES], *more)

    def _note(self, place: str, said: str) -> None:
        if len(self._notes) <= 2 * _MOST_NOTES:
            self._notes[f"{_at(place)}: {said}"] = None

    # Schemas

    def _schema(self, value: Json, place: str, level: int) -> JsonObject:
        if not is_plain_object(value):
            if not isinstance(value, bool):
                self._note(place, "what is no schema is left out")
            return {"not": {}} if value is False else {}
        self._left -= 1
        if level > MOST_LEVELS or self._left < 0:
            self._note(place, "the rest is left out, since the schema is too large")
            return {}
        made: _Rewritten = {}
        for keyword, given in value.items():
            self._keyword(made, keyword, given, value, place, level)
        if "items" not in made and "array" in _type_list(made):
            made["items"] = {}
        return value if _is_same(made, value) else made

    def _keyword(self, made: _Rewritten, keyword: str, value: Json, node: JsonObject, place: str, level: int) -> None:
        own = self._keyword_rewriters.get(keyword)
        if own is not None:
            own(made, value, node, place, level)
        elif keyword in _ONE_SCHEMA:
            is_flag = keyword in _FLAGS_OR_SCHEMAS and isinstance(value, bool)
            made[keyword] = value if is_flag else self._schema(value, f"{place}.{keyword}", level + 1)
        elif keyword in _SCHEMA_LISTS:
            branches = self._schemas(value, f"{place}.{keyword}", level)
            if branches:
                made[keyword] = branches
        elif keyword in _IS_WELL_FORMED and not _IS_WELL_FORMED[keyword](value):
            self._note(place, f"{keyword!r} is left out, since {_json(value)} is none")
        elif keyword not in _NAMES_OF_A_BASE and keyword not in _DEFINITIONS and keyword != "$schema":
            made[str(keyword)] = value

    def _schemas(self, value: Json, place: str, level: int) -> list[Json] | None:
        """The list *value* of schemas, rewritten; None if it is empty or not a list."""
        given = list(value) if is_list(value) else []
        made: list[Json] = [self._schema(each, f"{place}[{at}]", level + 1) for at, each in enumerate(given)]
        if is_list(value) and all(new is old for new, old in zip(made, value, strict=True)):
            return value or None
        return made or None

    # Keywords that depend on other keywords

    def _ref(self, made: _Rewritten, value: Json, _node: JsonObject, place: str, _level: int) -> None:
        found = self._references.sent(value) if isinstance(value, str) else None
        if found is None:
            self._note(place, f"the reference to {_shown(value)} leads nowhere, and nothing is fetched")
        else:
            made["$ref"] = value if found == value else found

    def _type(self, made: _Rewritten, value: Json, _node: JsonObject, place: str, _level: int) -> None:
        given = list(value) if is_list(value) else [value]
        named = [_type_named(each) for each in given]
        known = [each for each in dict.fromkeys(named) if each]
        if known and len(known) == len(given):
            made["type"] = value if known == given else (known if len(known) > 1 else known[0])
        elif "any" not in given:
            self._note(place, f"the type {_json(value)} is left out, since there is no such type")

    def _enum(self, made: _Rewritten, value: Json, _node: JsonObject, place: str, _level: int) -> None:
        given = list(value) if is_list(value) else []
        different = list({json.dumps(each, sort_keys=True, default=str): each for each in given}.values())
        if different:
            made["enum"] = value if len(different) == len(given) else different
        else:
            self._note(place, "'enum' is left out, since it lists nothing")

    def _pattern(self, made: _Rewritten, value: Json, _node: JsonObject, place: str, _level: int) -> None:
        if isinstance(value, str) and is_common_pattern(value):
            made["pattern"] = value
        else:
            self._note(place, f"the pattern {_shown(value)} is left out, since not everybody can read it")

    def _pattern_properties(self, made: _Rewritten, value: Json, _node: JsonObject, place: str, level: int) -> None:
        kept: _Rewritten = {}
        for pattern, each in _parts(value):
            if is_common_pattern(pattern):
                kept[pattern] = self._schema(each, f"{place}.{{{pattern[:_SHOWN]}}}", level + 1)
            else:
                self._note(place, f"the properties {_shown(pattern)} are left out, since not everybody can read that")
        if kept:
            made["patternProperties"] = value if is_plain_object(value) and _is_same(kept, value) else kept

    def _bound(self, made: _Rewritten, node: JsonObject, place: str, *, inclusive: str, exclusive: str) -> None:
        """In draft 4, ``exclusiveMinimum`` is a flag that goes with ``minimum``."""
        bound, flag = node.get(inclusive), node.get(exclusive)
        if flag is True and _is_number(bound):
            made[exclusive] = bound
            return
        for keyword, value in ((inclusive, bound), (exclusive, flag)):
            if _is_number(value):
                made[keyword] = value
            elif value is not None and value is not False:
                self._note(place, f"{keyword!r} is left out, since {_json(value)} is none")

    def _lower(self, made: _Rewritten, _value: Json, node: JsonObject, place: str, _level: int) -> None:
        self._bound(made, node, place, inclusive="minimum", exclusive="exclusiveMinimum")

    def _upper(self, made: _Rewritten, _value: Json, node: JsonObject, place: str, _level: int) -> None:
        self._bound(made, node, place, inclusive="maximum", exclusive="exclusiveMaximum")

    def _items(self, made: _Rewritten, value: Json, node: JsonObject, place: str, level: int) -> None:
        first = node.get("prefixItems")
        if is_list(value):  # drafts before 2020-12 allow a list here
            first, value = value, node.get("additionalItems", True)
            made["prefixItems"] = self._schemas(first, place, level) or []
            if not made["prefixItems"]:
                del made["prefixItems"]
        if value is False:  # OpenAI refuses "items": false
            made["maxItems"] = _least(node.get("maxItems"), len(first) if is_list(first) else 0)
        made["items"] = {} if isinstance(value, bool) else self._schema(value, f"{place}[]", level + 1)

    def _max_items(self, made: _Rewritten, value: Json, _node: JsonObject, place: str, _level: int) -> None:
        if not _is_count(value):
            self._note(place, f"'maxItems' is left out, since {_json(value)} is none")
        elif "maxItems" not in made:
            made["maxItems"] = value

    def _properties(self, made: _Rewritten, value: Json, node: JsonObject, place: str, level: int) -> None:
        if not is_plain_object(value):
            self._note(place, "'properties' is left out, since it is no object")
            return
        properties: _Rewritten = {}
        for own, schema in value.items():
            if schema is False:
                self._note(place, f"{_shown(own)}, which may never be given, is left out")
                continue
            rewritten = self._schema(schema, f"{place}.{str(own)[:_SHOWN]}", level + 1)
            sent = self._sent(own)
            properties[sent] = rewritten if sent == own else _with_own_name(rewritten, own)
        made["properties"] = value if _is_same(properties, value) else properties
        flagged = [own for own, schema in value.items() if is_plain_object(schema) and schema.get("required") is True]
        if flagged and not is_list(node.get("required")):  # draft 3 has "required": true in the property itself
            made["required"] = list(map(self._sent, flagged))

    def _required(self, made: _Rewritten, value: Json, _node: JsonObject, place: str, _level: int) -> None:
        if isinstance(value, bool):
            return
        names = list(dict.fromkeys(map(self._sent, as_texts(value))))
        if names or value == []:
            made["required"] = value if names == value else names
        else:
            self._note(place, "'required' is left out, since it is no list of names")

    def _dependencies(self, made: _Rewritten, value: Json, _node: JsonObject, place: str, level: int) -> None:
        """The keyword for parts that depend on a property: other properties, or a schema. Before 2019-09 both had one
        keyword.
        """
        required: _Rewritten = {}
        schemas: _Rewritten = {}
        for own, each in _parts(value):
            if is_list(each) or isinstance(each, str):
                names = as_texts(each) if is_list(each) else [cast("str", each)]
                required[self._sent(own)] = list(dict.fromkeys(map(self._sent, names)))
            else:
                schemas[self._sent(own)] = self._schema(each, f"{place}.{str(own)[:_SHOWN]}", level + 1)
        for keyword, kept in (("dependentRequired", required), ("dependentSchemas", schemas)):
            before = made.get(keyword)
            if kept:
                made[keyword] = {**before, **kept} if before else value if kept == value else kept

    def _discriminator(self, made: _Rewritten, value: Json, _node: JsonObject, _place: str, _level: int) -> None:
        """OpenAPI's keyword. Its references would need to be kept in step, and the alternatives say the same."""
        name = dict(_parts(value)).get("propertyName")
        if isinstance(name, str):
            kept = {"propertyName": self._sent(name)}
            made["discriminator"] = value if kept == value else kept

    def _additional_items(self, made: _Rewritten, _value: Json, _node: JsonObject, _place: str, _level: int) -> None:
        """`_items` handles this keyword. Without a list of items it means nothing."""

    def _sent(self, own: str) -> str:
        return self._sent_names.get(own, str(own))

    # Definitions and the root

    def _all_definitions(self) -> dict[str, JsonObject]:
        """Every definition, including those that `References` makes for other places."""
        made: dict[str, JsonObject] = {}
        for name, target in self._references.definitions():
            made[name] = self._schema(target, f"$defs.{name}", 0)
        for name in _circular_names(made):
            self._note(f"$defs.{name}", "its references go round in a circle")
            made[name] = {keyword: value for keyword, value in made[name].items() if keyword not in _IN_PLACE}
        return made

    def _merge_alternatives(self, made: _Rewritten, definitions: JsonObject) -> None:
        """Make the root a plain object: the alternatives are merged, so that the model sees all properties."""
        if any(made.get(keyword) for keyword in ("anyOf", "oneOf")):
            self._note("", "the alternatives are laid over each other")
        properties, required = _merged(made, definitions, set())
        for keyword in _NOT_AT_THE_ROOT:
            made.pop(keyword, None)
        made["properties"] = properties
        if required:
            made["required"] = required


def _circular_names(definitions: Mapping[str, JsonObject]) -> Iterator[str]:
    """Yield the definitions that refer back to themselves in place: inlining them would never end.

    Once their in-place references are dropped, no such circle is left. Each definition is examined once.
    """
    done, path = set[str](), dict[str, Iterator[str]]()
    for first in definitions:
        if first in done:
            continue
        path[first] = _in_place_references(definitions[first])
        while path:
            name = next(reversed(path))
            reference = next(path[name], None)
            if reference is None or reference in path:
                if reference is not None:
                    yield name
                del path[name]
                done.add(name)
            elif reference in definitions and reference not in done:
                path[reference] = _in_place_references(definitions[reference])


def _in_place_references(schema: JsonObject) -> Iterator[str]:
    """The definitions that *schema* refers to in place, that is, without descending into the value."""
    waiting: list[Json] = [schema]
    while waiting:
        each = waiting.pop()
        if is_plain_object(each):
            if isinstance(reference := each.get("$ref"), str):
                yield reference.removeprefix(_TO_DEFINITION)
            waiting += [each[keyword] for keyword in _IN_PLACE if keyword in each]
        elif is_list(each):
            waiting += each


def _merged(
    schema: JsonObject, definitions: JsonObject, seen: set[str], level: int = 0
) -> tuple[dict[str, Json], list[str]]:
    """The properties of *schema* and its alternatives, and the names that each of them requires.

    The schema's own description of a property wins; if alternatives differ, both are allowed.
    """
    properties: dict[str, Json] = dict(schema.get("properties", {}))
    required = list(as_texts(schema.get("required")))
    always: list[Json] = list(schema.get("allOf", ()))
    reference = schema.get("$ref")
    if isinstance(reference, str) and (name := reference.removeprefix(_TO_DEFINITION)) not in seen:
        seen.add(name)
        always.insert(0, definitions.get(name, {}))
    if level > MOST_LEVELS:
        return properties, required
    for branch in always:
        more, needed = _merged(branch, definitions, seen, level + 1)
        properties = properties | {name: each for name, each in more.items() if name not in properties}
        required += [name for name in needed if name not in required]
    either: dict[str, list[Json]] = {}
    for keyword in ("anyOf", "oneOf"):
        for branch in schema.get(keyword, ()):
            for name, each in _merged(branch, definitions, seen, level + 1)[0].items():
                known = either.setdefault(name, [])
                if each not in known:
                    known.append(each)
    for name, choices in either.items():
        properties.setdefault(name, choices[0] if len(choices) == 1 else {"anyOf": choices})
    return properties, required


def _is_number(value: Json) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value)


def _is_count(value: Json) -> bool:
    return _is_number(value) and value >= 0 and value == int(value)


def _is_text(value: Json) -> bool:
    return isinstance(value, str)


def _is_flag(value: Json) -> bool:
    return isinstance(value, bool)


_IS_WELL_FORMED: Final[Mapping[str, Callable[[Json], bool]]] = {
    **dict.fromkeys(("$comment", "contentEncoding", "contentMediaType", "description", "format", "title"), _is_text),
    **dict.fromkeys(("deprecated", "readOnly", "uniqueItems", "writeOnly"), _is_flag),
    **dict.fromkeys(
        (
            "maxContains", "maxLength", "maxProperties", "minContains", "minItems", "minLength", "minProperties",
        ),
        _is_count,
    ),
    "examples": is_list,
    "multipleOf": lambda value: _is_number(value) and value > 0,
}  # fmt: skip


def _least(bound: Json, count: int) -> Json:
    return bound if _is_count(bound) and bound < count else count


def _type_named(value: Json) -> str:
    """The type that *value* names, also as another language's word or in upper case; "" if there is none."""
    if not isinstance(value, str):
        return ""
    name = value.lower()
    return name if name in _TYPES else _OTHER_TYPES.get(name, "")


def _type_list(schema: JsonObject) -> Sequence[str]:
    given: str | Sequence[str] = schema.get("type", ())
    return (given,) if isinstance(given, str) else given


def _with_own_name(schema: JsonObject, own: str) -> JsonObject:
    """Add the property's own name, because the tool's texts use that."""
    said = schema.get("description", "")
    return {**schema, "description": f"The tool's {_shown(own)}.{' ' if said else ''}{said}"}


def _parts(value: Json) -> Iterable[tuple[str, Json]]:
    return value.items() if is_plain_object(value) else ()


def _is_same(made: JsonObject, given: JsonObject) -> bool:
    """Whether nothing was rewritten: unchanged parts are the same objects."""
    return len(made) == len(given) and all(made.get(key, made) is value for key, value in given.items())


def _inverted(names: Mapping[str, str]) -> dict[str, str]:
    return {sent: own for own, sent in names.items()}


def _at(place: str) -> str:
    return place.lstrip(".")[-_SHOWN:] or "its schema"


def _shown(name: Json) -> str:
    text = str(name)
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")


def _json(value: Json) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _in_json(schema: JsonObject) -> JsonObject:
    """*schema* itself, unless it holds a lone surrogate, which UTF-8 cannot encode, or NaN, which JSON cannot."""
    try:
        json.dumps(schema, ensure_ascii=False, allow_nan=False, default=str).encode()
    except ValueError:
        text = in_unicode(json.dumps(schema, ensure_ascii=False, default=str))
        return cast("JsonObject", json.loads(text, parse_constant=lambda _: None))
    return schema


def in_unicode(text: str) -> str:
    """*text* with a mark in place of each lone surrogate."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
