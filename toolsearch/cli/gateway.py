"""``toolsearch gateway``: one MCP server in front of all those of a configuration."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from toolsearch.cli.exits import ExitCode
from toolsearch.cli.gateway_approve import approve
from toolsearch.cli.gateway_check import check
from toolsearch.cli.gateway_login import login
from toolsearch.cli.gateway_options import ConfigOption, read_config
from toolsearch.cli.output import warn
from toolsearch.errors import BadSettingError

if TYPE_CHECKING:
    from toolsearch.gateway.gateway import Gateway

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
    address = None if http is None else _address(http)
    read = read_config(config)
    from toolsearch.gateway.gateway import Gateway

    for refusal in read.refused:
        warn(f"server {refusal.name!r} is left out: {refusal.reason}")
    asyncio.run(_serve(Gateway(read), address))
    return ExitCode.OK


for command in (check, approve, login):
    gateway.command()(command)


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
