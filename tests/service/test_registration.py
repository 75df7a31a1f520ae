"""Python tools that the operator registers as the service starts."""

from pathlib import Path

import pytest

from tests.kit.fake_servers import MODERN, call
from tests.kit.service import ServiceKit, serving
from toolsearch.errors import BadSettingError, SourceError
from toolsearch.service.corpora.corpus import CorpusRef
from toolsearch.service.registration import Registration, read_registration

DEFAULT = CorpusRef("default", "catalog", "default")
MODULE = '''
def double(number: int) -> int:
    """Double a number."""
    return 2 * number
'''


@pytest.fixture(autouse=True)
def _module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sums_of_operator.py").write_text(MODULE)
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
        execution = {"kind": "python", "spec": "module:sums_of_operator"}
        find = kit.service.python_tools.find
        assert find("default", execution["spec"], "sums_of_operator__double") is not None
        assert find("umbrella", execution["spec"], "sums_of_operator__double") is None


async def test_a_module_that_cannot_be_imported_ends_the_start(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no_such_module"):
        async with serving(tmp_path, tools=["module:no_such_module"]):
            pass


def test_a_registration_names_a_module_and_perhaps_a_catalog() -> None:
    assert read_registration("module:os.path") == Registration("default", "module:os.path")
    assert read_registration("team-a=module:json") == Registration("team-a", "module:json")


@pytest.mark.parametrize("text", ["json", "tools.yaml", "Team=module:json", "=module:json", "module:a b", "module:"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(BadSettingError):
        read_registration(text)
