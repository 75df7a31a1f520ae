"""One agent in a home folder of its own: told of servers, put behind the gateway, and asked, with a scripted model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import psutil  # type: ignore[import-untyped]

from benchmarks.clients.drivers import Agent, Servers
from benchmarks.clients.installing import Programs
from benchmarks.results import ROOT
from tests.kit.loopback import LoopbackApi, Reply, Request, Seen

Script: TypeAlias = Callable[[Seen], Reply]
OURS = "toolsearch"  # the gateway among an agent's servers
_NOWHERE = "http://127.0.0.1:9"  # a proxy that is not there: who asks the internet is refused at once
_CAN_END_S = 3.0


@dataclass(frozen=True, slots=True)
class Run:
    """What an agent has done for one prompt.

    requests   those that hold the prompt and tools, in the order in which they came
    others     what it asked the model for its own ends, such as a title
    first_s    seconds from its start to the first of *requests*; None without any
    exit_code  None if it was still running a little after its model had said its last, or at the end of its time
    """

    requests: Sequence[Request]
    others: Sequence[Request]
    first_s: float | None
    exit_code: int | None
    output: str

    @property
    def seen(self) -> list[Seen]:
        return [request.seen for request in self.requests]


class AgentHome:
    """
    agent     who lives there
    programs  where it is installed
    folder    its home
    url       where it finds its model: the scripted one, unless a proxy before that one is put here
    gateway   the folder with the program ``toolsearch`` that is imported with, and that is put before the servers
    """

    def __init__(self, agent: Agent, programs: Programs, folder: Path, api: LoopbackApi, gateway: Path) -> None:
        self.agent = agent
        self.folder = folder
        self.work = folder / "work"
        self.own_config = folder / "gateway.json"
        self.url = api.url
        self._programs = programs
        self._api = api
        self._gateway = gateway
        self._servers: list[str] = []
        self.work.mkdir(parents=True, exist_ok=True)

    @property
    def config(self) -> Path:
        """Where the agent keeps its servers."""
        return self.folder / self.agent.file

    def write(self, servers: Servers) -> None:
        """Attach *servers* to the agent itself."""
        self._servers = [*servers]
        for path, text in self.agent.files(self.url, servers).items():
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / path).write_text(text, encoding="utf-8")

    def import_servers(self) -> bool:
        """Move its servers behind the gateway. False if the import does not know this agent and has changed nothing."""
        done = self._import("--from", self.agent.name, "--config", str(self.own_config), "--write")
        if done.returncode and f"no client '{self.agent.name}' is known" in done.stderr.replace("\n", " "):
            return False
        if done.returncode:
            raise RuntimeError(f"the import failed: {done.stderr}{done.stdout}")
        self._servers = [OURS]
        return True

    def attach_gateway(self, servers: Servers) -> None:
        """Put the gateway before *servers* as an agent without an import would have it, by command alone."""
        entries = {name: {"command": command[0], "args": [*command[1:]]} for name, command in servers.items()}
        self.own_config.write_text(json.dumps({"mcpServers": entries}), encoding="utf-8")
        self.write({OURS: [str(self._gateway / OURS), "gateway", "--config", str(self.own_config)]})

    def undo_import(self) -> None:
        done = self._import("--from", self.agent.name, "--undo", "--write")
        if done.returncode:
            raise RuntimeError(f"the import could not be undone: {done.stderr}{done.stdout}")

    def ask(
        self, prompt: str, script: Script, *, environment: Mapping[str, str] | None = None, timeout_s: float = 90.0
    ) -> Run:
        """Run the agent with *prompt* while *script* answers as its model."""
        self._api.requests.clear()

        is_answered = threading.Event()

        def play(seen: Seen) -> Reply:
            reply = script(seen) if holds(seen, prompt) else Reply("ok")
            if holds(seen, prompt) and not reply.calls:
                is_answered.set()
            return reply

        self._api.play = play
        command, variables = self.command(prompt), self.environment() | dict(environment or {})
        log = self.folder / "output.txt"
        started_s = time.monotonic()
        with log.open("w", encoding="utf-8") as out:
            process = subprocess.Popen(
                command, cwd=self.work, env=variables, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT
            )
            try:
                _wait(process, is_answered, timeout_s)
            finally:
                exit_code = process.poll()
                _end_processes_of(self.folder)
                process.wait()
        requests = [request for request in self._api.requests if holds(request.seen, prompt)]
        others = [request for request in self._api.requests if request not in requests]
        first_s = requests[0].came_s - started_s if requests else None
        return Run(requests, others, first_s, exit_code, log.read_text(encoding="utf-8", errors="replace"))

    def play(self, script: Script) -> None:
        """Have *script* answer as the agent's model."""
        self._api.play = script

    def command(self, prompt: str) -> list[str]:
        """The command that runs the agent with *prompt*."""
        return [str(self._programs.on_path / self.agent.program), *self.agent.command(prompt, self._servers)]

    def environment(self) -> dict[str, str]:
        """The variables that the agent runs with."""
        return self._environment() | dict(self.agent.environment(self.url))

    def _import(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(self._gateway / OURS), "gateway", "import", "--home", str(self.folder), *arguments]
        return subprocess.run(
            command,
            cwd=self.work,
            env=self._environment() | {"COLUMNS": "1000"},
            capture_output=True,
            text=True,
            check=False,
        )

    def _environment(self) -> dict[str, str]:
        """Little of ours: not our home, nor a key, nor the way into the internet."""
        folders = (
            self._gateway,
            self._programs.on_path,
            Path(sys.executable).parent,
            "/usr/local/bin",
            "/usr/bin",
            "/bin",
        )
        own = {f"XDG_{name}_HOME": str(self.folder / place) for name, place in _PLACES.items()}
        proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), _NOWHERE)
        local = dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost")
        return {
            "HOME": str(self.folder),
            "PATH": os.pathsep.join(map(str, folders)),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "COPILOT_PKG_CACHE_HOME": str(
                self._programs.folder / "copilot"
            ),  # 235 MB, unpacked once and not for each home
            **own,
            **proxies,
            **local,
        }


