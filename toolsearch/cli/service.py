"""``toolsearch serve``, ``backup``, ``restore``, ``reseal`` and ``keys``: run the service, and look after its data."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from toolsearch.cli.command_line import ExitCode, exit_code_of
from toolsearch.cli.options import JsonOption, StoreOption, read_address
from toolsearch.cli.output import LogFormat, LogLevel, line, log_from, print_json, print_text, stdout, table, tell
from toolsearch.environment import SERVICE_KEY, SERVICE_URL
from toolsearch.errors import MissingExtraError

if TYPE_CHECKING:
    from toolsearch.service.serving import CheckResult
    from toolsearch.service.settings import ServiceSettings
    from toolsearch.storage.place import CopyProgress

_STYLES = {"ok": "green", "warning": "yellow", "error": "red"}


def serve(
    *,
    data: Annotated[Path, typer.Option(metavar="DIR", help="Where everything is kept.")] = Path("toolsearch-data"),
    store: StoreOption = None,
    bind: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="The address to listen at; port 0 means any free port.")
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
            metavar="[CATALOG=]module:NAME|skills:FOLDER",
            help="Register the public functions of a Python module, or a folder of skills, in the catalog 'default' "
            "of the first tenant, or in CATALOG. This process runs the functions. Repeatable.",
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Say whether the service could start, without starting it.")
    ] = False,
    as_json: JsonOption = False,
    log_level: Annotated[LogLevel, typer.Option(help="What is logged, on stderr.")] = "info",
    log_format: Annotated[LogFormat, typer.Option(help="Lines for people, or a JSON object in each line.")] = "text",
) -> int:
    """Serve catalogs of tools to many agents and tenants, over HTTP and MCP.

    Prints its address as TOOLSEARCH_URL=... On the very first start it also prints the administrator's key as
    TOOLSEARCH_KEY=..., once. SIGTERM and Ctrl-C end it after it has answered running requests.
    """
    if importlib.util.find_spec("fastapi") is None:
        raise MissingExtraError("the service", "service")
    from toolsearch.service.data_folder import STORE_FILE
    from toolsearch.service.serving import check_up
    from toolsearch.service.settings import ServiceSettings
    from toolsearch.service.web.paths import named_hosts
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
    from toolsearch.gateway.http import listening, url_of
    from toolsearch.service.app import make_app
    from toolsearch.service.catalogs.python_tools import load, read_registration
    from toolsearch.service.data_folder import INDEXES, STORE_FILE, data_folder
    from toolsearch.service.sealing import open_seal, refuse_new_start
    from toolsearch.service.service import Service
    from toolsearch.service.serving import serve
    from toolsearch.storage.opening import place_of

    for each in tools:  # loaded first for a short error, since uvicorn reports a failed start by a traceback
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


def _report(findings: Sequence[CheckResult], *, as_json: bool) -> ExitCode:
    """Print the findings, and return the exit code that a start would have."""
    if as_json:
        print_json({"findings": [_as_json(each) for each in findings]})
    else:
        shown = table("Checks", ("what", "", "finding"), flexible="finding")
        for each in findings:
            shown.add_row(line(each.subject), line(each.level, _STYLES[each.level]), line(each.text))
        stdout().print(shown)
    errors = [each.error for each in findings if each.error is not None]
    return exit_code_of(errors[0]) if errors else ExitCode.OK


def _as_json(finding: CheckResult) -> dict[str, Any]:
    return {"subject": finding.subject, "level": finding.level, "text": finding.text}


_Data: TypeAlias = Annotated[Path, typer.Option(metavar="DIR", help="Where the service keeps everything.")]
_DATA = Path("toolsearch-data")


def backup(
    *,
    to: Annotated[Path, typer.Option(metavar="FILE", help="A new file.", show_default=False)],
    data: _Data = _DATA,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> int:
    """Copy the data of a service, while it runs, into one checked file.

    The file is a SQLite database, also for a service on PostgreSQL, and can be restored into either. Keep the secret
    key elsewhere: it is not in the file. No file is overwritten.
    """
    _require_service()
    from toolsearch.service.data_folder import back_up

    state = back_up(data, to, store=store, on_progress=_tell)
    tell(f"{to} has everything but the secret key ({state}).")
    if as_json:
        print_json({"path": str(to), "holds": str(state)})
    return ExitCode.OK


def restore(
    backup: Annotated[Path, typer.Argument(metavar="FILE", help="A file made by 'toolsearch backup'.")],
    *,
    data: _Data = _DATA,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> int:
    """Check a backup, and put it into an empty folder or database."""
    _require_service()
    from toolsearch.service.data_folder import STORE_FILE
    from toolsearch.service.data_folder import restore as put_back
    from toolsearch.storage.opening import place_of

    state = put_back(backup, data, store=store, on_progress=_tell)
    place = place_of(store, data / STORE_FILE)
    if place.is_shared:
        told = (
            f"{place.name} holds the backup {backup} now ({state}). Give the secret key to each service that uses it."
        )
    else:
        told = (
            f"{data} holds the backup {backup} now ({state}). Before the start, put the secret key beside it, or into "
            "the environment."
        )
    tell(told)
    if as_json:
        print_json({"path": place.name, "holds": str(state)})
    return ExitCode.OK


def reseal(
    *,
    data: _Data = _DATA,
    store: StoreOption = None,
    forget_key: Annotated[
        bool, typer.Option("--forget-lost-key", help="The key is lost: let the service start with another one.")
    ] = False,
    as_json: JsonOption = False,
) -> int:
    """Encrypt all credentials with the first secret key. Then the other keys are not needed any more.

    To exchange the key, give every service the new and the old key, in this order, and restart them. Run this with the
    same keys, and then take the old key away. Exit code 1 if no key opened one of the credentials.
    """
    _require_service()
    from toolsearch.service.data_folder import STORE_FILE
    from toolsearch.service.sealing import forget_lost_key, open_seal, reseal_all
    from toolsearch.storage.opening import place_of

    place = place_of(store, data / STORE_FILE)
    place.require()
    with closing(place.open()) as storage:
        if forget_key:
            forget_lost_key(storage)
        done = reseal_all(storage, open_seal(os.environ, data, storage.records, clock=time.time))
    tell(f"Sealed anew: {done.texts}. Opened by no key: {done.unreadable}.")
    if as_json:
        print_json({"sealed": done.texts, "unreadable": done.unreadable})
    return ExitCode.NOTHING if done.unreadable else ExitCode.OK


def keys(*, data: _Data = _DATA, store: StoreOption = None, as_json: JsonOption = False) -> int:
    """Make an operator's key when all others are lost. The service may run meanwhile.

    Prints it once, as TOOLSEARCH_KEY=... The audit records it.
    """
    _require_service()
    from toolsearch.service.data_folder import STORE_FILE
    from toolsearch.service.service import Service
    from toolsearch.service.settings import ServiceSettings
    from toolsearch.storage.opening import place_of

    place = place_of(store, data / STORE_FILE)
    place.require()
    with closing(place.open()) as storage:
        key = Service(ServiceSettings(), storage).tenants.operators_key("toolsearch keys")
    if as_json:
        print_json({"key": key})
    else:
        print_text(f"{SERVICE_KEY}={key}")
    return ExitCode.OK


def _tell(progress: CopyProgress) -> None:
    tell(f"{progress.table}: {progress.rows:,} of {progress.of:,} rows")


def _require_service() -> None:
    if importlib.util.find_spec("cryptography") is None:
        raise MissingExtraError("the service", "service")
