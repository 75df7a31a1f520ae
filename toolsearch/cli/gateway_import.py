"""``toolsearch gateway import``: put the gateway in the place of the servers that clients have now.

The gateway's own file gets the servers, their time-outs, and the tools that nobody may use.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from toolsearch.cli.command_line import ExitCode
from toolsearch.cli.gateway_adoption import (
    OURS,
    Adoption,
    adopt,
    is_same,
    names_in_gateway,
    read_servers,
    redacted,
    shown_settings,
)
from toolsearch.cli.gateway_audit import record_in
from toolsearch.cli.gateway_client_files import ConfigText, FileChanges, TomlText, backups
from toolsearch.cli.gateway_clients import EACH_PROJECT, ClientPlace, known_clients
from toolsearch.cli.gateway_door import own_config
from toolsearch.cli.output import line, program, stderr, stdout, warn
from toolsearch.documents.editing import text_of
from toolsearch.documents.json_text import JsonText
from toolsearch.documents.json_values import as_list, is_object
from toolsearch.errors import BadSettingError, SourceError
from toolsearch.tools.json_types import Json, JsonObject

_SERVERS = JsonText("mcpServers")
_SETTINGS = JsonText("toolsearch", "servers")
_DENY = ("toolsearch", "rules", "deny")


class OwnFile:
    """The gateway's file at *path*, which need not exist, and the servers to add. *servers* has all servers so far."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._text = text_of(path)
        self.servers: Mapping[str, JsonObject] = _SERVERS.servers(self._text)
        self._settings: dict[str, JsonObject] = {}
        self._denied: list[str] = []

    def take(self, adoption: Adoption) -> None:
        """Add the servers that move. If two clients have settings for one server, the first counts."""
        self.servers = {**self.servers, **adoption.moved}
        for name, said in adoption.settings.items():
            self._settings[name] = {**said, **self._settings.get(name, {})}
        self._denied += adoption.denied

    def record(self) -> None:
        """Record which servers are added, if the file asks for an audit. Raises StorageError."""
        from toolsearch.gateway.server_entries import ServerChange

        note, before = record_in(self.path), _SERVERS.servers(self._text)
        for name in sorted(self.servers.keys() - before.keys()):
            ServerChange("add", name, self.servers[name]).record(note)

    def put_into(self, changes: FileChanges) -> None:
        text = _with_settings(self._text, self._settings)
        text = _with_denied(text, self._denied)
        before = _SERVERS.servers(text)
        if before != self.servers:
            text = _SERVERS.changed(text, remove=before, add=self.servers)
        if text != self._text:
            changes.put(self.path, text, "the gateway", _shown)


def _with_settings(text: str, settings: Mapping[str, JsonObject]) -> str:
    """*text* with *settings* by server. Settings that it already has stay."""
    before = _SETTINGS.servers(text)
    after = {**before, **{name: {**said, **before.get(name, {})} for name, said in settings.items()}}
    return text if after == before else _SETTINGS.with_value(text, after)


def _with_denied(text: str, rules: Collection[str]) -> str:
    before = as_list(_value_at(text, _DENY)) or []
    new = [rule for rule in dict.fromkeys(rules) if rule not in before]
    return JsonText(*_DENY).with_value(text, [*before, *new]) if new else text


def _shown(text: str) -> JsonObject:
    """The parts of *text* that an import may change."""
    settings = {"servers": shown_settings(_SETTINGS.servers(text)), "rules": {"deny": _value_at(text, _DENY)}}
    return {"mcpServers": redacted(_SERVERS.servers(text)), "toolsearch": settings}


def _value_at(text: str, path: Collection[str]) -> Json:
    value: Json = JsonText().document(text)
    for key in path:
        value = value.get(key) if is_object(value) else None
    return value


@dataclass(frozen=True, slots=True)
class PlaceText:
    """A place where a client has servers, with the text of its file before any change."""

    client: ClientPlace
    text: str
    servers: Mapping[str, JsonObject]

    @property
    def format(self) -> ConfigText:
        return _format_of(self.client)

    @property
    def inputs(self) -> Json:
        """The value of ``inputs`` in an editor's file."""
        return JsonText().document(self.text).get("inputs") if self.client.dialect == "editor" else None

    @property
    def ours(self) -> JsonObject | None:
        """The gateway's entry, if the client has it."""
        return self.servers.get(OURS)

    def shown(self, text: str) -> JsonObject:
        """The servers in *text*, for display."""
        return redacted(self.format.servers(text))

    def gets(self, adoption: Adoption, *, allow_reads: bool) -> bool:
        """Whether the client's file changes, because servers move or because of the gateway's entry alone."""
        entry = self.ours
        is_incomplete = entry is not None and (bool(self.client.lacks(entry)) or allow_reads)
        return bool(adoption.moved) or (is_incomplete and entry != adoption.entry)


