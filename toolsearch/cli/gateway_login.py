"""``toolsearch gateway login``: log in to a server that asks for it, before the gateway needs it."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Annotated

import typer

from toolsearch.cli.exits import ExitCode
from toolsearch.cli.gateway_browser import has_screen, open_page
from toolsearch.cli.gateway_options import ConfigOption, read_config
from toolsearch.cli.output import print_text
from toolsearch.errors import BadSettingError


def login(
    server: Annotated[str, typer.Argument(help="The server's name in the configuration.")],
    *,
    config: ConfigOption = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the address in a browser here.")] = True,
) -> int:
    """Log in to a server with your browser; the tokens are kept for the gateway, readable by you alone.

    The address is printed, and opened where there is a screen. The browser has to be on this computer.
    """
    read = read_config(config)
    settings = next((each for each in read.upstreams if each.name == server), None)
    if settings is None:
        known = ", ".join(each.name for each in read.upstreams) or "none"
        raise BadSettingError(f"there is no server {server!r} in {read.origin}; there are: {known}")
    from toolsearch.upstreams.login import login as log_in

    opens = browser and has_screen(os.environ, sys.platform)
    log = log_in(settings, read.settings.state_folder, show=print_text, open_page=open_page if opens else None)
    asyncio.run(log)
    return ExitCode.OK
