"""What the commands under ``toolsearch gateway`` share: how they find and read a configuration."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from toolsearch.cli.gateway_door import own_config
from toolsearch.cli.output import line, stderr, warn
from toolsearch.errors import BadSettingError, MissingExtraError

if TYPE_CHECKING:
    from toolsearch.gateway.settings import GatewayConfig

ConfigOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="The mcpServers JSON of any MCP client. Default: the file that 'toolsearch gateway import' writes.",
    ),
]


def read_config(path: Path | None) -> GatewayConfig:
    """Read the configuration at *path*, or the gateway's own, with this process's environment; print its warnings."""
    if path is None:
        path = own_config()
        if not path.is_file():
            raise BadSettingError(
                f"say which servers there are: --config mcp.json; there is no {path}, which "
                "'toolsearch gateway import' makes of the servers of your MCP clients"
            )
        stderr().print(line(f"servers of {path}"))
    if importlib.util.find_spec("mcp") is None:
        raise MissingExtraError("the gateway", "mcp")
    from toolsearch.gateway.settings import read_gateway_config

    read = read_gateway_config(path, os.environ)
    for warning in read.warnings:
        warn(warning)
    return read
