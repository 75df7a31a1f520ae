"""Takes over a client's servers into the gateway: which of them move, which stay, and why.

A client may keep rules about a server outside its entry. They would not hold for the gateway, so such a server stays.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from toolsearch.cli.gateway_clients import ClientPlace
from toolsearch.cli.gateway_dialects import (
    OPENCODE_VARIABLE,
    VARIABLE,
    EntryMeaning,
    StaysError,
    Surroundings,
    input_variables,
    meaning_of,
)
from toolsearch.documents.editing import text_of
from toolsearch.documents.json_text import JsonText
from toolsearch.documents.json_values import as_texts, is_list, is_object
from toolsearch.errors import SourceError
from toolsearch.tools.definition import legal_name
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.naming import distinct, namespaced
from toolsearch.upstreams import secrets
from toolsearch.upstreams.config import LOOPBACK_PAGE, HttpServer, McpServer, read_mcp_config


def rule_about(client: ClientPlace, server: str) -> str:
    """The place of a rule of *client* about *server*, which should then stay with the client; "" if there is
    no rule.
    """
    about = re.compile(rf"(?:mcp__?)?(?:{re.escape(server)}|{re.escape(legal_name(server))})(?=$|[_*.(:])")
    for path, keys in client.guards:
        try:
            value: Json = JsonText().document(text_of(path)) if path.is_file() else None
        except (OSError, UnicodeDecodeError, SourceError) as error:
            return f"{path} may have rules about it, but cannot be read: {error}"
        for key in keys:
            value = value.get(key) if is_object(value) else None
        if any(map(about.match, _names(value))):
            return (
                f"{'.'.join(keys)!r} of {path} names it, and would not hold in the gateway; "
                "write the rule into 'rules' of the gateway's file first, and remove it there"
            )
    return ""


def _names(value: Json) -> Iterator[str]:
    """The items of a list, and the keys of an object and of its inner objects, without what they allow."""
    yield from as_texts(value)
    if is_object(value):
        for key, inner in value.items():
            if inner not in (True, "allow"):
                yield key
                yield from _names(inner)


_PUBLIC = ("clientId", "issuer", "redirectUri", "scopes")  # fields of a login that are no secrets
_INPUT = re.compile(r"\$\{input:[^{}]*\}")  # a value that an editor asks a person for
OURS = "toolsearch"  # the name of the gateway's entry in a client's file


@dataclass(frozen=True, slots=True)
class Adoption:
    """The servers that move, those that stay, and the gateway's *entry* for the client.

    names     the client's name of each server that moves -> its name in the gateway
    moved     name in the gateway -> the server, in the format of ``mcpServers``
    settings  settings of servers that move, for ``toolsearch.servers`` in the gateway's file
    denied    rules for ``toolsearch.rules.deny``
    stays     the name of each server that stays -> the reason
    warnings  changes in the behaviour of servers that move
    inputs    the variables that the client asks a person for -> its own word for each
    """

    names: Mapping[str, str]
    moved: Mapping[str, JsonObject]
    settings: Mapping[str, JsonObject]
    denied: tuple[str, ...]
    stays: Mapping[str, str]
    warnings: tuple[str, ...]
    inputs: Mapping[str, str]
    entry: JsonObject

    @property
    def variables(self) -> list[str]:
        """The environment variables that the moved servers and their settings use, sorted."""
        return _variables([*self.moved.values(), *self.settings.values()])


@dataclass(frozen=True, slots=True)
class ReadPlace:
    """The servers of one place of a client: those that can move, and the reason why each other one stays.

    said    the client's own entry of the gateway
    inputs  id of each input of the client's file -> its variable
    """

    client: ClientPlace
    meanings: Mapping[str, EntryMeaning]
    stays: Mapping[str, str]
    said: JsonObject
    inputs: Mapping[str, str]


def read_servers(
    client: ClientPlace, servers: Mapping[str, JsonObject], *, home: Path, inputs: Json = None
) -> ReadPlace:
    """Read *servers* of *client*. *inputs* are the values that an editor's file asks for, as written there."""
    named = input_variables(inputs, _variables(servers.values()))
    around = Surroundings(home, client.folder, named)
    meanings: dict[str, EntryMeaning] = {}
    stays: dict[str, str] = {}
    for name, entry in servers.items():
        if name == OURS:
            continue
        try:
            meaning = meaning_of(client, entry, around)
        except StaysError as error:
            stays[name] = str(error)
            continue
        if reason := _unusable(name, meaning.entry) or rule_about(client, name):
            stays[name] = reason
        else:
            meanings[name] = meaning
    return ReadPlace(client, meanings, stays, servers.get(OURS, {}), named)


def names_in_gateway(readings: Sequence[ReadPlace], kept: Mapping[str, JsonObject]) -> list[dict[str, str]]:
    """Choose a name for each server of each of *readings* in the gateway, which has *kept* already.

    A server of several clients gets one name: its name in the gateway if it is there, or else the most frequent name,
    and of equally frequent names the shortest. Another server of that name gets the name of its client or project as a
    suffix.
    """
    # Each server, with the places and the names under which it is found.
    alike: list[tuple[JsonObject, list[tuple[int, str]]]] = []
    for place, reading in enumerate(readings):
        for name, meaning in reading.meanings.items():
            for entry, at in alike:
                # A client that lists a server twice means both entries.
                if is_same(entry, meaning.entry) and place not in dict(at):
                    at.append((place, name))
                    break
            else:
                alike.append((meaning.entry, [(place, name)]))
    names: list[dict[str, str]] = [{} for _ in readings]
    taken = dict(kept)
    for entry, at in sorted(alike, key=lambda each: -len(each[1])):
        given = Counter(name for _, name in at)
        used = {name for place, _ in at for name in names[place].values()}
        known = (name for name in [*given, *kept] if name in kept and name not in used)
        name = next((name for name in known if is_same(kept[name], entry)), "")
        name = name or _free_name(given, readings[at[0][0]].client, taken)
        taken[name] = entry
        for place, own in at:
            names[place][own] = name
    return names


