"""``toolsearch gateway login``: log in to a server that asks for it, before the gateway needs it."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from toolsearch.cli.exits import ExitCode
from toolsearch.cli.gateway_options import ConfigOption, read_config
from toolsearch.cli.output import print_text
from toolsearch.errors import BadSettingError


def login(
    server: Annotated[str, typer.Argument(help="The server's name in the configuration.")],
    *,
    config: ConfigOption = None,
) -> int:
    """Log in to a server with your browser; the tokens are kept for the gateway, readable by you alone."""
    read = read_config(config)
    settings = next((each for each in read.upstreams if each.name == server), None)
    if settings is None:
        known = ", ".join(each.name for each in read.upstreams) or "none"
        raise BadSettingError(f"there is no server {server!r} in {read.origin}; there are: {known}")
    from toolsearch.upstreams.login import login as log_in

    asyncio.run(log_in(settings, read.settings.state_folder, show=print_text))
    return ExitCode.OK
