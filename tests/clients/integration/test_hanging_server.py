"""A server that never answers keeps no agent from the gateway."""

import shutil
from pathlib import Path

import pytest

from benchmarks.clients.drivers import AGENTS, Agent
from benchmarks.clients.installing import Programs
from benchmarks.clients.measuring import TIME, TIME_SERVERS, ours_in
from benchmarks.clients.running import agent_home
from benchmarks.clients.script import CALL_TOOLS, SEARCH
from tests.kit.loopback import Reply

_HANGS = (str(shutil.which("sleep")), "600")


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_our_tools_are_in_the_first_list_while_a_server_hangs(agent: Agent, programs: Programs, tmp_path: Path) -> None:
    with agent_home(agent, programs, tmp_path) as home:
        home.write({**TIME_SERVERS, "hanging": _HANGS})
        assert home.import_servers(), f"the import does not know {agent.name}"
        run = home.ask(TIME.prompt, lambda _: Reply("It is noon."))

    assert run.requests, run.output
    assert ours_in(agent, run.seen[0]) == len((SEARCH, *CALL_TOOLS))
