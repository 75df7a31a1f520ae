"""Odd tools as careless MCP servers list them, each with arguments that are valid under the tool's own schema."""

from typing import Any, NamedTuple

Json = dict[str, Any]
TEXT: Json = {"type": "string"}
DRAFT_4 = "http://json-schema.org/draft-04/schema#"
DRAFT_7 = "http://json-schema.org/draft-07/schema#"


class OddTool(NamedTuple):
    """A label, the tool in MCP form, and arguments that fit it."""

    label: str
    tool: Json
    arguments: Json


def props(properties: Json, required: list[str] | None = None, **root: Any) -> Json:
    """An object schema with these properties."""
    schema: Json = {"type": "object", "properties": properties, **root}
    return schema if required is None else {**schema, "required": required}


def odd(label: str, schema: Any, arguments: Json, **fields: Any) -> OddTool:
    """A tool named after its label, unless the fields say otherwise."""
    name = "".join(letter if letter.isalnum() and letter.isascii() else "_" for letter in label)[:40]
    return OddTool(label, {"name": name, "description": "An odd tool.", "inputSchema": schema, **fields}, arguments)


def one(label: str, inner: Any, value: Any, **root: Any) -> OddTool:
    """A tool with one property `value` of this schema."""
    return odd(label, props({"value": inner}, **root), {"value": value})


def keyed(label: str, *keys: str) -> OddTool:
    """A tool with text properties of these names, all required."""
    return odd(label, props(dict.fromkeys(keys, TEXT), list(keys)), dict.fromkeys(keys, "x"))


def nested(levels: int, *, arrays: bool = False) -> OddTool:
    """A tool whose schema is many levels deep."""
    schema: Json = dict(TEXT)
    value: Any = "leaf"
    for _ in range(levels):
        if arrays:
            schema, value = {"type": "array", "items": schema}, [value]
        else:
            schema, value = props({"inner": schema}), {"inner": value}
    return one(f"{levels} levels of {'arrays' if arrays else 'objects'}", schema, value)


def branching(levels: int) -> Json:
    """A schema whose every level has a choice of two."""
    schema: Json = dict(TEXT)
    for _ in range(levels):
        schema = {"anyOf": [schema, {"type": "array", "items": {"type": "integer"}}]}
    return schema


# twilio-labs/mcp#53, beautyfree/appstore-connect-mcp#2, erikmaday/unusual-whales-mcp#57,
# aws-solutions-library-samples/...-on-aws#709, hypothesi/mcp-server-tauri#31.
KEYS = [
    keyed("keys with angle brackets (Twilio)", "StartTime<", "StartTime>", "EndTime<", "Status"),
    keyed("keys with brackets (App Store)", "filter[bundleId]", "filter[name]", "exists[parent]"),
    keyed("keys ending in empty brackets", "rule_name[]", "issue_types[]"),
    keyed("keys with spaces", "Account Number", "Purchase Date and Time"),
    keyed("keys with a dollar sign", "$filter", "$top", "$select"),
    keyed("key named $ref", "$ref", "other"),
    keyed("keys named like schema words", "type", "properties", "required", "items", "enum", "description"),
    keyed("keys with dots", "user.name", "user.address.city"),
    keyed("keys with slashes and tildes", "a/b", "c~d", "~1"),
    keyed("keys with at and colon", "@type", "xml:lang", "#text"),
    keyed("key of 65 characters", "k" * 65),
    keyed("key of 200 characters", "long_" * 40),
    keyed("two keys alike in 64 characters", "p" * 64 + "_one", "p" * 64 + "_two"),
    keyed("keys that collide once cleaned", "a b", "a_b", "a-b", "a[b", "a<b"),
    keyed("keys that differ in case", "id", "ID", "Id"),
    keyed("key of an empty string", "", "other"),
    keyed("key of one space", " "),
    keyed("keys of prototypes", "__proto__", "constructor", "toString", "hasOwnProperty"),
    keyed("keys in other scripts", "名前", "größe", "ключ", "🙂"),
    keyed("keys with control characters", "tab\there", "line\nbreak", "nul\0byte"),
    keyed("keys with quotes and a backslash", 'say "hi"', "it's", "back\\slash"),
    keyed("keys that compose differently", "caf\u00e9", "cafe\u0301"),
    keyed("keys that are numbers", "0", "1", "-1", "1e5"),
    keyed("keys that are Python words", "self", "class", "None", "lambda", "kwargs"),
    keyed("keys of the tool itself", "name", "arguments", "input", "tool", "_meta"),
    odd(
        "bad keys further down",
        props({"where": props({"created>": TEXT, "tags[]": {"type": "array", "items": TEXT}}, ["created>"])}),
        {"where": {"created>": "2024", "tags[]": ["a"]}},
    ),
    odd("required keys that are not declared", props({"a": TEXT}, ["a", "ghost"]), {"a": "x", "ghost": 1}),
    odd("200 properties", props({f"field_{n}": TEXT for n in range(200)}), {"field_7": "x"}),
]

