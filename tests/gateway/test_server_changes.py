"""Changes of servers by the status page's API: the same as by commands, for operators alone, and in the audit."""

import asyncio
import getpass
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.gateway.test_decisions import ENVIRONMENT, HOST, OWN, PRINCIPALS, as_
from tests.kit.fake_servers import FakeServer
from toolsearch.cli import main
from toolsearch.gateway.audit import AUDIT_FILE
from toolsearch.gateway.config_file import ConfigFile
from toolsearch.gateway.gateway import Gateway
from toolsearch.gateway.http import http_app
from toolsearch.gateway.server_entries import ServerChange
from toolsearch.storage.sqlite.stores import SqliteAuditLog

GIT = {"command": "git", "env": {"TOKEN": "s3cret-value"}}


class Served:
    """A gateway with the servers git and mail in its file, and a program of the operator ann."""

    def __init__(self, folder: Path, *, allow_adding: bool) -> None:
        self.folder = folder
        self.path = folder / "mcp.json"
        section = {"stateDir": str(folder / "state"), "principals": PRINCIPALS, "audit": {}}
        section |= {"http": {"allowAdding": True}} if allow_adding else {}
        servers = {"git": GIT, "mail": {"command": "mail"}}
        self.path.write_text(json.dumps({"mcpServers": servers, "toolsearch": section}))
        file = ConfigFile(self.path, {**ENVIRONMENT, "KEY": "s3cret-value"})
        self.gateway = Gateway(file.read(), upstreams=FakeServer, file=file, trust_poll_s=1_000)
        self.app = http_app(self.gateway, host="127.0.0.1", port=8080)
        self.client = httpx2.AsyncClient(
            transport=httpx2.ASGITransport(self.app),
            base_url=f"http://{HOST}",
            headers={"authorization": f"Bearer {ENVIRONMENT['ANN']}"},
        )

    async def change(self, action: str, name: str = "", **more: Any) -> httpx2.Response:
        return await self.client.post("/servers.json", json={"action": action, "name": name, **more})

    @property
    def running(self) -> list[str]:
        return list(self.gateway.upstreams)

    async def listed(self) -> dict[str, bool]:
        shown = (await self.client.get("/servers.json")).json()
        return {each["name"]: each["is_paused"] for each in shown["servers"]}

    def noted(self) -> list[tuple[str, str, str]]:
        log = SqliteAuditLog(self.folder / "state" / AUDIT_FILE)
        try:
            return [(each.who, each.action, each.subject) for each in log.records(limit=20)]
        finally:
            log.close()


@asynccontextmanager
async def serving(folder: Path, *, allow_adding: bool = True) -> AsyncIterator[Served]:
    made = Served(folder, allow_adding=allow_adding)
    async with made.app.router.lifespan_context(made.app), made.client:
        yield made


async def test_an_operator_pauses_resumes_adds_and_removes_servers_and_each_is_in_effect_at_once(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path) as served:
        assert (await served.change("pause", "git")).status_code == 204
        assert (served.running, await served.listed()) == (["mail"], {"git": True, "mail": False})
        assert (await served.change("resume", "git")).status_code == 204
        assert sorted(served.running) == ["git", "mail"]
        entry = {"command": "time", "env": {"TOKEN": "${KEY}"}}
        assert (await served.change("add", "time", entry=entry)).status_code == 204
        assert (await served.change("remove", "mail")).status_code == 204
        assert sorted(served.running) == ["git", "time"]
        assert json.loads(served.path.read_text())["mcpServers"]["time"] == entry
        by_ann = [each for each in served.noted() if each[0] == "ann"]
        assert by_ann == [
            ("ann", f"{action} server", name)
            for action, name in (("pause", "git"), ("resume", "git"), ("add", "time: time"), ("remove", "mail"))
        ]


async def test_no_operator_adds_a_server_unless_the_file_allows_it(tmp_path: Path) -> None:
    """A server's command runs on the gateway's machine, and a token that reads metrics is an operator's."""
    async with serving(tmp_path, allow_adding=False) as served:
        before = served.path.read_bytes()
        assert (await served.client.get("/servers.json")).json()["may_add"] is False
        for entry in ({"command": "sh", "args": ["-c", "id"]}, {"url": "https://mcp.example/mcp"}):
            answer = await served.change("add", "new", entry=entry)
            assert (answer.status_code, answer.json()["error"]) == (400, "bad_setting")
            assert "toolsearch.http.allowAdding" in answer.json()["message"]
        assert (served.path.read_bytes(), sorted(served.running), served.noted()) == (before, ["git", "mail"], [])
        for action in ("pause", "resume", "reload", "remove"):
            assert (await served.change(action, "git" if action != "reload" else "")).status_code == 204
        assert served.running == ["mail"]
    (tmp_path / "allowed").mkdir()
    async with serving(tmp_path / "allowed") as served:
        assert (await served.client.get("/servers.json")).json()["may_add"] is True


@pytest.mark.parametrize(
    ("entry", "subject"),
    [
        ({"command": "uvx", "args": ["s3cret"], "env": {"A": "s3cret"}}, "new: uvx"),
        ({"url": "https://u:s3cret@mcp.example:8/s3cret?key=s3cret", "headers": {}}, "new: https://mcp.example:8"),
        ({"httpUrl": "https://mcp.example?key=s3cret"}, "new: https://mcp.example"),
        ({"url": "${KEY}?s3cret"}, "new: ${KEY}"),
        ({"type": "http", "command": "git", "url": "http://[::1]#s3cret"}, "new: git: http://[::1]"),
        ({"command": "x" * 100}, f"new: {'x' * 80}... (100 characters)"),
        ({"command": ["s3cret"], "disabled": True}, "new"),
    ],
)
def test_the_audit_names_what_an_added_server_runs_or_reaches_without_secrets(entry: Any, subject: str) -> None:
    assert ServerChange("add", "new", entry).subject == subject


