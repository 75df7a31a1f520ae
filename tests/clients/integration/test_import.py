"""The import into each agent's real file, and back."""

from pathlib import Path

import pytest

from benchmarks.clients.drivers import AGENTS, Agent
from benchmarks.clients.installing import Programs
from benchmarks.clients.measuring import TIME_SERVERS
from benchmarks.clients.running import OURS, agent_home


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_an_import_that_is_undone_leaves_the_file_as_it_was(agent: Agent, tmp_path: Path) -> None:
    with agent_home(agent, Programs(tmp_path / "not installed"), tmp_path / "home") as home:
        home.write(TIME_SERVERS)
        before = home.config.read_bytes()

        assert home.import_servers(), f"the import does not know {agent.name}"
        imported = home.config.read_text(encoding="utf-8")
        home.undo_import()

        assert OURS in imported
        assert not any(name in imported for name in ("mcp_server_git", "mcp_server_time"))
        assert home.config.read_bytes() == before
