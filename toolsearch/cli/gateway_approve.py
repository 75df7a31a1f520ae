"""``toolsearch gateway approve``: lists definitions that await approval, and takes a person's decision."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

import typer

from toolsearch.cli.command_line import ExitCode
from toolsearch.cli.options import ConfigOption, JsonOption, read_config
from toolsearch.cli.output import legible, line, print_json, print_text, program, stderr, stdout, table, warn
from toolsearch.documents.json_values import as_object
from toolsearch.errors import BadSettingError, UnknownToolError
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.naming import near_names

if TYPE_CHECKING:
    from toolsearch.gateway.approvals.waiting import Waiting
    from toolsearch.gateway.settings import GatewayConfig
    from toolsearch.gateway.trust.gate import PinStore
    from toolsearch.gateway.trust.verdicts import ReviewItem


def reasons(held: ReviewItem) -> str:
    """Why an entry has to be reviewed, in a line."""
    findings = [f"{each.rule} in {each.place}: {each.evidence}" for each in held.findings]
    refused = [f"refused by {held.refused_by}"] if held.refused_by else []
    return "; ".join([*refused, *findings, *(f"changed: {place}" for place in held.changes)])


T = TypeVar("T")
_MOST_SHOWN: Final = 200  # characters of a description that a list shows


def approve(
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SERVER[__TOOL]]...", help="Names of definitions; a server's name means all of its definitions."
        ),
    ] = None,
    *,
    config: ConfigOption = None,
    everything: Annotated[bool, typer.Option("--all", help="Everything that awaits approval.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    revoke: Annotated[
        bool, typer.Option("--revoke", help="Withdraw approvals: the definitions await approval again.")
    ] = False,
    as_json: JsonOption = False,
) -> int:
    """Show the definitions that await approval, with the reasons and changes, and approve them.

    Name a tool or prompt SERVER__NAME, a resource SERVER__URI, a skill SERVER__ with the URI of its folder, and a
    server's instructions by the server.

    The command asks once about all new definitions of a server without findings of the scan, and once about each other
    definition. Without a name or --all it only asks on a terminal. It approves exactly the definitions that it showed,
    and refused definitions only by their names. A running gateway follows within seconds. Exit code 1 if you declined a
    definition, or if a definition has changed meanwhile.
    """
    if targets and everything:
        raise BadSettingError("give either names or --all, not both")
    if yes and not (targets or everything):
        raise BadSettingError("--yes needs names of definitions, or --all")
    read = read_config(config)
    from toolsearch.gateway.approvals.waiting import waiting_entries
    from toolsearch.gateway.trust.gate import PinStore

    store = PinStore.of(read)
    try:
        if revoke:
            return _revoke(read, store, targets or (), yes=yes)
        waiting = waiting_entries(read, store)
        named: Sequence[Waiting] = ()
        if targets:
            named = _named(targets, waiting, [each.name for each in read.upstreams])
            waiting = [each for each in waiting if each in named or each.server in targets]
        if as_json:
            print_json({"held": [each.written() for each in waiting]})
        elif not waiting:
            stdout().print("Nothing awaits approval.")
        review = _Review(store, named, yes=yes, shows=not as_json)
        if targets or everything or (not as_json and _is_on_a_terminal()):
            return review.decide(waiting)
        review.show(waiting)
        if waiting and not as_json:
            stdout().print(
                line(f"To approve: {approving(config)} NAME..., or --all. With --yes the command asks nothing."),
                soft_wrap=True,
            )
        return ExitCode.OK
    finally:
        store.close()


def approving(config: Path | None) -> str:
    """The command that approves waiting definitions in the gateway of *config*."""
    return f"{program()} gateway approve" + (f" --config {shlex.quote(str(config))}" if config else "")


@dataclass(frozen=True)
class _Review:
    """Shows a person the waiting definitions, server by server, and approves exactly those that were shown.

    An entry that is *named*, and not just its server, is shown in full. With *yes* nothing is asked.
    """

    store: PinStore
    named: Sequence[Waiting]
    yes: bool
    shows: bool

    def show(self, waiting: Sequence[Waiting]) -> None:
        """List each server's entries, and show in full those that need an individual decision."""
        for of_server in _by_server(waiting) if self.shows else ():
            _list(of_server)
            for each in of_server:
                if not self._is_plain(each):
                    _show(each)

    def decide(self, waiting: Sequence[Waiting]) -> int:
        decided = [self._decide_of_server(of_server) for of_server in _by_server(waiting)]
        return ExitCode.OK if all(decided) else ExitCode.NOTHING

    def _decide_of_server(self, waiting: Sequence[Waiting]) -> bool:
        """Whether all of *waiting*, which belong to one server, are approved now. What somebody has refused is only
        approved by its name.
        """
        refused = [each for each in waiting if each.held.refused_by and each not in self.named]
        waiting = [each for each in waiting if each not in refused]
        if self.shows and refused:
            _list(refused)
        plain = [each for each in waiting if self._is_plain(each)]
        if self.shows and plain:
            _list(plain)
        is_all = not plain or ((self.yes or _wanted(plain)) and self._approve(plain))
        for each in waiting:
            if each not in plain:
                if self.shows:
                    _show(each)
                is_wanted = self.yes or _confirmed(f"Approve {each.held.label}?")
                is_all = is_wanted and self._approve([each]) and is_all
        return is_all

    def _approve(self, shown: Sequence[Waiting]) -> bool:
        from toolsearch.gateway.approvals.waiting import local_person

        by = local_person()
        changed = [
            each for each in shown if not self.store.approve(each.server, each.name, each.held.pin, by, each.held.kind)
        ]
        for each in shown:
            if each in changed:
                warn(f"{each.held.label} has changed meanwhile and still awaits approval; look at it again")
            else:
                stderr().print(line(f"approved {each.held.label}"))
        return not changed

    def _is_plain(self, waiting: Waiting) -> bool:
        """Whether a line is enough for a decision: the entry is new, and the scan finds nothing in it."""
        return waiting.held.is_only_new and waiting not in self.named


