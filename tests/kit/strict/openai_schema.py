"""What OpenAI's two APIs refuse in a function's `parameters`, and in its name and description."""

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
    ref_problems,
    subschemas,
    types_of,
)

# SDK openai.types.shared_params.FunctionDefinition: "Must be a-z, A-Z, 0-9, or contain underscores and dashes, with a
# maximum length of 64"; nanbingxyz/5ire#33 for the error. The OpenAPI schema FunctionToolParam allows 128 on the
# Responses API; strict here: 64 everywhere.
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
# getsentry/sentry-mcp#106: "string too long. Expected a string with maximum length 1024".
LONGEST_DESCRIPTION = 1024
# zed-industries/zed#42393, vishalmysore/Tools4AI#16: "array too long. Expected an array with maximum length 128".
MOST_TOOLS = 128
# nspady/google-calendar-mcp#39: "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at
# the top level".
ROOT_REFUSES = ("oneOf", "anyOf", "allOf", "enum", "not")
# OpenAI guide "Structured Outputs", section "Supported schemas"; makenotion/notion-mcp-server#102 ("'allOf' is not
# permitted"); OpenAI error "'default' is not permitted" as quoted in zenn.dev/nicopin/scraps/a8d8f53f5faebb.
STRICT_REFUSES = ("allOf", "oneOf", "not", "dependentRequired", "dependentSchemas", "if", "then", "else", "default")
# The same guide's limits; "levels of nesting exceeds limit of 10" is the error.
STRICT_PROPERTIES = 5000
STRICT_DEPTH = 10
STRICT_CHARACTERS = 120_000
STRICT_ENUM_VALUES = 1000
STRICT_LONG_ENUM = 250
STRICT_LONG_ENUM_CHARACTERS = 15_000


def name_problems(name: object, path: str) -> Iterator[str]:
    """What is wrong with a function's name."""
    if as_text(name) is None:
        # diegosouzapw/OmniRoute#1914: "Missing required parameter: 'tools[0].name'".
        yield f"{path}: the name is missing"
    elif not NAME.fullmatch(str(name)):
        yield f"{path}: the name {str(name)[:80]!r} does not match ^[a-zA-Z0-9_-]{{1,64}}$"


def description_problems(tool: Mapping[str, Any], path: str, *, null_taken: bool) -> Iterator[str]:
    """What is wrong with a function's description."""
    if "description" not in tool:
        return
    text = as_text(tool["description"])
    if text is None:
        # OpenAPI: FunctionObject.description is a string, FunctionToolParam.description a string or null.
        if tool["description"] is not None or not null_taken:
            yield f"{at(path, 'description')}: must be a string"
    elif len(text) > LONGEST_DESCRIPTION:
        yield f"{at(path, 'description')}: {len(text)} characters, more than {LONGEST_DESCRIPTION}"


def schema_problems(schema: object, path: str) -> list[str]:
    """Every reason why the API would refuse these parameters, strict mode aside."""
    root = as_map(schema)
    if root is None:
        # OpenAPI: FunctionParameters is an object; FoundationAgents/OpenManus#1162 for the error.
        return [f"{path}: the parameters must be an object"]
    return in_order(
        [
            *root_problems(root, path),
            # FoundationAgents/OpenManus#1162 and smallmain/vscode-unify-chat-provider#162: "'object' is not of type
            # 'object', 'boolean'"; Alishahryar1/free-claude-code#1730: "... is not a 'regex'".
            *draft_problems(root, path, python_patterns=True),
            # Sources disagree: BerriAI/litellm#26692 saw OpenAI take a reference that leads nowhere,
            # langchain-ai/langchainjs#8389 and open-webui/computer#87 saw it refused. Strict here.
            *ref_problems(root, path),
            *node_problems(root, path),
        ]
    )


def root_problems(root: Mapping[str, Any], path: str) -> Iterator[str]:
    """What must hold at the root only."""
    if root.get("type") != "object":
        # vercel/ai#7005: "schema must be a JSON Schema of 'type: \"object\"', got 'type: \"None\"'".
        yield f"{at(path, 'type')}: must be 'object'"
    if "properties" not in root:
        # Azure/azure-mcp#197, janhq/jan#7017, karakeep-app/karakeep#1696: "In context=(), object schema missing
        # properties".
        yield f"{at(path, 'properties')}: missing from an object schema"
    for keyword in ROOT_REFUSES:
        if keyword in root:
            yield f"{at(path, keyword)}: not taken at the root of a function's parameters"


