"""Real clients that share a background process: coding agents out of npm, the official SDKs, FastMCP, the Inspector.

None of them is changed. All run in one home folder with one configuration of five published servers. A scripted model
keeps each agent waiting for its last word until all clients are there, so that all run at the same time.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any, Final, Protocol

import psutil  # type: ignore[import-untyped]

from benchmarks.clients.drivers import AGENTS, Agent
from benchmarks.clients.installing import Programs
from benchmarks.clients.measuring import TIME, ours_in
from benchmarks.clients.running import OURS, agent_home, holds
from benchmarks.clients.script import CALL_TOOLS, SEARCH, Model
from benchmarks.daemon_kit import Machine, children, machine, pss_mib, servers_of, until
from benchmarks.results import ROOT
from tests.kit.inspector import INSPECTOR, calling
from tests.kit.loopback import Reply, Seen
from tests.kit.published_servers import NODE_MODULES, make_repository, published_servers
from tests.kit.real_clients import listing_all

_HERE_S: Final = 120.0  # a client has this time to call its tool
_ENDS_S: Final = 30.0  # and this time to end
_LONGEST_S: Final = 900.0  # an agent waits for the others no longer than this
_PROXIES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")
_INSIDE: Final = ROOT / "tests" / "clients" / "inside"
_CALL: Final = {"name": TIME.name, "arguments": dict(TIME.arguments)}


@dataclass(frozen=True, slots=True)
class Row:
    """What one client has done.

    tools         how many of the gateway's four tools it was listed
    called        whether a tool of a server ran for it
    first_list_s  from the start of the client to its list; of an agent: to the first request that tells its model of it
    relays        the small programs that it has started and that still run with all clients
    ready_ms      from the start of its small program to the connection with the background process
    relay_mib     the memory of its small programs, by PSS
    ended         whether it ended by itself
    """

    client: str
    version: str
    tools: int
    called: bool
    first_list_s: float
    relays: int = 0
    ready_ms: float = 0.0
    relay_mib: float = 0.0
    ended: bool = True


@dataclass(frozen=True, slots=True)
class Together:
    """All clients at once. Memory is PSS; *left* counts the processes that were still there after the end."""

    clients: Sequence[Row]
    processes: int
    servers: int
    relays: int
    process_mib: float
    servers_mib: float
    relays_mib: float
    left: int


@dataclass(frozen=True, slots=True)
class Place:
    """
    machine  the configuration
    home     the folder that is home to all clients
    program  the folder of the program ``toolsearch``
    agents   the coding agents; all clients have the same PATH
    """

    machine: Machine
    home: Path
    program: Path
    agents: Programs

    @property
    def command(self) -> list[str]:
        return [str(self.program / OURS), "gateway", "--config", str(self.machine.config)]

    @property
    def environment(self) -> dict[str, str]:
        with agent_home(AGENTS[0], self.agents, self.home, gateway=self.program) as home:
            every = home.environment()
        return {name: every[name] for name in ("HOME", "PATH")}


class Running(Protocol):
    """A client that has been started. It is *here* once it has called its tool, and then waits for *release*."""

    pid: int

    def here(self) -> tuple[int, bool, float]:
        """Wait until it is here. Returns the tools in its list, whether its call ran, and seconds to the list."""
        ...

    def release(self) -> bool:
        """Let it end. Returns whether it has ended by itself."""
        ...


@dataclass(frozen=True, slots=True)
class RealClient:
    name: str
    version: str
    start: Callable[[Place], Running]


class _RunningAgent:
    """A coding agent, whose model keeps its last word back until the agent is released."""

    def __init__(self, agent: Agent, programs: Programs, place: Place) -> None:
        self._agent = agent
        self._model = Model(agent, TIME, is_behind=True)
        self._first: tuple[int, float] | None = None  # the tools in its first request, and when that came
        self._is_here, self._is_released = threading.Event(), threading.Event()
        self._stack = ExitStack()
        agent, variables = listing_all(agent)
        home = self._stack.enter_context(agent_home(agent, programs, place.home, gateway=place.program))
        home.write({OURS: place.command})
        home.play(self._reply)
        log = self._stack.enter_context((place.home / f"{agent.name}.txt").open("w"))
        self._began_s = time.monotonic()
        self._process = subprocess.Popen(
            home.command(TIME.prompt),
            cwd=home.work,
            env=home.environment() | dict(variables),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        self.pid = self._process.pid

    def _reply(self, seen: Seen) -> Reply:
        if not holds(seen, TIME.prompt):
            return Reply("ok")
        if self._first is None:
            self._first = ours_in(self._agent, seen), time.monotonic() - self._began_s
        reply = self._model(seen)
        if not reply.calls:
            self._is_here.set()
            self._is_released.wait(_LONGEST_S)
        return reply

    def here(self) -> tuple[int, bool, float]:
        with suppress(TimeoutError):
            until(lambda: self._is_here.is_set() or self._process.poll() is not None, _HERE_S)
        tools, first_s = self._first or (0, 0.0)
        return tools, self._model.is_done, first_s

    def release(self) -> bool:
        self._is_released.set()
        ended = _ended(self._process)
        self._stack.close()
        return ended


class _RunningProgram:
    """A program that prints its list and the result of its call, and ends when its stdin is closed."""

    def __init__(self, command: Sequence[str], place: Place) -> None:
        arguments = [CALL_TOOLS[0], json.dumps(_CALL), *place.command]
        self._began_s = time.monotonic()
        self._process = subprocess.Popen(
            [*command, *arguments],
            cwd=place.home,
            env=place.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.pid = self._process.pid

    def here(self) -> tuple[int, bool, float]:
        assert self._process.stdout is not None
        listed: list[str] = json.loads(self._process.stdout.readline() or "[]")
        first_s = time.monotonic() - self._began_s
        called = self._process.stdout.readline()
        return len({SEARCH, *CALL_TOOLS} & {*listed}), TIME.sign in called, first_s

    def release(self) -> bool:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        ended = _ended(self._process)
        self._process.stdout.close()
        return ended


class _Inspector:
    """The Inspector's command line, which ends after each method. So it is gone when all others are there."""

    pid = 0

    def __init__(self, place: Place) -> None:
        config = place.home / "inspector.json"
        command, *arguments = place.command
        config.write_text(json.dumps({"mcpServers": {OURS: {"command": command, "args": arguments}}}))
        self._command = [_node(), str(INSPECTOR), "--cli", "--quiet", "--config", str(config), "--server", OURS]
        self._environment = place.environment

    def here(self) -> tuple[int, bool, float]:
        began_s = time.monotonic()
        listed = self._run("--method", "tools/list").get("tools", [])
        first_s = time.monotonic() - began_s
        called = json.dumps(self._run(*calling(CALL_TOOLS[0], _CALL)))
        return len({SEARCH, *CALL_TOOLS} & {each["name"] for each in listed}), TIME.sign in called, first_s

    def release(self) -> bool:
        return True

    def _run(self, *options: str) -> dict[str, Any]:
        done = subprocess.run(
            [*self._command, *options], env=self._environment, capture_output=True, text=True, check=False
        )
        result: dict[str, Any] = json.loads(done.stdout or "{}")
        return result


