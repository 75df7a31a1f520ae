"""``toolsearch serve``: one process for many agents and tenants, over HTTP and MCP, with pages to look at."""

from __future__ import annotations

import importlib.util
import os
import time
from pathlib import Path
from typing import Annotated

import typer

from toolsearch.cli.exits import ExitCode
from toolsearch.errors import MissingExtraError


def serve(
    *,
    data: Annotated[Path, typer.Option(metavar="DIR", help="Where everything is kept.")] = Path("toolsearch-data"),
    bind: Annotated[str, typer.Option(metavar="HOST:PORT", help="Where it listens.")] = "127.0.0.1:8080",
) -> int:
    """Serve catalogs of tools to many agents and tenants, over HTTP and MCP."""
    if importlib.util.find_spec("fastapi") is None:
        raise MissingExtraError("the service", "service")
    import uvicorn

    from toolsearch.service.app import make_app
    from toolsearch.service.secret_keys import open_seal
    from toolsearch.service.service import Service
    from toolsearch.service.settings import ServiceSettings
    from toolsearch.storage.sqlite.storage import SqliteStorage

    host, _, port = bind.rpartition(":")
    storage = SqliteStorage(data / "toolsearch.db")
    try:
        seal = open_seal(os.environ, data, storage.records, clock=time.time)
        service = Service(ServiceSettings.from_environment(os.environ), storage, seal=seal, indexes=data / "indexes")
        if (key := service.keys.first_key()) is not None:
            typer.echo(f"The administrator's key, which is shown only now: {key}")
        app = make_app(service, host=host, port=int(port))
        uvicorn.run(app, host=host, port=int(port), log_config=None)
    finally:
        storage.close()
    return ExitCode.OK
