"""Changing the servers in the gateway's file by commands."""

import getpass
import json
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from toolsearch.cli import main
from toolsearch.documents.editing import edit, text_of
from toolsearch.errors import SourceError
from toolsearch.gateway.audit import AUDIT_FILE
from toolsearch.storage.sqlite.stores import SqliteAuditLog

BEFORE = """{
    "other": [1,  2],
    "mcpServers": {
        "git": {"command": "uvx", "args": ["mcp-server-git"], "unknown": 1},
        "mail": {
            "command": "mail"
        }
    },
    "toolsearch": {"servers": {"git": {"lazy": false}}, "rules": {"deny": ["server:git"]}}
}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "mcp.json"
    path.write_text(BEFORE)
    return path


@pytest.fixture
def run(path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    def run(command: str, *arguments: str) -> tuple[int, str]:
        code = main(["gateway", command, "--config", str(path), *arguments])
        return code, capsys.readouterr().err

    return run


def servers(path: Path) -> Any:
    return json.loads(path.read_text())["mcpServers"]


def test_pause_and_resume_change_one_word_of_the_file(run, path):
    assert run("pause", "git") == (0, f"wrote {path}; a running gateway follows within seconds\n")
    paused = BEFORE.replace('{"command": "uvx"', '{"disabled": true, "command": "uvx"')
    assert path.read_text() == paused
    assert run("pause", "git") == (0, "It is so already.\n")
    assert run("resume", "mail") == (0, "It is so already.\n")
    assert run("resume", "git")[0] == 0
    assert path.read_text() == paused.replace("true", "false")
    run("pause", "mail")
    assert servers(path)["mail"] == {"disabled": True, "command": "mail"}


def test_remove_takes_the_server_and_its_settings_and_leaves_rules(run, path):
    assert run("remove", "git")[0] == 0
    after = json.loads(path.read_text())
    assert after["mcpServers"] == {"mail": {"command": "mail"}}
    assert after["toolsearch"] == {"servers": {}, "rules": {"deny": ["server:git"]}}
    assert '"other": [1,  2],' in path.read_text()


def test_add_takes_a_command_or_an_address(run, path):
    assert run("add", "time", "-e", "ZONE=a=b", "--", "uvx", "mcp-server-time", "--local-timezone", "UTC")[0] == 0
    assert run("add", "crm", "https://crm.example/mcp", "-H", "Authorization: Bearer ${PATH}")[0] == 0
    assert list(servers(path)) == ["git", "mail", "time", "crm"]
    assert servers(path)["time"] == {
        "command": "uvx",
        "args": ["mcp-server-time", "--local-timezone", "UTC"],
        "env": {"ZONE": "a=b"},
    }
    assert servers(path)["crm"] == {
        "url": "https://crm.example/mcp",
        "headers": {"Authorization": "Bearer ${PATH}"},
    }


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("add", "git", "--", "x"), "there is a server 'git' already"),
        (("add", "git__hub", "--", "x"), "the same names as those of 'git'"),
        (("add", "new", "--", "x", "${NO_SUCH_VARIABLE}"), "NO_SUCH_VARIABLE is not set"),
        (("add", "new", "http://"), "name a host"),
        (("add", "new", "https://a.example", "-e", "A=s3cret"), "--env for one with a command"),
        (("add", "new", "-H", "A: s3cret", "--", "x"), "--header is for a server with an address"),
        (("add", "new", "-e", "s3cret", "--", "x"), "NAME=VALUE is wanted"),
        (("remove", "gti"), "there is no server 'gti'; did you mean git?"),
        (("pause", "nobody"), "there is no server 'nobody'"),
        (("resume", "nobody"), "there is no server 'nobody'"),
    ],
)
def test_a_mistake_leaves_the_file_as_it_is(run, path, arguments, reason):
    code, err = run(*arguments)
    assert code == 2
    assert reason in err
    assert "s3cret" not in err
    assert path.read_text() == BEFORE
    assert list(path.parent.iterdir()) == [path]


def test_a_file_that_is_not_json_is_left_as_it_is(run, path):
    path.write_text("mcpServers:\n  git: {command: git}\n")
    code, err = run("pause", "git")
    assert (code, "is left as it is: it is malformed" in err) == (3, True)
    assert list(path.parent.iterdir()) == [path]


def test_a_file_of_vs_code_is_changed_where_its_servers_are(run, path):
    path.write_text('{"servers": {"git": {"command": "git"}}}')
    run("pause", "git")
    run("add", "time", "--", "time")
    assert json.loads(path.read_text()) == {
        "servers": {"git": {"disabled": True, "command": "git"}, "time": {"command": "time", "args": []}}
    }


def test_add_makes_the_file_for_its_user_alone_and_the_mode_of_a_file_that_is_there_stays(run, path):
    path.chmod(0o640)
    run("pause", "git")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    path.unlink()
    assert run("add", "git", "--", "git")[0] == 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def recorded(folder: Path) -> list[tuple[str, str, str, str]]:
    with closing(SqliteAuditLog(folder / AUDIT_FILE)) as log:
        return [(each.who, each.action, each.subject, each.server) for each in log.records(limit=20)]


@pytest.fixture
def state(path: Path) -> Path:
    """The folder of the audit of a gateway whose other settings cannot be read here: a variable is not set."""
    folder = path.parent / "state"
    principals = {"ann": {"token": "${NO_SUCH_VARIABLE}"}}
    section = {"audit": {}, "stateDir": str(folder), "principals": principals}
    path.write_text(json.dumps({"mcpServers": {"git": {"command": "git"}}, "toolsearch": section}))
    return folder


def test_the_audit_says_which_user_of_the_system_made_a_change_and_what_an_added_server_is(run, path, state):
    assert [run(action, "git")[0] for action in ("pause", "pause", "resume", "remove")] == [0] * 4
    before = json.loads(path.read_text())
    before["toolsearch"].pop("principals")
    path.write_text(json.dumps(before))
    assert run("add", "crm", "https://u:s3cret@crm.example/s3cret")[0] == 0
    assert recorded(state) == [
        (getpass.getuser(), f"{action} server", subject, server)
        for action, subject, server in (
            *((action, "git", "git") for action in ("pause", "resume", "remove")),
            ("add", "crm: https://crm.example", "crm"),
        )
    ]


def test_the_audit_tells_which_servers_an_import_added(run, path, state, monkeypatch):
    monkeypatch.chdir(path.parent)
    client = path.parent / ".cursor" / "mcp.json"
    client.parent.mkdir()
    client.write_text(
        json.dumps({"mcpServers": {"hub": {"command": "npx", "args": ["s3cret"]}, "cal": {"command": "c"}}})
    )
    options = ("--home", str(path.parent), "--from", "cursor")
    assert run("import", *options)[0] == 0
    assert not state.exists()

    assert run("import", "--write", *options)[0] == 0
    assert recorded(state) == [
        (getpass.getuser(), "add server", "cal: c", "cal"),
        (getpass.getuser(), "add server", "hub: npx", "hub"),
    ]


@pytest.mark.parametrize("arguments", [("pause", "git"), ("import", "--write")])
def test_a_change_that_cannot_be_recorded_is_not_made(run, path, state, arguments, monkeypatch):
    monkeypatch.setenv("HOME", str(path.parent))
    monkeypatch.chdir(path.parent)
    (path.parent / ".mcp.json").write_text('{"mcpServers": {"cal": {"command": "c"}}}')
    state.write_text("a file where the folder belongs")
    before = path.read_text()
    code, err = run(*arguments)
    assert (code != 0, "audit" in err, path.read_text()) == (True, True, before)


def test_without_an_audit_nothing_is_recorded(run, path):
    assert run("pause", "git")[0] == 0
    assert list(path.parent.rglob(AUDIT_FILE)) == []


def test_edits_in_threads_lose_nothing(path):
    path.write_text("")
    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(lambda each: edit(path, lambda text: f"{text}{each};"), range(40)))
    assert sorted(map(int, text_of(path).split(";")[:-1])) == list(range(40))


def test_what_another_program_has_written_meanwhile_stays(path):
    def change(text: str) -> str:
        path.write_text("theirs")
        return f"{text} "

    with pytest.raises(SourceError, match="another program has just changed it"):
        edit(path, change)
    assert path.read_text() == "theirs"
    assert edit(path, str.upper)


def test_a_command_that_was_killed_while_it_wrote_is_named(path, monkeypatch):
    monkeypatch.setattr("toolsearch.documents.editing._MOST_WAITS", 0)
    stale = path.with_name(".mcp.json.new")
    stale.touch()
    with pytest.raises(SourceError, match=r"if none is, delete .*\.mcp\.json\.new"):
        edit(path, str.upper)
    assert stale.exists()
    assert path.read_text() == BEFORE