def real_clients(programs: Programs, fastmcp: Path | None, only: Sequence[str] = ()) -> list[RealClient]:
    """The agents of *programs*, SDKs, FastMCP with the interpreter *fastmcp*, and the Inspector; or *only* those."""
    python, node = [sys.executable, str(_INSIDE / "mcp_sdk_task.py")], [_node(), str(_SDK)]
    clients = [
        RealClient(
            agent.name,
            programs.version(agent.package),
            lambda place, agent=agent: _RunningAgent(agent, programs, place),  # type: ignore[misc]
        )
        for agent in AGENTS
    ]
    clients += [
        RealClient("Python SDK", version("mcp"), lambda place: _RunningProgram(python, place)),
        RealClient("TypeScript SDK", _version_in(NODE_MODULES / "sdk"), lambda place: _RunningProgram(node, place)),
    ]
    if fastmcp is not None:
        command = [str(fastmcp), str(_INSIDE / "fastmcp_task.py")]
        clients.append(
            RealClient("FastMCP", _version_of("fastmcp", fastmcp), lambda place: _RunningProgram(command, place))
        )
    clients.append(RealClient("Inspector", _version_in(NODE_MODULES / "inspector"), _Inspector))
    return [client for client in clients if not only or client.name in only]


_SDK: Final = ROOT / "tests" / "mcp_servers" / "sdk_client.mjs"