async def test_the_file_is_read_again_on_request(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        assert await asyncio.to_thread(main, ["gateway", "pause", "git", "--config", str(served.path)]) == 0
        assert served.noted() == [(getpass.getuser(), "pause server", "git")]
        assert "git" in served.running
        assert (await served.change("reload")).status_code == 204
        assert served.running == ["mail"]
        assert ("ann", "reload", "mcp.json") in served.noted()


@pytest.mark.parametrize(
    ("name", "entry"),
    [
        ("git", {"command": "x"}),
        ("git__hub", {"command": "x"}),
        ("new", {}),
        ("new", {"command": 7}),
        ("new", {"url": "ftp://x"}),
        ("new", {"command": "x", "args": ["${NO_SUCH_VARIABLE}"]}),
    ],
)
async def test_a_bad_entry_is_refused_with_the_error_of_the_command_and_changes_nothing(
    tmp_path: Path, name: str, entry: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, value in ENVIRONMENT.items():
        monkeypatch.setenv(variable, value)
    async with serving(tmp_path) as served:
        before = served.path.read_bytes()
        answer = await served.change("add", name, entry=entry)
        assert (answer.status_code, answer.json()["error"]) == (400, "bad_setting")
        assert served.path.read_bytes() == before
        assert sorted(served.running) == ["git", "mail"]
        assert served.noted() == []
        if "command" in entry and isinstance(entry["command"], str):
            arguments = [entry["command"], *entry.get("args", [])]
            assert main(["gateway", "add", name, "--config", str(served.path), "--", *arguments]) == 2
            said = " ".join(capsys.readouterr().err.split())
            assert answer.json()["message"] in said


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"action": "pause", "name": "gti"}, 400),
        ({"action": "remove", "name": ""}, 400),
        ({"action": "add", "name": "new"}, 400),
        ({"action": "pause", "name": "git", "entry": {}}, 400),
        ({"action": "stop", "name": "git"}, 400),
        ({"action": "add", "name": "new", "entry": "x"}, 400),
        ({"action": "add", "name": "new", "entry": {"command": "x"}, "more": 1}, 400),
    ],
)
async def test_what_is_no_change_changes_nothing(tmp_path: Path, body: Any, status: int) -> None:
    async with serving(tmp_path) as served:
        before = served.path.read_bytes()
        assert (await served.client.post("/servers.json", json=body)).status_code == status
        assert (served.path.read_bytes(), served.noted()) == (before, [])


async def test_no_secret_of_an_entry_is_shown(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        entry = {
            "command": "time",
            "args": ["${NO_SUCH_VARIABLE}"],
            "env": {"A": "s3cret-value"},
            "url": "x://s3cret-value",
        }
        answers = [
            await served.client.get("/servers.json"),
            await served.client.get("/status.json"),
            await served.change("add", "time", entry=entry),
            await served.change("add", "time", entry={"command": ["s3cret-value"]}),
            await served.change("pause", "git"),
        ]
        assert not [each for each in answers if "s3cret" in each.text]


async def test_nobody_but_an_operator_changes_servers_and_only_from_our_page_or_by_a_program(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        body = {"action": "pause", "name": "git"}
        token = (await served.client.get("/servers.json")).json()["token"]
        tries = [
            ({"authorization": ""}, 401),
            ({"authorization": f"Bearer {ENVIRONMENT['BOB']}"}, 403),
            (as_("ANN", **OWN), 403),
            (as_("ANN", **{**OWN, "origin": "https://app.example"}, **{"x-toolsearch-token": token}), 403),
            (as_("EVE", **OWN, **{"x-toolsearch-token": token}), 403),
            (as_("ANN", **OWN, **{"x-toolsearch-token": token}), 204),
        ]
        for headers, status in tries:
            assert sorted(served.running) == ["git", "mail"]
            assert (await served.client.post("/servers.json", json=body, headers=headers)).status_code == status
        assert served.running == ["mail"]


async def test_a_read_only_file_is_not_changed(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        before = served.path.read_bytes()
        served.path.chmod(0o444)
        answer = await served.change("pause", "git")
        assert (answer.status_code, "read-only" in answer.json()["message"]) == (422, True)
        assert served.path.read_bytes() == before
        assert list(served.folder.glob(".*")) == []


async def test_a_file_that_somebody_has_just_broken_is_left_to_them(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        served.path.write_text("{")
        answer = await served.change("pause", "git")
        assert (answer.status_code, "mcp.json" in answer.json()["message"]) == (400, True)
        assert served.path.read_text() == "{"
        assert sorted(served.running) == ["git", "mail"]
        assert (await served.client.get("/servers.json")).status_code == 422


async def test_without_its_record_in_the_audit_no_server_is_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path) as served:

        async def full(*_: Any, **__: Any) -> None:
            from toolsearch.errors import StorageError

            raise StorageError("the disk is full")

        before = served.path.read_bytes()
        monkeypatch.setattr(served.gateway, "note", full)
        assert (await served.change("pause", "git")).status_code == 500
        assert served.path.read_bytes() == before
