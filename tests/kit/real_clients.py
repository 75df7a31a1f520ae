"""Real programs as clients of a model API, with the tools of five published MCP servers, all listed to the model.

Agents out of npm run in homes of `benchmarks.clients.running`. Libraries run `tests/clients/inside/NAME_task.py`.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from benchmarks.clients.drivers import AGENTS, Agent, Servers
from benchmarks.clients.installing import Programs, pinned
from benchmarks.clients.measuring import MANY, TIME, scripted_server
from benchmarks.clients.running import Run, agent_home
from benchmarks.clients.script import SEARCH, Task
from tests.kit.framework_environment import Framework, environments_folder
from tests.kit.loopback import Call, Reply, Seen
from tests.kit.proxied import served_proxy
from tests.kit.published_servers import make_repository, published_servers
from toolsearch.settings import Settings
from toolsearch.wire.capabilities import Cloud

Json: TypeAlias = dict[str, Any]
INSIDE: Final = Path(__file__).parents[1] / "clients" / "inside"
VERCEL: Final = INSIDE.parent / "vercel"
CLOCK: Final = replace(TIME, sign=MANY.sign)  # of a tool that only tells that it has run
ALWAYS: Final = Settings.model_validate(
    {"index": {"encoder": None, "strategy": "keyword"}, "pass_through": {"max_tools": 0}}
)
_CALL_TOOL = "callTool"
_MOST_RESULTS = 3


# ---- The model, which has a task and finds the tool for it.


@dataclass
class Finder:
    """A model that calls the tool named *tool* for *task*: by name if it is listed, else by way of the proxy's search.

    has_searched  whether it has asked for the tool
    """

    task: Task
    tool: str
    has_searched: bool = False

    def __call__(self, seen: Seen) -> Reply:
        if any(self.task.sign in result for result in seen.results[-1:]):
            return Reply("It is done.")
        if len(seen.results) > _MOST_RESULTS:
            return Reply("I cannot do that.")
        if any(tool.name == self.tool and not tool.is_deferred for tool in seen.tools):
            return Reply(calls=[Call(self.tool, dict(self.task.arguments))])
        name = self.tool.replace(".", "__")
        if any(name in result for result in seen.results):
            return Reply(calls=[Call(_CALL_TOOL, {"name": name, "arguments": dict(self.task.arguments)})])
        if seen.tool(SEARCH) and not self.has_searched:
            self.has_searched = True
            return Reply("Let me look.", calls=[Call(SEARCH, {"queries": [self.task.words]})])
        return Reply("I cannot do that.")


# ---- Agents.


def listing_all(agent: Agent) -> tuple[Agent, Mapping[str, str]]:
    """*agent* with its own tool search switched off, waiting for its servers; and the variables for that."""
    if agent.name == "codex":
        return _edited(agent, _codex_lists_all), {}
    if agent.name == "qwen":
        return _edited(agent, _qwen_lists_all), {}
    waits = {"ENABLE_TOOL_SEARCH": "false", "MCP_CONNECTION_NONBLOCKING": "0"}
    return agent, waits if agent.name == "claude-code" else {}


def agent_named(name: str) -> Agent:
    return next(agent for agent in AGENTS if agent.name == name)


def asked(
    name: str,
    programs: Programs,
    tools: Mapping[str, Sequence[Json]],
    folder: Path,
    *,
    cloud: Cloud | None = None,
    model: str = "",
    is_behind: bool = True,
) -> tuple[Finder, Run]:
    """Have the agent *name* do its task with *model*, directly or behind the proxy, which searches all tools."""
    agent, variables = listing_all(agent_named(name))
    usual = agent.command
    if model:
        agent = replace(agent, command=lambda prompt, servers: [*usual(prompt, servers), "--model", model])
    finder = Finder(CLOCK, agent.called_name(CLOCK.server, CLOCK.tool))
    with agent_home(agent, programs, folder) as home, served_proxy(home.url, settings=ALWAYS, cloud=cloud) as url:
        if is_behind:
            home.url = url
        home.write(scripted_servers(folder, tools))
        return finder, home.ask(CLOCK.prompt, finder, environment=variables)


def _edited(agent: Agent, edit: Callable[[str], str]) -> Agent:
    def files(url: str, servers: Servers) -> Mapping[str, str]:
        return {path: edit(text) for path, text in agent.files(url, servers).items()}

    return replace(agent, files=files)


def _codex_lists_all(config: str) -> str:
    return re.sub(r"(?m)^(\[mcp_servers\..*)$", r'\1\nomit_tools_from = ["deferred"]\nrequired = true', config)


def _qwen_lists_all(settings: str) -> str:
    return json.dumps({**json.loads(settings), "tools": {"toolSearch": {"enabled": False}}})


# ---- Their servers.


async def published_tools(folder: Path) -> dict[str, list[Json]]:
    """What five published servers list, by server: about 50 tools. What they return is not described."""
    entries = published_servers(str(make_repository(folder / "repository")), memory=str(folder / "memory.jsonl"))
    return {name: await _listed(entry) for name, entry in entries.items()}


async def _listed(entry: Mapping[str, Any]) -> list[Json]:
    async with Client(stdio_client(StdioServerParameters(**entry))) as client:
        tools = (await client.list_tools()).tools
    described = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]
    return [{key: value for key, value in tool.items() if key != "outputSchema"} for tool in described]


def scripted_servers(folder: Path, tools: Mapping[str, Sequence[Json]]) -> Servers:
    """A server for each in *tools*, which is there at once, and which tells that a tool has run."""
    return {name: scripted_server(folder / name, listed) for name, listed in tools.items()}


def write_listing(path: Path, tools: Mapping[str, Sequence[Json]]) -> None:
    """One list for a library, with the names SERVER__TOOL."""
    named = [{**tool, "name": f"{server}__{tool['name']}"} for server, listed in tools.items() for tool in listed]
    path.write_text(json.dumps(named), encoding="utf-8")


# ---- Libraries.


@dataclass(frozen=True)
class Told:
    """
    answers  the model's last text for each prompt
    calls    the tools that ran, with their arguments
    """

    answers: list[str]
    calls: list[tuple[str, Json]]


@dataclass(frozen=True)
class Library:
    """
    name   of its script
    wires  that it speaks
    needs  its file in tests/adapters/environments; "" if this environment has it
    """

    name: str
    wires: Sequence[str] = ("messages", "responses", "chat")
    needs: str = ""

    def ask(
        self, framework: Callable[[str], Framework], url: str, wire: str, listing: Path, *prompts: str, mode: str
    ) -> Told:
        """Have it say *prompts*, to the model at *url*, with the tools in *listing*."""
        arguments = (url, wire, str(listing), mode, *prompts)
        if self.name == "vercel":
            told = _in_node(listing.parent, *arguments)
        else:
            told = framework(self.needs).run(INSIDE / f"{self.name}_task.py", *arguments)
        return Told(told["answers"], [(name, given) for name, given in told["calls"]])


LIBRARIES: Final = (
    Library("anthropic", ("messages",)),
    Library("openai", ("responses", "chat")),
    Library("langchain", needs="langchain"),
    Library("pydantic_ai", needs="pydantic-ai"),
    Library("vercel"),
)


def _in_node(folder: Path, *arguments: str) -> Json:
    """Node looks for packages beside the script, so that it is copied to them."""
    programs = pinned(environments_folder(), VERCEL)
    script = shutil.copy(INSIDE / "vercel_task.mjs", programs.folder)
    command = [str(programs.on_path / "node"), script, *arguments]
    done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told: Json = json.loads(done.stdout.splitlines()[-1])
    return told