def _free_name(given: Counter[str], client: ClientPlace, taken: Collection[str]) -> str:
    """The best of the names *given* that is not *taken*, or a name with the server's client."""
    best = sorted(given, key=lambda name: (-given[name], len(name), name))
    where = client.folder.name if client.folder is not None and client.folder.name else client.name
    numbered = (f"{best[0]}-{where}-{number}" for number in count(2))
    prefixes = {legal_name(name) for name in taken}
    return next(name for name in chain(best, [f"{best[0]}-{where}"], numbered) if legal_name(name) not in prefixes)


def adopt(
    reading: ReadPlace,
    names: Mapping[str, str],
    kept: Mapping[str, JsonObject],
    command: Sequence[str],
    *,
    allow_reads: bool = False,
) -> Adoption:
    """Take over the servers of a reading, under *names*, into the gateway, which has *kept* already.

    command      starts the gateway
    allow_reads  whether the client should run reading tools without a question, if its entry can say so
    """
    client = reading.client
    meanings = {names[own]: meaning for own, meaning in reading.meanings.items()}
    moved = {name: kept.get(name, meaning.entry) for name, meaning in meanings.items()}
    settings = {name: meaning.settings for name, meaning in meanings.items() if meaning.settings}
    used = _variables([*moved.values(), *settings.values()])
    asked = {variable: f"${{input:{name}}}" for name, variable in reading.inputs.items() if variable in used}
    entry = _with(reading.said, _entry(client, command, used, asked))
    if allow_reads and client.reads:
        entry = _with(client.reads, entry)
    renamed = [
        f"{own!r} of {client.label} is called {name!r} in the gateway" for own, name in names.items() if own != name
    ]
    return Adoption(
        names,
        moved,
        settings,
        tuple(rule for name, meaning in meanings.items() for rule in _deny_rules(name, meaning.forbidden)),
        reading.stays,
        (*renamed, *(text for name, meaning in reading.meanings.items() for text in _warnings(client, name, meaning))),
        asked,
        entry,
    )


def _deny_rules(server: str, tools: Iterable[str]) -> Iterable[str]:
    for tool in tools:
        name = namespaced(server, tool)
        yield name
        if not name.endswith(tool):  # a name without the tool's name may be shared, and then this tool gets a tail
            yield distinct(name, tool)


def _warnings(client: ClientPlace, name: str, meaning: EntryMeaning) -> Iterable[str]:
    if meaning.trusted:
        keys = ", ".join(map(repr, meaning.trusted))
        yield f"{client.label} let tools of {name!r} run without a question ({keys}); now it asks anew"
    if is_object(oauth := meaning.settings.get("oauth")) and "clientId" in oauth:
        where = oauth.get("redirectUri", LOOPBACK_PAGE)
        yield f"log in to {name!r} with 'toolsearch gateway login'; {where} must be a redirect URI of its clientId"
    if meaning.lost:
        keys = ", ".join(map(repr, meaning.lost))
        yield f"{name!r} of {client.label} moves without {keys}: the gateway does not know these keys"


def _with(said: JsonObject, entry: JsonObject) -> JsonObject:
    """*entry* with the client's other keys in *said*, which win, except for the command of the gateway."""
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


def shown_settings(settings: Mapping[str, JsonObject]) -> dict[str, Json]:
    """The *settings* of servers for display: a client secret that stands there is hidden."""
    return {
        name: {key: _shown_login(value) if key == "oauth" and is_object(value) else value for key, value in of.items()}
        for name, of in settings.items()
    }


def _variables(entries: Iterable[JsonObject]) -> list[str]:
    return sorted(set(VARIABLE.findall(json.dumps(list(entries)))))


def is_same(one: JsonObject, other: JsonObject) -> bool:
    """Whether both mean one server, even if one client has more keys or another form."""
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
    """An environment that has every variable. The value of each is its own placeholder, ``${NAME}``."""

    def get(self, name: str, default: Any = None) -> Any:  # noqa: ARG002
        return f"${{{name}}}"


def _entry(
    client: ClientPlace, command: Sequence[str], variables: Sequence[str], asked: Mapping[str, str]
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
        elif key == "tools":  # names and notes of tools, which need not be shown
            continue
        elif key == "oauth" and is_object(value):
            shown[key] = _shown_login(value)
        elif is_object(value):  # env, headers, and other data of a server, such as a login
            shown[key] = {name: _hidden(inner) for name, inner in value.items()}
        elif key in {"url", "httpUrl"} and isinstance(value, str):
            shown[key] = _redacted_url(value)
        elif key in {"args", "command"} and is_list(value):
            shown[key] = _redacted_arguments(value)
        elif isinstance(value, str) and key != "bearer_token_env_var" and secrets.is_telling(key):
            shown[key] = _hidden(value)
    return shown


def _shown_login(oauth: JsonObject) -> JsonObject:
    return {name: value if name in _PUBLIC else _hidden(value) for name, value in oauth.items()}


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
