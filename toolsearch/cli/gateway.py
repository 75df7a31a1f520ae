"""``toolsearch gateway``: one MCP server in front of all those of a configuration; with ``login`` and ``status``.

``login`` logs in to a server that asks for it, before the gateway needs it, in a browser if there is a screen for one.
``status`` shows the running gateways and the state of their servers, ``reload`` and ``stop`` are for those that clients
share.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import signal
import sys
import webbrowser
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolsearch.cli import gateway_door
from toolsearch.cli.command_line import CommandLine, ExitCode
from toolsearch.cli.gateway_approve import approve, approving
from toolsearch.cli.gateway_audit import audit, record
from toolsearch.cli.gateway_check import check
from toolsearch.cli.gateway_daemon import clients_in_words, reload, settings_of, stop
from toolsearch.cli.gateway_import import import_servers
from toolsearch.cli.gateway_results import UrlOption, operators_answer, results
from toolsearch.cli.gateway_servers import add, pause, remove, resume
from toolsearch.cli.options import ConfigOption, JsonOption, config_file, read_address, read_config
from toolsearch.cli.output import (
    LogLevel,
    line,
    log_from,
    print_json,
    print_text,
    program,
    stdout,
    table,
    warn,
    with_skills,
)
from toolsearch.errors import BadSettingError, MissingExtraError, ToolSearchError
from toolsearch.freed_memory import share_one_arena
from toolsearch.lazy_packages import import_sdk_lazily

if TYPE_CHECKING:
    from toolsearch.gateway.door import Door
    from toolsearch.gateway.gateway import Gateway

_SCREENS = ("DISPLAY", "WAYLAND_DISPLAY")
_REMOTE = ("SSH_CONNECTION", "SSH_TTY")


def has_screen(environment: Mapping[str, str], platform: str) -> bool:
    """Whether a window can open here. *platform* has the form of `sys.platform`.

    Without a screen, Python would start a browser for terminals in the middle of the output. Windows and macOS always
    have a screen, but a user of SSH does not see it.
    """
    if platform in {"win32", "darwin"}:
        return not any(environment.get(name) for name in _REMOTE)
    return any(environment.get(name) for name in _SCREENS)


def open_page(url: str) -> bool:
    """Open *url* and return whether a browser took it.

    It comes from a server, so only the address of a web page is handed on, and no file or other program's address.
    """
    from toolsearch.upstreams.logins import is_web_page

    try:
        return is_web_page(url) and webbrowser.open(url)
    except (webbrowser.Error, OSError):
        return False


def login(
    server: Annotated[str, typer.Argument(help="The server's name in the configuration.")],
    *,
    config: ConfigOption = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the address in a browser here.")] = True,
) -> int:
    """Log in to a server with your browser, and keep the tokens for the gateway, readable by you alone.

    Prints the address, and opens it on a computer with a screen. The browser has to run on this computer.
    """
    read = read_config(config)
    settings = next((each for each in read.upstreams if each.name == server), None)
    if settings is None:
        known = ", ".join(each.name for each in read.upstreams) or "none"
        raise BadSettingError(f"there is no server {server!r} in {read.origin}; there are: {known}")
    from toolsearch.upstreams.logins import login as log_in

    opens = browser and has_screen(os.environ, sys.platform)

    async def recorded() -> None:
        await record(read.settings, "log in", server, server=server)
        await log_in(settings, read.settings.state_folder, show=print_text, open_page=open_page if opens else None)

    asyncio.run(recorded())
    return ExitCode.OK


_COLUMNS = ("server", "state", "tools", "awaiting\napproval", "tokens", "calls", "failed", "last error")
_NUMBERS = ("tools", "awaiting\napproval", "tokens", "calls", "failed")


def status(
    *,
    config: ConfigOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> int:
    """Show the gateways that run here, or the one at URL, with their servers, clients and savings.

    Name the --config of a gateway with its own stateDir. Exit code 1 if none runs.
    """
    if importlib.util.find_spec("mcp") is None:
        raise MissingExtraError("the gateway", "mcp")
    from toolsearch.gateway.reports.commands import running_gateways

    if url is not None:
        found = [{"address": url, "status": operators_answer(url, "status.json")}]
    else:
        found = running_gateways(settings_of(config).state_folder)
    if as_json:
        print_json({"gateways": found})
    else:
        for gateway in found:
            _show(gateway, approving(config))
        if not found:
            stdout().print("No gateway runs.")
    return ExitCode.OK if found else ExitCode.NOTHING


def _show(gateway: dict[str, Any], approve: str) -> None:
    told = gateway["status"]
    address = "in the background" if "clients" in gateway else gateway["address"]
    whose = f"process {gateway['pid']}, {address}" if "pid" in gateway else address
    shown = table(f"{told['origin']}: {whose}", _COLUMNS, numbers=_NUMBERS, flexible="last error")
    for server in told["servers"]:
        upstream = server["upstream"]
        shown.add_row(
            line(upstream["name"]),
            line(upstream["state"]),
            with_skills(server["tools"], server["skills"]),
            *(f"{count:,}" for count in (len(server["held"]), server["tokens"], upstream["calls"], upstream["failed"])),
            line(upstream["last_error"]),
        )
    stdout().print(shown)
    if "clients" in gateway:
        stdout().print(line(clients_in_words(gateway)), soft_wrap=True)
    for warning in told["warnings"]:
        warn(warning)
    if waiting := len(told["held_results"]):
        stdout().print(f"Results that wait for an operator: {waiting:,}. To see them: {program()} gateway results")
    if "pid" in gateway and any(server["held"] for server in told["servers"]):
        stdout().print(line(f"To see and approve waiting definitions: {approve}"), soft_wrap=True)
    stdout().print(
        f"{told['search_count']:,} searches, {told['calls']:,} calls, {told['failed_calls']:,} of them failed. "
        f"{costs_in_words(told)}"
    )


def costs_in_words(told: dict[str, Any]) -> str:
    """The cost of tool lists, and their cost with every tool, in words."""
    taken = told["shown_tokens"] + told["written_tokens"]
    if told["all_tools_tokens"] is None:
        return (
            f"Lists, searches and answers took {taken:,} tokens; the cost with every tool is not known while servers "
            "are starting."
        )
    estimated = " (estimated)" if told["tokens_are_estimate"] else ""
    return (
        f"Lists, searches and answers took {taken:,} tokens; with every tool in them the lists would have taken "
        f"{told['all_tools_tokens']:,}{estimated}."
    )


gateway = CommandLine(invoke_without_command=True, help="Serve the tools of many MCP servers through one.")


@gateway.callback()
def serve(
    context: typer.Context,
    *,
    config: ConfigOption = None,
    http: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Serve over HTTP, at /mcp, instead of stdin and stdout.")
    ] = None,
    log_level: Annotated[LogLevel, typer.Option(help="What is logged.")] = "warning",
    no_daemon: Annotated[  # noqa: ARG001  read before this command is imported
        bool, typer.Option("--no-daemon", help="Serve from this process, and not from one that all clients share.")
    ] = False,
) -> int:
    """Serve the tools of many MCP servers through one: 'toolsearch gateway --config mcp.json' as a client's server.

    All clients over stdio of a configuration share one background process, which the first of them starts.
    'toolsearch gateway import' finds the servers that your MCP clients have; without --config, those are served.
    """
    if context.invoked_subcommand is not None:
        return ExitCode.OK
    log_from(log_level)
    share_one_arena()
    import_sdk_lazily()
    address = None if http is None else read_address(http, "--http")
    door = gateway_door.opened(config) if address is None else None
    try:
        file = config_file(config)
        read = file.read()
        from toolsearch.gateway.gateway import Gateway

        for notice in read.notices:
            warn(notice)
        made = Gateway(read, file=file)
    except ToolSearchError as error:
        if door is not None:
            door.fail(str(error))
        raise
    asyncio.run(_serve(made, address, door))
    return ExitCode.OK


for command in (check, status, reload, stop, approve, results, audit, login, add, remove, pause, resume):
    gateway.command()(command)


gateway.command("import")(import_servers)


async def _serve(made: Gateway, address: tuple[str, int] | None, door: Door | None) -> None:
    """End on SIGTERM as when the client disconnects: stop the servers and exit with 0."""
    from toolsearch.gateway.reports.commands import announced

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
        if (own := asyncio.current_task()) is not None and own.cancelling():  # Ctrl-C has cancelled us, and is reported
            raise
