"""A schema in the form that OpenAI's strict mode takes.

Strict mode wants every property required and every object closed; an optional property is null instead of missing, and
the null is removed when the call is checked against the tool's own schema. Keywords that strict mode refuses move into
the description, so that the model still reads them. Source: https://platform.openai.com/docs/guides/structured-outputs
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NoReturn, cast

from toolsearch.errors import BadToolError
from toolsearch.tools.json_types import Json, JsonObject, is_schema

_KEPT = frozenset(
    {
        "const", "description", "enum", "exclusiveMaximum", "exclusiveMinimum", "format", "maxItems", "maximum",
        "minItems", "minimum", "multipleOf", "pattern", "title", "type",
    }
)  # fmt: skip
_FORMATS = frozenset({"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uuid"})
_LABELS = {
    "contentEncoding": "Encoding", "default": "Default", "examples": "Examples", "format": "Format",
    "maxLength": "Maximum length", "minLength": "Minimum length", "uniqueItems": "Unique items",
}  # fmt: skip
_DROPPED = frozenset({"$comment", "$id", "$schema", "deprecated", "discriminator", "readOnly", "writeOnly"})
_CONTAINERS = frozenset({"$defs", "additionalProperties", "anyOf", "items", "oneOf", "properties", "required"})
_NULL: JsonObject = {"type": "null"}


def strict_schema(schema: JsonObject) -> dict[str, Json]:
    """Return *schema* for ``"strict": true``. Raises BadToolError, with the place, for parts that strict mode cannot
    express.
    """
    if schema.get("type") != "object":
        _refuse("arguments", "is not an object")
    return _Strict(schema).whole()


class _Strict:
    """Rewrites one schema; the root is kept to resolve references."""

    def __init__(self, root: JsonObject) -> None:
        self._root = root

    def whole(self) -> dict[str, Json]:
        made = self._schema(self._root, "arguments")
        definitions: JsonObject = self._root.get("$defs", {})
        if definitions:
            made["$defs"] = {name: self._schema(each, f"$defs.{name}") for name, each in definitions.items()}
        return made

    def _schema(self, schema: Json, place: str) -> dict[str, Json]:
        if not is_schema(schema) or not schema:
            _refuse(place, "takes any value")
        node = schema
        if "$ref" in node:
            _resolved(self._root, node["$ref"])
            if len(node) == 1:
                return {"$ref": node["$ref"]}
            beside = {keyword: value for keyword, value in node.items() if keyword != "$ref"}
            node = {**beside, "anyOf": [{"$ref": node["$ref"]}]}  # strict mode allows nothing beside a reference
        if isinstance(node.get("allOf"), list) and len(node["allOf"]) == 1:
            return self._schema({**node["allOf"][0], **{key: node[key] for key in node if key != "allOf"}}, place)
        made = {keyword: value for keyword, value in node.items() if _is_kept(keyword, value)}
        self._say_the_rest(node, made, place)
        alternatives: Sequence[Json] = node.get("anyOf") or node.get("oneOf") or ()
        if alternatives:
            made["anyOf"] = [self._schema(each, f"{place}.anyOf[{i}]") for i, each in enumerate(alternatives)]
        elif not made.keys() & {"type", "enum", "const"}:
            _refuse(place, "takes any value")
        types = _types(node)
        if "array" in types:
            made["items"] = self._schema(node.get("items"), f"{place}[]")
        if "object" in types:
            self._object(node, made, place)
        return made

    def _object(self, node: JsonObject, made: dict[str, Json], place: str) -> None:
        if node.get("additionalProperties", False) is not False or ("properties" not in node and place != "arguments"):
            _refuse(place, "takes properties of any name")
        required = set(node.get("required", ()))
        properties: JsonObject = node.get("properties", {})
        strict = {name: self._schema(each, f"{place}.{name}") for name, each in properties.items()}
        made["properties"] = {name: each if name in required else _nullable(each) for name, each in strict.items()}
        made["required"] = list(properties)
        made["additionalProperties"] = False

    def _say_the_rest(self, node: JsonObject, made: dict[str, Json], place: str) -> None:
        said: list[str] = []
        for keyword in sorted(node.keys() - made.keys() - _CONTAINERS - _DROPPED):
            if keyword not in _LABELS:
                _refuse(place, f"uses {keyword!r}")
            said.append(f"{_LABELS[keyword]}: {json.dumps(node[keyword], ensure_ascii=False)}.")
        if said:
            made["description"] = " ".join([*filter(None, [made.get("description", "")]), *said])


def _is_kept(keyword: str, value: Json) -> bool:
    return keyword in _KEPT and (keyword != "format" or value in _FORMATS)


def _types(node: JsonObject) -> Sequence[str]:
    kinds: str | Sequence[str] = node.get("type", ())
    return (kinds,) if isinstance(kinds, str) else kinds


def _nullable(schema: dict[str, Json]) -> dict[str, Json]:
    """Let a strict *schema* also be null; the description stays outside, where a model looks for it."""
    if _NULL in schema.get("anyOf", ()) or "null" in _types(schema):
        return schema
    if "anyOf" in schema:
        return {**schema, "anyOf": [*schema["anyOf"], _NULL]}
    if "type" in schema and not schema.keys() & {"enum", "const"}:
        return {**schema, "type": [*_types(schema), "null"]}
    inner = {keyword: value for keyword, value in schema.items() if keyword != "description"}
    outer = {"description": schema["description"]} if "description" in schema else {}
    return {"anyOf": [inner, _NULL], **outer}


def _resolved(root: JsonObject, reference: str) -> JsonObject:
    if reference == "#":
        return root
    name = reference.removeprefix("#/$defs/")
    if reference == name or name not in root.get("$defs", {}):
        _refuse(reference, "is a reference that leads nowhere in $defs")
    return cast("JsonObject", root["$defs"][name])


def _refuse(place: str, reason: str) -> NoReturn:
    raise BadToolError(f"the schema cannot be strict: {place} {reason}; send this tool without strict")
