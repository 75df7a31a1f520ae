"""What the judges share: paths, JSON values, and the walk through a JSON Schema."""

import json
import math
import re
import sys
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module
from typing import Any, cast
from urllib.parse import unquote

# jsonschema carries no types of its own.
Draft202012Validator: Any = import_module("jsonschema").Draft202012Validator

# Where subschemas stand: JSON Schema 2020-12 core, sections 10 and 11, with the older keywords that the
# 2020-12 meta-schema still lists (definitions, dependencies) and those that older drafts had (additionalItems).
MAPS_OF_SCHEMAS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
LISTS_OF_SCHEMAS = ("allOf", "anyOf", "oneOf", "prefixItems")
SINGLE_SCHEMAS = (
    "additionalProperties",
    "additionalItems",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contains",
    "contentSchema",
    "propertyNames",
    "not",
    "if",
    "then",
    "else",
)
_META_VALIDATORS = {  # by whether patterns must be Python's
    python_patterns: Draft202012Validator(
        Draft202012Validator.META_SCHEMA,
        format_checker=Draft202012Validator.FORMAT_CHECKER if python_patterns else None,
    )
    for python_patterns in (True, False)
}
LOOKAROUND = re.compile(r"\(\?<?[=!]")
_PLAIN_KEY = re.compile(r"[A-Za-z_$][\w$-]*")
_HALF_A_PAIR = re.compile("[\ud800-\udfff]")


def as_map(value: object) -> Mapping[str, Any] | None:
    """The value as a JSON object, or None."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else None


def as_list(value: object) -> list[Any] | None:
    """The value as a JSON array, or None."""
    return list(cast("Iterable[Any]", value)) if isinstance(value, list | tuple) else None


def as_text(value: object) -> str | None:
    """The value as a string, or None."""
    return value if isinstance(value, str) else None


def at(path: str, *keys: str | int) -> str:
    """The path of something below `path`."""
    for key in keys:
        if isinstance(key, int):
            path = f"{path}[{key}]"
        elif _PLAIN_KEY.fullmatch(key):
            path = f"{path}.{key}" if path else key
        else:
            path = f"{path}[{json.dumps(key)}]"
    return path


def in_order(found: Iterable[str]) -> list[str]:
    """The findings without repeats."""
    return list(dict.fromkeys(found))


def unknown_keys(value: Mapping[str, Any], known: Iterable[str], path: str) -> Iterator[str]:
    """One finding for each key that the API does not know."""
    for key in value.keys() - set(known):
        yield f"{at(path, key)}: this field is not known here"


def broken_text(text: str) -> bool:
    """Whether the string holds half a surrogate pair, which no JSON parser must take."""
    return _HALF_A_PAIR.search(text) is not None


def bad_keys(entries: Mapping[Any, Any], path: str) -> Iterator[str]:
    """Keys that JSON text cannot carry."""
    for key in entries:
        if not isinstance(key, str):
            yield f"{path}: the key {key!r} is not a string"
        elif broken_text(key):
            yield f"{path}: a key holds half a surrogate pair"


def not_json(value: object, path: str = "") -> Iterator[str]:
    """Every value that JSON text cannot carry.

    Sources: RFC 8259 sections 6 (NaN and Infinity are not permitted) and 8 (strings are Unicode);
    anthropics/claude-code#60394 ("The request body is not valid JSON: no low surrogate in string").
    """
    waiting: list[tuple[str, object]] = [(path, value)]
    while waiting:
        here, item = waiting.pop()
        if isinstance(item, float) and not math.isfinite(item):
            yield f"{here}: {item} is not a JSON number"
        elif isinstance(item, str):
            if broken_text(item):
                yield f"{here}: the text holds half a surrogate pair"
        elif (entries := as_map(item)) is not None:
            yield from bad_keys(entries, here)
            waiting += [(at(here, str(key)), entry) for key, entry in entries.items()]
        elif (row := as_list(item)) is not None:
            waiting += [(at(here, place), entry) for place, entry in enumerate(row)]
        elif item is not None and not isinstance(item, bool | int | float):
            yield f"{here}: {type(item).__name__} is not a JSON value"


def below(schema: Mapping[str, Any], path: str) -> Iterator[tuple[str, Any]]:
    """The direct subschemas of one schema."""
    for keyword in MAPS_OF_SCHEMAS:
        for name, entry in (as_map(schema.get(keyword)) or {}).items():
            yield at(path, keyword, str(name)), entry
    for keyword in LISTS_OF_SCHEMAS:
        for place, entry in enumerate(as_list(schema.get(keyword)) or []):
            yield at(path, keyword, place), entry
    for keyword in SINGLE_SCHEMAS:
        if keyword in schema:
            yield at(path, keyword), schema[keyword]
    items = schema.get("items")
    row = as_list(items)
    if row is None and items is not None:
        yield at(path, "items"), items
    for place, entry in enumerate(row or []):
        yield at(path, "items", place), entry
    yield from below_dependencies(schema, path)


def below_dependencies(schema: Mapping[str, Any], path: str) -> Iterator[tuple[str, Any]]:
    """The subschemas under the old `dependencies`, whose entries may be lists of names."""
    for name, entry in (as_map(schema.get("dependencies")) or {}).items():
        if as_map(entry) is not None:
            yield at(path, "dependencies", str(name)), entry


def subschemas(schema: object, path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The schema and all schemas inside it, objects only; data in `enum`, `default` and the like is not entered."""
    waiting: list[tuple[str, object]] = [(path, schema)]
    while waiting:
        here, item = waiting.pop()
        found = as_map(item)
        if found is not None:
            yield here, found
            waiting += reversed(list(below(found, here)))


