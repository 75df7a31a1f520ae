"""``toolsearch gateway``: one MCP server in front of all those of a configuration."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from toolsearch.cli import gateway_door
from toolsearch.cli.addresses import read_address
from toolsearch.cli.command_line import CommandLine
from toolsearch.cli.exits import ExitCode
from toolsearch.cli.gateway_approve import approve
from toolsearch.cli.gateway_check import check
from toolsearch.cli.gateway_import import import_servers
from toolsearch.cli.gateway_login import login
from toolsearch.cli.gateway_options import ConfigOption, read_config
from toolsearch.cli.gateway_status import status
from toolsearch.cli.logs import LogLevel, log_from
from toolsearch.cli.output import warn
from toolsearch.errors import ToolSearchError
from toolsearch.freed_memory import share_one_arena

if TYPE_CHECKING:
    from toolsearch.gateway.door import Door
    from toolsearch.gateway.gateway import Gateway

gateway = CommandLine(invoke_without_command=True, help="Serve the tools of many MCP servers through one.")


@gateway.callback()
def serve(
    context: typer.Context,
    *,
    config: ConfigOption = None,
    http: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Serve over HTTP, at /mcp, instead of stdin and stdout.")
    ] = None,
    log_level: Annotated[LogLevel, typer.Option(help="What is logged, on stderr.")] = "warning",
) -> int:
    """Serve the tools of many MCP servers through one: 'toolsearch gateway --config mcp.json' as a client's server.

    'toolsearch gateway import' finds the servers that your MCP clients have; without --config, those are served.
    """
    if context.invoked_subcommand is not None:
        return ExitCode.OK
    log_from(log_level)
    share_one_arena()
    address = None if http is None else read_address(http, "--http")
    door = gateway_door.opened(config) if address is None else None
    try:
        read = read_config(config)
        from toolsearch.gateway.gateway import Gateway

        for refusal in read.refused:
            warn(f"server {refusal.name!r} is left out: {refusal.reason}")
        made = Gateway(read)
    except ToolSearchError as error:
        if door is not None:
            door.fail(str(error))
        raise
    asyncio.run(_serve(made, address, door))
    return ExitCode.OK


for command in (check, status, approve, login):
    gateway.command()(command)
gateway.command("import")(import_servers)


async def _serve(made: Gateway, address: tuple[str, int] | None, door: Door | None) -> None:
    """End on SIGTERM as when the client disconnects: stop the servers and exit with 0."""
    from toolsearch.gateway.reports.running import announced

    if door is not None:
        from toolsearch.gateway.stdio import serve_stdio

        async with announced(made, "stdio"):
            await _until_terminated(serve_stdio(made, door))
    if address is not None:
        from toolsearch.gateway.http import serve_http

        host, port = address
        signal.signal(signal.SIGTERM, _take_note)  # uvicorn stops on the signal, and then raises it again
        async with announced(made, f"http://{f'[{host}]' if ':' in host else host}:{port}"):
            await serve_http(made, host=host, port=port)


def _take_note(_: int, __: FrameType | None) -> None:
    """Do nothing: the process ends by itself."""


async def _until_terminated(serving: Coroutine[None, None, None]) -> None:
    task = asyncio.create_task(serving)
    with suppress(NotImplementedError):  # Windows has no signal that asks a process to end
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        if (own := asyncio.current_task()) is not None and own.cancelling():  # cancelled by Ctrl-C, which is reported
            raise
