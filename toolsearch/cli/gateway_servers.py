"""``toolsearch gateway add``, ``remove``, ``pause`` and ``resume``: change the servers in the gateway's file.

A running gateway changes to what is written there. Everything else in the file stays as it is.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolsearch.cli.command_line import ExitCode
from toolsearch.cli.gateway_audit import record_in
from toolsearch.cli.gateway_door import own_config
from toolsearch.cli.output import line, stderr
from toolsearch.errors import BadSettingError
from toolsearch.tools.json_types import Json, JsonObject

if TYPE_CHECKING:
    from toolsearch.gateway.server_entries import Action

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
    return _change("add", name, config, entry)


def remove(name: NameArgument, *, config: FileOption = None) -> int:
    """Remove a server and its settings from the gateway's file. Rules about it stay."""
    return _change("remove", name, config)


def pause(name: NameArgument, *, config: FileOption = None) -> int:
    """Stop a server until it is resumed: nobody finds or calls its tools. Its entry stays in the gateway's file."""
    return _change("pause", name, config)


def resume(name: NameArgument, *, config: FileOption = None) -> int:
    """Start a paused server again."""
    return _change("resume", name, config)


def _change(action: Action, name: str, config: Path | None, entry: JsonObject | None = None) -> int:
    from toolsearch.gateway.server_entries import ServerChange

    path = config or own_config()
    is_changed = ServerChange(action, name, entry).make(path, os.environ, record_in(path))
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
