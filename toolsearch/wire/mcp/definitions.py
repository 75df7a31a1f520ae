"""Definitions of tools, in the form of ``tools/list``. The entry that a server sent is kept unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from toolsearch.documents.json_values import is_object
from toolsearch.errors import BadToolError
from toolsearch.tools.definition import HINTS, NO_PARAMETERS, Tool, ToolDefinition
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.naming import given_name, title_with_name
from toolsearch.wire.request_parts import ToPlain, deep_copy
from toolsearch.wire.sendable_schema import sendable_schema
from toolsearch.wire.sendable_tools import sendable_definition

PROTOCOL: Final = "mcp"
INPUT_SCHEMA: Final = "inputSchema"  # field name that texts for models repeat
OUTPUT_SCHEMA: Final = "outputSchema"
NAME_PLACES: Final = frozenset({"name", "title", "annotations.title"})  # fields that may hold the tool's name
PICTURES: Final = frozenset({"icons"})  # fields without text for readers
KEYS_LENGTH: Final = len('"name""title""description""inputSchema""outputSchema""annotations"::::::{}')

_DEFINED: Final = frozenset({"name", "title", "description", INPUT_SCHEMA, OUTPUT_SCHEMA, "annotations"})
_FOR_CALLING = ("title", "description", INPUT_SCHEMA, "annotations")
# Schema key that asks for the argument to be sent as an HTTP header too (protocol of 2026).
_HEADER_KEY = "x-mcp-header"
_ANNOTATIONS: Final[Mapping[str, type]] = {"title": str, **dict.fromkeys(HINTS, bool)}
_LONGEST_REASON = 200  # characters kept of the SDK's reason, which quotes the server


def write_tool(definition: ToolDefinition, plain: ToPlain = deep_copy) -> dict[str, Any]:
    """The unchanged definition, to be kept or compared. Models are shown the result of `write_sendable_tool`."""
    tool: dict[str, Any] = {"name": definition.name}
    if definition.title:
        tool["title"] = definition.title
    if definition.description:
        tool["description"] = definition.description
    tool[INPUT_SCHEMA] = plain(definition.input_schema)
    if definition.output_schema is not None:
        tool[OUTPUT_SCHEMA] = plain(definition.output_schema)
    if definition.annotations:
        tool["annotations"] = plain(definition.annotations)
    return tool


def write_sendable_tool(definition: ToolDefinition, plain: ToPlain = deep_copy) -> dict[str, Any]:
    """The definition for the lists of clients: most hand it on to a model unchecked, so it must be sendable.

    Versions before 2026 allow only objects as output schemas.
    """
    entry = _with_valid_output(write_tool(sendable_definition(definition, PROTOCOL), plain))
    if entry.get(OUTPUT_SCHEMA, {}).get("type") != "object":
        entry.pop(OUTPUT_SCHEMA, None)
    return entry


def read_tool(entry: Json, *, name: str = "", server: str = "") -> ToolDefinition:
    """Return the definition in *entry*, under *name* if one is given, and as a tool of *server*.

    The title may also be in the annotations; it includes the entry's own name if *name* cannot express it. An optional
    field of the wrong type counts as missing. Raises BadToolError, with the reason, if *entry* defines no tool that can
    be called.
    """
    if not is_object(entry):
        raise BadToolError("the entry is not an object")
    own_name = tool_name(entry)
    if own_name is None:
        raise BadToolError("it has no name")
    given = _object(entry, "annotations") or {}
    title = _text(entry, "title") or _text(given, "title")
    return ToolDefinition(
        name=name or own_name,
        title=title if name in ("", own_name) else title_with_name(title, own_name, server),
        description=_text(entry, "description"),
        input_schema=_with_usable_headers(_input_schema(entry)),
        output_schema=_object(entry, OUTPUT_SCHEMA),
        annotations={key: value for key, value in given.items() if isinstance(value, _ANNOTATIONS.get(key, object))},
        server=server,
    )


def tool_name(entry: Json) -> str | None:
    """The name that *entry* gives its tool, if it gives one."""
    name = entry.get("name") if is_object(entry) else None
    return name if isinstance(name, str) and name.strip() else None


def task_support(entry: JsonObject) -> Json:
    """How a tool of 2025 can be called: ``required`` and ``optional`` mean as a task."""
    execution = entry.get("execution")
    return execution.get("taskSupport") if is_object(execution) else None


def with_optional_tasks(entry: JsonObject) -> JsonObject:
    """*entry*, whose tool clients need not call as a task: we follow the task for those that know none."""
    execution = entry.get("execution")
    if not is_object(execution) or task_support(entry) != "required":
        return entry
    return {**entry, "execution": {**execution, "taskSupport": "optional"}}


def always_loaded(entry: JsonObject) -> JsonObject:
    """*entry* with a mark for Claude Code: its model sees the tool at once, and not only through its tool search."""
    return {**entry, "_meta": {"anthropic/alwaysLoad": True}}


def with_search_hint(entry: JsonObject, hint: str) -> JsonObject:
    """*entry* with words for Claude Code's tool search; no model reads them."""
    meta = entry.get("_meta")
    return {**entry, "_meta": {**(meta if is_object(meta) else {}), "anthropic/searchHint": hint}}