def import_servers(
    *,
    source: Annotated[
        str | None,
        typer.Option("--from", metavar="CLIENT", help="Only this client, such as cursor. Default: all found."),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", metavar="FILE", help="The gateway's own file, if not the usual one; made if it is not there."
        ),
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Make the changes. Without it the command only shows them.")
    ] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Give the clients their own servers back.")] = False,
    allow_reads: Annotated[
        bool,
        typer.Option("--allow-reads", help="Let clients search, and call tools that only read, without a question."),
    ] = False,
    home: Annotated[Path | None, typer.Option("--home", help="Look below this folder.", hidden=True)] = None,
) -> int:
    """Move the servers of your MCP clients to the gateway's file, and leave the clients the gateway alone.

    Reads the clients' own files, those of the project in this folder, and Claude Code's servers of each project. Shows
    the change; --write makes it, after a backup beside each file. Servers of a project still run in its folder.
    Variables such as ${TOKEN} stay as they are; time-outs and forbidden tools move with a server. A server stays if the
    gateway would treat it differently. 'toolsearch gateway' then finds the gateway's file. Exit code 1 if there is
    nothing to do.
    """
    home = home or Path.home()
    found = places_with_servers(source, home)
    if undo:
        return _undo(found, write=write)
    own = OwnFile(config or own_config())
    changes = _changes(found, own, home, allow_reads=allow_reads)
    if not changes:
        stdout().print("No client has servers that the gateway could take over.")
        return ExitCode.NOTHING
    everything = FileChanges()
    own.put_into(everything)
    everything.extend(changes)
    if write:
        own.record()
    everything.apply(write=write)
    if write:
        named = f" --config {shlex.quote(str(config))}" if config else ""
        stderr().print(line(f"Check the servers: {program()} gateway check{named}"))
    return ExitCode.OK


def _changes(found: Sequence[PlaceText], own: OwnFile, home: Path, *, allow_reads: bool) -> FileChanges:
    """The changes in the clients' files, after *own* has taken the servers that move."""
    changes = FileChanges()
    limited: list[tuple[str, str, JsonObject]] = []  # clients with the gateway that keep a server, and the server
    readings = [read_servers(each.client, each.servers, home=home, inputs=each.inputs) for each in found]
    start = _command(own.path)
    for each, reading, names in zip(found, readings, names_in_gateway(readings, own.servers), strict=True):
        client, path = each.client, each.client.path
        adoption = adopt(reading, names, own.servers, start, allow_reads=allow_reads)
        for name, reason in adoption.stays.items():
            warn(f"{name!r} stays with {client.label}: {reason}")
        if adoption.moved or OURS in each.servers:
            limited += ((client.label, name, each.servers[name]) for name in adoption.stays)
            if allow_reads and client.reads_elsewhere:
                warn(f"{client.label} keeps approvals elsewhere: {client.reads_elsewhere}")
        if each.gets(adoption, allow_reads=allow_reads):
            text = _without(each, adoption, changes.text_of(path))
            if text is not None:
                own.take(adoption)
                changes.put(path, text, client.label, each.shown)
                _say_what_is_missing(client, adoption)
    for label, name, entry in limited:
        if name in own.servers or any(is_same(entry, other) for other in own.servers.values()):
            warn(f"{label} could use {name!r} through the gateway, too: the gateway has it without those limits")
    return changes


def places_with_servers(source: str | None, home: Path) -> list[PlaceText]:
    """The places below *home* and in this folder with clients' servers; only those of the client *source*, if given. A
    warning names each file that cannot be read.
    """
    clients = known_clients(home, Path.cwd(), sys.platform)
    if source is not None and source not in {client.name for client in clients}:
        names = ", ".join(dict.fromkeys(client.name for client in clients))
        raise BadSettingError(f"no client {source!r} is known; use one of {names}")
    found: list[PlaceText] = []
    for client in clients:
        if source not in (None, client.name) or not client.path.is_file():
            continue
        try:
            text = text_of(client.path)
            found += [PlaceText(place, text, _format_of(place).servers(text)) for place in _places(client, text)]
        except (OSError, UnicodeDecodeError, SourceError) as error:
            warn(f"{client.path} of {client.name} is left alone: {error}")
    return found


