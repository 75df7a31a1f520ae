"""Edits of the configuration file while the gateway runs."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.fake_servers import LEGACY, FakeConnection, FakeServer, call, text
from toolsearch.cli import main
from toolsearch.gateway.changes import ListChanges
from toolsearch.gateway.config_file import ConfigFile
from toolsearch.gateway.gateway import Gateway

GIT: dict[str, Any] = {"command": "git"}
MAIL: dict[str, Any] = {"command": "mail"}
PLAIN = {"passThrough": {"maxTools": 0}, "trust": {"suspicious": "allow", "changed": "allow"}}


class Edited:
    """A gateway of fake servers whose file a test edits. It looks at the file when the test says so."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.path = folder / "mcp.json"
        self.state = str(folder / "state")
        self.write(git=GIT, mail=MAIL)
        self.file = ConfigFile(self.path, environment)
        self.gateway = Gateway(self.file.read(), upstreams=FakeServer, file=self.file, trust_poll_s=1_000)

    def write(self, section: dict[str, Any] | None = None, **servers: Any) -> None:
        document = {"mcpServers": servers, "toolsearch": {"stateDir": self.state, **PLAIN, **(section or {})}}
        self.path.write_text(json.dumps(document))

    async def look(self) -> None:
        """Look often enough for a content to count."""
        for _ in range(2):
            await self.file.look(self.gateway.reconfigure)

    async def edit(self, section: dict[str, Any] | None = None, **servers: Any) -> None:
        self.write(section, **servers)
        await self.look()

    @property
    def servers(self) -> Any:
        return self.gateway.upstreams

    @property
    def tools(self) -> list[str]:
        return sorted(self.gateway.engine.catalog.names())


@pytest.fixture
async def edited(tmp_path: Path) -> AsyncIterator[Edited]:
    made = Edited(tmp_path, {"KEY": "s3cret"})
    async with made.gateway:
        await made.servers["git"].lists("log", "push")
        await made.servers["mail"].lists("send")
        yield made


async def test_an_added_server_starts_and_a_removed_or_paused_one_is_gone(edited: Edited) -> None:
    git = edited.servers["git"]
    await edited.edit(git=GIT, mail={**MAIL, "disabled": True}, time={"command": "time"})
    await edited.servers["time"].lists("now")
    assert edited.tools == ["git__log", "git__push", "time__now"]

    await edited.edit(git=GIT, mail=MAIL)
    await edited.servers["mail"].lists("send")
    assert edited.tools == ["git__log", "git__push", "mail__send"]
    assert edited.servers["git"] is git
    assert edited.file.problem == ""


async def test_a_changed_server_is_connected_anew_and_the_others_are_left_alone(edited: Edited) -> None:
    """Other variables, headers and settings keep the tools; another command is another server."""
    git, mail = edited.servers["git"], edited.servers["mail"]
    await edited.edit(git=GIT, mail={**MAIL, "env": {"TOKEN": "${KEY}"}})
    with_key = edited.servers["mail"]
    assert with_key is not mail
    await edited.edit({"servers": {"mail": {"callTimeoutS": 5}}}, git=GIT, mail={**MAIL, "env": {"TOKEN": "${KEY}"}})
    assert edited.servers["mail"] is not with_key
    assert edited.tools == ["git__log", "git__push", "mail__send"]

    await edited.edit(git=GIT, mail={"command": "elsewhere"})
    assert edited.tools == ["git__log", "git__push"]
    assert edited.servers["git"] is git


async def test_an_edit_that_says_the_same_in_other_words_touches_nothing(edited: Edited) -> None:
    before = dict(edited.servers)
    await edited.edit({"servers": {"git": {"lazy": True}}}, mail={**MAIL, "args": [], "disabled": False}, git=GIT)
    assert dict(edited.servers) == before


