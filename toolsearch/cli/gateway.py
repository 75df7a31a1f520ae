"""``toolsearch gateway``: one MCP server in front of all those of a configuration."""

from __future__ import annotations

import asyncio
import importlib.util
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from toolsearch.cli.exits import ExitCode
from toolsearch.cli.output import warn
from toolsearch.errors import BadSettingError, MissingExtraError

if TYPE_CHECKING:
    from toolsearch.gateway.gateway import Gateway

ConfigOption: TypeAlias = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="The mcpServers JSON of any MCP client.")
]

gateway = typer.Typer(invoke_without_command=True, help="Serve the tools of many MCP servers through one.")


@gateway.callback()
def serve(
    context: typer.Context,
    *,
    config: ConfigOption = None,
    http: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Serve over HTTP, at /mcp, instead of stdin and stdout.")
    ] = None,
) -> int:
    """Serve the tools of many MCP servers through one: 'toolsearch gateway --config mcp.json' as a client's server."""
    if context.invoked_subcommand is not None:
        return ExitCode.OK
    if config is None:
        raise BadSettingError("say which servers there are: --config mcp.json")
    if importlib.util.find_spec("mcp") is None:
        raise MissingExtraError("the gateway", "mcp")
    from toolsearch.gateway.gateway import Gateway
    from toolsearch.gateway.settings import read_gateway_config

    address = None if http is None else _address(http)
    read = read_gateway_config(config, os.environ)
    for warning in read.warnings:
        warn(warning)
    for refusal in read.refused:
        warn(f"server {refusal.name!r} is left out: {refusal.reason}")
    asyncio.run(_serve(Gateway(read), address))
    return ExitCode.OK


async def _serve(made: Gateway, address: tuple[str, int] | None) -> None:
    if address is None:
        from toolsearch.gateway.stdio import serve_stdio

        await serve_stdio(made)
    else:
        from toolsearch.gateway.http import serve_http

        await serve_http(made, host=address[0], port=address[1])


def _address(text: str) -> tuple[str, int]:
    """Read ``HOST:PORT``, ``[::1]:PORT`` or ``:PORT``, which is loopback."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65_535:
        raise BadSettingError(f"--http wants HOST:PORT, such as 127.0.0.1:8080, not {text!r}")
    return host.strip("[]") or "127.0.0.1", int(port)