def _by_server(waiting: Sequence[Waiting]) -> list[list[Waiting]]:
    return [list(of_server) for _, of_server in groupby(waiting, key=lambda each: each.server)]


def _wanted(plain: Sequence[Waiting]) -> bool:
    """Whether a person approves all of *plain*. The person may first see some in full by their numbers."""
    question = f"Approve {'these' if len(plain) > 1 else 'this'} of {plain[0].server}? y/N, or a number to see it whole"
    while True:
        answer = _answer(lambda: str(typer.prompt(question, default="n", show_default=False, err=True)), question)
        if answer.strip().isdecimal() and 1 <= int(answer) <= len(plain):
            _show(plain[int(answer) - 1])
        else:
            return answer.strip().lower() in ("y", "yes")


def _list(waiting: Sequence[Waiting]) -> None:
    """One line for each of *waiting*, which belong to one server."""
    columns = ("#", "name", "class", "why", "what it says")
    shown = table(f"{legible(waiting[0].server)} ({len(waiting)})", columns, numbers=("#",), flexible="what it says")
    for number, each in enumerate(waiting, start=1):
        found = [each.held.why.value, *dict.fromkeys(finding.rule for finding in each.held.findings)]
        shown.add_row(str(number), line(each.held.label), each.safety, line(", ".join(found)), line(_opening(each.now)))
    stdout().print(shown)


def _opening(entry: JsonObject) -> str:
    """The first line of the description, and how much more there is to read."""
    frontmatter = as_object(entry.get("frontmatter")) or {}
    texts = (entry.get("description"), entry.get("instructions"), frontmatter.get("description"))
    text = str(next(filter(None, texts), "")).strip()
    first = text.partition("\n")[0]
    shown = first if len(first) <= _MOST_SHOWN else f"{first[:_MOST_SHOWN]}…"
    more = len(text) - min(len(first), _MOST_SHOWN)
    return f"{shown} (+{more:,} characters)" if more else shown


def _revoke(config: GatewayConfig, store: PinStore, targets: Sequence[str], *, yes: bool) -> int:
    if not targets:
        raise BadSettingError("--revoke needs the names of definitions: SERVER or SERVER__TOOL")
    from toolsearch.gateway.approvals.waiting import local_person
    from toolsearch.gateway.trust.verdicts import Kind, shown_name

    servers = [each.name for each in config.upstreams]
    approved = [(server, kind, name) for server in servers for kind in Kind for name in store.approved(server, kind)]
    chosen = [each for each in approved if not {each[0], shown_name(*each)}.isdisjoint(targets)]
    for target in targets:
        if not any(target in (each[0], shown_name(*each)) for each in chosen):
            raise UnknownToolError(target, near=near_names(target, [shown_name(*each) for each in approved]))
    stdout().print(line("Approved: " + ", ".join(shown_name(*each) for each in chosen)))
    if not yes and not _confirmed("Withdraw these approvals?"):
        return ExitCode.NOTHING
    for server, kind, name in chosen:
        store.revoke(server, name, local_person(), kind)
    return ExitCode.OK


def _is_on_a_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _confirmed(question: str) -> bool:
    return _answer(lambda: typer.confirm(question, default=False, err=True), question)


def _answer(ask: Callable[[], T], question: str) -> T:
    try:
        return ask()
    except typer.Abort as abort:
        if isinstance(abort.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from abort
        raise BadSettingError(f"nobody answers {question!r} here: run it in a terminal, or give --yes") from abort


def _named(targets: Sequence[str], waiting: Sequence[Waiting], servers: Sequence[str]) -> list[Waiting]:
    """The waiting entries that *targets* name one by one: by the label that people are shown, else by name. A prompt
    that has the name of a tool is named by its label alone.

    Raises UnknownToolError for a target that is neither an entry nor one of *servers*.
    """
    labels = {each.held.label for each in waiting}
    known = {*servers, *labels, *(each.held.name for each in waiting)}
    for target in targets:
        if target not in known:
            raise UnknownToolError(target, near=near_names(target, sorted(known)))
    names = {*targets} - labels
    return [each for each in waiting if each.held.label in targets or each.held.name in names]


def _show(waiting: Waiting) -> None:
    held = waiting.held
    console = stdout()
    console.print(line(f"{held.label}: {held.why.value}", "bold"))
    if against := reasons(held):
        console.print(line(against, "yellow"))
    print_text("\n".join(waiting.difference))
    console.print()
