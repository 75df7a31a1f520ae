"""Input schemas that are written by hand: refused when the tool is made, not when a model has been shown them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from toolsearch.errors import BadToolError
from toolsearch.tools.json_types import JsonObject

_ROOT_ALTERNATIVES = frozenset({"$ref", "allOf", "anyOf", "oneOf"})  # where further properties may stand
_LONGEST_REASON = 200  # characters


def require_schema(schema: JsonObject, role: str = "input_schema") -> JsonObject:
    """Return *schema*. Raises BadToolError, which names it by its *role*, unless it is a JSON Schema of an object."""
    if not isinstance(cast("object", schema), Mapping) or schema.get("type") != "object":
        raise BadToolError(f"{role} must be a JSON Schema whose type is 'object'")
    try:
        json.dumps(schema, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadToolError(f"{role} must be plain JSON: {error}") from error
    _require_well_formed(schema, role)
    return schema


def require_callable_by(schema: JsonObject, own: JsonObject) -> None:
    """Raise BadToolError unless a function whose own schema is *own* can be called with what *schema* describes."""
    offered = schema.get("properties", {}).keys()
    refused = sorted(offered - own["properties"].keys())
    if refused and own.get("additionalProperties") is False:
        raise BadToolError(f"input_schema has the property {refused[0]!r}, which the function does not take")
    missing = [name for name in own.get("required", ()) if name not in offered]
    if missing and not _ROOT_ALTERNATIVES & schema.keys():
        raise BadToolError(f"input_schema lacks the property {missing[0]!r}, which the function needs")


def _require_well_formed(schema: JsonObject, role: str) -> None:
    from jsonschema import exceptions, validators  # type: ignore[import-untyped]

    jsonschema: Any = validators
    try:
        # Without a checker of formats, which would give the schema's patterns to Python's re.
        jsonschema.validator_for(schema, default=jsonschema.Draft202012Validator).check_schema(
            dict(schema), format_checker=None
        )
    except exceptions.SchemaError as error:
        fault: Any = error
        reason = fault.message[:_LONGEST_REASON]
        raise BadToolError(f"{role} is no JSON Schema, at {fault.json_path}: {reason}") from None
