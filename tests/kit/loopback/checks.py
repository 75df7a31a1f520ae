"""What all three APIs check in much the same way."""

import base64
import binascii
import json
import re
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator, SchemaError

from tests.kit.loopback.memory import canonical
from tests.kit.loopback.script import RefusedError

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
IMAGE_TYPES = {"image/png", "image/jpeg", "image/gif", "image/webp"}


def only(place: str, fields: object, allowed: Collection[str], required: Collection[str] = ()) -> dict[str, Any]:
    """Return *fields* if it is an object with all the required keys and no key but the allowed."""
    if not isinstance(fields, dict):
        raise RefusedError(f"{place}: expected an object, got {type(fields).__name__}")
    for key in required:
        if key not in fields:
            raise RefusedError(f"{place}.{key}: Field required")
    for key in fields:
        if key not in allowed and key not in required:
            raise RefusedError(f"{place}.{key}: Extra inputs are not permitted")
    return fields


def objects(place: str, items: object) -> list[tuple[str, dict[str, Any]]]:
    """Return each object of a list that must not be empty, with its place."""
    if not isinstance(items, list) or not items:
        raise RefusedError(f"{place}: expected a list that is not empty")
    return [(f"{place}[{i}]", only(f"{place}[{i}]", item, item)) for i, item in enumerate(items)]


def text(place: str, value: object, *, empty: bool = False) -> str:
    if not isinstance(value, str):
        raise RefusedError(f"{place}: expected a string")
    if not value and not empty:
        raise RefusedError(f"{place}: text must be non-empty")
    return value


def tool_name(place: str, name: object) -> str:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise RefusedError(f"{place}: {name!r} does not match the pattern '^[a-zA-Z0-9_-]{{1,64}}$'")
    return name


def unique(place: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise RefusedError(f"{place}: {name!r} is there twice; they must be unique")
        seen.add(name)


def schema(place: str, value: object, *, strict: bool = False) -> None:
    """The root must be a plain object, and all of it valid JSON Schema of draft 2020-12."""
    if not isinstance(value, dict) or value.get("type") != "object":
        raise RefusedError(f"{place}: schema must have type 'object' at its root")
    for keyword in ("oneOf", "anyOf", "allOf", "enum", "not"):
        if keyword in value:
            raise RefusedError(f"{place}: {keyword!r} is not supported at the top level")
    if reason := _schema_fault(canonical(value)):
        raise RefusedError(f"{place}: JSON schema is invalid: {reason}")
    if strict:
        _strict_schema(place, value)


@cache  # a long conversation sends the same schemas with each request
def _schema_fault(text: str) -> str:
    try:
        Draft202012Validator.check_schema(json.loads(text))
    except SchemaError as error:
        return error.message
    return ""


def _strict_schema(place: str, value: object) -> None:
    if isinstance(value, dict):
        if value.get("type") == "object":
            if value.get("additionalProperties") is not False:
                raise RefusedError(f"{place}: in strict mode 'additionalProperties' is required to be false")
            if set(value.get("required", [])) != set(value.get("properties", {})):
                raise RefusedError(f"{place}: in strict mode 'required' must hold every key of 'properties'")
        for key, part in value.items():
            _strict_schema(f"{place}.{key}", part)
    if isinstance(value, list):
        for i, part in enumerate(value):
            _strict_schema(f"{place}[{i}]", part)


def base64_image(place: str, media_type: object, data: object) -> None:
    if media_type not in IMAGE_TYPES:
        raise RefusedError(f"{place}: unsupported image type {media_type!r}")
    try:
        decoded = base64.b64decode(str(data), validate=True)
    except binascii.Error as error:
        raise RefusedError(f"{place}: image data is not base64") from error
    if not decoded:
        raise RefusedError(f"{place}: image is empty")


def data_url(place: str, url: object) -> None:
    """An image may also stand on the web, which is not looked at."""
    match = re.fullmatch(r"data:([^;,]+);base64,(.*)", str(url), re.DOTALL)
    if match:
        base64_image(place, match[1], match[2])
    elif not str(url).startswith("https://"):
        raise RefusedError(f"{place}: expected a base64-encoded data URL or a https URL")


def number(place: str, body: Mapping[str, Any], key: str, least: float, most: float) -> None:
    value = body.get(key)
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise RefusedError(f"{place}{key}: must be between {least} and {most}, got {value!r}")