@contextmanager
def deep_recursion() -> Generator[None, None, None]:
    """Room for the recursive checks of very deep schemas."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, 10_000))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def draft_problems(schema: object, path: str, *, python_patterns: bool) -> list[str]:
    """Where the schema breaks JSON Schema draft 2020-12, by that draft's own meta-schema."""
    try:
        with deep_recursion():
            errors = _draft_errors(_Spelled(schema), python_patterns=python_patterns)
    except RecursionError:
        return [f"{path}: too deep to be checked"]
    return [f"{at(path, *keys)}: not valid in JSON Schema draft 2020-12: {message}" for keys, message in errors]


class _Spelled:
    """A schema that equals another one that is spelled alike; as plain values, ``True`` would equal ``1``."""

    def __init__(self, schema: object) -> None:
        self.schema = schema
        self._spelling = repr(schema)

    def __hash__(self) -> int:
        return hash(self._spelling)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Spelled) and self._spelling == other._spelling


@lru_cache(maxsize=1_000)  # requests that differ elsewhere have their schemas in common
def _draft_errors(spelled: _Spelled, *, python_patterns: bool) -> tuple[tuple[tuple[str | int, ...], str], ...]:
    """Of each error where it is in the schema, and what it says."""
    errors = _META_VALIDATORS[python_patterns].iter_errors(spelled.schema)
    return tuple((tuple(error.absolute_path), error.message[:200]) for error in errors)


def pointed_at(root: object, fragment: str) -> bool:
    """Whether a JSON pointer (RFC 6901) leads to something."""
    here = root
    for raw in fragment.split("/")[1:]:
        step = unquote(raw).replace("~1", "/").replace("~0", "~")
        entries, row = as_map(here), as_list(here)
        if entries is not None and step in entries:
            here = entries[step]
        elif row is not None and step.isdigit() and int(step) < len(row):
            here = row[int(step)]
        else:
            return False
    return True


def ref_resolves(root: Mapping[str, Any], ref: str) -> bool:
    """Whether a reference leads to a place in the same document."""
    base, _, fragment = ref.partition("#")
    if base and base != root.get("$id"):
        return any(base == inner.get("$id") for _, inner in subschemas(root, ""))
    if not fragment:
        return True
    if fragment.startswith("/"):
        return pointed_at(root, fragment)
    anchors = (inner.get(word) for _, inner in subschemas(root, "") for word in ("$anchor", "$dynamicAnchor"))
    return unquote(fragment) in anchors


def ref_problems(schema: Mapping[str, Any], path: str) -> Iterator[str]:
    """Every reference that leads nowhere, or out of the document."""
    for here, inner in subschemas(schema, path):
        for keyword in ("$ref", "$dynamicRef"):
            ref = as_text(inner.get(keyword))
            if ref is not None and not ref_resolves(schema, ref):
                yield f"{at(here, keyword)}: the reference {ref[:100]!r} leads nowhere in this schema"


def types_of(schema: Mapping[str, Any]) -> set[str]:
    """The type names that a schema declares."""
    declared = schema.get("type")
    if isinstance(declared, str):
        return {declared}
    return {name for name in as_list(declared) or [] if isinstance(name, str)}


def local_target(root: Mapping[str, Any], ref: str) -> object:
    """What a `#/...` reference points at, or None."""
    here: object = root
    for raw in ref.split("#", 1)[-1].split("/")[1:]:
        step = unquote(raw).replace("~1", "/").replace("~0", "~")
        here = (as_map(here) or {}).get(step)
    return here


def recursive(schema: Mapping[str, Any]) -> bool:
    """Whether references in the schema form a ring."""
    seen: set[str] = set()

    def rings(start: object, open_refs: frozenset[str]) -> bool:
        for _, inner in subschemas(without_definitions(start), ""):
            ref = as_text(inner.get("$ref"))
            if ref is None or not ref.startswith("#"):
                continue
            if ref in open_refs or ref == "#":
                return True
            if ref not in seen:
                seen.add(ref)
                if rings(local_target(schema, ref), open_refs | {ref}):
                    return True
        return False

    return rings(schema, frozenset())


def without_definitions(schema: object) -> object:
    """The schema less its definitions, which count only where something refers to them."""
    entries = as_map(schema)
    if entries is None:
        return schema
    return {key: entry for key, entry in entries.items() if key not in ("$defs", "definitions")}
