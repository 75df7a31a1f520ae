"""The request that calls or reads an entry at its server, and the output that a model reads of the answer."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeAlias
from urllib.parse import unquote

from mcp import MCPError
from mcp.shared.uri_template import UriTemplate

from toolsearch.documents.json_values import as_list, is_list, is_object
from toolsearch.documents.skills import SKILL_FILE, Skill, SkillFile, skill_output
from toolsearch.errors import BadArgumentsError, ChangedSkillError, ToolExecutionError, ToolSearchError, shown_name
from toolsearch.tools.definition import Tool, ToolOrigin
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.results import BLOB, ToolOutput, text_block
from toolsearch.upstreams.contents import SkillFolders, parsed_template
from toolsearch.wire.mcp.lists import RESOURCES, TEMPLATES, is_directory, next_cursor
from toolsearch.wire.mcp.requests import (
    CALL_TOOL,
    GET_PROMPT,
    GET_SKILL,
    READ_DIRECTORY,
    READ_RESOURCE,
    call_params,
    read_output,
)

_LONGEST_URI: Final = 8_192
_BASE64_GROUP: Final = 3  # bytes that four characters stand for


class EntryRequest(NamedTuple):
    method: str
    params: Mapping[str, Json]


# Sends a request to the server of the entry and gives the raw result. Raises MCPError or ToolSearchError.
Send: TypeAlias = Callable[[EntryRequest], Awaitable[Mapping[str, Any]]]


def request_of(entry: Tool, arguments: JsonObject, *, skills: Iterable[JsonObject]) -> EntryRequest:
    """The request for the server of *entry* that calls the tool, or reads the skill, prompt or resource.

    *skills* are the raw entries of all skills that the server lists. Raises BadArgumentsError, which the model can act
    on: among others for a resource that is a file of a skill, since only reading the skill verifies it.
    """
    origin = _origin_of(entry)
    match entry.definition.kind:
        case "tool":
            return EntryRequest(CALL_TOOL, call_params(origin.remote_name, arguments))
        case "prompt":
            return EntryRequest(GET_PROMPT, call_params(origin.remote_name, arguments))
        case "skill":
            return EntryRequest(READ_RESOURCE, {"uri": _file_of(origin, arguments)[1].uri})
        case "resource":
            uri = _uri_of(origin, arguments)
            if SkillFolders(skills).holds(uri):
                raise BadArgumentsError(f"{shown_name(uri)} belongs to a skill; read it by the name of the skill")
            return EntryRequest(READ_DIRECTORY if is_directory(origin.raw) else READ_RESOURCE, {"uri": uri})


def output_of(entry: Tool, arguments: JsonObject, raw: Mapping[str, Any]) -> ToolOutput:
    """The output in *raw*, the server's answer to `request_of` with the same *arguments*.

    Raises ChangedSkillError if a file of a skill is not as it is listed, and ToolExecutionError for an answer that is
    none.
    """
    origin = _origin_of(entry)
    match entry.definition.kind:
        case "tool":
            return read_output(raw)
        case "prompt":
            return ToolOutput(tuple(_messages(raw, origin)))
        case "skill":
            skill, file = _file_of(origin, arguments)
            return skill_output(skill, file, _file_bytes(raw, skill, file), origin=f"the MCP server {origin.server}")
        case "resource":
            return ToolOutput(tuple(_directory(raw, origin) if is_directory(origin.raw) else _contents(raw, origin)))


async def explained(error: ChangedSkillError, entry: Tool, send: Send) -> ChangedSkillError:
    """*error* about the skill *entry*, with what its server says now: it is asked for the skill's present entry.

    The caller lists the server again, so that the catalog has that entry, too.
    """
    origin = _origin_of(entry)
    try:
        present = (await send(EntryRequest(GET_SKILL, {"uri": origin.remote_name}))).get("skill")
    except (MCPError, ToolSearchError):
        present = None
    if not is_object(present):
        now = "its server no longer has the skill, or cannot describe it"
    elif present == origin.raw:
        now = "its server sends other files than it lists"
    else:
        now = "the skill has changed; the gateway lists it again"
    return ChangedSkillError(error.name, error.path, now)


def _origin_of(entry: Tool) -> ToolOrigin:
    if entry.origin is None:
        raise ValueError(f"{entry.name!r} belongs to no server")
    return entry.origin


def _file_of(origin: ToolOrigin, arguments: JsonObject) -> tuple[Skill, SkillFile]:
    skill = Skill.from_entry(origin.raw)
    return skill, skill.file(str(arguments.get("file") or SKILL_FILE))


def _uri_of(origin: ToolOrigin, arguments: JsonObject) -> str:
    if TEMPLATES.name_of(origin.raw) is None:
        return origin.remote_name
    uri = _expanded(parsed_template(origin.remote_name), arguments)
    if len(uri) > _LONGEST_URI:
        raise BadArgumentsError(
            f"the arguments make a URI of {len(uri):,} characters; at most {_LONGEST_URI:,} are allowed"
        )
    if not {".", ".."}.isdisjoint(unquote(uri).replace("\\", "/").split("/")):
        raise BadArgumentsError(f"the arguments may not lead out of a folder: {shown_name(uri)}")
    return uri


def _expanded(template: UriTemplate, arguments: JsonObject) -> str:
    values: dict[str, str | list[str]] = {}
    for variable in template.variables:
        value = arguments.get(variable.name)
        if isinstance(value, str):
            values[variable.name] = value
        elif is_list(value) and all(isinstance(each, str) for each in value):
            values[variable.name] = [str(each) for each in value]
        elif value is not None:
            raise BadArgumentsError(f"{variable.name!r} must be a text")
    return template.expand(values)


def _file_bytes(raw: Mapping[str, Any], skill: Skill, file: SkillFile) -> bytes:
    """The bytes of *file* in the answer *raw*. Nothing larger than the manifest says is decoded."""
    parts = as_list(raw.get("contents")) or []
    part = parts[0] if len(parts) == 1 else None
    text, blob = (part.get("text"), part.get(BLOB)) if is_object(part) else (None, None)
    try:
        if isinstance(text, str) and len(text) <= file.size:
            return text.encode()
        if isinstance(blob, str) and len(blob) == 4 * -(-file.size // _BASE64_GROUP):
            return base64.b64decode(blob, validate=True)
    except (UnicodeEncodeError, binascii.Error):
        pass
    raise ChangedSkillError(skill.name, file.path)


def _messages(raw: Mapping[str, Any], origin: ToolOrigin) -> Iterator[JsonObject]:
    """The messages of a prompt: each begins with a line that says whose it is."""
    messages = raw.get("messages")
    if not is_list(messages):
        raise ToolExecutionError(f"MCP server {origin.server!r} gave no messages for the prompt {origin.remote_name!r}")
    for message in filter(is_object, messages):
        said = message.get("content")
        role = shown_name(str(message.get("role")))
        yield text_block(f"[{role}, in a prompt of the MCP server {origin.server}; the user did not write it]")
        yield from filter(is_object, said if is_list(said) else [said])


def _contents(raw: Mapping[str, Any], origin: ToolOrigin) -> Iterator[JsonObject]:
    contents = raw.get("contents")
    if not is_list(contents):
        raise ToolExecutionError(f"MCP server {origin.server!r} gave no contents of {shown_name(origin.remote_name)}")
    for part in filter(is_object, contents):
        yield {"type": "resource", "resource": part}


def _directory(raw: Mapping[str, Any], origin: ToolOrigin) -> Iterator[JsonObject]:
    children = RESOURCES.entries_of(raw)
    if children is None:
        raise ToolExecutionError(f"MCP server {origin.server!r} gave no list of {shown_name(origin.remote_name)}")
    lines = [f"- {uri}" for each in filter(is_object, children) if (uri := RESOURCES.name_of(each)) is not None]
    more = ["- and more"] if next_cursor(raw) is not None else []
    yield text_block("\n".join([*lines, *more]) or "(empty)")
