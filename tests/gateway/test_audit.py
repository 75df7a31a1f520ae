"""The audit of a gateway: who called what, with which outcome, and no contents; a call without a record is refused."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mcp import MCPError

from tests.kit.clock import Clock
from tests.kit.fake_servers import FakeServer, Nobody, call, entry
from toolsearch.access.principals import Grant, Principal
from toolsearch.calling.hooks import Deny
from toolsearch.errors import Kept, StorageError
from toolsearch.gateway.audit import AUDIT_FILE, GatewayAudit
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.config_file import read_gateway_config
from toolsearch.gateway.gateway import Gateway
from toolsearch.gateway.status import CallEnd
from toolsearch.gateway.trust.verdicts import OpenGate
from toolsearch.storage.audit import AuditRecord
from toolsearch.storage.sqlite.stores import SqliteAuditLog
from toolsearch.tools.definition import Tool, ToolDefinition
from toolsearch.wire.mcp.eras import Era

NOW_S = 1_800_000_000.0
DAY_S = 86_400.0
ANN = Caller(Grant(Principal("ann")), Era.LEGACY, session_key="secret-session", request_id="req_1")
LOG = Tool(ToolDefinition("git__log", server="git"))
SECRET = "hunter2"


@asynccontextmanager
async def audited(folder: Path, *, is_on: bool = True, **options: Any) -> AsyncIterator[tuple[Gateway, Any]]:
    """A gateway over one fake server, and that server."""
    section = {
        "stateDir": str(folder),
        "passThrough": {"maxTools": 0},
        "trust": {"results": "allow"},
        **({"audit": {}} if is_on else {}),
    }
    config = read_gateway_config({"mcpServers": {"git": {"command": "none"}}, "toolsearch": section}, {})
    async with Gateway(config, upstreams=FakeServer, gate=OpenGate(), **options) as gateway:
        server: Any = gateway.upstreams["git"]
        needs = {"type": "object", "properties": {"path": {"type": "string"}}}
        await server.lists(entry("log") | {"inputSchema": needs}, "fail")
        yield gateway, server


def kept(folder: Path) -> list[AuditRecord]:
    with SqliteAuditLog(folder / AUDIT_FILE) as log:
        assert not log.verify().fault
        return log.records(limit=99)


def files(folder: Path) -> list[Path]:
    return list(folder.glob(f"{AUDIT_FILE}*"))


def told(records: list[AuditRecord]) -> list[tuple[str, str, str, str]]:
    return [(each.who, each.action, each.subject, each.outcome) for each in records]


async def test_a_call_is_recorded_before_it_is_sent_and_when_it_has_ended_without_its_contents(tmp_path: Path) -> None:
    async with audited(tmp_path) as (gateway, server):
        server.has["log"] = {"content": [{"type": "text", "text": SECRET}]}
        request, before = server.request, list[AuditRecord]()

        async def looks(asked: Any) -> dict[str, Any]:
            before.extend(await asyncio.to_thread(kept, tmp_path))
            answer: dict[str, Any] = await request(asked)
            return answer

        server.request = looks
        await call(gateway, "git__log", {"path": SECRET}, ANN)
    began, ended = kept(tmp_path)

    assert before == [began]
    assert told([began, ended]) == [("ann", "call", "git__log", "begun"), ("ann", "call", "git__log", "done")]
    assert {(each.server, each.request_id) for each in (began, ended)} == {("git", "req_1")}
    assert began.session == ended.session != ""
    assert (began.seconds, ended.seconds > 0) == (0.0, True)
    written = b"".join(each.read_bytes() for each in files(tmp_path))
    assert b"git__log" in written
    assert SECRET.encode() not in written
    assert b"secret-session" not in written


async def test_what_is_read_directly_is_recorded_like_a_call_by_the_name_of_the_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reference = {"ref": {"type": "ref/prompt", "name": "git__ask"}, "argument": {"name": "x", "value": SECRET}}
    async with audited(tmp_path) as (gateway, server):
        await server.lists(
            "log",
            prompts=({"name": "ask"},),
            resources=({"uri": "git:///it", "name": "it"},),
            resource_templates=({"uriTemplate": "git:///by/{id}", "name": "by-id"},),
        )
        server.has["ask"] = {"resultType": "input_required", "inputRequests": {}, "requestState": "x"}
        await gateway.read_resource(ANN, {"uri": f"git:///by/{SECRET}"}, Nobody())
        await gateway.content.get_prompt(replace(ANN, era=Era.MODERN), {"name": "git__ask"}, Nobody())
        await gateway.content.complete(ANN, reference, Nobody())
        with monkeypatch.context() as patch:
            patch.setattr(SqliteAuditLog, "append", _no_space)
            with pytest.raises(StorageError):
                await gateway.read_resource(ANN, {"uri": "git:///it"}, Nobody())
        sent = len(server.called)
        server.request = _breaks
        with pytest.raises(MCPError):
            await gateway.read_resource(ANN, {"uri": "git:///it"}, Nobody())

    assert sent == 3
    assert told(kept(tmp_path)) == [
        *(("ann", "resources/read", "git__by-id", outcome) for outcome in ("begun", "done")),
        *(("ann", "prompts/get", "git__ask", outcome) for outcome in ("begun", "input_required")),
        *(("ann", "completion/complete", "git__ask", outcome) for outcome in ("begun", "done")),
        ("ann", "resources/read", "git__it", "audit_store_error"),
        *(("ann", "resources/read", "git__it", outcome) for outcome in ("begun", "tool_failed")),
    ]
    assert SECRET.encode() not in b"".join(each.read_bytes() for each in files(tmp_path))


async def _breaks(request: Any) -> dict[str, Any]:
    request.admit()
    raise MCPError(-32603, "it broke")


async def test_how_calls_end_is_recorded_by_stable_codes(tmp_path: Path) -> None:
    """A call through a call tool is one of the tool; a refused one was not sent."""

    def deny(made: Any, _tool: Any, _context: Any) -> Any:
        return Deny("no") if made.arguments == {"path": "x"} else None

    async with audited(tmp_path, before=[lambda *asked: deny(*asked) or _allow()]) as (gateway, server):
        server.has["fail"] = {"content": [], "isError": True}
        await call(gateway, "callToolDestructive", {"name": "git__log", "arguments": {}}, ANN)
        await call(gateway, "git__fail", {}, ANN)
        await call(gateway, "git__log", {"path": 1}, ANN)
        await call(gateway, "git__log", {"path": "x"}, ANN)
        await call(gateway, "callToolRead", {"name": "n" * 1_000, "arguments": {}}, ANN)
        server.has["log"] = {"resultType": "input_required", "inputRequests": {}, "requestState": "x"}
        await call(gateway, "git__log", {}, replace(ANN, era=Era.MODERN))

    assert [(each.subject[:9], each.outcome) for each in kept(tmp_path)] == [
        *(("git__log", "begun"), ("git__log", "done")),
        *(("git__fail", "begun"), ("git__fail", "tool_failed")),
        ("git__log", "bad_arguments"),
        ("git__log", "call_denied"),
        ("n" * 9, "unknown_tool"),
        *(("git__log", "begun"), ("git__log", "input_required")),
    ]
    assert len(kept(tmp_path)[-3].subject) < 110


def _allow() -> Any:
    from toolsearch.calling.hooks import Allow

    return Allow()


async def test_a_call_that_is_cancelled_or_breaks_is_recorded(tmp_path: Path) -> None:
    async with audited(tmp_path) as (gateway, server):
        running = asyncio.Event()

        async def waits(_: object) -> None:
            running.set()
            await asyncio.Event().wait()

        async def breaks(_: object) -> None:
            raise RuntimeError(SECRET)

        server.request = waits
        task = asyncio.create_task(call(gateway, "git__log", {}, ANN))
        await running.wait()
        task.cancel()
        await asyncio.wait([task])
        server.request = breaks
        with pytest.raises(RuntimeError):
            await call(gateway, "git__log", {}, ANN)

    assert [each.outcome for each in kept(tmp_path)] == ["begun", "cancelled", "begun", "internal_error"]


async def test_a_call_that_cannot_be_recorded_is_refused_and_its_refusal_is_recorded_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise StorageError("no space left", Kept.AUDIT)

    async with audited(tmp_path) as (gateway, server):
        with monkeypatch.context() as patch:
            patch.setattr(SqliteAuditLog, "append", fails)
            refused = await asyncio.gather(*(call(gateway, "git__log", {}, ANN) for _ in range(3)))
        served = await call(gateway, "git__log", {}, ANN)

    assert [each["_meta"]["toolsearch/error"] for each in refused] == ["audit_store_error"] * 3
    assert "no space" not in str(refused)
    assert (served.get("isError"), len(server.called)) == (None, 1)
    assert [each.outcome for each in kept(tmp_path)] == ["audit_store_error"] * 3 + ["begun", "done"]


async def test_a_call_ends_and_is_not_sent_if_the_audit_breaks_in_another_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: object) -> None:
        raise RuntimeError("broken")

    async with audited(tmp_path) as (gateway, server):
        with monkeypatch.context() as patch:
            patch.setattr(SqliteAuditLog, "append", breaks)
            with pytest.raises(RuntimeError, match="broken"):
                await asyncio.wait_for(call(gateway, "git__log", {}, ANN), 20)

    assert server.called == []


async def test_a_gateway_does_not_start_without_its_audit(tmp_path: Path) -> None:
    (tmp_path / AUDIT_FILE).write_text("no database")
    with pytest.raises(StorageError, match="records of the audit"):
        async with audited(tmp_path):
            pass


async def test_without_the_section_there_is_no_file(tmp_path: Path) -> None:
    async with audited(tmp_path, is_on=False) as (gateway, _):
        await call(gateway, "git__log", {}, ANN)

    assert not files(tmp_path)


async def test_only_the_owner_can_read_the_file(tmp_path: Path) -> None:
    async with audited(tmp_path / "new"):
        modes = [each.stat().st_mode & 0o777 for each in files(tmp_path / "new")]

    assert set(modes) == {0o600}


async def test_calls_at_once_are_written_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batches: list[int] = []
    append = SqliteAuditLog.append
    monkeypatch.setattr(SqliteAuditLog, "append", lambda log, *new: batches.append(len(new)) or append(log, *new))
    async with audited(tmp_path) as (gateway, _):
        await asyncio.gather(*(call(gateway, "git__log", {}, ANN) for _ in range(40)))

    assert sum(batches) == len(kept(tmp_path)) == 80
    assert len(batches) <= 8


async def test_a_record_that_has_waited_a_moment_is_written_without_a_further_call(tmp_path: Path) -> None:
    audit = GatewayAudit(SqliteAuditLog(tmp_path / AUDIT_FILE), keep_days=1)
    audit.ended(ANN, CallEnd("git__log", None))
    async with asyncio.timeout(20):
        while not kept(tmp_path):  # noqa: ASYNC110  what another thread writes sets no event
            await asyncio.sleep(0.01)
    await audit.aclose()


async def test_what_is_too_old_is_deleted_and_the_rest_is_still_a_chain(tmp_path: Path) -> None:
    log = SqliteAuditLog(tmp_path / AUDIT_FILE)
    log.append(*(AuditRecord(NOW_S + day * DAY_S, "ann", "call", "git__log", "begun") for day in range(3)))
    audit = GatewayAudit(log, keep_days=2, clock=Clock(NOW_S + 3 * DAY_S))
    await audit.begins(ANN, LOG.definition)
    await audit.aclose()

    assert [each.at_s for each in kept(tmp_path)] == [NOW_S + day * DAY_S for day in (1, 2, 3, 3)]
    assert [each.action for each in kept(tmp_path)] == ["call", "call", "call", "prune"]


async def test_calls_wait_for_no_deletion_of_old_records_and_go_on_if_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    has_begun, may_go_on = threading.Event(), threading.Event()

    def fails(*_: object, **__: object) -> int:
        has_begun.set()
        may_go_on.wait(20)
        raise StorageError("no space left", Kept.AUDIT)

    monkeypatch.setattr(SqliteAuditLog, "prune", fails)
    audit = GatewayAudit(SqliteAuditLog(tmp_path / AUDIT_FILE), keep_days=2, clock=Clock(NOW_S))
    await audit.begins(ANN, LOG.definition)
    assert await asyncio.to_thread(has_begun.wait, 20)
    await audit.note("ann", "log in", "git")  # while it is under way
    may_go_on.set()
    await audit.aclose()

    assert [each.action for each in kept(tmp_path)] == ["call", "log in"]
    assert "could not be deleted" in caplog.text


async def test_changes_of_the_configuration_are_recorded_before_they_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with audited(tmp_path) as (gateway, _):
        rules = read_gateway_config(
            {"mcpServers": {"git": {"command": "none"}}, "toolsearch": {"rules": {"deny": ["git__log"]}}}, {}
        ).settings.rules
        changed = replace(gateway.config, settings=gateway.config.settings.model_copy(update={"rules": rules}))
        with monkeypatch.context() as patch:
            patch.setattr(SqliteAuditLog, "append", _no_space)
            with pytest.raises(StorageError):
                await gateway.reconfigure(changed)
        assert gateway.config.settings.rules != rules
        await gateway.reconfigure(changed)
        await gateway.reconfigure(replace(changed, upstreams=()))

    assert told(kept(tmp_path)) == [
        ("", "change configuration", "rules", "done"),
        ("", "change configuration", "mcpServers.git", "done"),
    ]


def _no_space(*_: object) -> None:
    raise StorageError("no space left", Kept.AUDIT)