def together(programs: Programs, clients: Sequence[RealClient]) -> Together:
    """Start each of *clients* once the one before is there, measure them all, and let them end."""
    with tempfile.TemporaryDirectory(prefix="clients") as folder, _place(Path(folder), programs) as place:
        running: list[Running] = []
        told: list[tuple[int, bool, float]] = []
        for client in clients:
            running.append(client.start(place))
            told.append(running[-1].here())
        relays = [sorted(children(each.pid) & _pids(place)) if each.pid else [] for each in running]
        with suppress(TimeoutError):  # a gateway tells of its clients every two seconds
            until(lambda: set(chain(*relays)) <= _served(place).keys(), _ENDS_S)
        gateways, started = place.machine.gateways, _served(place)
        pids = [gateway["pid"] for gateway in gateways]
        servers = servers_of(pids)
        process_mib, servers_mib, relays_mib = _mib(pids), _mib(servers), _mib(chain(*relays))
        rows = [
            Row(
                client.name,
                client.version,
                *told[number],
                relays=len(relays[number]),
                ready_ms=round(
                    1_000 * max((started[pid] - _started_s(pid) for pid in relays[number] if pid in started), default=0)
                ),
                relay_mib=_mib(relays[number]),
            )
            for number, client in enumerate(clients)
        ]
        rows = [replace(row, ended=each.release()) for row, each in zip(rows, running, strict=True)]
        with suppress(TimeoutError):
            place.machine.stop()
            until(lambda: not _pids(place) and not any(map(_is_there, servers)), _ENDS_S)
        left = len(_pids(place)) + sum(map(_is_there, servers))
        return Together(
            rows,
            processes=len(pids),
            servers=len(servers),
            relays=sum(map(len, relays)),
            process_mib=process_mib,
            servers_mib=servers_mib,
            relays_mib=relays_mib,
            left=left,
        )


def _mib(pids: Iterable[int]) -> float:
    return round(sum(map(pss_mib, pids)), 1)


@contextmanager
def _place(folder: Path, agents: Programs) -> Generator[Place]:
    home = folder / "home"
    home.mkdir()
    repository = make_repository(folder / "repository")
    entries = published_servers(str(repository), memory=str(folder / "memory.jsonl"))
    with machine(lambda _: {name: {**entry, "cwd": "/"} for name, entry in entries.items()}) as made:
        yield Place(made, home, _program(folder), agents)


def _served(place: Place) -> dict[int, float]:
    """The small programs that are connected, and since when."""
    return {each["pid"]: each["since_s"] for gateway in place.machine.gateways for each in gateway.get("clients", ())}


def _program(folder: Path) -> Path:
    """The program ``toolsearch`` of this checkout. It drops variables by which this benchmark keeps clients from the
    internet and from the user's folders: some clients pass them on, and some do not.
    """
    place = folder / "program"
    place.mkdir()
    program = place / OURS
    paths = os.pathsep.join((str(ROOT), str(ROOT / "indexes")))
    program.write_text(
        f"#!/bin/sh\nunset XDG_STATE_HOME {' '.join(_PROXIES)}\n"
        f"export XDG_RUNTIME_DIR='{folder}' PYTHONPATH='{paths}'\n"
        f'exec "{sys.executable}" -m toolsearch "$@"\n'
    )
    program.chmod(0o755)
    return place


def _pids(place: Place) -> set[int]:
    """The gateways and small programs of the configuration."""
    found: set[int] = set()
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.pid != os.getpid() and str(place.machine.config) in process.cmdline():
                found.add(process.pid)
    return found


def _is_there(pid: int) -> bool:
    with suppress(psutil.Error):
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    return False


def _started_s(pid: int) -> float:
    """When the process was started, as `time.time` tells it."""
    ticks = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    return time.time() - age_s


def _ended(process: subprocess.Popen[Any]) -> bool:
    """Whether *process* ends by itself; else it is killed."""
    try:
        process.wait(_ENDS_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return False
    return True


def _node() -> str:
    return shutil.which("node") or "node"


def _version_in(package: Path) -> str:
    return str(json.loads((package / "package.json").read_text())["version"])


def _version_of(package: str, python: Path) -> str:
    code = f"from importlib.metadata import version; print(version({package!r}))"
    return subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=True).stdout.strip()
