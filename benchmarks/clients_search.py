"""Which finds more in a client with a tool search of its own: its search, or the gateway's?

    python -m benchmarks.clients_search [--json FILE]

82 requests as an agent writes them, over 231 tools of five services of Google: how many have a right tool among the
first five that a search names. Each agent is run three times with a scripted model: with the servers attached to it
(direct), behind a gateway that lists every tool (whole), and behind one as it is (fixed). It needs the extra `bench`,
and installs the agents from npm.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.catalogues import real_catalogue
from benchmarks.clients import installing
from benchmarks.clients.drivers import AGENTS, Agent, Servers
from benchmarks.clients.measuring import scripted_server
from benchmarks.clients.running import OURS, agent_home
from benchmarks.clients.script import SEARCH
from benchmarks.datasets import AGENT_QUERIES
from benchmarks.environments import NotInstalledError
from benchmarks.figure_tables import print_table
from benchmarks.results import ROOT, write_figures
from tests.kit.loopback import Call, Reply, Seen

_CATALOGUE: Final = "google-workspace"
_SERVICES: Final = ("google_calendar", "google_docs", "google_drive", "google_gmail", "google_sheets")
_OWN: Final[Mapping[str, tuple[str, str]]] = {  # of each agent: its own search, and what it calls a limit
    "claude-code": ("ToolSearch", "max_results"),
    "codex": ("tool_search", "limit"),
    "qwen": ("tool_search", "max_results"),
}
_WAYS: Final = ("direct", "whole", "fixed")
_LIMIT: Final = 5
_PROMPT: Final = "Look for things."
_MOST_WAITS: Final = 40
_VARIABLES: Final = {"ENABLE_TOOL_SEARCH": "true", "MCP_CONNECTION_NONBLOCKING": "false"}  # of Claude Code
_CACHE: Final = ROOT / "benchmarks" / ".cache" / "agents"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--environments", type=Path, default=_CACHE, metavar="FOLDER", help="where agents are installed"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to this file, too")
    options = parser.parse_args(arguments)
    try:
        programs = installing.pinned(options.environments)
    except NotInstalledError as error:
        print(f"the agents cannot be installed: {error}", file=sys.stderr)
        return 2
    asked = [json.loads(line) for line in (AGENT_QUERIES / f"{_CATALOGUE}.jsonl").read_text().splitlines()]
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as made:
        servers = _servers(Path(made))
        for agent in (each for each in AGENTS if each.name in _OWN):
            found[agent.name] = {}
            for way in _WAYS:
                results = _results(agent, programs, Path(made) / f"{agent.name}-{way}", servers, way, asked)
                hits = sum(map(_is_found, asked, results))
                found[agent.name][way] = round(hits / len(asked), 4)
    print_table(["", *_WAYS], [[name, *(f"{found[name][way]:.3f}" for way in _WAYS)] for name in found])
    if options.json:
        write_figures(options.json, "clients_search", found)
    return 0


def _servers(folder: Path) -> Servers:
    tools: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for tool in real_catalogue():
        if tool.server in _SERVICES:
            name = tool.name.removeprefix(f"{tool.server}__")
            tools[tool.server].append(
                {"name": name, "description": tool.description, "inputSchema": dict(tool.input_schema)}
            )
    return {server: scripted_server(folder / server, listed) for server, listed in tools.items()}


def _results(
    agent: Agent,
    programs: installing.Programs,
    folder: Path,
    servers: Servers,
    way: str,
    asked: Sequence[Mapping[str, Any]],
) -> list[str]:
    """What the model has read of each search."""
    script = _Searches(agent, [str(each["query"]) for each in asked], is_ours=way == "fixed")
    with agent_home(agent, programs, folder) as home:
        if way == "direct":
            home.write(servers)
        elif way == "whole":
            home.attach_gateway(servers)
            config = json.loads(home.own_config.read_text(encoding="utf-8"))
            section = {"exposure": {"clients": {"*": "whole"}}}
            home.own_config.write_text(json.dumps({**config, OURS: section}), encoding="utf-8")
        else:
            home.write(servers)
            home.import_servers()
        home.ask(_PROMPT, script, environment=_VARIABLES, timeout_s=400)
    if len(script.results) < len(asked):
        raise RuntimeError(f"{agent.name}, {way}: {len(script.results)} of {len(asked)} requests were answered")
    return script.results


class _Searches:
    """A model that searches for one thing after the other. It begins once the search finds anything at all."""

    def __init__(self, agent: Agent, queries: Sequence[str], *, is_ours: bool) -> None:
        self._agent = agent
        self._queries = queries
        self._is_ours = is_ours
        self._skipped = 0  # results of what was asked while servers were connecting
        self.results: list[str] = []

    def __call__(self, seen: Seen) -> Reply:
        results = seen.results[self._skipped :]
        if len(results) == 1 and not self.results and "google_" not in results[0] and self._skipped < _MOST_WAITS:
            self._skipped += 1
            results = []
            time.sleep(0.3)
        self.results = results
        if len(results) == len(self._queries):
            return Reply("That is all.")
        return Reply(calls=[self._search(self._queries[len(results)])])

    def _search(self, query: str) -> Call:
        if self._is_ours:
            return Call(self._agent.called_name(OURS, SEARCH), {"queries": [query], "limit": _LIMIT})
        name, limit = _OWN[self._agent.name]
        return Call(name, {"query": query, limit: _LIMIT})


def _is_found(asked: Mapping[str, Any], result: str) -> bool:
    return any(_names(result, str(name)) for name in asked["relevant"])


def _names(result: str, tool: str) -> bool:
    """Whether *result* names *tool*, as the gateway does, or by the name that the server itself gives it."""
    server, _, local = tool.partition("__")
    forms = (tool, f"mcp__{server}__{local}")
    found = any(re.search(rf"{re.escape(form)}(?![A-Za-z0-9_])", result) for form in forms)
    in_namespace = re.search(rf'"mcp__{server}".*?"name":"{re.escape(local)}"', result) is not None
    return found or in_namespace


if __name__ == "__main__":
    sys.exit(main())
