"""Faults of the background process that clients share, and of what is around it: each is injected many times.

An injection is right if each request gets an answer, no answer is untrue, no call runs twice, no gateway and no server
is started beside those needed, and a call works again at the end.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.request import urlopen

import toolsearch
from benchmarks.daemon_kit import PROGRAM, Machine, is_running, machine, until
from benchmarks.fault_kit import StdioFault
from benchmarks.guarded_server import GuardedServer
from benchmarks.stdio_gateway import StdioGateway
from toolsearch.gateway.daemon.address import DaemonAddress

_AT_ONCE: Final = 4  # clients, or programs, that start at once
_LONGEST_S: Final = 60.0  # of an injection
_NOBODY: Final = 65_534
_CALL: Final = "callToolRead"
_ADDRESS: Final = re.compile(r"http://127\.0\.0\.1:\d+/\S+")


class WrongError(Exception):
    """An injection did not end as it should."""


@dataclass(frozen=True, slots=True)
class Fault:
    """*problems* says what was wrong, and how often."""

    fault: str
    injected: int
    right: int
    wrong: int
    recovery_p50_ms: float
    recovery_max_ms: float
    problems: Mapping[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True, slots=True)
class Scene:
    """A machine with one server that fails on demand; nothing runs at the beginning of an injection."""

    machine: Machine
    server: StdioFault

    @property
    def servers(self) -> dict[str, Any]:
        return {"faulty": {**self.server.entry, "cwd": "/"}}

    @contextmanager
    def client(self, environment: Mapping[str, str] | None = None) -> Generator[StdioGateway]:
        """A client that has shaken hands. If it hangs, it is ended, and its next answer is missing."""
        with self.machine.client(environment=environment) as client:
            watch = threading.Timer(_LONGEST_S, os.kill, (client.pid, signal.SIGKILL))
            watch.daemon = True
            watch.start()
            try:
                client.shake_hands()
                yield client
            finally:
                watch.cancel()

    def lose(self, client: StdioGateway, call_id: str, fault: Callable[[], object]) -> Any:
        """The answer to a call during which *fault* happens."""
        self.server.mode = "hang"
        client.send(call_id, "tools/call", _call(call_id))
        until(lambda: call_id in self.server.runs)
        fault()
        answer = client.answer_to(call_id)
        self.server.mode = "ok"
        _require(bool(answer.get("isError")), "a lost call was answered with a result")
        _require("may have run" in json.dumps(answer), "a call that may have run was told to be another thing")
        return answer


Inject: TypeAlias = Callable[[Scene, str], float]  # injects the fault; seconds until all is well again


def killed_in_a_call(scene: Scene, name: str) -> float:
    """The process is killed while a call runs; the same client calls again."""
    with scene.client() as client:
        _work(client, f"{name}-first")
        process, server = scene.machine.processes[0], scene.server.pids[-1]
        killed_s = list[float]()

        def kill() -> None:
            os.kill(process, signal.SIGKILL)
            killed_s.append(time.monotonic())

        scene.lose(client, f"{name}-lost", kill)
        _work(client, f"{name}-next")
        recovery_s = time.monotonic() - killed_s[0]
        until(lambda: not is_running(server))
        _require_processes(scene, 1)
    return recovery_s


def clients_at_once(scene: Scene, name: str) -> float:
    """Several clients start at once, and none before them."""
    begun_s, before = time.monotonic(), len(scene.server.pids)
    with ExitStack() as stack:
        started = [stack.enter_context(scene.machine.client()) for _ in range(_AT_ONCE)]
        for number, client in enumerate(started):
            client.shake_hands()
            _work(client, f"{name}-{number}")
        recovery_s = time.monotonic() - begun_s
        _require_processes(scene, 1)
        _require(len(scene.server.pids) == before + 1, "a server was started twice")
    return recovery_s


def daemons_race(scene: Scene, name: str) -> float:
    """Several programs look for the process at the same moment, and each would start one."""
    code = (
        "import sys; from pathlib import Path; from toolsearch.gateway.daemon.connector import DaemonConnector as C; "
        "sys.stdin.read(); c = C(Path(sys.argv[1]), 'warning').connect(); print(c.banner['pid'])"
    )
    command = [sys.executable, "-c", code, str(scene.machine.config)]
    pipe = subprocess.PIPE
    started = [
        subprocess.Popen(command, cwd=scene.machine.folder, stdin=pipe, stdout=pipe, text=True) for _ in range(_AT_ONCE)
    ]
    time.sleep(0.5)  # all of them have imported what they need, and wait
    begun_s = time.monotonic()
    for each in started:
        assert each.stdin is not None
        each.stdin.close()
        each.stdin = None
    reached = {each.communicate()[0].strip() for each in started}
    recovery_s = time.monotonic() - begun_s
    _require(len(reached) == 1 and "" not in reached, f"{len(reached)} processes were reached")
    with scene.client() as client:
        _work(client, name)
        _require_processes(scene, 1)
    return recovery_s


def stale_socket(scene: Scene, name: str) -> float:
    """The process is killed while no client is there, so that its socket and its lock stay; then a client comes."""
    with scene.client() as client:
        _work(client, f"{name}-first")
        path, process = _address(scene).path, scene.machine.processes[0]
    os.kill(process, signal.SIGKILL)
    until(lambda: not is_running(process))
    _require(path.exists(), "the socket did not stay")
    begun_s = time.monotonic()
    with scene.client() as client:
        _work(client, f"{name}-next")
        recovery_s = time.monotonic() - begun_s
        _require_processes(scene, 1)
    return recovery_s


_FOREIGN = """
import os, socket, sys
listening = socket.socket(socket.AF_UNIX)
listening.bind(sys.argv[1])
os.setuid(int(sys.argv[2]))
listening.listen()
print("listening", flush=True)
while True:
    connection, _ = listening.accept()
    heard = b""
    try:
        while got := connection.recv(65536):
            heard += got
    except ConnectionError:
        pass
    print(len(heard), flush=True)