def entry_of(tool: Tool) -> JsonObject:
    """The entry that the server sent, or, for a tool of no server, one that is written from the definition.

    People may have words of their own for a server's tool: then its definition gives all fields that it has.
    """
    if tool.origin is None:
        return write_tool(tool.definition)
    if tool.override is None:
        return tool.origin.raw
    others = {key: value for key, value in tool.origin.raw.items() if key not in _DEFINED}
    return {**others, **write_tool(tool.definition)}


def renamed_entry(tool: Tool) -> dict[str, Any]:
    """The entry of *tool* with our name for it and a sendable input schema.

    An output schema that is not an object is left out.
    """
    entry = {**_entry_for_models(tool), "name": tool.name}
    if tool.definition.output_schema is None:
        entry.pop(OUTPUT_SCHEMA, None)
    return _with_valid_output(entry)


def fields_for_calling(tool: Tool) -> dict[str, Json]:
    """The fields that a model needs, besides the name, to call *tool*."""
    entry = _entry_for_models(tool)
    return {key: entry[key] for key in _FOR_CALLING if entry.get(key)}


def sent_input_schema(definition: ToolDefinition) -> JsonObject:
    """The input schema in a tool's entry, as clients list it."""
    return sendable_schema(definition.input_schema).schema


def _entry_for_models(tool: Tool) -> JsonObject:
    """The entry of *tool*; its title includes the server's name for the tool if ours cannot express it."""
    entry = {**entry_of(tool), INPUT_SCHEMA: sent_input_schema(tool.definition)}
    return {**entry, "title": tool.definition.title} if given_name(tool.definition) else entry


def _with_valid_output(entry: dict[str, Any]) -> dict[str, Any]:
    """*entry* with an output schema that accepts the same results, in the draft that clients use."""
    schema = entry.get(OUTPUT_SCHEMA)
    if not is_object(schema) or schema.get("type") != "object":
        return entry
    sent = sendable_schema(schema)
    if sent.own_names:  # results keep their own property names, so a schema with renamed ones would refuse them
        return {key: value for key, value in entry.items() if key != OUTPUT_SCHEMA}
    # Leaves out the empty "properties" that was added.
    valid = {key: value for key, value in sent.schema.items() if key in schema or value}
    return {**entry, OUTPUT_SCHEMA: valid}


def schema_of(entry: Mapping[str, Any]) -> JsonObject:
    """The input schema in *entry*, unchanged; empty if there is none."""
    schema = entry.get(INPUT_SCHEMA)
    return schema if is_object(schema) else {}


def _input_schema(entry: JsonObject) -> JsonObject:
    """The schema as listed, with the root type ``object`` added if there is no type.

    In every version of MCP arguments are an object, so a missing type or a missing schema means an object.
    """
    schema = entry.get(INPUT_SCHEMA)
    if schema is None or schema == {}:
        return NO_PARAMETERS
    if not is_object(schema):
        raise BadToolError(f"its {INPUT_SCHEMA} is not an object")
    declared = schema.get("type")
    if declared is None:
        return {"type": "object", **schema}
    if declared != "object":
        raise BadToolError(f"its {INPUT_SCHEMA} has the type {declared!r}, but arguments are an object")
    return schema


def _with_usable_headers(schema: JsonObject) -> JsonObject:
    """*schema* itself. Raises BadToolError if it asks for an HTTP header that cannot be sent.

    The protocol demands this only over HTTP. A gateway may offer tools over HTTP that it was listed over stdio, so the
    rule is applied to every transport here.
    """
    if _HEADER_KEY in str(schema):  # cheap test on the text first; the exact one follows
        # Imported here because it loads slowly and few tools need it.
        from mcp.shared.inbound import find_invalid_x_mcp_header

        if (reason := find_invalid_x_mcp_header(schema)) is not None:
            raise BadToolError(f"it asks for an HTTP header that cannot be sent: {reason[:_LONGEST_REASON]}")
    return schema


def _text(fields: JsonObject, key: str) -> str:
    value = fields.get(key)
    return value if isinstance(value, str) else ""


def _object(fields: JsonObject, key: str) -> JsonObject | None:
    value = fields.get(key)
    return value if is_object(value) else None
