"""What is measured of one agent: how it speaks to a server, and what a task costs, with the gateway and without it."""

from __future__ import annotations

import json
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from benchmarks.clients import server
from benchmarks.clients.drivers import Agent, Servers
from benchmarks.clients.installing import Programs
from benchmarks.clients.running import OURS, AgentHome, Run, agent_home
from benchmarks.clients.script import CALL_TOOLS, SEARCH, Made, Model, Task
from tests.kit.loopback import Call, Reply, Seen
from toolsearch.tokens import default_counter

TIME: Final = Task(
    prompt="What time is it in Oslo?",
    words="current time in a time zone",
    server="time",
    tool="get_current_time",
    arguments={"timezone": "Europe/Oslo"},
    sign="datetime",
)
TIME_SERVERS: Final[Servers] = {
    "git": (sys.executable, "-m", "mcp_server_git"),
    "time": (sys.executable, "-m", "mcp_server_time", "--local-timezone", "UTC"),
}
MANY: Final = Task(
    prompt="Who has registered the domain example.org?",
    words="look up whois information of a domain",
    server="many",
    tool="whois_domain",
    arguments={"domain": "example.org"},
    sign=server.TEXT.split()[0],  # which is in each form of a result
)
_SHOW: Final = Task("Show me a result.", "show a result", "probe", "show_result", {}, MANY.sign)
_ADD: Final = Task(_SHOW.prompt, "add a tool", "probe", server.ADD, {}, MANY.sign)
_NO_ARGUMENTS: Final[Mapping[str, Any]] = {"type": "object", "properties": {}}
_PROBE_TOOLS: Final[Sequence[Mapping[str, Any]]] = [
    {"name": _SHOW.tool, "description": "Shows a result.", "inputSchema": _NO_ARGUMENTS},
    {"name": _ADD.tool, "description": "Adds a tool to this server.", "inputSchema": _NO_ARGUMENTS},
]
_MOST_TRIES = 2


@dataclass(frozen=True, slots=True)
class Bench:
    """
    programs  the agents
    folder    for their homes
    gateway   the folder of the program ``toolsearch``; None for this checkout's
    """

    programs: Programs
    folder: Path
    gateway: Path | None = None

    @contextmanager
    def home(self, agent: Agent, name: str) -> Generator[AgentHome]:
        with agent_home(agent, self.programs, self.folder / f"{agent.name}-{name}", gateway=self.gateway) as home:
            yield home


def many_servers(folder: Path, tools: Sequence[Mapping[str, Any]]) -> Servers:
    """One server with *tools*."""
    return {MANY.server: scripted_server(folder, tools)}


def spoken(bench: Bench, agent: Agent) -> dict[str, str]:
    """How *agent* opens a connection and names itself, what of a result its model reads, and when it can call a tool
    that has just been added.
    """
    folder = bench.folder / f"{agent.name}-probe"
    script = _Probe(Model(agent, _SHOW, is_behind=False), Model(agent, _ADD, is_behind=False))
    with bench.home(agent, "probe") as home:
        home.write({_SHOW.server: scripted_server(folder, _PROBE_TOOLS)})
        home.ask(_SHOW.prompt, script)
    log = folder / "log.jsonl"
    messages = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()] if log.exists() else []
    return {
        "opens_with": next(map(_opening, messages), "nothing"),
        "client_info": next((name for each in messages if (name := _client_name(each))), ""),
        "names": agent.called if script.shown.is_done else "unknown",
        "reads": _forms(script.shown.made[-1].result) if script.shown.is_done else "nothing",
        "added_tool": script.when_added,
    }


def task(
    bench: Bench, agent: Agent, asked: Task, servers: Servers, *, is_behind: bool
) -> tuple[dict[str, Any], Sequence[Made]]:
    """What one task costs, and the calls that were made for it."""
    with bench.home(agent, f"{asked.server}-{'gateway' if is_behind else 'direct'}") as home:
        home.write(servers)
        is_imported = is_behind and home.import_servers()
        if is_behind and not is_imported:
            home.attach_gateway(servers)
        model = Model(agent, asked, is_behind)
        run = home.ask(asked.prompt, model)
    measured = {
        "done": int(model.is_done),
        "rounds": len(run.requests),
        "failed_calls": len(model.failed),
        "tokens": tokens_sent(run),
        "first_s": None if run.first_s is None else round(run.first_s, 1),
    }
    if is_behind:
        measured |= {"is_imported": is_imported, "first_list": ours_in(agent, run.seen[0]) if run.seen else 0}
    return measured, model.made


def ours_in(agent: Agent, seen: Seen) -> int:
    """How many of the gateway's four tools a model may call without a search."""
    ours = {agent.called_name(OURS, name) for name in (SEARCH, *CALL_TOOLS)}
    return sum(tool.name in ours and not tool.is_deferred for tool in seen.tools)


def tokens_sent(run: Run) -> int:
    """The tools and messages of all requests, as JSON. What an agent says of itself apart from them is not counted."""
    parts = ("tools", "messages", "input", "contents")
    counter = default_counter()
    return sum(counter.count(json.dumps([each.body.get(part) for part in parts])) for each in run.requests)


@dataclass(slots=True)
class _Probe:
    """Have a result shown, have a tool added, and call that one by its name at once."""

    shown: Model
    added: Model
    tries: list[str] = field(default_factory=list[str])

    def __call__(self, seen: Seen) -> Reply:
        for model in (self.shown, self.added):
            if not model.is_done and (reply := model(seen)).calls:
                return reply
        if self.tries:
            self.tries[-1] = seen.results[-1]
        if not self.added.is_done or self._is_called() or len(self.tries) == _MOST_TRIES:
            return Reply("It is done.")
        self.tries.append("")
        return Reply(calls=[Call(self.added.agent.called_name(_ADD.server, server.ADDED))])

    def _is_called(self) -> bool:
        return any(_ADD.sign in each for each in self.tries)

    @property
    def when_added(self) -> str:
        if not self.added.is_done:
            return "unknown"
        return f"in call {len(self.tries)}" if self._is_called() else "never"


def _forms(result: str) -> str:
    places = {"text": result.find(server.TEXT), "structured": result.find(server.STRUCTURED)}
    return ", then ".join(form for form in sorted(places, key=lambda each: places[each]) if places[form] >= 0)


def _opening(message: Mapping[str, Any]) -> str:
    params: Mapping[str, Any] = message.get("params", {})
    meta: Mapping[str, Any] = params.get("_meta", {})
    version = params.get("protocolVersion") or meta.get("io.modelcontextprotocol/protocolVersion", "")
    return f"{message.get('method', '')} {version}".strip()


def _client_name(message: Mapping[str, Any]) -> str:
    return str(message.get("params", {}).get("clientInfo", {}).get("name", ""))


def scripted_server(folder: Path, tools: Sequence[Mapping[str, Any]]) -> list[str]:
    folder.mkdir(parents=True, exist_ok=True)
    listing = folder / "tools.json"
    listing.write_text(json.dumps([*tools]), encoding="utf-8")
    return [sys.executable, server.__file__, str(listing), str(folder / "log.jsonl")]