# sigoden/aichat#1049, tidewave-ai/tidewave_phoenix#224, PrefectHQ/fastmcp#2464, surrealdb/surrealdb#7442,
# mastra-ai/mastra#24413, Dokploy/mcp#74 and #37, smallmain/vscode-unify-chat-provider#162.
DRAFTS = [
    one("array without items", {"type": "array"}, [1, "a"]),
    one("array of arrays without items", {"type": "array", "items": {"type": "array"}}, [[1], []]),
    one("array among types, without items", {"type": ["array", "null"]}, None),
    one("array in anyOf, prefixItems only", {"anyOf": [{"type": "array", "prefixItems": [{}]}, {"type": "null"}]}, [1]),
    one("items true", {"type": ["array", "null"], "items": True}, [1, None]),
    one("items false", {"type": "array", "items": False}, []),
    one("items an empty schema", {"type": "array", "items": {}}, [{}]),
    one(
        "tuple items of draft 7",
        {"type": "array", "items": [TEXT, {"type": "integer"}]},
        ["a", 1],
        **{"$schema": DRAFT_7},
    ),
    one("tuple with additionalItems", {"type": "array", "items": [TEXT], "additionalItems": False}, ["a"]),
    one("boolean exclusiveMinimum", {"type": "integer", "minimum": 0, "exclusiveMinimum": True}, 3),
    one(
        "boolean exclusiveMaximum in draft 4",
        {"type": "number", "maximum": 9, "exclusiveMaximum": True},
        3,
        **{"$schema": DRAFT_4},
    ),
    one("required as a boolean", {"type": "string", "required": True}, "x"),
    one("type any", {"type": "any"}, 5),
    one("type date", {"type": "date"}, "2024-01-01"),
    one("types in Python's words", {"type": "str"}, "x"),
    one("types with capitals", {"type": "String"}, "x"),
    one("type file", {"type": "file"}, "a.txt"),
    one("type an empty string", {"type": ""}, "x"),
    one("type an empty list", {"type": []}, "x"),
    one("type null as a value", {"type": None}, "x"),
    one("many types", {"type": ["string", "number", "boolean", "object", "array", "null"]}, False),
    one("nullable of OpenAPI", {"type": "string", "nullable": True}, "x"),
    one(
        "OpenAPI words",
        {"type": "string", "example": "a", "xml": {"name": "b"}, "readOnly": True, "deprecated": False},
        "x",
    ),
    one("format unknown", {"type": "string", "format": "made-up"}, "x"),
    one("property given as a type name", "string", "x"),
    one("property true", True, {"any": 1}),
    one("property null", None, 1),
    one("property an empty list", [], 1),
    one("enum null", {"type": "string", "enum": None}, "x"),
    one("description null", {"type": "string", "description": None}, "x"),
    one("default and examples null", {"type": ["string", "null"], "default": None, "examples": [None]}, None),
    one("definitions and $ref of draft 7", {"$ref": "#/definitions/Tag"}, "x", definitions={"Tag": TEXT}),
    one("dependencies of draft 7", TEXT, "x", dependencies={"other": ["value"]}),
    one("id of draft 4", {"id": "#here", "type": "string"}, "x", **{"$schema": DRAFT_4, "id": "http://example.com/s"}),
    one("minLength as text", {"type": "string", "minLength": "1"}, "x"),
    one("a 64-bit maximum", {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1}, 2**62),
]

