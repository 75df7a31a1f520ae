"""Showing, exporting and verifying the audit of a gateway by a command."""

import csv
import io
import json
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from toolsearch.cli import main
from toolsearch.cli.gateway import login
from toolsearch.errors import StorageError
from toolsearch.gateway.audit import AUDIT_FILE
from toolsearch.storage.audit import AuditRecord
from toolsearch.storage.decisions import APPROVALS_FILE
from toolsearch.storage.sqlite.stores import SqliteAuditLog, SqlitePins

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """The command, over two calls and an approval that was made between them."""
    config = tmp_path / "mcp.json"
    section = {"stateDir": str(tmp_path), "audit": {}}
    config.write_text(json.dumps({"mcpServers": {"git": {"command": "git"}}, "toolsearch": section}))
    now_s = time.time()
    with SqliteAuditLog(tmp_path / AUDIT_FILE) as log, SqlitePins(tmp_path / APPROVALS_FILE) as pins:
        log.append(AuditRecord(now_s - 90_000, "ann", "call", "git__log", "done", "", "git", "s1", 0.25, "req_1"))
        pins.revoke("git@1", "log", by="ben", at_s=now_s - 80_000)
        log.append(AuditRecord(now_s - 60, "ann", "call", "=cmd|x", "unknown_tool", request_id="req_2"))

    def run(*options: str) -> tuple[int, str, str]:
        code = main(["gateway", "audit", "--config", str(config), *options])
        return code, *capsys.readouterr()

    return run


def test_the_newest_records_are_shown_first(run: Run) -> None:
    code, shown, _ = run()

    places = [shown.index(word) for word in ("unknown_tool", "was not approved", "git__log")]
    assert (code, places) == (0, sorted(places))


def test_all_records_of_both_files_are_exported_in_their_order(run: Run) -> None:
    records: list[dict[str, Any]] = json.loads(run("--json")[1])["records"]
    rows = list(csv.DictReader(io.StringIO(run("--csv")[1])))

    assert [each["action"] for each in records] == ["call", "revoke", "call"]
    assert {key: records[0][key] for key in ("who", "subject", "server", "outcome", "seconds", "session")} == {
        "who": "ann",
        "subject": "git__log",
        "server": "git",
        "outcome": "done",
        "seconds": 0.25,
        "session": "s1",
    }
    assert [each["digest"] for each in rows] == [each["digest"] for each in records]
    assert all(len(each["digest"]) == 64 for each in records)


def test_a_cell_that_a_spreadsheet_would_run_is_a_text(run: Run) -> None:
    rows = list(csv.DictReader(io.StringIO(run("--csv")[1])))

    assert rows[2]["subject"] == "'=cmd|x"


def test_only_records_of_the_last_so_long_are_given(run: Run) -> None:
    records = json.loads(run("--json", "--since", "1d")[1])["records"]

    assert [each["request_id"] for each in records] == ["", "req_2"]


def test_a_sound_chain_is_verified_and_its_newest_digest_is_told(run: Run) -> None:
    newest = json.loads(run("--json")[1])["records"][-1]["digest"]
    code, told, _ = run("--verify")

    assert code == 0
    assert f"audit.db: 2 records are as they were written; the newest digest is {newest}" in told
    assert "trust.db: 1 records" in told


@pytest.mark.parametrize("file", [AUDIT_FILE, APPROVALS_FILE])
def test_a_changed_record_of_either_file_is_found(run: Run, tmp_path: Path, file: str) -> None:
    with closing(sqlite3.connect(tmp_path / file)) as database:
        database.execute("UPDATE audit SET who = 'eve' WHERE position = 1")
        database.commit()
    code, told, _ = run("--verify")
    checks = {each["file"]: each["fault"] for each in json.loads(run("--verify", "--json")[1])["logs"]}

    assert code == 1
    assert f"{file}: record 1 was changed" in told
    assert [name for name, fault in checks.items() if fault] == [file]


def test_an_audit_that_is_gone_is_found(run: Run, tmp_path: Path) -> None:
    (tmp_path / AUDIT_FILE).unlink()
    code, told, _ = run("--verify")

    assert (code, "audit.db: the file is not there" in told) == (1, True)
    assert not (tmp_path / AUDIT_FILE).exists()


@pytest.mark.parametrize("tables", [["audit"], ["audit", "audit_chains"]])
def test_an_audit_whose_records_were_all_removed_is_not_one_without_records(
    run: Run, tmp_path: Path, tables: list[str]
) -> None:
    with closing(sqlite3.connect(tmp_path / AUDIT_FILE)) as database:
        for table in tables:
            database.execute(f"DELETE FROM {table}")  # noqa: S608
        database.commit()
    code, told, _ = run("--verify")

    assert code == 1
    assert "0 records are as they were written" in told
    assert "nothing has been recorded" not in told


def test_an_audit_in_which_nothing_was_ever_recorded_is_sound_and_says_so(run: Run, tmp_path: Path) -> None:
    (tmp_path / AUDIT_FILE).unlink()
    SqliteAuditLog(tmp_path / AUDIT_FILE).close()
    code, told, _ = run("--verify")

    assert (code, "audit.db: nothing has been recorded yet" in told) == (0, True)


@pytest.mark.parametrize(
    ("options", "reason"), [(["--json", "--csv"], "not both"), (["--since", "soon"], "--since: 'soon' is no duration")]
)
def test_options_that_cannot_be_used_are_refused(run: Run, options: list[str], reason: str) -> None:
    code, _, told = run(*options)

    assert (code, reason in told) == (2, True)


@pytest.mark.parametrize("section", [{"audit": {}}, {}])
def test_a_login_is_recorded_before_it_is_made_where_there_is_an_audit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, section: dict[str, Any]
) -> None:
    file, kept = tmp_path / "mcp.json", tmp_path / "state" / AUDIT_FILE
    seen: list[bool] = []

    async def log_in(*_: object, **__: object) -> None:
        seen.append(_is_there(kept))

    monkeypatch.setattr("toolsearch.upstreams.logins.login", log_in)

    def login_into(folder: Path) -> None:
        servers = {"git": {"url": "https://git.example/mcp"}}
        file.write_text(json.dumps({"mcpServers": servers, "toolsearch": {"stateDir": str(folder), **section}}))
        login("git", config=file)

    login_into(kept.parent)
    assert seen == [bool(section)]
    if section:
        with SqliteAuditLog(kept) as log:
            assert [(each.action, each.subject, each.server) for each in log.records(limit=9)] == [
                ("log in", "git", "git")
            ]
        with pytest.raises(StorageError):
            login_into(kept)
        assert seen == [True]


def _is_there(path: Path) -> bool:
    return path.exists()
