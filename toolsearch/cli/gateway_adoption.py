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
from toolsearch.cli.gateway_dialects import (
    OPENCODE_VARIABLE,
    VARIABLE,
    Meaning,
    StaysError,
    Surroundings,
    input_variables,
    meaning_of,
)
from toolsearch.cli.gateway_guards import rule_about
from toolsearch.documents.json_values import is_list, is_object
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.naming import distinct, namespaced
from toolsearch.upstreams import secrets
from toolsearch.upstreams.config import HttpServer, McpServer, read_mcp_config

_INPUT = re.compile(r"\$\{input:[^{}]*\}")  # what an editor asks a person for
OURS = "toolsearch"  # what the gateway's entry is called in a client's file
TAKEN = "the gateway has another server of this name; rename one of the two"


@dataclass(frozen=True, slots=True)
class Adoption:
    """What moves, what stays, and the *entry* of the gateway that the client gets.

    moved     by name, in the format of ``mcpServers``
    settings  of servers that move, what the gateway's file is to say under ``toolsearch.servers``
    denied    rules for ``toolsearch.rules.deny``
    stays     of each server that is left alone, why it is
    warnings  what becomes of a server that moves, where that is not what it was
    inputs    the variables that the client asks a person for, with its own word for each
    """

    moved: Mapping[str, JsonObject]
    settings: Mapping[str, JsonObject]
    denied: tuple[str, ...]
    stays: Mapping[str, str]
    warnings: tuple[str, ...]
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
    allow_reads: bool = False,
) -> Adoption:
    """Decide on *servers* of *client*, where the gateway has *kept* already; *command* starts the gateway.

    inputs       what an editor's file says under this name: values that it asks a person for
    allow_reads  whether the client shall run without a question what changes nothing, if its entry can say so
    """
    named = input_variables(inputs, _variables(servers.values()))
    around = Surroundings(home, client.folder, named)
    moved: dict[str, JsonObject] = {}
    meanings: dict[str, Meaning] = {}
    stays: dict[str, str] = {}
    for name, entry in servers.items():
        if name == OURS:
            continue
        try:
            meaning = meaning_of(client, entry, around)
        except StaysError as error:
            stays[name] = str(error)
            continue
        if name in kept and not _is_same(kept[name], meaning.entry):
            stays[name] = TAKEN
        elif reason := _unusable(name, meaning.entry) or rule_about(client, name):
            stays[name] = reason
        else:
            moved[name] = kept.get(name, meaning.entry)
            meanings[name] = meaning
    used = _variables(moved.values())
    asked = {variable: f"${{input:{name}}}" for name, variable in named.items() if variable in used}
    entry = _with(servers.get(OURS, {}), _entry(client, command, used, asked))
    if allow_reads and client.reads:
        entry = _with(client.reads, entry)
    return Adoption(
        moved,
        {name: meaning.settings for name, meaning in meanings.items() if meaning.settings},
        tuple(rule for name, meaning in meanings.items() for rule in _deny_rules(name, meaning.forbidden)),
        stays,
        tuple(text for name, meaning in meanings.items() for text in _warnings(client, name, meaning)),
        asked,
        entry,
    )


def _deny_rules(server: str, tools: Iterable[str]) -> Iterable[str]:
    for tool in tools:
        name = namespaced(server, tool)
        yield name
        if not name.endswith(tool):  # another tool may have become the same name; then this one has a tail
            yield distinct(name, tool)


def _warnings(client: KnownClient, name: str, meaning: Meaning) -> Iterable[str]:
    if meaning.trusted:
        keys = ", ".join(map(repr, meaning.trusted))
        yield f"{client.label} let tools of {name!r} run without a question ({keys}); now it asks anew"
    if meaning.lost:
        keys = ", ".join(map(repr, meaning.lost))
        yield f"{name!r} of {client.label} moves without {keys}, which the gateway does not know"


def _with(said: JsonObject, entry: JsonObject) -> JsonObject:
    """*entry* with what is *said* besides, which counts where both speak, except for how the gateway is started."""
    both: dict[str, Json] = {**entry, **said}
    for key, value in entry.items():
        other = said.get(key, value)
        if key in {"command", "args"}:
            both[key] = value
        elif is_object(value) and is_object(other):
            both[key] = _with(other, value)
        elif key in {"env_vars", "autoApprove"} and is_list(value) and is_list(other):
            both[key] = [*other, *(each for each in value if each not in other)]
    return both


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
    in_one = client.dialect == "opencode"
    start: dict[str, Json] = {"command": [*command]} if in_one else {"command": command[0], "args": [*command[1:]]}
    entry: dict[str, Json] = {**start, **(client.extra or {})}
    if variables and client.format == "toml":
        entry["env_vars"] = [*variables]
    elif variables and client.variable:
        values = {name: asked.get(name, client.variable.replace("%s", name)) for name in variables}
        entry["environment" if in_one else "env"] = values
    return entry


def _redacted(entry: JsonObject) -> JsonObject:
    shown: dict[str, Json] = dict(entry)
    for key, value in entry.items():
        if key == "transport" and is_object(value):
            shown[key] = _redacted(value)
        elif key == "tools":  # names of tools, and what is said of them
            continue
        elif is_object(value):  # env, headers, and what else a client keeps with a server, such as its login
            shown[key] = {name: _hidden(inner) for name, inner in value.items()}
        elif key in {"url", "httpUrl"} and isinstance(value, str):
            shown[key] = _redacted_url(value)
        elif key in {"args", "command"} and is_list(value):
            shown[key] = _redacted_arguments(value)
        elif isinstance(value, str) and key != "bearer_token_env_var" and secrets.is_telling(key):
            shown[key] = _hidden(value)
    return shown


def _hidden(value: Json) -> Json:
    """*value*, or asterisks if it is more than the name of a variable and the scheme before it."""
    rest = value if isinstance(value, str) else "?"
    for word in (VARIABLE, OPENCODE_VARIABLE, _INPUT):
        rest = word.sub("", rest).strip()
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
