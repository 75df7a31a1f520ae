"""Which agents are installed, and when."""

import json
from pathlib import Path

import pytest

from benchmarks.clients import installing
from benchmarks.clients.drivers import AGENTS
from benchmarks.environments import NotInstalledError


def test_each_agent_is_pinned_and_the_lock_names_no_registry() -> None:
    package = json.loads((installing.PINNED / "package.json").read_text("utf-8"))
    lock = json.loads((installing.PINNED / "package-lock.json").read_text("utf-8"))

    assert set(package["dependencies"]) == {"node", *(agent.package for agent in AGENTS)}
    assert lock["packages"][""]["dependencies"] == package["dependencies"]
    assert [name for name, entry in lock["packages"].items() if "resolved" in entry] == []


def test_the_agents_are_installed_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    commands: list[str] = []
    monkeypatch.setattr(installing, "_npm", lambda *arguments: commands.append(arguments[0]))

    assert installing.pinned(tmp_path) == installing.pinned(tmp_path)
    assert commands == ["view", "install"]


def test_an_installation_that_fails_is_begun_anew(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    commands: list[str] = []

    def fail(*arguments: str) -> None:
        commands.append(arguments[0])
        raise NotInstalledError("no registry answers")

    monkeypatch.setattr(installing, "_npm", fail)
    for _ in range(2):
        with pytest.raises(NotInstalledError, match="no registry answers"):
            installing.pinned(tmp_path)

    assert commands == ["view", "view"]
