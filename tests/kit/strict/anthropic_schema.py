"""What Anthropic's Messages API refuses in the `input_schema` of a custom tool."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from .common import (
    LOOKAROUND,
    as_list,
    as_map,
    as_text,
    at,
    draft_problems,
    in_order,
    recursive,
    ref_problems,
    subschemas,
    types_of,
)

# anthropics/claude-code#24272, twilio-labs/mcp#53, beautyfree/appstore-connect-mcp#2: "input_schema.properties:
# Property keys should match pattern ...". Measured on the top level only, there and no deeper, by
# aws-solutions-library-samples/accelerated-intelligent-document-processing-on-aws#709 and decocms/studio#6874.
PROPERTY_KEY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
ROOT_UNIONS = ("oneOf", "allOf", "anyOf")
# platform.claude.com "Structured outputs", section "JSON Schema limitations".
STRICT_FORMATS = {"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}
STRICT_REFUSES = (
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "maxItems",
    "uniqueItems",
    "contains",
    "minContains",
    "maxContains",
)
STRICT_PATTERN_REFUSES = (
    (LOOKAROUND, "a lookaround"),
    (re.compile(r"(?<!\\)(?:\\\\)*\\[bB]"), "a word boundary"),
    (re.compile(r"(?<!\\)(?:\\\\)*\\[1-9]"), "a back reference"),
)


def schema_problems(schema: object, path: str) -> list[str]:
    """Every reason why the API would refuse this schema, strict mode aside."""
    root = as_map(schema)
    if root is None:
        # SDK anthropic.types.ToolParam: `input_schema` is required and a JSON object.
        return [f"{path}: the schema must be an object"]
    return in_order(
        [
            *root_problems(root, path),
            # anthropics/claude-code and Dokploy/mcp#74: "JSON schema is invalid. It must match JSON Schema draft
            # 2020-12" for boolean exclusiveMinimum; the same check finds tuple items, unknown types, `required`
            # booleans and null values.
            *draft_problems(root, path, python_patterns=False),
            # BerriAI/litellm#26692: "Error resolving schema reference '#/definitions/...': PointerToNowhere".
            *ref_problems(root, path),
            *pattern_problems(root, path),
        ]
    )


def root_problems(root: Mapping[str, Any], path: str) -> Iterator[str]:
    """What must hold at the root only."""
    if root.get("type") != "object":
        # SDK anthropic.types.ToolParam.InputSchema: `type: Required[Literal["object"]]`.
        yield f"{at(path, 'type')}: must be 'object'"
    for keyword in ROOT_UNIONS:
        if keyword in root:
            # anthropics/claude-code#5319: "input_schema does not support oneOf, allOf, or anyOf at the top level".
            yield f"{at(path, keyword)}: not taken at the root of a tool's schema"
    for key in as_map(root.get("properties")) or {}:
        if not PROPERTY_KEY.fullmatch(str(key)):
            yield f"{at(path, 'properties')}: the key {key!r} does not match ^[a-zA-Z0-9_.-]{{1,64}}$"


def readable_pattern(pattern: str) -> bool:
    """Whether the text is a regular expression in Python or, nearly, in ECMA-262."""
    nearer = re.sub(r"\\[pP]\{[^}]*\}", r"\\w", pattern).replace("(?<", "(?P<")
    nearer = nearer.replace("(?P<=", "(?<=").replace("(?P<!", "(?<!")
    for form in (pattern, nearer):
        try:
            re.compile(form)
        except (re.error, OverflowError, RecursionError):
            continue
        return True
    return False


def pattern_problems(root: Mapping[str, Any], path: str) -> Iterator[str]:
    """Patterns that are no regular expression at all.

    Sources disagree: Dokploy/mcp#71 says that Anthropic refuses a pattern that is no ECMA-262 expression;
    tombii/better-ccflare#357 and Alishahryar1/free-claude-code#1730 show lookarounds and \\p{..} accepted.
    Strict here: refused where neither Python nor ECMA-262 could read it.
    """
    for here, inner in subschemas(root, path):
        pattern = as_text(inner.get("pattern"))
        if pattern is not None and not readable_pattern(pattern):
            yield f"{at(here, 'pattern')}: not a regular expression"
        for name in as_map(inner.get("patternProperties")) or {}:
            if not readable_pattern(str(name)):
                yield f"{at(here, 'patternProperties')}: {name!r} is not a regular expression"


def strict_problems(root: Mapping[str, Any], path: str) -> list[str]:
    """What `strict: true` adds.

    Source: platform.claude.com "Structured outputs", sections "JSON Schema limitations" and "Pattern support".
    """
    found = [problem for here, inner in subschemas(root, path) for problem in strict_node_problems(inner, here)]
    if recursive(root):
        found.append(f"{path}: recursive schemas are not taken in strict mode")
    return found


def strict_node_problems(inner: Mapping[str, Any], here: str) -> Iterator[str]:
    """What strict mode refuses in one subschema."""
    if ("object" in types_of(inner) or "properties" in inner) and inner.get("additionalProperties") is not False:
        yield f"{at(here, 'additionalProperties')}: must be false in strict mode"
    for keyword in STRICT_REFUSES:
        if keyword in inner:
            yield f"{at(here, keyword)}: not taken in strict mode"
    if inner.get("minItems", 0) not in (0, 1):
        yield f"{at(here, 'minItems')}: only 0 and 1 are taken in strict mode"
    for place, choice in enumerate(as_list(inner.get("enum")) or []):
        if isinstance(choice, dict | list):
            yield f"{at(here, 'enum', place)}: only plain values are taken in strict mode"
    yield from strict_text_problems(inner, here)


def strict_text_problems(inner: Mapping[str, Any], here: str) -> Iterator[str]:
    """What strict mode refuses about references, formats and patterns."""
    if any("$ref" in (as_map(part) or {}) for part in as_list(inner.get("allOf")) or []):
        yield f"{at(here, 'allOf')}: a $ref inside allOf is not taken in strict mode"
    if "format" in inner and inner["format"] not in STRICT_FORMATS:
        yield f"{at(here, 'format')}: this format is not taken in strict mode"
    for form, words in STRICT_PATTERN_REFUSES:
        if form.search(as_text(inner.get("pattern")) or ""):
            # platform.claude.com "Troubleshooting tool use": "Unsupported regex feature in pattern field".
            yield f"{at(here, 'pattern')}: {words} is not taken in strict mode"


def optional_parameters(root: Mapping[str, Any]) -> int:
    """How many parameters are not listed in `required`."""
    return sum(
        len(set(as_map(inner.get("properties")) or {}) - {str(name) for name in as_list(inner.get("required")) or []})
        for _, inner in subschemas(root, "")
    )


def union_parameters(root: Mapping[str, Any]) -> int:
    """How many parameters use `anyOf` or a list of types."""
    entries = (
        as_map(entry) or {}
        for _, inner in subschemas(root, "")
        for entry in (as_map(inner.get("properties")) or {}).values()
    )
    return sum("anyOf" in entry or isinstance(entry.get("type"), list) for entry in entries)
