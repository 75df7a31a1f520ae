"""What becomes of a client's servers when the gateway takes them over: which move, which stay and why."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from toolsearch.cli.gateway_clients import KnownClient
from toolsearch.documents.json_values import is_list, is_object
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.upstreams import secrets
from toolsearch.upstreams.config import read_mcp_config

OURS = "toolsearch"  # what the gateway's entry is called in a client's file
_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-[^{}]*)?\}")
_SECRET_WORD = re.compile(r"token|key|secret|passw|credential|auth", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Adoption:
    """*moved* has the format of ``mcpServers``; *stays* says of each server that is left alone why it is."""

    moved: Mapping[str, JsonObject]
    stays: Mapping[str, str]
    entry: JsonObject

    @property
    def variables(self) -> list[str]:
        """What the moved servers take from the environment, sorted."""
        return sorted(set(_VARIABLE.findall(json.dumps(list(self.moved.values())))))


def adopt(
    client: KnownClient, servers: Mapping[str, JsonObject], kept: Mapping[str, JsonObject], command: Sequence[str]
) -> Adoption:
    """Decide on *servers* of *client*, where the gateway has *kept* already; *command* starts the gateway."""
    moved: dict[str, JsonObject] = {}
    stays: dict[str, str] = {}
    for name, entry in servers.items():
        if name == OURS:
            continue
        meant = _from_codex(entry) if client.format == "toml" else entry
        if kept.get(name, meant) != meant:
            stays[name] = "the gateway has another server of this name; rename one of the two"
        elif reason := _unusable(name, meant):
            stays[name] = reason
        else:
            moved[name] = meant
    adoption = Adoption(moved, stays, {})
    return Adoption(moved, stays, _entry(client, command, adoption.variables))


def redacted(servers: Mapping[str, JsonObject]) -> dict[str, Json]:
    """*servers* for display: without values of ``env`` and headers, and without arguments that look secret."""
    return {name: _redacted(entry) for name, entry in servers.items()}


def _unusable(name: str, entry: JsonObject) -> str:
    """Why the gateway could not use it, or "". A variable that is not set here may be set where the gateway runs."""
    read = read_mcp_config({"mcpServers": {name: entry}}, _AllSet())
    return read.refused[0].reason if read.refused else ""


class _AllSet(dict[str, str]):
    """An environment that has every variable."""

    def get(self, _: str, default: Any = None) -> Any:  # noqa: ARG002
        return "set"


def _entry(client: KnownClient, command: Sequence[str], variables: Sequence[str]) -> JsonObject:
    entry: dict[str, Json] = {**(client.extra or {}), "command": command[0], "args": [*command[1:]]}
    if variables and client.format == "toml":
        entry["env_vars"] = [*variables]
    elif variables and client.variable:
        entry["env"] = {name: client.variable.replace("%s", name) for name in variables}
    return entry


def _from_codex(entry: JsonObject) -> JsonObject:
    """The same server in the format of ``mcpServers``."""
    meant = {key: entry[key] for key in ("command", "args", "cwd", "url") if key in entry}
    env = {str(name): f"${{{name}}}" for name in _listed(entry.get("env_vars"))} | _mapped(entry.get("env"))
    headers = _mapped(entry.get("http_headers"))
    headers |= {name: f"${{{variable}}}" for name, variable in _mapped(entry.get("env_http_headers")).items()}
    if isinstance(variable := entry.get("bearer_token_env_var"), str):
        headers["Authorization"] = f"Bearer ${{{variable}}}"
    if env:
        meant["env"] = env
    if headers:
        meant["headers"] = headers
    if entry.get("enabled") is False:
        meant["disabled"] = True
    return meant


def _mapped(value: Json) -> dict[str, Json]:
    return dict(value) if is_object(value) else {}


def _listed(value: Json) -> list[Json]:
    return list(value) if is_list(value) else []


def _redacted(entry: JsonObject) -> Json:
    shown: dict[str, Json] = dict(entry)
    for key in ("env", "headers", "http_headers"):
        if is_object(values := entry.get(key)):
            shown[key] = {name: _hidden(value) for name, value in values.items()}
    if is_list(args := entry.get("args")):
        shown["args"] = _redacted_arguments(args)
    if isinstance(url := entry.get("url"), str):
        shown["url"] = _redacted_url(url)
    return shown


def _hidden(value: Json) -> Json:
    """*value*, or asterisks if it is more than the name of a variable and the scheme before it."""
    rest = _VARIABLE.sub("", value).strip() if isinstance(value, str) else "?"
    return value if rest in {"", "Bearer", "Basic", "token"} else "***"


def _redacted_arguments(args: Sequence[Json]) -> list[Json]:
    shown: list[Json] = []
    hides_next = False
    for arg in args:
        text = arg if isinstance(arg, str) else ""
        name, equals, value = text.partition("=")
        if hides_next:
            shown.append(_hidden(arg))
        elif "://" in text:
            shown.append(_redacted_url(text))
        elif equals and secrets.is_telling(name):
            shown.append(f"{name}={_hidden(value)}")
        else:
            shown.append(secrets.redacted(text, secrets.keys_in(text)) if text else arg)
        hides_next = text.startswith("-") and not equals and secrets.is_telling(text)
    return shown


def _redacted_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        netloc = f"***@{parts.netloc.rpartition('@')[2]}" if parts.password else parts.netloc
    except ValueError:
        return "***"
    query = re.sub(r"=[^&]*", lambda found: f"={_hidden(found[0][1:])}", parts.query)
    return parts._replace(netloc=netloc, query=query).geturl()
