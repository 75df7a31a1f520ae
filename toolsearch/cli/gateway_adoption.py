"""What becomes of a client's servers when the gateway takes them over: which move, which stay and why."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from toolsearch.cli.gateway_clients import KnownClient
from toolsearch.cli.gateway_dialects import VARIABLE, StaysError, Surroundings, in_common_words, input_variables
from toolsearch.documents.json_values import is_list, is_object
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.upstreams import secrets
from toolsearch.upstreams.config import HttpServer, McpServer, read_mcp_config

_INPUT = re.compile(r"\$\{input:[^{}]*\}")  # what an editor asks a person for
OURS = "toolsearch"  # what the gateway's entry is called in a client's file


@dataclass(frozen=True, slots=True)
class Adoption:
    """What moves, what stays, and the *entry* of the gateway that the client gets.

    moved   by name, in the format of ``mcpServers``
    stays   of each server that is left alone, why it is
    inputs  the variables that the client asks a person for, with its own word for each
    """

    moved: Mapping[str, JsonObject]
    stays: Mapping[str, str]
    inputs: Mapping[str, str]
    entry: JsonObject

    @property
    def variables(self) -> list[str]:
        """What the moved servers take from the environment, sorted."""
        return _variables(self.moved.values())


def adopt(
    client: KnownClient,
    servers: Mapping[str, JsonObject],
    kept: Mapping[str, JsonObject],
    command: Sequence[str],
    *,
    home: Path,
    inputs: Json = None,
) -> Adoption:
    """Decide on *servers* of *client*, where the gateway has *kept* already; *command* starts the gateway.

    inputs  what an editor's file says under this name: values that it asks a person for
    """
    named = input_variables(inputs, _variables(servers.values()))
    around = Surroundings(home, client.folder, named)
    moved: dict[str, JsonObject] = {}
    stays: dict[str, str] = {}
    for name, entry in servers.items():
        if name == OURS:
            continue
        try:
            meant = in_common_words(client, entry, around)
        except StaysError as error:
            stays[name] = str(error)
            continue
        if name in kept and not _is_same(kept[name], meant):
            stays[name] = "the gateway has another server of this name; rename one of the two"
        elif reason := _unusable(name, meant):
            stays[name] = reason
        else:
            moved[name] = kept.get(name, meant)
    used = _variables(moved.values())
    asked = {variable: f"${{input:{name}}}" for name, variable in named.items() if variable in used}
    return Adoption(moved, stays, asked, _entry(client, command, used, asked))


def redacted(servers: Mapping[str, JsonObject]) -> dict[str, Json]:
    """*servers* for display: without values of ``env``, headers and logins, and without arguments that look secret."""
    return {name: _redacted(entry) for name, entry in servers.items()}


def _variables(entries: Iterable[JsonObject]) -> list[str]:
    return sorted(set(VARIABLE.findall(json.dumps(list(entries)))))


def _is_same(one: JsonObject, other: JsonObject) -> bool:
    """Whether both mean one server, though one client may say more, or say it in another way."""
    return one == other or _read(one) == _read(other) != ()


def _read(entry: JsonObject) -> tuple[McpServer, ...]:
    """The server with each variable as a word of its own."""
    read = read_mcp_config({"mcpServers": {OURS: entry}}, _EachItself()).servers
    return tuple(replace(each, kind_is_given=True) if isinstance(each, HttpServer) else each for each in read)


def _unusable(name: str, entry: JsonObject) -> str:
    """Why the gateway could not use it, or "". A variable that is not set here may be set where the gateway runs."""
    read = read_mcp_config({"mcpServers": {name: entry}}, _EachItself())
    return read.refused[0].reason if read.refused else ""


class _EachItself(dict[str, str]):
    """An environment that has every variable, and in which each stands for itself."""

    def get(self, name: str, default: Any = None) -> Any:  # noqa: ARG002
        return f"${{{name}}}"


def _entry(
    client: KnownClient, command: Sequence[str], variables: Sequence[str], asked: Mapping[str, str]
) -> JsonObject:
    entry: dict[str, Json] = {**(client.extra or {}), "command": command[0], "args": [*command[1:]]}
    if variables and client.format == "toml":
        entry["env_vars"] = [*variables]
    elif variables and client.variable:
        entry["env"] = {name: asked.get(name, client.variable.replace("%s", name)) for name in variables}
    return entry


def _redacted(entry: JsonObject) -> Json:
    shown: dict[str, Json] = dict(entry)
    for key, value in entry.items():
        if is_object(value):  # env, headers, and what else a client keeps with a server, such as its login
            shown[key] = {name: _hidden(inner) for name, inner in value.items()}
        elif key in {"url", "httpUrl"} and isinstance(value, str):
            shown[key] = _redacted_url(value)
        elif key == "args" and is_list(value):
            shown[key] = _redacted_arguments(value)
        elif isinstance(value, str) and key != "bearer_token_env_var" and secrets.is_telling(key):
            shown[key] = _hidden(value)
    return shown


def _hidden(value: Json) -> Json:
    """*value*, or asterisks if it is more than the name of a variable and the scheme before it."""
    rest = _INPUT.sub("", VARIABLE.sub("", value)).strip() if isinstance(value, str) else "?"
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