"""


def anothers_socket(scene: Scene, name: str) -> float:
    """Another user listens where the process is looked for. The client is served without one, and tells that user
    nothing. Only root can inject this.
    """
    path = _address(scene).path
    path.unlink(missing_ok=True)
    command = [sys.executable, "-c", _FOREIGN, str(path), str(_NOBODY)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as foreign:
        try:
            assert foreign.stdout is not None
            _require(foreign.stdout.readline() == "listening\n", "the other user could not listen")
            begun_s = time.monotonic()
            with scene.client() as client:
                _work(client, name)
                recovery_s = time.monotonic() - begun_s
                _require_processes(scene, 1)
                _require(scene.machine.gateways[0]["address"] == "stdio", "the client was not served by itself")
            _require(int(foreign.stdout.readline()) == 0, "the other user was told something")
        finally:
            foreign.kill()
            path.unlink(missing_ok=True)
    return recovery_s


def newer_program(scene: Scene, name: str) -> float:
    """Another version is installed while the process runs. A client of that version gets a process of its own; the
    client before it stays where it is, and goes to the new process once its own has ended.
    """
    program = scene.machine.folder / "installed"
    if not program.exists():
        skipped = shutil.ignore_patterns("*.pyc")
        shutil.copytree(Path(toolsearch.__file__).parent, program / "toolsearch", ignore=skipped)
    environment = {**os.environ, "PYTHONPATH": str(program)}
    with scene.client(environment) as old:
        _work(old, f"{name}-first")
        before = scene.machine.processes
        os.utime(program / "toolsearch" / "__init__.py")
        begun_s = time.monotonic()
        with scene.client(environment) as new:
            _work(new, f"{name}-new")
            recovery_s = time.monotonic() - begun_s
            _work(old, f"{name}-old")
            after = scene.machine.processes
            _require(len(after) == 2 and set(before) < set(after), f"{len(after)} processes ran, not 2")
            os.kill(before[0], signal.SIGKILL)
            until(lambda: not is_running(before[0]))
            _work_again(old, f"{name}-moved")
            _require_processes(scene, 1)
    return recovery_s


def edited_in_mid_write(scene: Scene, name: str) -> float:
    """The file stays half-written for a while. The gateway goes on as before, and then has the new server."""
    text = scene.machine.document({**scene.servers, "more": scene.servers["faulty"]})
    with scene.client() as client:
        _work(client, f"{name}-first")
        before = _warnings(scene)
        scene.machine.config.write_text(text[: len(text) // 2])
        until(lambda: _warnings(scene) > before)
        _work(client, f"{name}-half")
        scene.machine.config.write_text(text)
        begun_s = time.monotonic()
        until(lambda: not _fails(client, "more", f"{name}-more-{time.monotonic()}"))
        recovery_s = time.monotonic() - begun_s
        _require_processes(scene, 1)
    scene.machine.write(scene.servers)
    return recovery_s


def removed_in_a_call(scene: Scene, name: str) -> float:
    """A server leaves the file while a call of it runs. The call is answered, and another server is not disturbed."""
    with tempfile.TemporaryDirectory() as folder:
        other = StdioFault(Path(folder))
        entry = {**other.entry, "cwd": "/"}
        scene.machine.write({**scene.servers, "other": entry})
        with scene.client() as client:
            _work(client, f"{name}-first")
            _work(client, f"{name}-other", "other")
            removed_s = list[float]()

            def remove() -> None:
                scene.machine.write({"other": entry})
                removed_s.append(time.monotonic())

            scene.lose(client, f"{name}-lost", remove)
            recovery_s = time.monotonic() - removed_s[0]
            _work(client, f"{name}-again", "other")
            _require(_fails(client, "faulty", f"{name}-gone"), "a removed server was called")
            _require(len(other.pids) == 1, "another server was started anew")
            _require_processes(scene, 1)
        scene.machine.write(scene.servers)
    return recovery_s


def token_revoked_in_a_call(scene: Scene, name: str) -> float:
    """All tokens of a server are revoked while a call of it runs. The call is answered; the next one says that a login
    is needed, and does not run; after the login, calls run again.
    """
    with GuardedServer() as guarded:
        scene.machine.write({**scene.servers, "guarded": guarded.entry})
        _log_in(scene)
        with scene.client() as client:
            _work(client, f"{name}-first", "guarded")
            guarded.go_on.clear()
            client.send(f"{name}-running", "tools/call", _call(f"{name}-running", "guarded"))
            until(lambda: f"{name}-running" in guarded.runs)
            guarded.revoke()
            guarded.go_on.set()
            answer = client.answer_to(f"{name}-running")
            _require(not answer.get("isError"), "the call that ran was not answered with its result")
            refused = json.dumps(client.ask("tools/call", _call(f"{name}-refused", "guarded")))
            _require("gateway login guarded" in refused, f"a call without a token was answered with {refused[:200]}")
            _require(f"{name}-refused" not in guarded.runs, "a call ran without a token")
            _work(client, f"{name}-other")
            begun_s = time.monotonic()
            _log_in(scene)
            _work(client, f"{name}-again", "guarded")
            recovery_s = time.monotonic() - begun_s
            _require(max(guarded.runs.values()) == 1, "a call ran twice")
            _require_processes(scene, 1)
    return recovery_s


def _log_in(scene: Scene) -> None:
    """Log in as a person does: the browser opens the address that the command prints."""
    command = [*PROGRAM, "gateway", "login", "guarded", "--no-browser", "--config", str(scene.machine.config)]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "COLUMNS": "2000"}
    with subprocess.Popen(
        command, cwd=scene.machine.folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        told = ""
        for line in process.stdout:
            told += line
            if found := _ADDRESS.search(line):
                urlopen(found[0]).close()  # noqa: S310  it is on the loopback interface
    _require(process.returncode == 0, f"the login has failed: {told}")


FAULTS: Final[Mapping[str, Inject]] = {
    "process killed in a call": killed_in_a_call,
    f"{_AT_ONCE} clients at once": clients_at_once,
    f"{_AT_ONCE} race for the socket": daemons_race,
    "stale socket": stale_socket,
    "socket of another user": anothers_socket,
    "relay newer than the process": newer_program,
    "file edited in mid-write": edited_in_mid_write,
    "server removed in a call": removed_in_a_call,
    "token revoked in a call": token_revoked_in_a_call,
}


def measured(injections: int, only: Sequence[str] = ()) -> Iterator[Fault]:
    """Each fault in its turn, or *only* those."""
    for name, inject in FAULTS.items():
        if only and name not in only:
            continue
        if inject is anothers_socket and os.getuid():
            print(f"{name!r} is left out: only root can act as another user", file=sys.stderr)
            continue
        yield _measured(name, inject, injections)


def _measured(name: str, inject: Inject, injections: int) -> Fault:
    recoveries_s, problems = list[float](), Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        server = StdioFault(Path(folder))
        with machine(lambda _: {"faulty": {**server.entry, "cwd": "/"}}) as made:
            scene = Scene(made, server)
            for number in range(injections):
                server.mode = "ok"
                made.write(scene.servers)
                try:
                    recoveries_s.append(inject(scene, f"{number}"))
                    _require(max(server.runs.values()) == 1, "a call ran twice")
                except Exception as error:  # noqa: BLE001  whatever goes wrong counts
                    problems[f"{type(error).__name__}: {error}"] += 1
                made.stop()
    wrong = problems.total()
    p50, most = (
        (round(1_000 * statistics.median(recoveries_s)), round(1_000 * max(recoveries_s))) if recoveries_s else (0, 0)
    )
    return Fault(name, injections, injections - wrong, wrong, p50, most, dict(problems))


def _call(call_id: str, server: str = "faulty") -> dict[str, Any]:
    return {"name": _CALL, "arguments": {"name": f"{server}__work", "arguments": {"id": call_id}}}


def _work(client: StdioGateway, call_id: str, server: str = "faulty") -> None:
    """A call that has to be answered by its server."""
    result = client.ask("tools/call", _call(call_id, server))
    told = result["content"][0]["text"]
    _require(
        not result.get("isError") and told.startswith(f"{call_id} by "), f"a call was answered with {told[:200]!r}"
    )


def _fails(client: StdioGateway, server: str, call_id: str) -> bool:
    return bool(client.ask("tools/call", _call(call_id, server)).get("isError"))


def _work_again(client: StdioGateway, call_id: str) -> None:
    """A call after the process has been killed: the first may be lost, if the client has not noticed that yet."""
    if _fails(client, "faulty", f"{call_id}-first"):
        _work(client, call_id)


def _require(condition: bool, problem: str) -> None:  # noqa: FBT001  as with assert
    if not condition:
        raise WrongError(problem)


def _require_processes(scene: Scene, count: int) -> None:
    running = len(scene.machine.processes)
    _require(running == count, f"{running} processes ran, not {count}")


def _address(scene: Scene) -> DaemonAddress:
    return DaemonAddress.of(scene.machine.config, os.environ)


def _warnings(scene: Scene) -> int:
    """How often the process has logged that it cannot follow the file."""
    logs = (scene.machine.folder / "state" / "logs").glob("*.log")
    return sum(path.read_text().count("goes on as before") for path in logs)
