"""A strict judge of what an MCP server answers to `tools/list`, for clients that forward it to model APIs.

"Spec" is the Model Context Protocol of 2025-11-25: its page Server Features / Tools and its schema.ts.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from . import anthropic_schema, openai_schema
from .common import as_list, as_map, as_text, at, draft_problems, in_order, not_json

# Spec, "Tool Names": 1 to 128 of A-Z, a-z, 0-9, underscore, hyphen and dot. The clients want less: the model APIs take
# ^[a-zA-Z0-9_-]{1,64}$ (nanbingxyz/5ire#33 and apify/tester-mcp-client#11, where names were forwarded as they stood).
# Strict here: no dots.
NAME = re.compile(r"[a-zA-Z0-9_-]+")
# anthropics/claude-code#20983, #3102: Claude Code calls a tool `mcp__<server>__<tool>`, 64 characters in all; even a
# server of one letter leaves 56. Cursor's limit for server and tool together (ComposioHQ/composio#2788: a tool of 59
# behind a server of one letter is filtered out) is wider than that.
LONGEST_NAME = 64 - len("mcp__x__")
# openai_schema.LONGEST_DESCRIPTION holds too: clients forward descriptions as they stand (getsentry/sentry-mcp#106).
ANNOTATIONS = {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}


def problems(request: Mapping[str, Any], model: str | None = None) -> list[str]:
    """Every reason for which a client or the model API behind it would refuse this list; empty if it would be taken.

    `request` is the result of `tools/list`, an object with `tools`; `model` is of no account here.
    """
    del model
    tools = as_list(request.get("tools"))
    found = list(not_json(request))
    if "nextCursor" in request and as_text(request["nextCursor"]) is None:
        found.append("nextCursor: must be a string")
    if tools is None:
        return in_order([*found, "tools: must be a list"])
    for place, tool in enumerate(tools):
        found += tool_problems(tool, at("tools", place))
    return in_order([*found, *list_problems(tools)])


def list_problems(tools: Sequence[Any]) -> Iterator[str]:
    """What is wrong with the list as a whole."""
    if len(tools) > openai_schema.MOST_TOOLS:
        # zed-industries/zed#32946: many tools of MCP servers, one request that takes 128.
        yield f"tools: {len(tools)} tools, {openai_schema.MOST_TOOLS} are taken"
    names = [name for tool in tools if (name := as_text((as_map(tool) or {}).get("name"))) is not None]
    for name, times in Counter(names).items():
        if times > 1:
            # Spec: "Tool names SHOULD be unique within a server"; cloudwego/eino#632 for what follows.
            yield f"tools: the name {name!r} is given {times} times"


def tool_problems(tool: object, path: str) -> Iterator[str]:
    """What is wrong with one tool."""
    entry = as_map(tool)
    if entry is None:
        yield f"{path}: must be an object"
        return
    yield from name_problems(entry.get("name"), at(path, "name"))
    for key in ("title", "description"):
        if key in entry and as_text(entry[key]) is None:
            # Spec schema.ts: optional strings, not null.
            yield f"{at(path, key)}: must be a string"
    text = as_text(entry.get("description")) or ""
    if len(text) > openai_schema.LONGEST_DESCRIPTION:
        yield f"{at(path, 'description')}: {len(text)} characters, {openai_schema.LONGEST_DESCRIPTION} are taken"
    yield from input_problems(entry, path)
    yield from output_problems(entry, path)
    yield from extra_problems(entry, path)


def name_problems(name: object, path: str) -> Iterator[str]:
    """What is wrong with a name."""
    text = as_text(name)
    if not text:
        yield f"{path}: missing"
        return
    if not NAME.fullmatch(text):
        yield f"{path}: {text[:80]!r} holds characters other than letters, digits, underscores and hyphens"
    if len(text) > LONGEST_NAME:
        yield f"{path}: {len(text)} characters, {LONGEST_NAME} are taken"


def input_problems(entry: Mapping[str, Any], path: str) -> Iterator[str]:
    """What is wrong with the input schema."""
    here = at(path, "inputSchema")
    schema = as_map(entry.get("inputSchema"))
    if schema is None:
        # Spec: "MUST be a valid JSON Schema object (not null)".
        yield f"{here}: must be an object"
        return
    yield from shape_problems(schema, here)
    # Clients forward the schema; one bad schema fails every request (huly-mcp#66, Dokploy/mcp#74).
    yield from anthropic_schema.schema_problems(schema, here)
    yield from openai_schema.schema_problems(schema, here)


def shape_problems(schema: Mapping[str, Any], here: str) -> Iterator[str]:
    """The shape that clients check before anything else, dropping the whole server where it fails.

    Sources: spec schema.ts; anthropics/claude-code#88049 (root type), #44364 and MervinPraison/PraisonAI#3111
    (`required: null`), #17742 (`properties`).
    """
    if schema.get("type") != "object":
        yield f"{at(here, 'type')}: must be 'object'"
    if "$schema" in schema and as_text(schema["$schema"]) is None:
        yield f"{at(here, '$schema')}: must be a string"
    if "properties" in schema:
        properties = as_map(schema["properties"])
        if properties is None:
            yield f"{at(here, 'properties')}: must be an object"
        for name, inner in (properties or {}).items():
            if as_map(inner) is None:
                yield f"{at(here, 'properties', str(name))}: must be an object"
    if "required" in schema:
        required = as_list(schema["required"])
        if required is None or not all(isinstance(name, str) for name in required):
            yield f"{at(here, 'required')}: must be a list of strings"


def output_problems(entry: Mapping[str, Any], path: str) -> Iterator[str]:
    """What is wrong with the output schema (Wynelson94/longhand#10, anthropics/claude-code#10825)."""
    if "outputSchema" not in entry:
        return
    here = at(path, "outputSchema")
    schema = as_map(entry["outputSchema"])
    if schema is None:
        yield f"{here}: must be an object"
        return
    yield from shape_problems(schema, here)
    yield from draft_problems(schema, here, python_patterns=False)


def extra_problems(entry: Mapping[str, Any], path: str) -> Iterator[str]:
    """What is wrong with annotations, execution, icons and _meta (spec schema.ts)."""
    annotations = as_map(entry.get("annotations", {}))
    if annotations is None:
        yield f"{at(path, 'annotations')}: must be an object"
    for key, value in (annotations or {}).items():
        if (key in ANNOTATIONS and not isinstance(value, bool)) or (key == "title" and as_text(value) is None):
            yield f"{at(path, 'annotations', key)}: {value!r} is of the wrong type"
    execution = as_map(entry.get("execution", {}))
    if execution is None:
        yield f"{at(path, 'execution')}: must be an object"
    elif execution.get("taskSupport", "forbidden") not in ("forbidden", "optional", "required"):
        yield f"{at(path, 'execution', 'taskSupport')}: must be 'forbidden', 'optional' or 'required'"
    icons = as_list(entry.get("icons", []))
    if icons is None or not all(as_text((as_map(icon) or {}).get("src")) for icon in icons):
        yield f"{at(path, 'icons')}: must be a list of objects with a `src`"
    if as_map(entry.get("_meta", {})) is None:
        yield f"{at(path, '_meta')}: must be an object"
