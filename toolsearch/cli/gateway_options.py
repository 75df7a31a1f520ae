"""What the commands under ``toolsearch gateway`` share: how they find and read a configuration."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from toolsearch.cli.output import warn
from toolsearch.errors import BadSettingError, MissingExtraError

if TYPE_CHECKING:
    from toolsearch.gateway.settings import GatewayConfig

ConfigOption: TypeAlias = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="The mcpServers JSON of any MCP client.")
]


def read_config(path: Path | None) -> GatewayConfig:
    """Read the configuration at *path* with this process's environment, and warn of what is left alone."""
    if path is None:
        raise BadSettingError("say which servers there are: --config mcp.json")
    if importlib.util.find_spec("mcp") is None:
        raise MissingExtraError("the gateway", "mcp")
    from toolsearch.gateway.settings import read_gateway_config

    read = read_gateway_config(path, os.environ)
    for warning in read.warnings:
        warn(warning)
    return read
