"""``toolsearch gateway approve``: what awaits approval, and a person's decision on it."""

from __future__ import annotations

import getpass
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolsearch.cli.exits import ExitCode
from toolsearch.cli.gateway_check import held_json, reasons
from toolsearch.cli.gateway_options import ConfigOption, read_config
from toolsearch.cli.options import JsonOption
from toolsearch.cli.output import line, print_diff, print_json, stderr, stdout, warn
from toolsearch.errors import BadSettingError, UnknownToolError
from toolsearch.tools.naming import near_names

if TYPE_CHECKING:
    from toolsearch.gateway.reports.approvals import Waiting
    from toolsearch.gateway.settings import GatewayConfig
    from toolsearch.gateway.trust.pins import PinStore


def approve(
    target: Annotated[
        str | None,
        typer.Argument(metavar="SERVER[__TOOL]", help="What awaits approval; a server's name means all of it."),
    ] = None,
    *,
    config: ConfigOption = None,
    everything: Annotated[bool, typer.Option("--all", help="Everything that awaits approval.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    revoke: Annotated[
        bool, typer.Option("--revoke", help="Withdraw approvals; what they were for awaits approval again.")
    ] = False,
    as_json: JsonOption = False,
) -> int:
    """Show what awaits approval, why, and what has changed in it; approve what awaits it of SERVER, or SERVER__TOOL.

    Prompts are named as tools are, and resources SERVER__URI; a server's instructions have its name.

    Without a name and --all it only shows. A running gateway takes note within seconds. Exit code 1 if something was
    not approved, because you declined or because it has changed meanwhile.
    """
    if target is not None and everything:
        raise BadSettingError("give either a name or --all, not both")
    read = read_config(config)
    from toolsearch.gateway.reports.approvals import waiting_entries
    from toolsearch.gateway.trust.pins import PinStore

    store = PinStore.of(read)
    try:
        if revoke:
            return _revoke(read, store, target, yes=yes)
        waiting = waiting_entries(read, store)
        if target is not None:
            waiting = _those_of(target, waiting, [each.name for each in read.upstreams])
        decides = target is not None or everything
        if as_json:
            print_json({"held": [_as_json(each) for each in waiting]})
        elif not waiting:
            stdout().print("Nothing awaits approval.")
        if not decides:
            for each in waiting if not as_json else ():
                _show(each)
            return ExitCode.OK
        return _approve(store, waiting, yes=yes, shows=not as_json)
    finally:
        store.close()


def _approve(store: PinStore, waiting: Sequence[Waiting], *, yes: bool, shows: bool) -> int:
    outcome = ExitCode.OK
    for each in waiting:
        if shows:
            _show(each)
        name = each.held.label
        if not yes and not _confirmed(f"Approve {name}?"):
            outcome = ExitCode.NOTHING
        elif store.approve(each.server, each.name, each.held.pin, _person(), each.held.kind):
            stderr().print(line(f"approved {name}"))
        else:
            warn(f"{name} has changed meanwhile and still awaits approval; look at it again")
            outcome = ExitCode.NOTHING
    return outcome


def _revoke(config: GatewayConfig, store: PinStore, target: str | None, *, yes: bool) -> int:
    if target is None:
        raise BadSettingError("say whose approval is withdrawn: SERVER or SERVER__TOOL")
    from toolsearch.upstreams.pinned import Kind, shown_name

    servers = [each.name for each in config.upstreams]
    approved = [(server, kind, name) for server in servers for kind in Kind for name in store.approved(server, kind)]
    chosen = [each for each in approved if target in (each[0], shown_name(*each))]
    if not chosen:
        raise UnknownToolError(target, near=near_names(target, [shown_name(*each) for each in approved]))
    stdout().print(line("Approved until now: " + ", ".join(shown_name(*each) for each in chosen)))
    if not yes and not _confirmed("Withdraw that?"):
        return ExitCode.NOTHING
    for server, kind, name in chosen:
        store.revoke(server, name, _person(), kind)
    return ExitCode.OK


def _confirmed(question: str) -> bool:
    try:
        return typer.confirm(question, default=False, err=True)
    except typer.Abort as abort:
        if isinstance(abort.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from abort
        raise BadSettingError(f"nobody answers {question!r} here: run it in a terminal, or give --yes") from abort


def _person() -> str:
    """Who decides, for the record."""
    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError):  # a container may run as a number without a name; Windows may say none
        number = getattr(os, "getuid", None)
        return f"user {number()}" if number else "somebody"


def _those_of(target: str, waiting: Sequence[Waiting], servers: Sequence[str]) -> list[Waiting]:
    """None where *target* is one of *servers*, of which nothing awaits approval."""
    chosen = [each for each in waiting if target in (each.server, each.held.name)]
    if not chosen and target not in servers:
        raise UnknownToolError(target, near=near_names(target, [*(each.held.name for each in waiting), *servers]))
    return chosen


def _show(waiting: Waiting) -> None:
    held = waiting.held
    console = stdout()
    console.print(line(f"{held.label}: {held.why.value}", "bold"))
    if against := reasons(held):
        console.print(line(against, "yellow"))
    from toolsearch.gateway.trust.differences import definition_diff

    print_diff(definition_diff(waiting.before, waiting.now))
    console.print()


def _as_json(waiting: Waiting) -> dict[str, Any]:
    return {"server": waiting.server, "pin": waiting.held.pin, **held_json(waiting.held), "definition": waiting.now}
