"""What model APIs refuse of a tool's definition, written from their documents and from what users report of them.

A request is refused whole for one such definition. `refusals` says why it would be.
"""

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

KEY = re.compile(r"^[a-zA-Z0-9_.-]{1,64}\Z")
NAME = re.compile(r"^[a-zA-Z0-9_-]{1,64}\Z")
LONGEST_DESCRIPTION = {"openai": 1_024, "openai-responses": 1_024}
NOT_AT_THE_ROOT = {"anyOf", "oneOf", "allOf", "enum", "const", "not", "$ref"}
ONE = {
    "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames", "then",
    "unevaluatedItems", "unevaluatedProperties",
}  # fmt: skip
SEVERAL = {"allOf", "anyOf", "oneOf", "prefixItems"}
NAMED = {"$defs", "dependentSchemas", "patternProperties", "properties"}
OF_OLDER_DRAFTS = {"definitions", "dependencies", "additionalItems", "$recursiveRef"}


def refusals(entry: dict[str, Any], wire_format: str) -> list[str]:
    """Why a request with *entry* in its tool list would be refused; none if it would not be."""
    try:
        text = json.dumps(entry, ensure_ascii=False, allow_nan=False)
        text.encode()
    except ValueError as error:
        return [f"it is no JSON in UTF-8: {error}"]
    entry = json.loads(text)
    fields = entry["function"] if wire_format == "openai" else entry
    key = {"mcp": "inputSchema", "anthropic": "input_schema"}.get(wire_format, "parameters")
    is_valid = not list(_of_draft(fields[key]))
    return [
        *([] if NAME.match(fields["name"]) else ["its name"]),
        *_of_description(fields.get("description", ""), LONGEST_DESCRIPTION.get(wire_format)),
        *_of_root(fields[key]),
        *_of_draft(fields[key]),
        *(f"{place}: {why}" for place, why in (_of_schemas(fields[key]) if is_valid else ())),
    ]


def _of_description(description: str, most: int | None) -> list[str]:
    units = len(description.encode("utf-16-le")) // 2
    return [] if most is None or units <= most else [f"its description has {units} characters"]


def _of_root(schema: dict[str, Any]) -> Iterator[str]:
    if not isinstance(schema.get("required", []), list):
        return
    if schema.get("type") != "object":
        yield "the root is no object"
    if not isinstance(schema.get("properties"), dict):
        yield "object schema missing properties"
    else:
        yield from (
            f"{name!r} is required and no property"
            for name in set(schema.get("required", [])) - set(schema["properties"])
        )
    yield from (f"{keyword} at the root" for keyword in NOT_AT_THE_ROOT & schema.keys())


def _of_draft(schema: dict[str, Any]) -> list[str]:
    try:
        Draft202012Validator.check_schema({**schema, "$schema": "https://json-schema.org/draft/2020-12/schema"})
    except SchemaError as error:
        return [f"not valid by draft 2020-12 at {list(error.absolute_path)}: {error.message:.200}"]
    return []


def _of_schemas(root: dict[str, Any]) -> Iterator[tuple[str, str]]:
    waiting: list[tuple[str, Any]] = [("", root)]
    while waiting:
        place, schema = waiting.pop()
        if isinstance(schema, dict):
            yield from ((place, why) for why in _of_schema(root, schema))
            waiting += [(f"{place}/{step}", each) for step, each in _inner(schema)]


def _inner(schema: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for keyword, value in schema.items():
        if keyword in ONE:
            yield keyword, value
        elif keyword in SEVERAL:
            yield from ((f"{keyword}/{at}", each) for at, each in enumerate(value))
        elif keyword in NAMED:
            yield from ((f"{keyword}/{name}", each) for name, each in value.items())


def _of_schema(root: dict[str, Any], schema: dict[str, Any]) -> Iterator[str]:
    yield from (f"{keyword} is of an older draft" for keyword in OF_OLDER_DRAFTS & schema.keys())
    properties = schema.get("properties", {})
    yield from (f"key {name!r}" for name in properties if not KEY.match(name))
    yield from (f"{name!r} has a flag for a schema" for name, each in properties.items() if isinstance(each, bool))
    values = [json.dumps(value, sort_keys=True) for value in schema.get("enum", ["one"])]
    if not values or len(set(values)) < len(values):
        yield "an enum of nothing, or of one value twice"
    types = schema.get("type", [])
    if "array" in (types if isinstance(types, list) else [types]) and not isinstance(schema.get("items"), dict):
        yield "array schema missing items"
    reference = schema.get("$ref")
    if reference is not None and not _leads_to_a_definition(root, reference):
        yield f"the reference {reference!r}"


def _leads_to_a_definition(root: dict[str, Any], reference: str) -> bool:
    """Whether it is there, and a chain of references from it ends."""
    seen: set[str] = set()
    while reference != "#":
        name = unquote(reference.removeprefix("#/$defs/"))
        if reference in seen or not reference.startswith("#/$defs/") or name not in root.get("$defs", {}):
            return False
        seen.add(reference)
        target = root["$defs"][name]
        if not isinstance(target, dict) or "$ref" not in target:
            return True
        reference = target["$ref"]
    return True