async def test_a_content_counts_once_two_looks_have_found_it(edited: Edited) -> None:
    """The first look may have come in the middle of a write."""
    edited.write(git=GIT)
    await edited.file.look(edited.gateway.reconfigure)
    assert list(edited.servers) == ["git", "mail"]
    edited.write(git=GIT, time=MAIL)
    await edited.file.look(edited.gateway.reconfigure)
    assert list(edited.servers) == ["git", "mail"]
    await edited.file.look(edited.gateway.reconfigure)
    assert list(edited.servers) == ["git", "time"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ('{"mcpServers": {"git": {"comm', "is malformed"),
        ("", "is malformed"),
        ("[]", "must be an object"),
        ("{}", "it is no MCP configuration"),
        ('{"mcpServers": {}, "toolsearch": {"rules": {"deny": ["nonsense:x"]}}}', "rules.deny"),
        ('{"mcpServers": {}, "toolSearch": {}}', "'toolSearch' would be ignored"),
        ("\udcff", "is not UTF-8"),
        (None, "cannot be read"),
    ],
)
async def test_a_file_that_cannot_be_used_changes_nothing_and_says_why_until_it_can(
    edited: Edited, content: str | None, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    before, good = dict(edited.servers), edited.path.read_bytes()
    edited.path.unlink()
    if content is not None:
        edited.path.write_bytes(content.encode(errors="surrogateescape"))
    await edited.look()
    await edited.look()
    assert dict(edited.servers) == before
    assert reason in edited.gateway.status().warnings[0]
    assert [reason in record.getMessage() for record in caplog.records] == [True]

    edited.path.write_bytes(good)
    await edited.look()
    assert edited.gateway.status().warnings == ()


async def test_what_is_only_read_at_the_start_is_named_and_nothing_else_of_that_edit_counts(edited: Edited) -> None:
    """A new server could otherwise be used by those whom the new `principals` would have kept from it."""
    principals = {"ann": {"tokenSha256": "a" * 64, "allow": ["server:git"]}}
    await edited.edit({"principals": principals, "search": {"limit": 3}, "rules": {"deny": ["git__log"]}}, git=GIT)
    assert edited.file.problem.endswith("goes on as before: restart for: principals, search")
    assert edited.tools == ["git__log", "git__push", "mail__send"]

    await edited.edit({"rules": {"deny": ["git__log"]}}, git=GIT)
    assert edited.tools == ["git__push"]
    assert edited.file.problem == ""


@pytest.mark.parametrize(
    ("servers", "reason"),
    [
        ({"git": {"command": ""}}, "'git' could not be used: 'command' must be"),
        ({"git": {**GIT, "env": {"A": "${UNSET}"}}}, "the environment variable UNSET is not set"),
        ({"git__hub": MAIL, "git": GIT}, "its tools could have the same names as those of 'git__hub'"),
    ],
)
async def test_a_running_server_that_could_not_be_used_any_more_runs_on(
    edited: Edited, servers: Any, reason: str
) -> None:
    before = dict(edited.servers)
    await edited.edit(**servers)
    assert reason in edited.file.problem
    assert dict(edited.servers) == before


async def test_a_new_server_that_cannot_be_used_is_left_out_as_at_the_start(
    edited: Edited, caplog: pytest.LogCaptureFixture
) -> None:
    await edited.edit(git=GIT, mail=MAIL, time={"command": "time", "env": {"A": "${UNSET}"}}, news={"command": "news"})
    assert list(edited.servers) == ["git", "mail", "news"]
    (warning,) = edited.gateway.status().warnings
    assert warning.startswith("server 'time' is left out: the environment variable UNSET is not set")
    assert [record.getMessage() for record in caplog.records] == [warning]


async def test_rules_hold_for_what_is_listed_already(edited: Edited) -> None:
    await edited.edit({"rules": {"deny": ["git__log"]}}, git=GIT, mail=MAIL)
    assert edited.tools == ["git__push", "mail__send"]
    assert text(await call(edited.gateway, "callToolDestructive", {"name": "git__log"})).startswith("no tool named")
    await edited.edit({"rules": {"allow": ["git__log"]}}, git=GIT, mail=MAIL)
    assert edited.tools == ["git__log"]


async def test_a_server_goes_before_the_rule_that_has_denied_it(edited: Edited) -> None:
    """Nobody may find a removed server's tools, not even for a moment."""
    seen: list[str] = []
    await edited.edit({"rules": {"deny": ["mail__*", "git__*"]}}, git=GIT, mail=MAIL)
    edited.gateway.registry.on_change(lambda: seen.extend(edited.tools))
    await edited.edit(git={"command": "elsewhere"})
    assert list(edited.servers) == ["git"]
    assert seen == []


async def test_clients_are_told_of_a_server_that_is_gone(edited: Edited) -> None:
    changes, connection = ListChanges(edited.gateway), FakeConnection()
    await edited.edit({"exposure": {}}, git=GIT, mail=MAIL)
    await edited.servers["mail"].lists("send", prompts=({"name": "greet"},))
    await changes.follow(connection, LEGACY)  # type: ignore[arg-type]
    await edited.edit(git=GIT)
    assert changes._telling is not None
    await changes._telling
    assert connection.told_of_prompts == 1


async def test_servers_that_a_program_has_added_stay(edited: Edited) -> None:
    added = edited.gateway.config.upstreams[0]
    await edited.gateway.servers.remove("git")
    await edited.edit(mail=MAIL)
    await edited.gateway.servers.add(added)
    await edited.edit()
    assert list(edited.servers) == ["git"]


async def test_the_file_is_followed_while_the_gateway_runs_and_a_change_is_finished_before_it_ends(
    tmp_path: Path,
) -> None:
    """A change that was broken off could leave a server running that nobody stops."""
    made = Edited(tmp_path, {})
    began, may_end, done = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def look(apply: Any) -> None:
        assert apply == made.gateway.reconfigure
        began.set()
        await may_end.wait()
        done.set()

    made.file.look = look  # type: ignore[method-assign]
    async with made.gateway:
        await began.wait()
        ending = asyncio.create_task(made.gateway.aclose())
        await asyncio.sleep(0)
        may_end.set()
        await ending
        assert done.is_set()


def test_the_status_of_a_gateway_is_shown_though_its_file_is_broken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (tmp_path / "mcp.json").write_text("{")
    assert main(["gateway", "status", "--config", str(tmp_path / "mcp.json")]) == 1
    out, err = capsys.readouterr()
    assert out == "No gateway runs.\n"
    assert "is malformed" in err
