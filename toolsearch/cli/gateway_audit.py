"""``toolsearch gateway audit``: shows, exports and verifies the records of calls and of decisions."""

from __future__ import annotations

import asyncio
import csv
import os
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from heapq import merge
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from toolsearch.cli.command_line import ExitCode
from toolsearch.cli.options import ConfigOption, JsonOption, read_config
from toolsearch.cli.output import line, print_json, stdout, table
from toolsearch.errors import BadSettingError

if TYPE_CHECKING:
    from pathlib import Path

    from toolsearch.gateway.server_entries import Note
    from toolsearch.gateway.settings import GatewaySettings
    from toolsearch.storage.audit import AuditCheck, AuditLog, AuditRecord

_COLUMNS: Final[tuple[str, ...]] = (
    "at",
    "who",
    "action",
    "subject",
    "server",
    "outcome",
    "seconds",
    "session",
    "request_id",
    "digest",
)
_SHOWN: Final[tuple[str, ...]] = ("at", "who", "action", "subject", "outcome", "seconds")
_MOST_SHOWN: Final = 50
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")  # spreadsheets run what begins so


def audit(
    *,
    config: ConfigOption = None,
    as_json: JsonOption = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print all records as CSV.")] = False,
    since: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Only records of the last so long, such as 12h or 30d.")
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Verify that no record was changed or taken out; exit code 1 if one was.")
    ] = False,
) -> int:
    """Show the newest records of the audit: calls, changes of the configuration, approvals and withdrawals.

    With --json or --csv, print them all. Calls are only recorded where the section audit is set. The records are a
    chain: the digest of each covers the one before it. Keep the newest digest elsewhere: a chain that somebody has
    written anew does not contain it.
    """
    if as_json and as_csv:
        raise BadSettingError("give either --json or --csv, not both")
    from toolsearch.setting_types import parse_duration_s

    settings = read_config(config).settings
    try:
        since_s = time.time() - parse_duration_s(since) if since is not None else 0.0
    except ValueError as error:
        raise BadSettingError(f"--since: {error}") from error
    with ExitStack() as closing:
        logs = _opened(settings, closing)
        if verify:
            return _verify(logs, as_json=as_json)
        kept = merge(*(log.all_of() for log in logs.values() if log is not None), key=_AT)
        records = (each for each in kept if each.at_s >= since_s)
        _show(records, as_json=as_json, as_csv=as_csv)
    return ExitCode.OK


_AT: Final = attrgetter("at_s")


async def record(settings: GatewaySettings, action: str, subject: str, *, server: str) -> None:
    """Record what the user of this process is about to do, if *settings* ask for an audit. Raises StorageError."""
    if settings.audit is None:
        return
    from toolsearch.gateway.approvals.waiting import local_person
    from toolsearch.gateway.audit import GatewayAudit

    kept = GatewayAudit.of(settings.audit, settings.state_folder)
    try:
        await kept.note(local_person(), action, subject, server=server)
    finally:
        await kept.aclose()


def record_in(path: Path) -> Note:
    """How changes of the servers in the gateway's file at *path* are recorded. Raises StorageError as it records."""
    from toolsearch.documents.editing import text_of
    from toolsearch.documents.json_text import JsonText
    from toolsearch.gateway.config_file import audit_settings

    def note(action: str, subject: str, *, server: str) -> None:
        settings = audit_settings(JsonText().document(text_of(path)), os.environ, folder=path.parent)
        asyncio.run(record(settings, action, subject, server=server))

    return note


def _opened(settings: GatewaySettings, closing: ExitStack) -> dict[str, AuditLog | None]:
    """The logs that are there, and those that should be, by the name of the file."""
    from toolsearch.gateway.audit import AUDIT_FILE
    from toolsearch.storage.decisions import APPROVALS_FILE
    from toolsearch.storage.sqlite.stores import SqliteAuditLog

    files = [settings.state_folder / name for name in (AUDIT_FILE, APPROVALS_FILE)]
    logs: dict[str, AuditLog | None] = {
        file.name: closing.enter_context(SqliteAuditLog(file)) for file in files if file.is_file()
    }
    return logs if settings.audit is None else {AUDIT_FILE: None, **logs}


def _verify(logs: dict[str, AuditLog | None], *, as_json: bool) -> int:
    from toolsearch.storage.audit import AuditCheck as Check

    gone = Check(0, "", "the file is not there")
    checks = {name: gone if log is None else log.verify() for name, log in logs.items()}
    if as_json:
        print_json({"logs": [{"file": name, **check._asdict()} for name, check in checks.items()]})
    else:
        for name, check in checks.items():
            stdout().print(line(f"{name}: {_in_words(check)}"), soft_wrap=True)
    return ExitCode.NOTHING if any(check.fault for check in checks.values()) else ExitCode.OK


def _in_words(check: AuditCheck) -> str:
    if not check.records and not check.fault:
        return "nothing has been recorded yet"
    gone = f"; {check.pruned:,} older ones were deleted by age" if check.pruned else ""
    sound = f"{check.records:,} records are as they were written{gone}"
    return f"{check.fault}; {sound}" if check.fault else f"{sound}; the newest digest is {check.head}"


def _show(records: Iterator[AuditRecord], *, as_json: bool, as_csv: bool) -> None:
    if as_json:
        print_json({"records": [_row(each) for each in records]})
    elif as_csv:
        writer = csv.DictWriter(sys.stdout, [*_COLUMNS], lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: _cell(value) for name, value in _row(each).items()} for each in records)
    else:
        newest = deque(records, _MOST_SHOWN)
        shown = table("", _SHOWN, numbers=("seconds",), flexible="subject")
        for each in reversed(newest):
            shown.add_row(*(line(str(_row(each)[name])) for name in _SHOWN))
        stdout().print(shown if newest else "Nothing is recorded.")


def _row(record: AuditRecord) -> dict[str, Any]:
    at = datetime.fromtimestamp(record.at_s, UTC).isoformat(timespec="microseconds")
    return {"at": at, **{name: getattr(record, name) for name in _COLUMNS[1:]}}


def _cell(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
