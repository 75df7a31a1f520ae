"""Rules for tool definitions, shared by the wires."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from .core import Json, Refusal

NAME_64 = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")
NAME_128 = re.compile(r"^[a-zA-Z0-9_-]{1,128}$")
NAME_OPEN = re.compile(r"^[a-zA-Z0-9_-]+$")
PROPERTY_KEY = re.compile(r"^[a-zA-Z0-9_.-]{1,64}$")
SCHEMA_TYPES = {"string", "number", "integer", "boolean", "object", "array", "null"}


def require_fields(value: Any, needed: Iterable[str], optional: Iterable[str], where: str, wire: str) -> Json:
    """Refuse a value that is no object, lacks a field or has one the type does not know."""
    openai = wire != "messages"
    if not isinstance(value, dict):
        if openai:
            raise Refusal(
                "shape",
                f"Invalid type for '{where}': expected an object, but got {kind(value)} instead.",
                param=where,
                code="invalid_type",
            )
        raise Refusal("shape", f"{where}: Input should be a valid dictionary")
    for key in needed:
        if key not in value:
            if openai:
                raise Refusal(
                    "missing_field",
                    f"Missing required parameter: '{where}.{key}'.",
                    param=f"{where}.{key}",
                    code="missing_required_parameter",
                )
            raise Refusal("missing_field", f"{where}.{key}: Field required")
    allowed = {*needed, *optional}
    for key in value:
        if key not in allowed:
            if openai:
                raise Refusal(
                    "unknown_field",
                    f"Unknown parameter: '{where}.{key}'.",
                    param=f"{where}.{key}",
                    code="unknown_parameter",
                )
            raise Refusal("unknown_field", f"{where}.{key}: Extra inputs are not permitted")
    return value


def kind(value: Any) -> str:
    """How OpenAI's errors call a JSON value."""
    if value is None:
        return "null"
    return {
        bool: "a boolean",
        int: "an integer",
        float: "a decimal",
        str: "a string",
        list: "an array",
        dict: "an object",
    }.get(type(value), "an unknown value")


