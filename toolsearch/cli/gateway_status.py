"""``toolsearch gateway status``: which gateways run, and the state of their servers."""

from __future__ import annotations

import importlib.util
import json
import os
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer

from toolsearch.cli.exits import ExitCode
from toolsearch.cli.gateway_approve import approving
from toolsearch.cli.gateway_door import own_config
from toolsearch.cli.gateway_options import ConfigOption, read_config
from toolsearch.cli.options import JsonOption
from toolsearch.cli.output import line, print_json, stdout, table
from toolsearch.environment import GATEWAY_TOKEN
from toolsearch.errors import BadSettingError, MissingExtraError, ServerUnavailableError

_TIMEOUT_S = 10.0
_COLUMNS = ("server", "state", "tools", "awaiting\napproval", "tokens", "calls", "failed", "last error")
_NUMBERS = ("tools", "awaiting\napproval", "tokens", "calls", "failed")


def status(
    *,
    config: ConfigOption = None,
    url: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help=f"A gateway over HTTP; ${GATEWAY_TOKEN} is an operator's token, if it wants one."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Show the gateways that run here, or the one at URL: their servers, and what they have saved.

    A gateway whose configuration has a stateDir of its own is found by its --config. Exit code 1 if none runs.
    """
    if importlib.util.find_spec("mcp") is None:
        raise MissingExtraError("the gateway", "mcp")
    from toolsearch.gateway.reports.running import running_gateways
    from toolsearch.gateway.settings import GatewaySettings

    if url is not None:
        found = [{"address": url, "status": _asked(url)}]
    else:
        is_configured = config is not None or own_config().is_file()
        settings = read_config(config).settings if is_configured else GatewaySettings()
        found = running_gateways(settings.state_folder)
    if as_json:
        print_json({"gateways": found})
    else:
        for gateway in found:
            _show(gateway, approving(config))
        if not found:
            stdout().print("No gateway runs.")
    return ExitCode.OK if found else ExitCode.NOTHING


def _asked(url: str) -> Any:
    """The status of the gateway at *url*."""
    import httpx2

    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise BadSettingError(f"--url wants an address such as http://127.0.0.1:8080, not {url!r}")
    token = os.environ.get(GATEWAY_TOKEN)
    headers = {"authorization": f"Bearer {token}"} if token else {}
    address = f"{parts.scheme}://{parts.netloc}{parts.path.removesuffix('/').removesuffix('/mcp')}/status.json"
    try:
        answer = httpx2.get(address, headers=headers, timeout=_TIMEOUT_S)
    except httpx2.HTTPError as error:
        raise ServerUnavailableError(f"{address} does not answer: {error}") from error
    if answer.status_code in {401, 403}:
        raise ServerUnavailableError(f"{address} is for operators; put a token of one in {GATEWAY_TOKEN}")
    try:
        return answer.raise_for_status().json()
    except (httpx2.HTTPError, json.JSONDecodeError) as error:
        raise ServerUnavailableError(f"{address} does not answer with the status of a gateway") from error


def _show(gateway: dict[str, Any], approve: str) -> None:
    told = gateway["status"]
    whose = f"process {gateway['pid']}, {gateway['address']}" if "pid" in gateway else gateway["address"]
    shown = table(f"{told['origin']}: {whose}", _COLUMNS, numbers=_NUMBERS, flexible="last error")
    for server in told["servers"]:
        upstream = server["upstream"]
        shown.add_row(
            line(upstream["name"]),
            line(upstream["state"]),
            *(
                f"{count:,}"
                for count in (
                    server["tools"],
                    len(server["held"]),
                    server["tokens"],
                    upstream["calls"],
                    upstream["failed"],
                )
            ),
            line(upstream["last_error"]),
        )
    stdout().print(shown)
    if "pid" in gateway and any(server["held"] for server in told["servers"]):
        stdout().print(line(f"To see and approve what awaits approval: {approve}"), soft_wrap=True)
    stdout().print(
        f"{told['search_count']:,} searches, {told['calls']:,} calls, {told['failed_calls']:,} of them failed. "
        f"{costs_in_words(told)}"
    )


def costs_in_words(told: dict[str, Any]) -> str:
    """What lists have cost, and would have cost with every tool."""
    taken = told["shown_tokens"] + told["written_tokens"]
    if told["all_tools_tokens"] is None:
        return (
            f"Lists, searches and answers took {taken:,} tokens; what the lists would have taken with every tool is "
            "not known while servers are starting."
        )
    estimated = " (estimated)" if told["tokens_are_estimate"] else ""
    return (
        f"Lists, searches and answers took {taken:,} tokens; with every tool in them the lists would have taken "
        f"{told['all_tools_tokens']:,}{estimated}."
    )
