"""``toolsearch gateway import``: put the gateway in the place of the servers that clients have now."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from toolsearch.cli.exits import ExitCode
from toolsearch.cli.gateway_adoption import OURS, Adoption, adopt
from toolsearch.cli.gateway_clients import EACH_PROJECT, KnownClient, known_clients
from toolsearch.cli.gateway_config_text import ConfigText, JsonText, TomlText
from toolsearch.cli.gateway_file_changes import FileChanges, backups, text_of
from toolsearch.cli.gateway_options import own_config
from toolsearch.cli.output import line, program, stderr, stdout, warn
from toolsearch.errors import BadSettingError, SourceError
from toolsearch.tools.json_types import Json, JsonObject


@dataclass(frozen=True, slots=True)
class _Found:
    """A place where a client has servers, with the text of its file before any change."""

    client: KnownClient
    text: str
    servers: Mapping[str, JsonObject]

    @property
    def format(self) -> ConfigText:
        return _format_of(self.client)

    @property
    def inputs(self) -> Json:
        """What an editor's file says under ``inputs``."""
        return JsonText().document(self.text).get("inputs") if self.client.dialect == "editor" else None


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
    write: Annotated[bool, typer.Option("--write", help="Make the changes; without it they are only shown.")] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Give the clients their own servers back.")] = False,
    home: Annotated[Path | None, typer.Option("--home", help="Look below this folder.", hidden=True)] = None,
) -> int:
    """Find the servers that MCP clients have, move them to the gateway's file, and leave clients the gateway alone.

    Clients' own files are read, those of the project in this folder, and Claude Code's servers of each project; servers
    of a project go on running in its folder. Shows what would change; --write does it, after a backup beside each file.
    Variables such as ${TOKEN} stay as they are. 'toolsearch gateway' and its commands then find the gateway's file by
    themselves. Exit code 1 if there is nothing to do.
    """
    home = home or Path.home()
    found = _found(source, home)
    if undo:
        return _undo(found, write=write)
    own = config or own_config()
    own_format = JsonText("mcpServers")
    own_text = text_of(own)
    kept = own_format.servers(own_text)
    changes = FileChanges()
    for each in found:
        path, label = each.client.path, each.client.label
        adoption = adopt(each.client, each.servers, kept, _command(own), home=home, inputs=each.inputs)
        for name, reason in adoption.stays.items():
            warn(f"{name!r} stays with {label}: {reason}")
        if adoption.moved and (text := _without(each, adoption, changes.text_of(path))) is not None:
            kept |= adoption.moved
            changes.put(path, text, label, each.format)
            _say_what_is_missing(each.client, adoption)
    if not changes:
        stdout().print("No client has servers that the gateway could take over.")
        return ExitCode.NOTHING
    everything = FileChanges()
    everything.put(own, own_format.changed(own_text, remove=(), add=kept), "the gateway", own_format)
    everything.extend(changes)
    everything.apply(write=write)
    if write:
        stderr().print(
            line(f"Look at them: {program()} gateway check{f' --config {shlex.quote(str(config))}' if config else ''}")
        )
    return ExitCode.OK


def _found(source: str | None, home: Path) -> list[_Found]:
    clients = known_clients(home, Path.cwd(), sys.platform)
    if source is not None and source not in {client.name for client in clients}:
        raise BadSettingError(f"no client {source!r} is known; use one of {', '.join(each.name for each in clients)}")
    found: list[_Found] = []
    for client in clients:
        if source not in (None, client.name) or not client.path.is_file():
            continue
        try:
            text = text_of(client.path)
            found += [_Found(place, text, _format_of(place).servers(text)) for place in _places(client, text)]
        except (OSError, UnicodeDecodeError, SourceError) as error:
            warn(f"{client.path} of {client.name} is left alone: {error}")
    return found


def _places(client: KnownClient, text: str) -> list[KnownClient]:
    """*client*, or one for each project that its file tells of."""
    if EACH_PROJECT not in client.section:
        return [client]
    projects = JsonText(*client.section[: client.section.index(EACH_PROJECT)]).servers(text)
    return [client.in_project(folder) for folder in projects]


def _format_of(client: KnownClient) -> ConfigText:
    return TomlText(*client.section) if client.format == "toml" else JsonText(*client.section)


def _command(own: Path) -> list[str]:
    """How a client starts the gateway: by its whole path, since clients with windows do not know a shell's PATH."""
    installed = shutil.which("toolsearch")
    start = [installed] if installed else [sys.executable, "-m", "toolsearch"]
    return [*start, "gateway", "--config", str(own.absolute())]


def _without(found: _Found, adoption: Adoption, text: str) -> str | None:
    """*text*, the client's file by now, with the gateway in the place of what it takes over."""
    try:
        return found.format.changed(text, remove={*adoption.moved, OURS}, add={OURS: adoption.entry})
    except SourceError as error:
        warn(f"{found.client.path} of {found.client.label} is left alone: {error}")
        return None


def _say_what_is_missing(client: KnownClient, adoption: Adoption) -> None:
    if adoption.variables and not client.variable and client.format != "toml":
        names = ", ".join(adoption.variables)
        warn(f"{client.name} hands on no variables; set {names} for its whole session, or in the gateway's file")
    if adoption.inputs:
        names = ", ".join(adoption.inputs)
        warn(f"{client.label} goes on asking for {names}; where other clients start the gateway, set that for them")
    if client.is_shared:
        warn(f"{client.path} is the project's: whoever shares it would need the gateway, too, at the same place")


def _undo(found: Sequence[_Found], *, write: bool) -> int:
    """Put back the servers of the last backup that had them, and leave everything else as it is by now."""
    changes = FileChanges()
    for each in found:
        if OURS not in each.servers:
            continue
        path = each.client.path
        copies = [each.format.servers(text_of(copy)) for _, copy in backups(path.resolve())]
        before = next((servers for servers in reversed(copies) if OURS not in servers), None)
        if before is None:
            warn(f"{each.client.label} has no backup from before the gateway")
            continue
        gone = {name: entry for name, entry in before.items() if name not in each.servers}
        text = each.format.changed(changes.text_of(path), remove={OURS}, add=gone)
        changes.put(path, text, each.client.label, each.format)
    if not changes:
        stdout().print("There is nothing to undo.")
        return ExitCode.NOTHING
    changes.apply(write=write)
    return ExitCode.OK
