"""``toolsearch gateway import``: put the gateway in the place of the servers that clients have now."""

from __future__ import annotations

import difflib
import json
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from toolsearch.cli.exits import ExitCode
from toolsearch.cli.gateway_adoption import OURS, Adoption, adopt, redacted
from toolsearch.cli.gateway_clients import KnownClient, known_clients
from toolsearch.cli.gateway_config_text import ConfigText, JsonText, TomlText
from toolsearch.cli.gateway_options import own_config
from toolsearch.cli.output import line, print_diff, stderr, stdout, warn
from toolsearch.errors import BadSettingError, SourceError
from toolsearch.tools.json_types import JsonObject


@dataclass(frozen=True, slots=True)
class _Found:
    """A client that has a configuration file, with its text."""

    client: KnownClient
    text: str
    servers: Mapping[str, JsonObject]

    @property
    def format(self) -> ConfigText:
        return _format_of(self.client)


def import_servers(
    *,
    source: Annotated[
        str | None,
        typer.Option("--from", metavar="CLIENT", help="Only this client, such as cursor. Default: all found."),
    ] = None,
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="The gateway's own file, made if it is not there.")
    ] = None,
    write: Annotated[bool, typer.Option("--write", help="Make the changes; without it they are only shown.")] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Give the clients their own servers back.")] = False,
    home: Annotated[Path | None, typer.Option("--home", help="Look below this folder.", hidden=True)] = None,
) -> int:
    """Find the servers that MCP clients have, move them to the gateway's file, and leave clients the gateway alone.

    Shows what would change; --write does it, after a backup beside each file. Variables such as ${TOKEN} stay as they
    are. Exit code 1 if there is nothing to do.
    """
    found = _found(source, home or Path.home())
    if undo:
        return _undo(found, write=write)
    own = config or own_config()
    own_format = JsonText("mcpServers")
    own_text = _text_of(own)
    kept = own_format.servers(own_text)
    changes: list[tuple[Path, str]] = []
    for each in found:
        adoption = adopt(each.client, each.servers, kept, _command(own))
        for name, reason in adoption.stays.items():
            warn(f"{name!r} stays with {each.client.name}: {reason}")
        if adoption.moved and (text := _without(each, adoption)) is not None:
            kept |= adoption.moved
            changes.append((each.client.path, text))
            _say_what_is_missing(each.client, adoption)
    if not changes:
        stdout().print("No client has servers that the gateway could take over.")
        return ExitCode.NOTHING
    _apply([(own, own_format.changed(own_text, remove=(), add=kept)), *changes], found, own_format, write=write)
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
            text = _text_of(client.path)
            found.append(_Found(client, text, _format_of(client).servers(text)))
        except (OSError, UnicodeDecodeError, SourceError) as error:
            warn(f"{client.path} of {client.name} is left alone: {error}")
    return found


def _format_of(client: KnownClient) -> ConfigText:
    return TomlText(client.section) if client.format == "toml" else JsonText(client.section)


def _command(own: Path) -> list[str]:
    """How a client starts the gateway: by its whole path, since clients with windows do not know a shell's PATH."""
    installed = shutil.which("toolsearch")
    start = [installed] if installed else [sys.executable, "-m", "toolsearch"]
    return [*start, "gateway", "--config", str(own.absolute())]


def _without(found: _Found, adoption: Adoption) -> str | None:
    """The client's file with the gateway in the place of what it takes over."""
    try:
        return found.format.changed(found.text, remove={*adoption.moved, OURS}, add={OURS: adoption.entry})
    except SourceError as error:
        warn(f"{found.client.path} of {found.client.name} is left alone: {error}")
        return None


def _say_what_is_missing(client: KnownClient, adoption: Adoption) -> None:
    if adoption.variables and not client.variable and client.format != "toml":
        names = ", ".join(adoption.variables)
        warn(f"{client.name} hands on no variables; set {names} for its whole session, or in the gateway's file")


def _apply(
    changes: Sequence[tuple[Path, str]], found: Sequence[_Found], own_format: ConfigText, *, write: bool
) -> None:
    """Show the changes, the gateway's file first, and make them if *write*."""
    formats: dict[Path, ConfigText] = {each.client.path: each.format for each in found}
    for path, text in changes:
        _show_change(path, text, formats.get(path, own_format))
        if write:
            backup = _replace(path, text)
            stderr().print(line(f"wrote {path}" + (f", the old one is {backup.name}" if backup else "")))
    if not write:
        stderr().print("Nothing is changed yet: --write does it.")


def _show_change(path: Path, after: str, config: ConfigText) -> None:
    old, new = (json.dumps(redacted(config.servers(text)), indent=2).splitlines() for text in (_text_of(path), after))
    print_diff(difflib.unified_diff(old, new, str(path), str(path), lineterm=""))


def _text_of(path: Path) -> str:
    """The text of the file, with its own line ends; "" if there is none."""
    return path.read_bytes().decode("utf-8-sig") if path.exists() else ""


def _replace(path: Path, text: str) -> Path | None:
    """Write *text* to *path*, whole or not at all, with the mode it had; gives the copy of what was there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    target = path.resolve()  # if the path is a link, the file that it points to is replaced
    backup = _backup(target)
    fresh = target.with_name(f".{target.name}.new")
    fresh.touch(mode=0o600)  # an entry may hold a secret
    fresh.write_bytes(text.encode())
    if backup is not None:
        shutil.copymode(target, fresh)
    fresh.replace(target)
    return backup


def _backup(path: Path) -> Path | None:
    if not path.exists():
        return None
    number = 1 + max((each_number for each_number, _ in _backups(path)), default=0)
    backup = path.with_name(f"{path.name}.backup-{number}")
    shutil.copy2(path, backup)
    return backup


def _backups(path: Path) -> list[tuple[int, Path]]:
    """The copies beside *path*, the oldest first."""
    name = re.compile(re.escape(path.name) + r"\.backup-([0-9]+)")
    return sorted((int(found[1]), each) for each in path.parent.iterdir() if (found := name.fullmatch(each.name)))


def _undo(found: Sequence[_Found], *, write: bool) -> int:
    """Put back the servers of the last backup that had them, and leave everything else as it is by now."""
    changes: list[tuple[Path, str]] = []
    for each in found:
        if OURS not in each.servers:
            continue
        copies = [each.format.servers(_text_of(path)) for _, path in _backups(each.client.path.resolve())]
        before = next((servers for servers in reversed(copies) if OURS not in servers), None)
        if before is None:
            warn(f"{each.client.name} has no backup from before the gateway")
            continue
        gone = {name: entry for name, entry in before.items() if name not in each.servers}
        changes.append((each.client.path, each.format.changed(each.text, remove={OURS}, add=gone)))
    if not changes:
        stdout().print("There is nothing to undo.")
        return ExitCode.NOTHING
    _apply(changes, found, JsonText("mcpServers"), write=write)
    return ExitCode.OK
