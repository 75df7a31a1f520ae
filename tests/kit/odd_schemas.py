"""Input schemas as they are found in the wild, and stranger ones: kinds by name, and any that hypothesis makes."""

from typing import Any

from hypothesis import strategies as st

LONG = "k" * 80


def _with(schema: Any, key: str = "x", **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {key: schema}, **more}


STRING = {"type": "string"}

ODD: dict[str, dict[str, Any]] = {
    "a comparison in the key": _with(STRING, "StartTime<", required=["StartTime<"]),
    "three that differ in a sign": {
        "type": "object",
        "properties": {"StartTime<": STRING, "StartTime>": STRING, "StartTime": STRING, "StartTime_lt": STRING},
    },
    "a dollar": _with(STRING, "$filter"),
    "a space": _with(STRING, "first name"),
    "brackets": _with(STRING, "filter[name]"),
    "an at sign": _with(STRING, "@type"),
    "another script": {"type": "object", "properties": {"größe": STRING, "会社": STRING, "名前": STRING}},
    "an empty key": _with(STRING, ""),
    "a key over 64 characters": {"type": "object", "properties": {LONG: STRING, f"{LONG}2": STRING}},
    "a key that is nested": _with({"type": "array", "items": _with(_with(STRING, "a b"), "c d")}),
    "a key in a definition": _with({"$ref": "#/$defs/n"}, **{"$defs": {"n": _with({"$ref": "#/$defs/n"}, "in side")}}),
    "a key on which others depend": _with(
        STRING,
        "a b",
        dependentRequired={"a b": ["c d"]},
        dependentSchemas={"a b": _with(STRING, "e f", required=["e f"])},
    ),
    "a key that is only required": {"type": "object", "properties": {}, "required": ["a b"]},
    "an array without items": _with({"type": "array"}),
    "an array among other types, without items": _with({"type": ["array", "null"]}),
    "a draft 7 tuple": _with({"type": "array", "items": [STRING, {"type": "array"}], "additionalItems": False}),
    "a 2020-12 tuple": _with({"type": "array", "prefixItems": [STRING], "items": False}),
    "a boolean exclusiveMinimum": _with({"type": "number", "minimum": 0, "exclusiveMinimum": True}),
    "a boolean exclusiveMaximum": _with({"type": "number", "maximum": 9, "exclusiveMaximum": False}),
    "type any": _with({"type": "any"}),
    "another language's types": _with({"type": ["int", "float", "str", "file"]}),
    "required as a flag": _with({"type": "string", "required": True}),
    "required as a text": _with(STRING, required="x"),
    "definitions of draft 7": _with({"$ref": "#/definitions/a b"}, definitions={"a b": {"$id": "#n"}}),
    "a reference into properties": {
        "type": "object",
        "properties": {"a b": _with({"type": "array"}, "c d"), "e": {"$ref": "#/properties/a%20b/properties/c d"}},
    },
    "a reference to an anchor": _with({"$ref": "#here"}, **{"$defs": {"n": {"$anchor": "here", "type": "array"}}}),
    "a reference that leads nowhere": _with({"$ref": "#/components/schemas/X"}),
    "a reference to another document": _with({"$ref": "https://example.com/schema.json#/x"}),
    "references in a circle": _with(
        {"$ref": "#/$defs/a"}, **{"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}
    ),
    "a reference at the root": {"type": "object", "$ref": "#/$defs/a", "$defs": {"a": _with({"type": "array"}, "a b")}},
    "the root within itself": _with({"$ref": "#"}, "a b"),
    "anyOf at the root": {"type": "object", "anyOf": [_with({"const": 1}, "k <"), _with({"const": 2}, "k <")]},
    "everything at the root": {
        "type": "object",
        "allOf": [_with(STRING, "a b", required=["a b"])],
        "oneOf": [{"required": ["c d"]}, True],
        "enum": [{}],
        "not": {"required": ["x"]},
    },
    "no properties": {"type": "object"},
    "properties as a list": {"type": "object", "properties": [{"name": "x"}]},
    "properties that are flags": {"type": "object", "properties": {"a": True, "b": False}, "required": ["b"]},
    "a pattern of another dialect": _with({"type": "string", "pattern": r"^\p{L}+$"}),
    "a pattern that is none": _with({"type": "string", "pattern": "(["}),
    "properties by odd patterns": _with(STRING, patternProperties={r"\p{L}": {}, "^x-": {"items": [STRING]}}),
    "an enum of nothing": _with({"enum": []}),
    "an enum that repeats": _with({"enum": ["a", "a", 1, True]}),
    "an enum as an object": _with({"enum": {"a": 1}}),
    "keywords of the wrong kind": _with(
        {"minLength": "3", "maxLength": -1, "description": ["a"], "title": None, "examples": "e", "format": 3}
    ),
    "alternatives of nothing": _with({"anyOf": [], "oneOf": {}, "allOf": [[]]}),
    "dependencies of draft 7": _with(STRING, "a b", dependencies={"a b": ["c d"], "e": _with(STRING, "f g")}),
    "half of a surrogate pair": _with({"type": "string", "description": "a\ud800", "default": "\udc00"}, "a\ud800"),
    "a draft that is named": _with({"type": "array"}, **{"$schema": "http://json-schema.org/draft-04/schema#", "id": "http://x/y#"}),
}  # fmt: skip

_NAMES = st.sampled_from(
    ["a", "a b", "a_b", "a_b_2", "$x", "x", "StartTime<", "StartTime", "StartTime_lt", "größe", "会社", "",
     "properties", "required", "$ref", "type", LONG, "k" * 64]
) | st.text(max_size=4)  # fmt: skip
_REFERENCES = st.sampled_from(
    ["#", "#/$defs/a", "#/$defs/a b", "#/definitions/a", "#/properties/a", "#/properties/a%20b/items", "#n",
     "x.json#/a", "#/allOf/0", "", "#/anyOf/0/properties/x"]
)  # fmt: skip
_ANYTHING: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False, allow_infinity=False) | _NAMES,
    lambda each: st.lists(each, max_size=3) | st.dictionaries(_NAMES, each, max_size=3),
    max_leaves=4,
)
_TYPES = st.sampled_from(
    ["string", "array", "object", "any", "integer", "int", "STRING", "null", ["array", "null"], [], 3, ["x"]]
)