_PLACES = {"CONFIG": ".config", "CACHE": ".cache", "DATA": ".local/share", "STATE": ".local/state"}


@contextmanager
def agent_home(agent: Agent, programs: Programs, folder: Path, *, gateway: Path | None = None) -> Generator[AgentHome]:
    """Give *agent* a home in *folder*, and a model. *gateway* is the folder of another ``toolsearch`` than ours."""
    with scripted_model() as api:
        yield AgentHome(agent, programs, folder, api, gateway or _own_program(folder))


@contextmanager
def scripted_model() -> Generator[LoopbackApi]:
    """A model API for real programs."""
    with LoopbackApi(is_strict=False) as api:
        thread = threading.Thread(target=api.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield api
        finally:
            api.shutdown()
            thread.join()


def _own_program(folder: Path) -> Path:
    """Write the program ``toolsearch`` of this checkout, and return its folder."""
    place = folder / "program"
    place.mkdir(parents=True, exist_ok=True)
    program = place / OURS
    paths = os.pathsep.join((str(ROOT), str(ROOT / "indexes")))
    program.write_text(
        f'#!/bin/sh\nPYTHONPATH="{paths}" exec "{sys.executable}" -m toolsearch "$@"\n', encoding="utf-8"
    )
    program.chmod(0o755)
    return place


def holds(seen: Seen, prompt: str) -> bool:
    return bool(seen.tools) and prompt in seen.said


def _wait(process: subprocess.Popen[bytes], is_answered: threading.Event, timeout_s: float) -> None:
    """Until the agent ends. Once its model has said its last, an agent has little time for that."""
    until_s = time.monotonic() + timeout_s
    while process.poll() is None and time.monotonic() < until_s:
        if is_answered.wait(0.05):
            with suppress(subprocess.TimeoutExpired):
                process.wait(_CAN_END_S)
            return


def _end_processes_of(home: Path) -> None:
    """End all that an agent has left running, which it has told of its home."""
    left: list[psutil.Process] = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get("HOME") == str(home):
                left.append(process)
    for process in left:
        with suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(left, timeout=_CAN_END_S)
