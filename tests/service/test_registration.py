"""Python tools that the operator registers as the service starts."""

import importlib
import shutil
import sys
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, closing
from pathlib import Path
from unittest.mock import AsyncMock

import httpx2
import pytest

from tests.kit.fake_servers import MODERN, call
from tests.kit.service import ServiceKit, serving
from tests.kit.skills import write_skill
from toolsearch.errors import BadSettingError, SourceError
from toolsearch.service.catalogs.python_tools import Registration, read_registration
from toolsearch.service.corpora.corpus import CorpusRef
from toolsearch.storage.sqlite.place import SqliteStorage

SUMS = "module:sums_of_operator"
DEFAULT = CorpusRef("default", "catalog", "default")
SKILL = "/v1/catalogs/default/tools/team__refund"
MODULE = '''
def double(number: int) -> int:
    """Double a number."""
    return 2 * number
'''


@pytest.fixture(autouse=True)
def _module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sums_of_operator.py").write_text(MODULE)
    monkeypatch.delitem(sys.modules, "sums_of_operator", raising=False)
    monkeypatch.syspath_prepend(tmp_path)


def contents(kit: ServiceKit, catalog: str = "default") -> dict[str, str]:
    return {row.name: row.source for row in kit.service.storage.contents.page("default", catalog, limit=100)}


async def test_registered_functions_are_tools_that_the_service_runs(tmp_path: Path) -> None:
    async with serving(tmp_path, tools=["module:sums_of_operator"]) as kit:
        assert contents(kit) == {"sums_of_operator__double": "module:sums_of_operator"}
        async with kit.service.corpora.using(DEFAULT) as corpus:
            result = await call(corpus.gateway, "sums_of_operator__double", {"number": 21}, MODERN)
    assert result["content"][0]["text"] == "42"


async def test_tools_that_are_not_registered_any_more_are_gone(tmp_path: Path) -> None:
    async with serving(tmp_path, tools=["module:sums_of_operator", "team=module:sums_of_operator"]) as kit:
        assert list(contents(kit, "team")) == ["sums_of_operator__double"]
    async with serving(tmp_path, tools=["team=module:sums_of_operator"]) as kit:
        assert contents(kit) == {}
        assert list(contents(kit, "team")) == ["sums_of_operator__double"]


async def test_a_tool_of_that_name_that_somebody_else_has_stays(tmp_path: Path) -> None:
    async with serving(tmp_path) as kit:
        await kit.catalog(kit.operator, tools=[{"name": "sums_of_operator__double", "description": "Mine."}])
    async with serving(tmp_path, tools=["module:sums_of_operator"]) as kit:
        assert contents(kit) == {"sums_of_operator__double": ""}


async def test_what_one_tenant_has_registered_runs_for_no_other(tmp_path: Path) -> None:
    async with serving(tmp_path, tools=["module:sums_of_operator"]) as kit:
        (row,) = kit.service.storage.contents.page("default", "default", limit=9)
        find = kit.service.python_tools.find
        assert find("default", "module:sums_of_operator", row) is not None
        assert find("umbrella", "module:sums_of_operator", row) is None


