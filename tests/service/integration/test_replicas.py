"""What one replica has written is what another one answers from, by notifications alone."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.kit.postgres import PostgresServer
from tests.kit.replicas import DEFAULT, NEVER_S, Replicas, eventually, names, replicas, status_of, until_names
from toolsearch.errors import StorageError, UnknownRecordError
from toolsearch.service.corpora.corpora import Corpora
from toolsearch.service.corpora.corpus import CorpusRef
from toolsearch.service.corpora.stored_tools import to_row
from toolsearch.service.corpora.toolset_specs import ToolsetMember, ToolsetRule, ToolsetSpec
from toolsearch.storage.contents import ContentsSince
from toolsearch.storage.postgres import listening
from toolsearch.tools.definition import Tool, ToolDefinition

TOOLS = "/v1/catalogs/default/tools"
TEAM = CorpusRef("default", "toolset", "team")
OTHER = CorpusRef("default", "catalog", "other")
PAINT = {"name": "paint", "description": "Paint a wall."}


@pytest.fixture
async def both(postgres: PostgresServer, tmp_path: Path) -> AsyncIterator[Replicas]:
    """Two replicas with a catalog of two tools in the memory of both."""
    async with replicas(postgres.new_database(), tmp_path) as running:
        await running.one.catalog(running.operator)
        await until_names(running.two, ["read_log", "send_mail"])
        yield running


async def put(both: Replicas, *tools: dict[str, Any], catalog: str = "default") -> None:
    async with both.one.client(both.operator) as client:
        (await client.post(f"/v1/catalogs/{catalog}/tools", json=list(tools))).raise_for_status()


# ---- catalogs


async def test_a_tool_that_one_replica_writes_is_found_on_the_other(both: Replicas) -> None:
    await put(both, PAINT)

    await until_names(both.two, ["paint", "read_log", "send_mail"])
    async with both.two.client(both.operator) as client:
        answer = await client.post("/v1/search", json={"queries": ["paint the wall"], "limit": 1})
    assert [tool["name"] for tool in answer.json()["answers"][0]["tools"]] == ["paint"]


async def test_a_tool_that_one_replica_deletes_is_gone_on_the_other(both: Replicas) -> None:
    async with both.one.client(both.operator) as client:
        (await client.delete(f"{TOOLS}/send_mail")).raise_for_status()

    await until_names(both.two, ["read_log"])


async def test_a_change_of_what_runs_a_tool_arrives_as_well(both: Replicas) -> None:
    """The definition stays as it is, and so does its fingerprint."""
    tool = Tool(ToolDefinition("send_mail", "Send a letter to somebody."))
    execution = {"kind": "python", "spec": "m:other"}
    async with both.two.service.corpora.using(DEFAULT) as corpus:
        assert corpus.engine.catalog.get("send_mail").callback is None
        await both.one.service.corpora.change(DEFAULT, put=[to_row(tool, execution=execution)])

        async def is_run_otherwise() -> bool:
            return corpus.engine.catalog.get("send_mail").callback is not None

        await eventually(is_run_otherwise)


async def test_a_catalog_that_one_replica_deletes_is_gone_on_the_other_with_its_index(
    both: Replicas, tmp_path: Path
) -> None:
    two = both.two.service.corpora
    async with both.one.client(both.operator) as client:
        (await client.delete("/v1/catalogs/default")).raise_for_status()

    async def has_left_memory() -> bool:
        return DEFAULT not in two.coming and not DEFAULT.folder(tmp_path / "two").exists()

    await eventually(has_left_memory)
    with pytest.raises(UnknownRecordError):
        await names(both.two)


async def test_a_catalog_that_is_deleted_and_made_anew_has_only_its_new_tools(both: Replicas) -> None:
    async with both.one.client(both.operator) as client:
        (await client.delete("/v1/catalogs/default")).raise_for_status()
    await both.one.catalog(both.operator, tools=[PAINT])

    await until_names(both.two, ["paint"])


async def test_a_write_to_a_catalog_that_another_replica_deletes_leaves_nothing_behind(
    both: Replicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The deletion comes between the last look at the catalog and the write."""
    storage = both.one.service.storage
    change = storage.contents.change
    reached, go_on = threading.Event(), threading.Event()

    def slow(*arguments: Any, **more: Any) -> int:
        reached.set()
        assert go_on.wait(20)
        return change(*arguments, **{**more, "over": None})

    monkeypatch.setattr(storage.contents, "change", slow)
    writing = asyncio.create_task(put(both, PAINT))
    await asyncio.to_thread(reached.wait, 20)
    await both.two.service.catalogs.delete("default", "default")
    go_on.set()
    with pytest.raises(Exception, match="404"):
        await writing

    assert storage.contents.count("default") == 0