# BerriAI/litellm#26692, langchain-ai/langchainjs#8389, open-webui/computer#87, RooCodeInc/Roo-Code#11430.
REFS = [
    one("$ref into $defs with a key to escape", {"$ref": "#/$defs/a~1b"}, "x", **{"$defs": {"a/b": TEXT}}),
    one("$ref with words beside it", {"$ref": "#/$defs/T", "description": "A tag."}, "x", **{"$defs": {"T": TEXT}}),
    odd("$ref into a property", props({"other": TEXT, "value": {"$ref": "#/properties/other"}}), {"value": "x"}),
    one("$ref that leads nowhere", {"$ref": "#/definitions/_gen:tags"}, ["a"]),
    one("$ref into OpenAPI components", {"$ref": "#/components/schemas/Planning"}, {}),
    one("$ref to another host", {"$ref": "https://example.com/schemas/tag.json"}, "x"),
    one("$ref to a file", {"$ref": "./tag.json#/definitions/Tag"}, "x"),
    one("$ref to an anchor", {"$ref": "#tag"}, "x", **{"$defs": {"T": {"$anchor": "tag", "type": "string"}}}),
    one(
        "recursion through $defs",
        {"$ref": "#/$defs/Node"},
        {"name": "a", "children": [{"name": "b"}]},
        **{"$defs": {"Node": props({"name": TEXT, "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}}})}},
    ),
    odd("recursion to the root", props({"name": TEXT, "next": {"$ref": "#"}}), {"name": "a", "next": {"next": {}}}),
    one(
        "two definitions in a ring",
        {"$ref": "#/$defs/A"},
        {"b": {"a": {}}},
        **{"$defs": {"A": props({"b": {"$ref": "#/$defs/B"}}), "B": props({"a": {"$ref": "#/$defs/A"}})}},
    ),
    one("a reference to itself", {"$ref": "#/$defs/Loop"}, 1, **{"$defs": {"Loop": {"$ref": "#/$defs/Loop"}}}),
    odd("$ref at the root", {"$ref": "#/$defs/Args", "$defs": {"Args": props({"a": TEXT})}}, {"a": "x"}),
    odd(
        "definitions that no one uses",
        {**props({"a": TEXT}), "definitions": {"Old": {"type": "any"}}, "$defs": {"New": TEXT}},
        {"a": "x"},
    ),
]

# anthropics/claude-code#5319, dearlordylord/huly-mcp#66, kenn-io/kata#365, anthropics/claude-code#88049 and #44364,
# karakeep-app/karakeep#1696, marianfoo/mcp-sap-docs#51.
ROOTS = [
    odd(
        "root anyOf of required",
        {**props({"a": TEXT, "b": TEXT}), "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {"b": "x"},
    ),
    odd("root oneOf without a type", {"oneOf": [props({"a": TEXT}, ["a"]), props({"b": TEXT}, ["b"])]}, {"a": "x"}),
    odd("root allOf", {"type": "object", "allOf": [props({"a": TEXT}), props({"b": TEXT}, ["b"])]}, {"b": "x"}),
    odd(
        "root union with a discriminator",
        {
            "type": "object",
            "oneOf": [
                props({"kind": {"const": "move"}, "by": {"type": "integer"}}, ["kind", "by"]),
                props({"kind": {"const": "stop"}}, ["kind"], additionalProperties=False),
            ],
        },
        {"kind": "move", "by": 3},
    ),
    odd("root not", {**props({"a": TEXT, "b": TEXT}), "not": {"required": ["a", "b"]}}, {"a": "x"}),
    odd(
        "root if, then, else",
        {
            **props({"why": TEXT, "proof": TEXT}),
            "if": {"required": ["why"]},
            "then": {"required": ["proof"]},
            "else": True,
        },
        {"why": "x", "proof": "y"},
    ),
    odd("root enum", {"type": "object", "enum": [{"a": 1}, {"a": 2}]}, {"a": 1}),
    odd("root without a type", {"properties": {"a": TEXT}}, {"a": "x"}),
    odd("root type null or object", {"type": ["object", "null"], "properties": {"a": TEXT}}, {"a": "x"}),
    odd("root without properties", {"type": "object"}, {"anything": 1}),
    odd("root with nothing at all", {}, {}),
    odd("root true", True, {}),
    odd("root null", None, {}),
    odd("root an array", {"type": "array", "items": TEXT}, {}),
    odd("properties null", {"type": "object", "properties": None}, {}),
    odd("properties an empty list", {"type": "object", "properties": []}, {}),
    odd("required null", {**props({"a": TEXT}), "required": None}, {"a": "x"}),
    odd("required a word", {**props({"a": TEXT}), "required": "a"}, {"a": "x"}),
    odd("required twice the same", props({"a": TEXT}, ["a", "a"]), {"a": "x"}),
    odd("only additionalProperties", {"type": "object", "additionalProperties": {"type": "number"}}, {"pi": 3.14}),
    odd("patternProperties", props({}, patternProperties={"^x-": TEXT}, additionalProperties=False), {"x-a": "b"}),
    odd("propertyNames", props({}, propertyNames={"pattern": "^[a-z]+$"}), {"abc": 1}),
    odd("unevaluatedProperties", props({"a": TEXT}, unevaluatedProperties=False), {"a": "x"}),
    odd(
        "type inside properties (Pencil)",
        {"type": "object", "properties": {"filePath": TEXT, "type": "object"}},
        {"filePath": "a"},
    ),
    odd("schema of an old draft", {**props({"a": TEXT}), "$schema": DRAFT_7}, {"a": "x"}),
    odd("schema of a made-up draft", {**props({"a": TEXT}), "$schema": "https://example.com/mine"}, {"a": "x"}),
]

# nicobailon/pi-interactive-shell#69, Dokploy/mcp#45 and #43, Alishahryar1/free-claude-code#1730,
# anthropics/claude-code#68438.
VALUES = [
    one("pattern with a lookahead", {"type": "string", "pattern": r"^(?!\.)(?!.*\.\.)[a-z.]+$"}, "a.b"),
    one("pattern with a lookbehind", {"type": "string", "pattern": r"(?<=a)b"}, "ab"),
    one("pattern of Unicode classes", {"type": "string", "pattern": r"^[^\p{Cc}\p{Zl}]{1,200}$"}, "x"),
    one("pattern with a bracket in a class", {"type": "string", "pattern": r"^[a-z+\-=[\]{}]*$"}, "a[b]"),
    one("pattern of JavaScript's named group", {"type": "string", "pattern": r"^(?<year>\d{4})$"}, "2024"),
    one("pattern that is none", {"type": "string", "pattern": "["}, "x"),
    one("enum of 3,000 values", {"type": "string", "enum": [f"value_{n}" for n in range(3000)]}, "value_7"),
    one("enum with an empty value", {"type": "string", "enum": ["", "a"]}, ""),
    one("enum of mixed values", {"enum": [1, "1", None, True, {"a": []}]}, None),
    one("enum without values", {"enum": []}, 1)._replace(arguments={}),
    one("enum without a type", {"enum": ["a", "b"]}, "a"),
    one("const null", {"const": None}, None),
    one("default outside the enum", {"type": "string", "enum": ["a"], "default": "b"}, "a"),
    one("default that is no JSON number", {"type": "number", "default": float("nan")}, 1.5),
    one("maximum that is infinite", {"type": "number", "maximum": float("inf")}, 1.5),
    one("a choice 12 levels deep", branching(12), "x"),
    one("a description of 5,000 characters", {"type": "string", "description": "word " * 1000}, "x"),
    one("text with half a surrogate pair", {"type": "string", "description": "cut \ud83d off"}, "x"),
    nested(12),
    nested(60),
    nested(150),
    nested(40, arrays=True),
]

# ComposioHQ/composio#2788, anthropics/claude-code#3102, nanbingxyz/5ire#33, apify/tester-mcp-client#11,
# getsentry/sentry-mcp#106, Wynelson94/longhand#10.
PLAIN = props({"a": TEXT})
FIELDS = [
    odd("name of 65 characters", PLAIN, {"a": "x"}, name="n" * 65),
    odd("name of 59 characters", PLAIN, {}, name="GOOGLESHEETS_SPREADSHEETS_VALUES_BATCH_CLEAR_BY_DATA_FILTER"),
    odd("name of 300 characters", PLAIN, {}, name="a_very_long_name_" * 18),
    odd("name with spaces", PLAIN, {}, name="Sequential Thinking"),
    odd("name with dots", PLAIN, {}, name="admin.tools.list"),
    odd("name with slashes", PLAIN, {}, name="josef.prochazka/webpage-singer"),
    odd("name with a colon", PLAIN, {}, name="functions:Bash"),
    odd("name in another script", PLAIN, {}, name="查询天气"),
    odd("name with an emoji", PLAIN, {}, name="send_📧"),
    odd("name of an empty string", PLAIN, {}, name=""),
    odd("name of white space", PLAIN, {}, name="  "),
    odd("name with two dashes (Twilio)", PLAIN, {}, name="TwilioApiV2010--ListCall"),
    odd("name of a prototype", PLAIN, {}, name="__proto__"),
    odd("name that starts with a digit", PLAIN, {}, name="3d_print"),
    odd("description of 4,394 characters", PLAIN, {}, description="d" * 4394),
    odd("description of an empty string", PLAIN, {}, description=""),
    odd("description null for the tool", PLAIN, {}, description=None),
    odd("description of white space", PLAIN, {}, description=" \n\t "),
    odd("description with control characters", PLAIN, {}, description="a\0b\x1b[31m"),
    odd("output schema that is an array", PLAIN, {}, outputSchema={"type": "array", "items": TEXT}),
    odd("output schema that is a union", PLAIN, {}, outputSchema={"oneOf": [PLAIN, {"type": "null"}]}),
    odd("annotations of the wrong type", PLAIN, {}, annotations={"readOnlyHint": "yes", "title": 5}),
    odd("title null", PLAIN, {}, title=None),
    odd("fields that no one knows", PLAIN, {}, parameters=PLAIN, input_schema=PLAIN, strict=True),
]

ODD_TOOLS: list[OddTool] = [*KEYS, *DRAFTS, *REFS, *ROOTS, *VALUES, *FIELDS]
