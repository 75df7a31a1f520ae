"""What is installed for a framework, and what becomes of its tests where nothing can be installed."""

from pathlib import Path

import pytest

from benchmarks.environments import NotInstalledError
from tests.kit import framework_environment
from tests.kit.framework_environment import _of_extra, _python_of, _requirements


def test_an_environment_has_the_tested_version_and_what_the_project_and_its_extra_need() -> None:
    installed = _requirements("openai-agents")

    assert any(each.startswith("openai-agents==") for each in installed)
    assert any(each.startswith("numpy>=") for each in installed)


def test_an_extra_has_what_it_takes_from_other_extras() -> None:
    extras = {"a": ["one", "toolsearch[b,c]"], "b": ["two"], "c": ["toolsearch[b]", "three"]}

    assert _of_extra("a", extras) == ["one", "two", "two", "three"]
    assert _of_extra("unknown", extras) == []


def test_tests_are_skipped_where_nothing_can_be_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> Path:
        raise NotInstalledError("no index answers")

    monkeypatch.setattr(framework_environment, "python_in", fail)

    with pytest.raises(pytest.skip.Exception, match="openai-agents cannot be installed here: no index answers"):
        _python_of("openai-agents")
