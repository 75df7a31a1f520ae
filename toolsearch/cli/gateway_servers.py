"""``toolsearch gateway add``, ``remove``, ``pause`` and ``resume``: change the servers in the gateway's file.

A running gateway changes to what is written there. Everything else in the file stays as it is.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from toolsearch.cli.command_line import ExitCode
from toolsearch.cli.gateway_client_files import JsonText, edit
from toolsearch.cli.gateway_door import own_config
from toolsearch.cli.output import line, stderr
from toolsearch.errors import BadSettingError
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.naming import did_you_mean

_SETTINGS = JsonText("toolsearch", "servers")

NameArgument = Annotated[str, typer.Argument(help="The server's name in the file.")]
FileOption = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="The gateway's file, if not the usual one.")
]


def add(
    name: Annotated[str, typer.Argument(help="A name for the server. Its tools' names begin with it.")],
    what: Annotated[
        list[str], typer.Argument(metavar="URL | -- COMMAND...", help="Its address, or the command that starts it.")
    ],
    *,
    env: Annotated[
        list[str] | None, typer.Option("--env", "-e", metavar="NAME=VALUE", help="A variable for the command.")
    ] = None,
    header: Annotated[
        list[str] | None, typer.Option("--header", "-H", metavar="'NAME: VALUE'", help="A header for the address.")
    ] = None,
    config: FileOption = None,
) -> int:
    """Add a server to the gateway's file, and make the file if need be: 'add git -- uvx mcp-server-git'.

    Write secrets as '${NAME}' of the environment, '${file:PATH}' or '${keyring:SERVICE/NAME}'.
    """
    is_url = len(what) == 1 and what[0].startswith(("http://", "https://"))
    if header if not is_url else env:
        raise BadSettingError("--header is for a server with an address, --env for one with a command")
    entry: dict[str, Json] = {"url": what[0]} if is_url else {"command": what[0], "args": what[1:]}
    if env:
        entry["env"] = _pairs(env, "=")
    if header:
        entry["headers"] = _pairs(header, ":")
    folder = (config or own_config()).parent
    return _edit(config, lambda text: _with_server(text, name, entry, folder))


def remove(name: NameArgument, *, config: FileOption = None) -> int:
    """Remove a server and its settings from the gateway's file. Rules about it stay."""
    return _edit(config, lambda text: _without_server(text, name))


def pause(name: NameArgument, *, config: FileOption = None) -> int:
    """Stop a server until it is resumed: nobody finds or calls its tools. Its entry stays in the gateway's file."""
    return _edit(config, lambda text: _with_disabled(text, name, is_disabled=True))


def resume(name: NameArgument, *, config: FileOption = None) -> int:
    """Start a paused server again."""
    return _edit(config, lambda text: _with_disabled(text, name, is_disabled=False))


def _edit(config: Path | None, change: Callable[[str], str]) -> int:
    path = config or own_config()
    is_changed = edit(path, change)
    told = f"wrote {path}; a running gateway follows within seconds" if is_changed else "It is so already."
    stderr().print(line(told), soft_wrap=True)
    return ExitCode.OK


def _pairs(texts: Sequence[str], separator: str) -> dict[str, Json]:
    pairs: dict[str, Json] = {}
    for text in texts:
        name, found, value = text.partition(separator)
        if not found or not name.strip():
            raise BadSettingError(f"NAME{separator}VALUE is wanted, with a {separator!r} behind the name")  # no secret
        pairs[name.strip()] = value.strip() if separator == ":" else value
    return pairs


def _section(text: str) -> str:
    """The section that holds the servers. A file of VS Code may be served, too."""
    document = JsonText().document(text)
    return "servers" if "servers" in document and "mcpServers" not in document else "mcpServers"


def _known(text: str, name: str) -> Mapping[str, JsonObject]:
    """The servers in *text*. Raises BadSettingError if *name* is none of them."""
    servers = JsonText(_section(text)).servers(text)
    if name not in servers:
        raise BadSettingError(f"there is no server {name!r}{did_you_mean(name, servers)}")
    return servers


def _with_server(text: str, name: str, entry: JsonObject, folder: Path) -> str:
    from toolsearch.gateway.config_file import read_gateway_config

    section = JsonText(_section(text))
    if name in section.servers(text):
        raise BadSettingError(f"there is a server {name!r} already; remove it first, or choose another name")
    after = section.changed(text, remove=(), add={name: entry})
    for refusal in read_gateway_config(section.document(after), os.environ, folder=folder).refused:
        if refusal.name == name:
            raise BadSettingError(f"the server {name!r} could not be used: {refusal.reason}")
    return after


def _without_server(text: str, name: str) -> str:
    _known(text, name)
    after = JsonText(_section(text)).changed(text, remove=[name], add={})
    return _SETTINGS.changed(after, remove=[name], add={}) if name in _SETTINGS.servers(after) else after


def _with_disabled(text: str, name: str, *, is_disabled: bool) -> str:
    if (_known(text, name)[name].get("disabled") is True) is is_disabled:
        return text
    return JsonText(_section(text), name, "disabled").with_value(text, is_disabled)