@st.composite
def _some(draw: st.DrawFn, keywords: dict[str, st.SearchStrategy[Any]]) -> dict[str, Any]:
    chosen = draw(st.lists(st.sampled_from(sorted(keywords)), max_size=4, unique=True))
    return {keyword: draw(keywords[keyword]) for keyword in chosen}


def _keywords(each: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    named = st.dictionaries(_NAMES, each, max_size=3)
    listed = st.lists(each, max_size=3)
    names = st.lists(_NAMES, max_size=3)
    meant: dict[str, st.SearchStrategy[Any]] = {
        "type": _TYPES,
        "properties": named,
        "required": names | st.booleans(),
        "items": each | listed,
        "prefixItems": listed,
        "additionalItems": each,
        "additionalProperties": each,
        "patternProperties": st.dictionaries(st.sampled_from(["^a", r"\p{L}", "([", "(?=a)"]), each, max_size=2),
        "anyOf": listed,
        "oneOf": listed,
        "allOf": listed,
        "not": each,
        "if": each,
        "then": each,
        "$defs": named,
        "definitions": named,
        "$ref": _REFERENCES,
        "$dynamicRef": _REFERENCES,
        "$anchor": st.just("n"),
        "dependencies": st.dictionaries(_NAMES, each | names, max_size=2),
        "dependentRequired": st.dictionaries(_NAMES, names, max_size=2),
        "dependentSchemas": named,
        "propertyNames": each,
        "contains": each,
        "unevaluatedItems": each,
        "minimum": st.integers(-3, 3),
        "exclusiveMinimum": st.booleans() | st.integers(-3, 3),
        "pattern": st.sampled_from(["^a$", r"\p{L}", "([", r"(?<!a)b", "(?i)a", r"\u00e4"]),
        "discriminator": st.just({"propertyName": "a b", "mapping": {"a": "#/definitions/a"}}),
        **dict.fromkeys(
            ("default", "enum", "const", "description", "title", "maxItems", "$schema", "$id", "x-own"), _ANYTHING
        ),
    }
    odd = dict.fromkeys(
        ("properties", "required", "items", "type", "anyOf", "minimum", "uniqueItems", "examples", "$ref"), _ANYTHING
    )
    return _some(meant) | _some({**meant, **odd})


SCHEMAS: st.SearchStrategy[dict[str, Any]] = st.recursive(
    st.booleans() | st.just({}) | st.fixed_dictionaries({"type": _TYPES}), _keywords, max_leaves=8
).map(lambda schema: {**schema, "type": "object"} if isinstance(schema, dict) else {"type": "object"})
"""Any schema that a catalog might be given: its root says that it is an object's, and that is all."""


@st.composite
def arguments_by(draw: st.DrawFn, schema: Any, root: Any = None, levels: int = 4) -> Any:
    """A value that has only properties which *schema* names, by the names that it gives them."""
    root = schema if root is None else root
    if not isinstance(schema, dict) or levels == 0:
        return draw(st.integers(0, 3))
    parts = [schema, *(each for key in ("allOf", "anyOf", "oneOf") for each in _list(schema.get(key)))]
    reference = schema.get("$ref")
    for container in ("$defs", "definitions"):
        named = root.get(container)
        if isinstance(reference, str) and isinstance(named, dict):
            parts += [named[name] for name in named if reference == f"#/{container}/{name}"]
    declared: dict[str, Any] = {}
    for part in reversed(parts):
        properties = part.get("properties") if isinstance(part, dict) else None
        declared |= properties if isinstance(properties, dict) else {}
    items = schema.get("items")
    if items is not None and not declared:
        first = items if isinstance(items, list) else [items, items]
        return [draw(arguments_by(each, root, levels - 1)) for each in first]
    chosen = draw(st.lists(st.sampled_from(sorted(declared)), unique=True)) if declared else []
    return {name: draw(arguments_by(declared[name], root, levels - 1)) for name in chosen}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