async def test_a_replica_that_writes_has_what_another_one_wrote_just_before(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own change brings it to the newest revision, and must not pass over the one in between."""
    async with replicas(postgres.new_database(), tmp_path) as both:
        await both.one.catalog(both.operator)
        await names(both.two)
        monkeypatch.setattr(both.two.service.following, "_heard", lambda _: None)  # it is told of nothing
        await put(both, PAINT)
        async with both.two.client(both.operator) as client:
            (await client.delete(f"{TOOLS}/send_mail")).raise_for_status()

        assert await names(both.two) == ["paint", "read_log"]


async def test_a_change_while_a_replica_opens_the_catalog_is_not_lost(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with replicas(postgres.new_database(), tmp_path) as both:
        await both.one.catalog(both.operator)
        contents = both.two.service.storage.contents
        fingerprints = contents.fingerprints
        reached, go_on = threading.Event(), threading.Event()

        def slow(tenant: str, catalog: str) -> dict[str, str]:
            found = fingerprints(tenant, catalog)
            reached.set()
            assert go_on.wait(20)
            return found

        monkeypatch.setattr(contents, "fingerprints", slow)
        opening = asyncio.create_task(names(both.two))
        await asyncio.to_thread(reached.wait, 20)
        await put(both, PAINT)
        monkeypatch.undo()
        go_on.set()
        await opening

        await until_names(both.two, ["paint", "read_log", "send_mail"])


async def test_a_change_while_a_replica_lets_the_catalog_go_is_there_when_it_comes_back(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with replicas(postgres.new_database(), tmp_path, memory={"index_bytes": 1}) as both:
        await both.one.catalog(both.operator)
        await both.one.catalog(both.operator, "other")
        two = both.two.service.corpora
        saved = Corpora._saved
        reached, go_on = asyncio.Event(), asyncio.Event()

        async def slow(self: Corpora, corpus: Any) -> None:
            if self is two:
                reached.set()
                await go_on.wait()
            await saved(self, corpus)

        monkeypatch.setattr(Corpora, "_saved", slow)
        await names(both.two)
        await names(both.two, OTHER)  # puts the other one out of memory
        await reached.wait()
        await put(both, PAINT)
        go_on.set()

        await until_names(both.two, ["paint", "read_log", "send_mail"])


async def test_following_a_catalog_does_not_keep_it_in_memory_for_longer(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    async with replicas(postgres.new_database(), tmp_path) as both:
        await both.one.catalog(both.operator)
        await both.one.catalog(both.operator, "other")
        two = both.two.service.corpora
        await names(both.two)
        await names(both.two, OTHER)
        await put(both, PAINT)

        async def has_followed() -> bool:
            async with two.in_memory(DEFAULT) as corpus:
                return corpus is not None and "paint" in corpus.engine.catalog

        await eventually(has_followed)
        assert two.refs == [DEFAULT, OTHER]


async def test_a_catalog_that_is_not_in_memory_is_not_opened_to_follow_it(both: Replicas) -> None:
    await both.one.catalog(both.operator, "other")
    await put(both, PAINT, catalog="other")
    await put(both, PAINT)
    await until_names(both.two, ["paint", "read_log", "send_mail"])

    assert both.two.service.corpora.refs == [DEFAULT]


async def test_what_a_replica_writes_itself_is_not_read_again(both: Replicas, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    contents = both.one.service.storage.contents
    since = contents.since

    def spied(tenant: str, catalog: str, revision: int) -> ContentsSince:
        read.append(catalog)
        return since(tenant, catalog, revision)

    await names(both.one)
    monkeypatch.setattr(contents, "since", spied)
    for number in range(5):
        await put(both, {**PAINT, "description": f"Paint {number} walls."})
    await both.two.service.corpora.change(DEFAULT, put=[to_row(Tool(ToolDefinition("last", "The last.")))])
    await until_names(both.one, ["last", "paint", "read_log", "send_mail"])

    assert read == ["default"]


async def test_what_cannot_be_read_at_first_is_read_later(
    both: Replicas, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    contents, changes = both.two.service.storage.contents, both.two.service.storage.changes
    since, current = contents.since, changes.current
    failures = ["read", "look"]

    def failing(what: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def run(*of: Any) -> Any:
            if what in failures:
                failures.remove(what)
                raise StorageError("the disk is gone")
            return work(*of)

        return run

    monkeypatch.setattr(contents, "since", failing("read", since))
    monkeypatch.setattr(changes, "current", failing("look", current))
    await put(both, PAINT)

    await until_names(both.two, ["paint", "read_log", "send_mail"])
    assert failures == []
    assert "cannot be read: the disk is gone" in caplog.text


# ---- toolsets


async def toolset(both: Replicas, *members: ToolsetMember, rules: tuple[ToolsetRule, ...] = ()) -> None:
    await both.one.service.toolsets.create("default", "team", ToolsetSpec("", members, rules))


async def test_a_new_version_of_a_toolset_is_what_the_other_replica_shows(both: Replicas) -> None:
    await toolset(both, ToolsetMember("default", "send_mail", "post"))
    assert await names(both.two, TEAM) == ["post"]
    spec = ToolsetSpec("", (ToolsetMember("default", "read_log", "log"),))
    await both.one.service.toolsets.change("default", "team", lambda _: spec)

    await until_names(both.two, ["log"], TEAM)


async def test_a_toolset_that_one_replica_deletes_is_gone_on_the_other(both: Replicas) -> None:
    await toolset(both, ToolsetMember("default", "send_mail", "post"))
    await names(both.two, TEAM)
    await both.one.service.toolsets.delete("default", "team")

    async def is_gone() -> bool:
        return TEAM not in both.two.service.corpora.coming

    await eventually(is_gone)
    with pytest.raises(UnknownRecordError):
        await names(both.two, TEAM)


async def test_a_toolset_gets_the_tools_of_a_catalog_that_another_replica_makes_or_deletes(both: Replicas) -> None:
    await toolset(both, rules=(ToolsetRule("default"), ToolsetRule("other")))
    assert await names(both.two, TEAM) == ["read_log", "send_mail"]

    await both.one.catalog(both.operator, "other", tools=[PAINT])
    await until_names(both.two, ["paint", "read_log", "send_mail"], TEAM)

    await both.one.service.catalogs.delete("default", "other")
    await until_names(both.two, ["read_log", "send_mail"], TEAM)


async def test_a_toolset_shows_what_another_replica_writes_to_its_catalog(both: Replicas) -> None:
    await toolset(both, rules=(ToolsetRule("default"),))
    await names(both.two, TEAM)
    await put(both, PAINT)

    await until_names(both.two, ["paint", "read_log", "send_mail"], TEAM)


async def test_a_name_belongs_to_the_same_catalog_on_all_replicas(both: Replicas) -> None:
    """Each replica sees the tool of another catalog first; who gives the name first has given it for all."""
    await both.one.catalog(both.operator, "other", tools=[])
    await toolset(both, rules=(ToolsetRule("default"), ToolsetRule("other")))
    await names(both.two, TEAM)
    in_default, in_other = (to_row(Tool(ToolDefinition("dig", f"Dig {what}."))) for what in ("a hole", "a well"))
    await asyncio.gather(
        both.one.service.corpora.change(OTHER, put=[in_other]),
        both.two.service.corpora.change(DEFAULT, put=[in_default]),
    )

    async def holders(kit: Any) -> list[str]:
        async with kit.service.corpora.using(TEAM) as corpus:
            return [corpus.toolset.resolution.holders["dig"], corpus.engine.catalog.get("dig").definition.description]

    async def agree() -> bool:
        both_names = [await names(kit, TEAM) for kit in (both.one, both.two)]
        return all("dig" in found for found in both_names) and await holders(both.one) == await holders(both.two)

    await eventually(agree)


# ---- keys and tenants


async def test_a_key_that_one_replica_revokes_is_refused_by_the_other_from_the_notice_on(both: Replicas) -> None:
    """No time passes, so what the other one has read still counts as fresh."""
    token, key = both.one.service.keys.make("default", "a test's", ["search"])
    async with both.two.client(token) as client:
        assert await status_of(client, "/v1/me") == 200
        await both.one.service.keys.revoke("default", key.id)

        async def is_refused() -> bool:
            return await status_of(client, "/v1/me") == 401

        await eventually(is_refused)


async def test_of_a_tenant_that_one_replica_deletes_nothing_stays_in_the_memory_of_the_other(both: Replicas) -> None:
    one, two = both.one, both.two
    await one.service.tenants.create("acme", "")
    token = one.key("acme")
    await one.catalog(token)
    ref = CorpusRef("acme", "catalog", "default")
    async with two.client(token) as client:
        assert await status_of(client, TOOLS) == 200
        await one.service.tenants.delete("acme")

        async def is_forgotten() -> bool:
            return await status_of(client, "/v1/me") == 401 and ref not in two.service.corpora.coming

        await eventually(is_forgotten)
    assert two.service.corpora.refs == [DEFAULT]


async def test_a_tenant_that_is_made_anew_has_nothing_that_was_written_late_to_the_one_before(both: Replicas) -> None:
    service = both.one.service
    await service.tenants.create("acme", "")
    await service.tenants.delete("acme")
    service.storage.records.put("acme", "catalog", "late", {}, over=0, at_s=0)
    await both.two.service.tenants.create("acme", "")

    assert service.storage.records.count("acme", "catalog", at_s=0) == 0


# ---- what is not heard


async def test_after_the_listener_was_cut_off_what_it_missed_is_read(
    both: Replicas, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it is away, a tool is written, and a key is revoked that counts as fresh."""
    token, key = both.one.service.keys.make("default", "a test's", ["search"])
    connect = listening.PostgresListener._connect
    may_connect = threading.Event()

    def later(self: listening.PostgresListener) -> Any:
        assert may_connect.wait(20)
        return connect(self)

    async with both.two.client(token) as client:
        assert await status_of(client, "/v1/me") == 200
        monkeypatch.setattr(listening.PostgresListener, "_connect", later)
        monkeypatch.setattr("toolsearch.service.replica_changes._UNHEARD_POLL_S", 100_000.0)
        postgres.execute(
            f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "  # noqa: S608
            f"WHERE application_name = '{listening.APPLICATION}'"
        )
        await put(both, PAINT)
        await both.one.service.keys.revoke("default", key.id)
        assert await status_of(client, "/v1/me") == 200
        may_connect.set()

        async def is_refused() -> bool:
            return await status_of(client, "/v1/me") == 401

        await eventually(is_refused)
    await until_names(both.two, ["paint", "read_log", "send_mail"])


@pytest.mark.parametrize("hears", [True, False])
async def test_without_any_notification_a_look_at_the_store_finds_what_was_written(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, hears: bool
) -> None:
    """Every few seconds while the listener believes that it hears, and more often while it knows that it does not."""
    if hears:
        monkeypatch.setattr(listening, "_parsed", lambda payload: payload.strip('"'))  # nothing is a change
    else:
        monkeypatch.setattr(listening.PostgresListener, "_connect", _refuse)
        monkeypatch.setattr("toolsearch.service.replica_changes._UNHEARD_POLL_S", 0.02)
    async with replicas(postgres.new_database(), tmp_path, poll_s=0.02 if hears else NEVER_S) as both:
        await both.one.catalog(both.operator)
        await toolset(both, rules=(ToolsetRule("default"),))
        await names(both.two, TEAM)
        await put(both, PAINT)
        await until_names(both.two, ["paint", "read_log", "send_mail"], TEAM)
        spec = ToolsetSpec("", (ToolsetMember("default", "read_log", "log"),))
        await both.one.service.toolsets.change("default", "team", lambda _: spec)
        await until_names(both.two, ["log"], TEAM)
        await both.one.service.catalogs.delete("default", "default")
        await until_names(both.two, [], TEAM)
        assert both.two.service.corpora.refs == [TEAM]


def _refuse(_: listening.PostgresListener) -> Any:
    raise OSError("there is no way")


async def test_a_replica_ends_at_once_while_it_listens(postgres: PostgresServer, tmp_path: Path) -> None:
    async with asyncio.timeout(10):
        async with replicas(postgres.new_database(), tmp_path) as both:
            assert both.one.service.replica != both.two.service.replica
    rows = postgres.execute(
        f"SELECT count(*) FROM pg_stat_activity WHERE application_name = '{listening.APPLICATION}' "  # noqa: S608
        f"AND datname = '{both.url.rpartition('/')[2]}'"
    )
    assert rows == [(0,)]


async def test_what_a_replica_holds_is_asked_of_the_store_by_one_statement(
    both: Replicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []
    changes = both.two.service.storage.changes
    current = changes.current

    def spied(tenants: Any) -> Any:
        asked.append(sorted(tenants))
        return current(tenants)

    monkeypatch.setattr(changes, "current", spied)
    both.two.service.following._heard(None)
    await put(both, PAINT)
    await until_names(both.two, ["paint", "read_log", "send_mail"])

    assert asked[0] == ["default"]
    assert len(asked) <= 3
