"""``toolsearch proxy``: tool search in front of a model API, for unchanged programs."""

from __future__ import annotations

import asyncio
import importlib.util
import signal
from collections.abc import Collection
from contextlib import ExitStack
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from toolsearch.cli.command_line import ExitCode
from toolsearch.cli.opening import loaded_sources, read_settings
from toolsearch.cli.options import SOURCES_HELP, SettingsOption, read_address, source_specs
from toolsearch.cli.output import LogFormat, LogLevel, log_from, print_text
from toolsearch.errors import BadSettingError, MissingExtraError

if TYPE_CHECKING:
    from socket import socket

    from starlette.types import ASGIApp
    from uvicorn import Config

_FOR_CLIENTS = """\
Claude Code        ENABLE_TOOL_SEARCH=false ANTHROPIC_BASE_URL={url} claude
Codex              openai_base_url = "{url}/v1" at the top of ~/.codex/config.toml, and
                   omit_tools_from = ["deferred"] in each [mcp_servers.NAME] there
Qwen Code          OPENAI_BASE_URL={url}/v1 qwen, and in ~/.qwen/settings.json
                   {{"tools": {{"toolSearch": {{"enabled": false}}}}}}
opencode           "baseURL": "{url}/v1" in the options of its provider
SDK of Anthropic   Anthropic(base_url="{url}")
SDK of OpenAI      OpenAI(base_url="{url}/v1")
Without these settings, the first three hide most tools from the proxy, which then passes requests on unchanged."""


def proxy(
    *,
    upstream: Annotated[
        str, typer.Option(metavar="URL", help="The model API, such as https://api.anthropic.com.", show_default=False)
    ],
    tools: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SOURCE",
            help=f"Your own tools: every client gets them, and this process runs them. {SOURCES_HELP} Repeatable.",
            autocompletion=source_specs,
        ),
    ] = None,
    bind: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="The address to listen at; port 0 means any free port.")
    ] = "127.0.0.1:8090",
    host: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST[:PORT]", help="Another name by which clients reach it. Repeatable."),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="GLOB", help="Always list clients' tools of these names, such as browser_*. Repeatable."),
    ] = None,
    settings: SettingsOption = None,
    log_level: Annotated[LogLevel, typer.Option(help="What is logged, on stderr.")] = "warning",
    log_format: Annotated[LogFormat, typer.Option(help="Lines for people, or a JSON object in each line.")] = "text",
) -> int:
    """Give unchanged programs tool search: point them at this address instead of the model API's.

    The proxy holds their tools back and finds them; the programs run them. Callers' keys are passed on.
    """
    if importlib.util.find_spec("mcp") is None:
        raise MissingExtraError("the proxy", "mcp")
    from toolsearch.access.addresses import is_loopback
    from toolsearch.gateway.http import connection_protocol, listening, server_config, url_of
    from toolsearch.proxy.app import ProxyApp
    from toolsearch.proxy.upstream import SILENCE_S, Upstream

    log_from(log_level, log_format)
    address, port = read_address(bind, "--bind")
    if tools and not is_loopback(address):
        raise BadSettingError(
            f"bound to {address or 'every address'}, the proxy would run your tools for everybody on the network: "
            "bind it to 127.0.0.1, or leave out --tools"
        )
    with ExitStack() as opened:
        catalog = None
        if tools:
            loaded = opened.enter_context(loaded_sources(tools))
            loaded.require_tools()
            catalog = loaded.catalog
        app = ProxyApp(Upstream(upstream), read_settings(settings), catalog, keep=keep or ())
        listener = opened.enter_context(listening(address, port))
        safe: ASGIApp = guarded(app, host or (), address, listener.getsockname()[1])
        print_text(f"In front of {upstream}. Point clients at it:\n{_FOR_CLIENTS.format(url=url_of(listener))}")
        http = connection_protocol(arrival_timeout_s=SILENCE_S)
        asyncio.run(_serve(server_config(safe, http=http, lifespan="on"), listener))
    return ExitCode.OK


def guarded(app: ASGIApp, names: Collection[str], host: str, port: int | None) -> ASGIApp:
    """*app* for requests that are addressed to one of *names*, or to *host* and *port*, and come from no web page of
    others.

    Raises BadSettingError.
    """
    from toolsearch.gateway.http_guard import HostGuard, served_hosts

    return HostGuard(app, hosts=served_hosts(names, host, port, setting="--host"), origins=())


async def _serve(config: Config, listener: socket) -> None:
    from uvicorn import Server

    signal.signal(signal.SIGTERM, _take_note)  # uvicorn stops on the signal, and then raises it again
    await Server(config).serve([listener])


def _take_note(_: int, __: FrameType | None) -> None:
    """Do nothing: the process ends by itself."""