def subschemas(schema: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The schema and every schema inside it, with the path to each."""
    yield path, schema
    if not isinstance(schema, dict):
        return
    for key in ("properties", "$defs", "definitions", "patternProperties"):
        inner = schema.get(key)
        if isinstance(inner, dict):
            for name, value in inner.items():
                yield from subschemas(value, (*path, key, name))
    for key in ("items", "additionalProperties", "not", "if", "then", "else", "contains"):
        if isinstance(schema.get(key), dict):
            yield from subschemas(schema[key], (*path, key))
    for key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        inner = schema.get(key)
        if isinstance(inner, list):
            for index, value in enumerate(inner):
                yield from subschemas(value, (*path, key, str(index)))


def claude_schema(schema: Any, where: str) -> None:
    """Rules for `input_schema` on the Messages wire."""
    if not isinstance(schema, dict):
        raise Refusal("schema", f"{where}: Input should be a valid dictionary")
    if "type" not in schema:
        raise Refusal("schema", f"{where}.type: Field required")
    if schema["type"] != "object":
        raise Refusal("schema", f"{where}.type: Input should be 'object'")
    if any(key in schema for key in ("oneOf", "allOf", "anyOf")):
        raise Refusal("schema", f"{where}: input_schema does not support oneOf, allOf, or anyOf at the top level")
    properties = schema.get("properties")
    if properties is not None and not isinstance(properties, dict):
        raise Refusal("schema", f"{where}.properties: Input should be a valid dictionary")
    for key in properties or {}:
        if not PROPERTY_KEY.match(key):
            raise Refusal(
                "property_key", f"{where}.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{{1,64}}$'"
            )
    for path, inner in subschemas(schema):
        if isinstance(inner, bool):
            continue
        named = inner.get("type") if isinstance(inner, dict) else "?"
        names = named if isinstance(named, list) else [named]
        wrong = not isinstance(inner, dict) or any(name is not None and name not in SCHEMA_TYPES for name in names)
        required = inner.get("required") if isinstance(inner, dict) else None
        if wrong or (required is not None and not isinstance(required, list)):
            raise Refusal(
                "schema",
                f"{where}: JSON schema is invalid. It must match JSON Schema draft 2020-12 "
                f"(https://json-schema.org/draft/2020-12). At {'/'.join(path) or 'the root'}.",
            )


def gpt_schema(name: str, schema: Any, where: str, strict: bool) -> None:
    """Rules for `parameters` on both OpenAI wires."""

    def refuse(text: str, check: str = "schema") -> Refusal:
        return Refusal(
            check, f"Invalid schema for function '{name}': {text}", param=where, code="invalid_function_parameters"
        )

    if schema is None:
        return
    if not isinstance(schema, dict):
        raise refuse(f"{schema!r} is not of type 'object'.")
    if schema and schema.get("type") != "object":
        got = schema.get("type")
        raise refuse(f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{got}\"'.")
    if any(key in schema for key in ("oneOf", "allOf", "anyOf", "enum", "not")):
        raise refuse(
            "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level."
        )
    for path, inner in subschemas(schema):
        context = f"In context=({', '.join(repr(part) for part in path)}{',' if len(path) == 1 else ''}), "
        if isinstance(inner, bool):
            continue
        if not isinstance(inner, dict):
            raise refuse(f"{context}{inner!r} is not of type 'object', 'boolean'.")
        named = inner.get("type")
        names = named if isinstance(named, list) else [named]
        for one in names:
            if one is not None and one not in SCHEMA_TYPES:
                raise refuse(f"{context}'{one}' is not valid under any of the given schemas.")
        if "array" in names and "items" not in inner and "prefixItems" not in inner:
            raise refuse(f"{context}array schema missing items.", "array_items")
        if "required" in inner and not isinstance(inner["required"], list):
            raise refuse(f"{context}{inner['required']!r} is not of type 'array'.")
        if strict and "object" in names:
            if inner.get("additionalProperties") is not False:
                raise refuse(f"{context}'additionalProperties' is required to be supplied and to be false.", "strict")
            if set(inner.get("required") or []) != set(inner.get("properties") or {}):
                raise refuse(
                    f"{context}'required' is required to be supplied and to be an array including every key "
                    "in properties.",
                    "strict",
                )


def gpt_name(name: Any, where: str, check: str = "tool_name") -> str:
    """Rules for function names on both OpenAI wires."""
    if not isinstance(name, str):
        raise Refusal(
            check,
            f"Invalid type for '{where}': expected a string, but got {kind(name)} instead.",
            param=where,
            code="invalid_type",
        )
    if not name:
        raise Refusal(
            check,
            f"Invalid '{where}': empty string. Expected a string with minimum length 1, but got an "
            "empty string instead.",
            param=where,
            code="empty_string",
        )
    if len(name) > 64:
        raise Refusal(
            check,
            f"Invalid '{where}': string too long. Expected a string with maximum length 64, but got "
            f"a string with length {len(name)} instead.",
            param=where,
            code="string_above_max_length",
        )
    if not NAME_OPEN.match(name) or not NAME_64.fullmatch(name):
        raise Refusal(
            check,
            f"Invalid '{where}': string does not match pattern. Expected a string that matches the "
            "pattern '^[a-zA-Z0-9_-]+$'.",
            param=where,
            code="invalid_value",
        )
    return name


def gpt_length(value: Any, most: int, where: str, check: str) -> str:
    """A string of one to `most` characters."""
    if not isinstance(value, str):
        raise Refusal(
            check,
            f"Invalid type for '{where}': expected a string, but got {kind(value)} instead.",
            param=where,
            code="invalid_type",
        )
    if not value:
        raise Refusal(
            check,
            f"Invalid '{where}': empty string. Expected a string with minimum length 1, but got an "
            "empty string instead.",
            param=where,
            code="empty_string",
        )
    if len(value) > most:
        raise Refusal(
            check,
            f"Invalid '{where}': string too long. Expected a string with maximum length {most}, but "
            f"got a string with length {len(value)} instead.",
            param=where,
            code="string_above_max_length",
        )
    return value


def gpt_array(value: Any, where: str, least: int = 0, most: int | None = None, check: str = "array") -> list[Any]:
    """A list within its size limits."""
    if not isinstance(value, list):
        raise Refusal(
            check,
            f"Invalid type for '{where}': expected an array of objects, but got {kind(value)} instead.",
            param=where,
            code="invalid_type",
        )
    if len(value) < least:
        raise Refusal(
            check,
            f"Invalid '{where}': empty array. Expected an array with minimum length {least}, but got "
            "an empty array instead.",
            param=where,
            code="empty_array",
        )
    if most is not None and len(value) > most:
        raise Refusal(
            check,
            f"Invalid '{where}': array too long. Expected an array with maximum length {most}, but "
            f"got an array with length {len(value)} instead.",
            param=where,
            code="array_above_max_length",
        )
    return value
