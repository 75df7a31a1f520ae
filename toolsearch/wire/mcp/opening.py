"""The first messages of a connection, as the SDK's server would write them: the name of the server, its capabilities,
and its first lists.

Plain JSON both ways, so that they can be read and written before the SDK is loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from toolsearch.documents.json_values import as_object
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.wire.mcp.lists import PROMPTS, RESOURCES, TEMPLATES, TOOLS, ListOf
from toolsearch.wire.mcp.requests import SKILLS_EXTENSION, TASKS_EXTENSION

DISCOVER: Final = "server/discover"
INITIALIZE: Final = "initialize"
PING: Final = "ping"
LISTEN: Final = "subscriptions/listen"
ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
MODERN_VERSION: Final = "2026-07-28"
HANDSHAKE_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
LISTS: Final = {each.method: each for each in (TOOLS, PROMPTS, RESOURCES, TEMPLATES)}
EXTENSIONS: Final[dict[str, dict[str, Json]]] = {SKILLS_EXTENSION: {"directoryRead": True}, TASKS_EXTENSION: {}}
LIST_TTL_MS: Final = 60_000  # time for which 2026 clients may cache a list of tools

_CAPABILITIES: Final[JsonObject] = {
    "completions": {},
    "logging": {},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "tools": {"listChanged": True},
}
_TASKS: Final[JsonObject] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
_UNSUPPORTED_VERSION: Final = -32022
_KEY: Final = "io.modelcontextprotocol/"
_SUBSCRIPTIONS: Final = ("toolsListChanged", "promptsListChanged", "resourcesListChanged", "resourceSubscriptions")
_CHANGES: Final = {
    TOOLS: ("notifications/tools/list_changed", "toolsListChanged"),
    PROMPTS: ("notifications/prompts/list_changed", "promptsListChanged"),
    RESOURCES: ("notifications/resources/list_changed", "resourcesListChanged"),
    TEMPLATES: ("notifications/resources/list_changed", "resourcesListChanged"),
}


class ServerInfo(NamedTuple):
    name: str
    version: str


def params_of(message: JsonObject) -> JsonObject:
    return as_object(message.get("params")) or {}


def asked_version(request: JsonObject) -> Json:
    """The version that a request of 2026 names; None after a handshake."""
    return _meta(request).get(f"{_KEY}protocolVersion")


def discovered(request: JsonObject, server: ServerInfo, instructions: str) -> JsonObject:
    """The answer to ``server/discover``: a result, or the error for an unknown version."""
    version = asked_version(request)
    if version != MODERN_VERSION:
        data: JsonObject = {"supported": [MODERN_VERSION], "requested": version}
        return {"error": {"code": _UNSUPPORTED_VERSION, "message": "Unsupported protocol version", "data": data}}
    capabilities = {**_CAPABILITIES, "extensions": EXTENSIONS}
    said = {"supportedVersions": [MODERN_VERSION], "capabilities": capabilities, "instructions": instructions}
    return {"result": _stamped(said, server, ttl_ms=0)}


def initialized(request: JsonObject, server: ServerInfo, instructions: str) -> JsonObject:
    """The result of ``initialize``."""
    params = params_of(request)
    asked = params.get("protocolVersion")
    version = asked if asked in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
    return {
        "protocolVersion": version,
        "capabilities": with_tasks(with_extensions(_CAPABILITIES, params), version),
        "serverInfo": server._asdict(),
        "instructions": instructions,
    }


def with_extensions(capabilities: JsonObject, params: JsonObject) -> JsonObject:
    """*capabilities* for a client that shakes hands with *params*, with the extensions that it declares. Its protocol
    has no field for them, so no other client is told. Tasks are part of that protocol, and no extension.
    """
    declared = as_object((as_object(params.get("capabilities")) or {}).get("extensions")) or {}
    known = {name: settings for name, settings in EXTENSIONS.items() if name in declared and name != TASKS_EXTENSION}
    return {**capabilities, "extensions": known} if known else capabilities


def with_tasks(capabilities: JsonObject, version: Json) -> JsonObject:
    """*capabilities* for a client that shakes hands and speaks *version*: only the last of these knows tasks."""
    return {**capabilities, "tasks": _TASKS} if version == HANDSHAKE_VERSIONS[-1] else capabilities


def listed(request: JsonObject, which: ListOf, entries: Sequence[JsonObject], server: ServerInfo) -> JsonObject:
    """The result of a request for a list, in the era of the request."""
    page = which.page([*entries])
    if asked_version(request) is None:
        return page
    return _stamped(page, server, ttl_ms=LIST_TTL_MS if which is TOOLS else 0)


def acknowledgement(request: JsonObject) -> dict[str, Any] | None:
    """The parameters of the acknowledgement of a request to be told of changes; None for any other request."""
    asked = as_object(params_of(request).get("notifications")) or {}
    if not asked or not asked.keys() <= set(_SUBSCRIPTIONS):
        return None
    heard = {key: value for key, value in asked.items() if value}
    return {"_meta": {f"{_KEY}subscriptionId": request.get("id")}, "notifications": heard}


def changes_between(then: Json, now: Json, acknowledged: Sequence[dict[str, Any]] | None) -> list[JsonObject]:
    """The notifications that a list has changed since the client was told: *then* and *now* are results of one request.

    *acknowledged* holds the client's acknowledged subscriptions; None for a client that has shaken hands.
    """
    before, after = as_object(then) or {}, as_object(now) or {}
    changed = [which for which in LISTS.values() if before.get(which.key) != after.get(which.key)]
    told: list[JsonObject] = []
    for method, subscription in (_CHANGES[which] for which in changed):
        if acknowledged is None:
            told.append({"jsonrpc": "2.0", "method": method})
            continue
        heard = (each for each in acknowledged if subscription in each["notifications"])
        told += [{"jsonrpc": "2.0", "method": method, "params": {"_meta": each["_meta"]}} for each in heard]
    return told


def _stamped(result: JsonObject, server: ServerInfo, *, ttl_ms: int) -> JsonObject:
    stamp: JsonObject = {"resultType": "complete", "ttlMs": ttl_ms, "cacheScope": "private"}
    return {**stamp, **result, "_meta": {f"{_KEY}serverInfo": server._asdict()}}


def _meta(message: JsonObject) -> JsonObject:
    return as_object(params_of(message).get("_meta")) or {}