def _places(client: ClientPlace, text: str) -> list[ClientPlace]:
    """*client*, or one client for each project in its file."""
    if EACH_PROJECT not in client.section:
        return [client]
    projects = JsonText(*client.section[: client.section.index(EACH_PROJECT)]).servers(text)
    return [client.in_project(folder) for folder in projects]


def _format_of(client: ClientPlace) -> ConfigText:
    return TomlText(*client.section) if client.format == "toml" else JsonText(*client.section)


def _command(own: Path) -> list[str]:
    """How a client starts the gateway: by its whole path, since clients with windows do not know a shell's PATH."""
    installed = shutil.which("toolsearch")
    start = [installed] if installed else [sys.executable, "-m", "toolsearch"]
    return [*start, "gateway", "--config", str(own.absolute())]


def _without(found: PlaceText, adoption: Adoption, text: str) -> str | None:
    """*text*, the client's file, with the gateway in place of the servers that it takes over."""
    try:
        return found.format.changed(text, remove={*adoption.names, OURS}, add={OURS: adoption.entry})
    except SourceError as error:
        warn(f"{found.client.path} of {found.client.label} is left alone: {error}")
        return None


def _say_what_is_missing(client: ClientPlace, adoption: Adoption) -> None:
    for warning in adoption.warnings:
        warn(warning)
    if adoption.variables and not (client.variable or client.hands_on_all or client.format == "toml"):
        names = ", ".join(adoption.variables)
        warn(f"{client.name} passes no variables on; set {names} for its whole session, or in the gateway's file")
    if adoption.inputs:
        names = ", ".join(adoption.inputs)
        warn(f"{client.label} still asks for {names}; set these variables for the other clients that start the gateway")
    if client.is_shared:
        warn(f"{client.path} belongs to the project: everybody who shares it needs the gateway at the same path")


def _undo(found: Sequence[PlaceText], *, write: bool) -> int:
    """Give back each file as it was, or, if it has changed since, the servers that were moved."""
    changes = FileChanges()
    having = [each for each in found if OURS in each.servers]
    for path in dict.fromkeys(each.client.path for each in having):
        places = [each for each in having if each.client.path == path]
        copies = [text_of(copy) for _, copy in backups(path.resolve())]
        whole = next((copy for copy in reversed(copies) if _becomes(copy, places)), None)
        for each in places:
            text = _with_its_servers(each, copies, changes.text_of(path)) if whole is None else whole
            if text is None:
                warn(f"{each.client.label} has no backup from before the gateway")
            else:
                changes.put(path, text, each.client.label, each.shown)
    if not changes:
        stdout().print("There is nothing to undo.")
        return ExitCode.NOTHING
    changes.apply(write=write)
    return ExitCode.OK


def _becomes(copy: str, places: Sequence[PlaceText]) -> bool:
    """Whether an import alone explains the difference between *copy* and the present file."""
    text = copy
    try:
        for each in places:
            before = each.format.servers(copy)
            moved = {name for name in before if name not in each.servers}
            text = each.format.changed(text, remove={*moved, OURS}, add={OURS: each.servers[OURS]})
            if OURS in before:
                return False
    except SourceError:
        return False
    return text == places[0].text


def _with_its_servers(each: PlaceText, copies: Sequence[str], text: str) -> str | None:
    """*text* with the servers that imports took instead of the gateway; None if every copy is from after an import."""
    taken: dict[str, JsonObject] | None = None
    written: dict[str, str] = {}
    for copy, servers in zip(copies, map(each.format.servers, copies), strict=True):
        if OURS not in servers:  # an earlier copy without the gateway is from before the first import
            taken = {}
        if taken is not None:
            new = {name: entry for name, entry in servers.items() if name not in {OURS, *each.servers}}
            taken |= new
            written |= dict.fromkeys(new, copy)
    return None if taken is None else each.format.changed(text, remove={OURS}, add=taken, written=written)