def node_problems(root: Mapping[str, Any], path: str) -> Iterator[str]:
    """What must hold in every subschema."""
    for here, inner in subschemas(root, path):
        if "array" in types_of(inner) and "items" not in inner:
            # sigoden/aichat#1049, tidewave-ai/tidewave_phoenix#224 (a list of types), PrefectHQ/fastmcp#2464
            # (prefixItems alone): "array schema missing items".
            yield f"{at(here, 'items')}: missing from an array schema"
        if LOOKAROUND.search(as_text(inner.get("pattern")) or ""):
            # nicobailon/pi-interactive-shell#69, anomalyco/opencode#32073: "regex lookaround is not supported".
            yield f"{at(here, 'pattern')}: a lookaround is not taken"


def strict_problems(schema: object, path: str) -> list[str]:
    """What `strict: true` adds."""
    root = as_map(schema)
    if root is None:
        return [f"{path}: strict mode needs parameters"]
    found = [problem for here, inner in subschemas(root, path) for problem in strict_node_problems(inner, here)]
    return found + list(strict_size_problems(root, path))


def strict_node_problems(inner: Mapping[str, Any], here: str) -> Iterator[str]:
    """What strict mode refuses in one subschema."""
    if "object" in types_of(inner) or "properties" in inner:
        if inner.get("additionalProperties") is not False:
            yield f"{at(here, 'additionalProperties')}: must be false in strict mode"
        required = {str(name) for name in as_list(inner.get("required")) or []}
        for name in sorted(set(as_map(inner.get("properties")) or {}) - required):
            # anomalyco/opencode#441: "'required' is required to be supplied and to be an array including every key".
            yield f"{at(here, 'required')}: strict mode needs every property listed, {name!r} is not"
    for keyword in STRICT_REFUSES:
        if keyword in inner:
            yield f"{at(here, keyword)}: not taken in strict mode"
    if "$ref" in inner and len(inner) > 1 and not {"$defs", "definitions"} & set(inner):
        # OpenAI error "$ref cannot have keywords {'description'}".
        yield f"{at(here, '$ref')}: no keyword may stand beside a reference in strict mode"
    if not {"type", "$ref", "anyOf", "enum", "const"} & set(inner):
        # apexive/odoo-llm#212: "schema must have a 'type' key".
        yield f"{at(here, 'type')}: missing, strict mode needs it"


def depth(schema: Mapping[str, Any]) -> int:
    """How many objects stand inside each other at the deepest place, the root counted."""
    deepest = 0
    waiting: list[tuple[int, object]] = [(0, schema)]
    while waiting:
        level, item = waiting.pop()
        inner = as_map(item)
        if inner is None:
            continue
        level += "object" in types_of(inner)
        deepest = max(deepest, level)
        properties, choices = as_map(inner.get("properties")) or {}, as_list(inner.get("anyOf")) or []
        waiting += [(level, entry) for entry in (*properties.values(), inner.get("items"), *choices)]
    return deepest


def strict_size_problems(root: Mapping[str, Any], path: str) -> Iterator[str]:
    """The documented limits of strict mode."""
    names: list[str] = []
    values: list[Any] = []
    for here, inner in subschemas(root, path):
        for keyword in ("properties", "$defs", "definitions"):
            names += [str(name) for name in as_map(inner.get(keyword)) or {}]
        choices = as_list(inner.get("enum")) or []
        values += [*choices, *([inner["const"]] if "const" in inner else [])]
        texts = [choice for choice in choices if isinstance(choice, str)]
        if len(choices) > STRICT_LONG_ENUM and sum(map(len, texts)) > STRICT_LONG_ENUM_CHARACTERS:
            yield f"{at(here, 'enum')}: more than {STRICT_LONG_ENUM_CHARACTERS} characters of choices in strict mode"
    properties = sum(len(as_map(inner.get("properties")) or {}) for _, inner in subschemas(root, path))
    characters = sum(map(len, names)) + sum(len(value) for value in values if isinstance(value, str))
    for found, most, words in (
        (properties, STRICT_PROPERTIES, "properties"),
        (depth(root), STRICT_DEPTH, "levels of nesting"),
        (characters, STRICT_CHARACTERS, "characters of names and choices"),
        (len(values), STRICT_ENUM_VALUES, "choices"),
    ):
        if found > most:
            yield f"{path}: {found} {words}, strict mode takes {most}"
