"""``toolsearch gateway check``: the tools, the refused tools and the cost of each server of a configuration."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolsearch.cli.command_line import ExitCode
from toolsearch.cli.gateway_approve import approving, reasons
from toolsearch.cli.gateway_import import PlaceText, places_with_servers
from toolsearch.cli.options import ConfigOption, JsonOption, read_config
from toolsearch.cli.output import line, print_json, program, seconds, stdout, table, with_skills

if TYPE_CHECKING:
    from toolsearch.gateway.reports.commands import Checked, Checkup
    from toolsearch.gateway.settings import GatewayConfig
    from toolsearch.gateway.trust.verdicts import ReviewItem

_NUMBERS = ("tools", "refused", "awaiting\napproval", "denied by\na rule", "tokens", "time")
_COLUMNS = ("server", "transport", "state", *_NUMBERS)


def check(*, config: ConfigOption = None, as_json: JsonOption = False) -> int:
    """Start every server once. Show its tools, their cost in tokens, and refused or waiting ones with the reasons.

    Pins the definitions, as a gateway that first sees them: one that changes later awaits approval. Also shows whether
    clients with the gateway show its tools. Exit code 1 if a server does not list its tools or they cannot be pinned, 3
    if none does.
    """
    read = read_config(config)
    from toolsearch.gateway.gateway import Gateway
    from toolsearch.gateway.reports.commands import check as check_up

    result = asyncio.run(check_up(Gateway(read)))
    clients = [place for place in places_with_servers(None, Path.home()) if place.ours is not None]
    if as_json:
        print_json({**_as_json(read, result), "clients": [_client_json(place) for place in clients]})
    else:
        _show(read, result, approving(config))
        for place in clients:
            stdout().print(line(f"\n{_shows(place)}"))
    if not result.failed and not read.refused:
        return ExitCode.OK
    return ExitCode.NOTHING if result.failed < len(result.servers) else ExitCode.UNREADABLE


def _as_json(config: GatewayConfig, result: Checkup) -> dict[str, Any]:
    left_out = [{"name": each.name, "reason": each.reason} for each in config.refused]
    return {
        "config": config.origin,
        "servers": [_server_json(server) for server in result.servers],
        "left_out": left_out,
        "warnings": list(config.warnings),
        "tools": result.tools,
        "shown_tools": result.shown_tools,
        "shown_tokens": result.status.shown_tokens,
        "all_tools_tokens": result.status.all_tools_tokens,
        "tokens_are_estimate": result.status.tokens_are_estimate,
    }


def _client_json(place: PlaceText) -> dict[str, Any]:
    return {"name": place.client.label, "file": str(place.client.path), "lacks": place.client.lacks(place.ours or {})}


def _shows(place: PlaceText) -> str:
    """The tools that a client with the gateway shows its model."""
    if lacks := place.client.lacks(place.ours or {}):
        return (
            f"{place.client.label} may hide the gateway's tools, or not wait for them: its entry in "
            f"{place.client.path} lacks {', '.join(lacks)}. '{program()} gateway import --write' adds that."
        )
    return f"{place.client.label} shows its model the gateway's tools from the first request on."


def _server_json(server: Checked) -> dict[str, Any]:
    row = server.row
    return {
        "name": row.upstream.name,
        "transport": row.upstream.transport,
        "protocol": row.upstream.protocol_version,
        "state": row.upstream.state.value,
        "tools": row.tools,
        "skills": row.skills,
        "tokens": row.tokens,
        "seconds": round(server.seconds, 3),
        "error": server.error,
        "refused": [{"name": each.name, "reason": each.reason} for each in row.refused],
        "held": [each.written() for each in row.held],
        "warnings": [each.written() for each in row.warnings],
        "ruled_out": list(row.ruled_out),
    }


def _show(read: GatewayConfig, result: Checkup, approve: str) -> None:
    shown = table(f"Servers of {read.origin}", _COLUMNS, numbers=_NUMBERS)
    for server in result.servers:
        row = server.row
        shown.add_row(
            line(row.upstream.name),
            row.upstream.transport,
            line(row.upstream.state.value, "red" if server.error else "green"),
            with_skills(row.tools, row.skills),
            *(f"{count:,}" for count in (len(row.refused), len(row.held), len(row.ruled_out), row.tokens)),
            seconds(server.seconds),
        )
    stdout().print(shown)
    _show_reasons(
        "These servers list no tools",
        "server",
        [
            *((server.row.upstream.name, server.error) for server in result.servers if server.error),
            *((refusal.name, refusal.reason) for refusal in read.refused),
        ],
    )
    _show_reasons(
        "Refused: these are no tools that could be called",
        "name",
        [(refusal.name, refusal.reason) for server in result.servers for refusal in server.row.refused],
    )
    doubted = [(row.held, row.warnings) for row in (server.row for server in result.servers)]
    held = [each for of_server, _ in doubted for each in of_server]
    _show_doubts("Awaiting approval", held)
    if held:
        stdout().print(line(f"To see and approve that: {approve}"), soft_wrap=True)
    _show_doubts("Admitted with warnings, by the settings", [each for _, warned in doubted for each in warned])
    if not result.tools:
        return
    if read.settings.trust.changed == "quarantine" and not result.failed:
        stdout().print("These definitions are pinned: one that differs when a gateway runs awaits approval.")
    status = result.status
    how = "estimated" if status.tokens_are_estimate else "counted with o200k_base"
    everything = "not known yet" if status.all_tools_tokens is None else f"{status.all_tools_tokens:,} tokens ({how})"
    stdout().print(
        f"A client is shown {result.shown_tools:,} tools at first, {status.shown_tokens:,} tokens, "
        f"in place of {result.tools:,} tools, {everything}."
    )


def _show_reasons(title: str, column: str, reasons_of: Sequence[tuple[str, str]]) -> None:
    if not reasons_of:
        return
    shown = table(title, (column, "why"), flexible="why")
    for name, reason in reasons_of:
        shown.add_row(line(name), line(reason))
    stdout().print(shown)


def _show_doubts(title: str, doubted: Sequence[ReviewItem]) -> None:
    if not doubted:
        return
    shown = table(title, ("tool", "why", "what was found"), flexible="what was found")
    for each in doubted:
        shown.add_row(line(each.label), each.why.value, line(reasons(each)))
    stdout().print(shown)
