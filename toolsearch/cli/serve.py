"""``toolsearch serve``: one process for many agents and tenants, over HTTP and MCP, with pages to look at."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolsearch.cli.addresses import read_address
from toolsearch.cli.exits import ExitCode, exit_code_of
from toolsearch.cli.logs import LogFormat, LogLevel, log_from
from toolsearch.cli.options import JsonOption, StoreOption
from toolsearch.cli.output import line, print_json, print_text, stdout, table
from toolsearch.environment import SERVICE_KEY, SERVICE_URL
from toolsearch.errors import MissingExtraError

if TYPE_CHECKING:
    from toolsearch.service.checkup import Finding
    from toolsearch.service.settings import ServiceSettings

_STYLES = {"ok": "green", "warning": "yellow", "error": "red"}


def serve(
    *,
    data: Annotated[Path, typer.Option(metavar="DIR", help="Where everything is kept.")] = Path("toolsearch-data"),
    store: StoreOption = None,
    bind: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where it listens; port 0 is any free one.")
    ] = "127.0.0.1:8080",
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            "--settings",
            metavar="FILE",
            help="A TOML file of settings, as \\[toolsearch.serve]. TOOLSEARCH_* in the environment win over it. "
            "docs/settings.md lists them.",
        ),
    ] = None,
    tools: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[CATALOG=]module:NAME",
            help="Register the public functions of a Python module, which this process runs; in the catalog 'default' "
            "of the first tenant, or CATALOG. May be given several times.",
        ),
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Say whether it could start, and start nothing.")] = False,
    as_json: JsonOption = False,
    log_level: Annotated[LogLevel, typer.Option(help="What is logged, on stderr.")] = "info",
    log_format: Annotated[LogFormat, typer.Option(help="Lines for people, or a JSON object a line.")] = "text",
) -> int:
    """Serve catalogs of tools to many agents and tenants, over HTTP and MCP.

    Prints where it is, as TOOLSEARCH_URL=..., and on the very first start the administrator's key, as
    TOOLSEARCH_KEY=...; the key is never shown again. SIGTERM and Ctrl-C end it once the requests that run are answered.
    """
    if importlib.util.find_spec("fastapi") is None:
        raise MissingExtraError("the service", "service")
    from toolsearch.service.checkup import check_up
    from toolsearch.service.data_folder import STORE_FILE
    from toolsearch.service.hosts import named_hosts
    from toolsearch.service.settings import ServiceSettings
    from toolsearch.storage.opening import place_of

    log_from(log_level, log_format)
    host, port = read_address(bind, "--bind")
    settings = ServiceSettings.from_environment(os.environ, config)
    if check:
        place = place_of(store, data / STORE_FILE)
        return _report(check_up(settings, os.environ, data, place, host, port, clock=time.time), as_json=as_json)
    named_hosts(settings.serve, host, port)
    _serve(settings, store, data, host, port, tools or ())
    return ExitCode.OK


def _serve(
    settings: ServiceSettings, store: str | None, data: Path, host: str, port: int, tools: Sequence[str]
) -> None:
    from toolsearch.service.app import make_app
    from toolsearch.service.data_folder import INDEXES, STORE_FILE, data_folder
    from toolsearch.service.registration import load, read_registration
    from toolsearch.service.secret_keys import open_seal, refuse_new_start
    from toolsearch.service.service import Service
    from toolsearch.service.serving import listening, serve, url_of
    from toolsearch.storage.opening import place_of

    for each in tools:  # before anything is made, and told in a line: uvicorn tells of a failed start by a traceback
        load(read_registration(each))
    with listening(host, port) as listener, data_folder(data) as folder, ExitStack() as ending:
        place = place_of(store, folder / STORE_FILE, max_connections=settings.replicas.max_connections)
        if place.is_new():
            refuse_new_start(os.environ, folder)
        storage = ending.enter_context(closing(place.open()))
        seal = open_seal(os.environ, folder, storage.records, clock=time.time)
        service = Service(settings, storage, seal=seal, indexes=folder / INDEXES, tools=tools)
        app = make_app(service, host=host, port=listener.getsockname()[1])
        url = settings.serve.public_url or url_of(listener)

        def announce() -> None:
            print_text(f"{SERVICE_URL}={url}")
            if (key := service.tenants.first_key()) is not None:
                print_text(f"{SERVICE_KEY}={key}")

        asyncio.run(serve(app, settings.serve, listener=listener, shutdown=service.shutdown, on_started=announce))


def _report(findings: Sequence[Finding], *, as_json: bool) -> ExitCode:
    """Print what was found, and return with what exit code a start would end."""
    if as_json:
        print_json({"findings": [_as_json(each) for each in findings]})
    else:
        shown = table("Checks", ("what", "", "finding"), flexible="finding")
        for each in findings:
            shown.add_row(line(each.subject), line(each.level, _STYLES[each.level]), line(each.text))
        stdout().print(shown)
    errors = [each.error for each in findings if each.error is not None]
    return exit_code_of(errors[0]) if errors else ExitCode.OK


def _as_json(finding: Finding) -> dict[str, Any]:
    return {"subject": finding.subject, "level": finding.level, "text": finding.text}