async def test_a_module_that_cannot_be_imported_ends_the_start(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no_such_module"):
        async with serving(tmp_path, tools=["module:no_such_module"]):
            pass


async def test_the_skills_of_a_folder_are_found_and_read_until_they_are_not_registered_any_more(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / "team", "refund", "Pay a customer back.", files={"rules.md": "Within 30 days."})
    async with serving(tmp_path / "service", tools=[f"skills:{folder.parent}"]) as kit:
        client = kit.client(kit.operator)
        found = (await client.post("/v1/search", json={"queries": ["pay a customer back"]})).json()
        assert [(each["name"], each["kind"]) for each in found["answers"][0]["tools"]] == [("team__refund", "skill")]
        assert [each["path"] for each in (await client.get(SKILL)).json()["files"]] == ["SKILL.md", "rules.md"]
        rules = {"name": "team__refund", "arguments": {"file": "rules.md"}}
        assert (await client.post("/v1/calls", json=rules)).json()["content"][-1]["text"] == "Within 30 days."
        (folder / "rules.md").write_text("Always.")
        changed = (await client.post("/v1/calls", json=rules)).json()
        assert (changed["code"], "Always." in str(changed)) == ("skill_changed", False)
        assert (await client.get("/v1/catalogs/default")).json()["tools"] == 0
    async with serving(tmp_path / "service", tools=["other=module:sums_of_operator"]) as kit:
        client = kit.client(kit.key("default"))
        assert (await client.get(SKILL)).status_code == 404
        assert (await client.post("/v1/search", json={"names": ["team__refund"]})).json()["named"] == []


async def test_a_registered_skill_is_there_when_its_catalog_is_opened_again(tmp_path: Path) -> None:
    write_skill(tmp_path / "team", "refund", "Pay a customer back.")
    tools = [f"skills:{tmp_path / 'team'}", SUMS]
    for _ in range(2):
        async with serving(tmp_path / "service", tools=tools) as kit, kit.service.corpora.using(DEFAULT) as corpus:
            assert list(corpus.engine.catalog.contents) == ["team__refund"]
            assert corpus.engine.catalog.names() == ["sums_of_operator__double"]
            assert corpus.engine.catalog.contents["team__refund"].metadata.loads_tools


# ---- several replicas


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[SqliteStorage]:
    with closing(SqliteStorage(tmp_path / "shared.db")) as storage:
        yield storage


def replica(shared: SqliteStorage, folder: Path, *tools: str) -> AbstractAsyncContextManager[ServiceKit]:
    return serving(folder, wrap=lambda _: shared, tools=tools)


def registered_anew(folder: Path, text: str) -> None:
    """The next one that registers the module has another version of it."""
    (folder / "sums_of_operator.py").write_text(text)
    del sys.modules["sums_of_operator"]
    importlib.invalidate_caches()
    shutil.rmtree(folder / "__pycache__", ignore_errors=True)


async def called(kit: ServiceKit, **arguments: int) -> httpx2.Response:
    body = {"catalog": "default", "name": "sums_of_operator__double", "arguments": arguments}
    async with kit.client(kit.key("default")) as client:
        return await client.post("/v1/calls", json=body)


async def test_replicas_with_the_same_tools_write_them_once(shared: SqliteStorage, tmp_path: Path) -> None:
    async with replica(shared, tmp_path / "one", SUMS) as one:
        revision = shared.contents.revision("default", "default")
        async with replica(shared, tmp_path / "two", SUMS) as two:
            for kit in (one, two):
                await kit.service.registrar.look("default", ())
                assert (await called(kit, number=21)).json()["content"][0]["text"] == "42"
            assert shared.contents.revision("default", "default") == revision


async def test_a_tool_that_another_replica_alone_has_is_not_run_here_and_the_caller_is_told_to_try_again(
    shared: SqliteStorage, tmp_path: Path
) -> None:
    async with replica(shared, tmp_path / "one", SUMS) as one, replica(shared, tmp_path / "two") as two:
        assert list(contents(two)) == ["sums_of_operator__double"]
        answer = await called(two, number=21)
        assert (answer.status_code, answer.json()["code"]) == (503, "tool_not_here")
        assert (answer.headers["retry-after"], "--tools" in answer.json()["detail"]) == ("1", True)
        assert (await called(one, number=21)).json()["content"][0]["text"] == "42"


async def test_what_no_replica_registers_any_more_goes_at_the_second_look(
    shared: SqliteStorage, tmp_path: Path
) -> None:
    """So that a replica has a minute to be started again."""
    async with replica(shared, tmp_path / "two") as two:
        async with replica(shared, tmp_path / "one", SUMS):
            assert await two.service.registrar.look("default", ()) == set()
        abandoned = await two.service.registrar.look("default", ())
        assert abandoned == {f"default/{SUMS}"}
        assert len(contents(two)) == 1
        await two.service.registrar.look("default", abandoned)
        assert contents(two) == {}
        assert await two.service.registrar.look("default", abandoned) == set()


async def test_what_is_registered_again_between_a_look_and_its_removal_stays(
    shared: SqliteStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with replica(shared, tmp_path / "one", SUMS) as one, replica(shared, tmp_path / "two") as two:
        registrar = two.service.registrar
        looked_too_early = AsyncMock(return_value={f"default/{SUMS}"})
        monkeypatch.setattr(registrar, "_abandoned", looked_too_early)
        await registrar.look("default", {f"default/{SUMS}"})

        assert len(contents(one)) == 1
        monkeypatch.undo()
        assert await registrar.look("default", ()) == set()


async def test_a_replica_that_was_taken_for_gone_writes_its_tools_again(shared: SqliteStorage, tmp_path: Path) -> None:
    async with replica(shared, tmp_path / "one", SUMS) as one, replica(shared, tmp_path / "two") as two:
        name, holder = f"replica/{one.service.replica}", one.service.replica
        shared.leases.release(name, holder)
        await two.service.registrar.look("default", await two.service.registrar.look("default", ()))
        assert contents(one) == {}

        shared.leases.take(name, holder, for_s=60)
        await one.service.registrar.look("default", ())
        assert len(contents(one)) == 1


async def test_of_two_versions_the_last_one_counts_and_the_other_runs_it_only_if_it_is_called_alike(
    shared: SqliteStorage, tmp_path: Path
) -> None:
    async with replica(shared, tmp_path / "one", SUMS) as one:
        registered_anew(tmp_path, MODULE.replace("Double a number.", "Twice a number."))
        async with replica(shared, tmp_path / "two", SUMS) as two:
            revision = shared.contents.revision("default", "default")
            for kit in (one, two):
                await kit.service.registrar.look("default", ())
                assert (await called(kit, number=21)).json()["content"][0]["text"] == "42"
            assert shared.contents.revision("default", "default") == revision

        registered_anew(tmp_path, MODULE.replace("number", "amount"))
        async with replica(shared, tmp_path / "two", SUMS) as two:
            assert (await called(two, amount=21)).json()["content"][0]["text"] == "42"
            there = {("catalog", "default"): 1, ("contents", "default"): shared.contents.revision("default", "default")}
            await one.service.corpora.follow(DEFAULT, there)
            assert (await called(one, amount=21)).json()["code"] == "tool_not_here"


def test_a_registration_names_a_module_or_a_folder_and_perhaps_a_catalog() -> None:
    assert read_registration("module:os.path") == Registration("default", "module:os.path")
    assert read_registration("team-a=module:json") == Registration("team-a", "module:json")
    assert read_registration("team-a=skills:./team") == Registration("team-a", "skills:./team")


@pytest.mark.parametrize(
    "text", ["json", "tools.yaml", "Team=module:json", "=module:json", "module:a b", "module:", "skills:"]
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(BadSettingError):
        read_registration(text)
