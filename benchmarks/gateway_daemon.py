"""What clients of one configuration take that share a background process, and what faults of that process cost them.

    python -m benchmarks.gateway_daemon [--clients 10] [--servers 11] [--apart 2] [--injections 20] [--json FILE]

Each client is the real command over stdio. They are started one after the other, and each lists the tools and calls one
of each server: sharing a process, and so many of them each with a gateway and servers of its own. Memory is what is
resident, with what is mapped from files. Then the process is killed in the middle of calls, several clients start at
once, and a socket is left behind that nobody listens at: so often each.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.fault_kit import StdioFault
from benchmarks.figure_tables import print_table
from benchmarks.memory import resident_kib
from benchmarks.results import write_figures
from benchmarks.stdio_gateway import StdioGateway
from toolsearch.gateway.reports.commands import running_gateways

_PROGRAM: Final = [sys.executable, "-m", "toolsearch"]
_SERVER: Final = [sys.executable, "-m", "mcp_server_time", "--local-timezone", "UTC"]
_AT_ONCE: Final = 4  # clients that start at once
_LOOK_S: Final = 0.01
_LONGEST_S: Final = 60.0


class Machine:
    """One configuration in a folder of its own, whose background processes end with the block."""

    def __init__(self, folder: Path, servers: dict[str, Any]) -> None:
        self._folder = folder
        self._config = folder / "mcp.json"
        section = {"stateDir": str(folder / "state"), "passThrough": {"maxTools": 0}}
        self._config.write_text(json.dumps({"mcpServers": servers, "toolsearch": section}))

    def client(self, *options: str) -> StdioGateway:
        return StdioGateway(_PROGRAM, self._config, options=options)

    @property
    def processes(self) -> list[int]:
        """The gateways that run."""
        return [
            each["pid"] for each in running_gateways(self._folder / "state") if Path(f"/proc/{each['pid']}").exists()
        ]

    def stop(self) -> None:
        command = [*_PROGRAM, "gateway", "stop", "--config", str(self._config)]
        subprocess.run(command, capture_output=True, check=False)
        _until(lambda: not self.processes)


@contextmanager
def machine(servers: Callable[[Path], dict[str, Any]]) -> Generator[Machine]:
    with tempfile.TemporaryDirectory() as folder:
        made = Machine(Path(folder), servers(Path(folder)))
        try:
            yield made
        finally:
            made.stop()


@dataclass(frozen=True)
class Shared:
    """*started_s* is from the start of a client to its list of tools: of the first client, and the median of the rest.

    client_mib   of the largest of the programs that clients have started
    gateway_mib  of what serves them, without the servers; if each has its own, it is that program
    """

    processes: int
    servers: int
    memory_mib: float
    client_mib: float
    gateway_mib: float
    client_cpu_ms: float
    first_started_s: float
    next_started_s: float


def share(clients: int, servers: int, *options: str) -> Shared:
    before = _children(os.getpid())
    with machine(lambda _: {f"time{number}": _entry() for number in range(servers)}) as made, ExitStack() as stack:
        started: list[StdioGateway] = []
        started_s: list[float] = []
        for _ in range(clients):
            begun_s = time.monotonic()
            client = stack.enter_context(made.client(*options))
            client.shake_hands()
            client.ask("tools/list", {})
            started_s.append(time.monotonic() - begun_s)
            for number in range(servers):
                _until(lambda client=client, number=number: _tells_the_time(client, number))  # type: ignore[misc]
            started.append(client)
        pids = [client.pid for client in started]
        gateways = made.processes
        running = {*pids, *gateways, *(child for pid in gateways for child in _children(pid))} - before
        return Shared(
            len(running),
            len(running) - len({*pids, *gateways}),
            round(sum(map(_mib, running)), 1),
            round(max(map(_mib, pids)), 1),
            round(max(map(_mib, gateways)), 1),
            round(statistics.median(client.cpu_ms() for client in started), 1),
            round(started_s[0], 2),
            round(statistics.median(started_s[1:]), 2),
        )


def _tells_the_time(client: StdioGateway, server: int) -> bool:
    """Whether a server's tools are known by now, after a call of one."""
    call = {"name": f"time{server}__get_current_time", "arguments": {"timezone": "UTC"}}
    return not client.ask("tools/call", {"name": "callToolRead", "arguments": call}).get("isError")


def _entry() -> dict[str, Any]:
    return {"command": _SERVER[0], "args": _SERVER[1:], "cwd": "/"}


def _children(pid: int) -> set[int]:
    """The processes that *pid* has started, and theirs."""
    children = {
        int(child) for path in Path(f"/proc/{pid}/task").glob("*/children") for child in path.read_text().split()
    }
    return children | {each for child in children for each in _children(child)}


def _mib(pid: int) -> float:
    return sum(resident_kib(pid)) / 1_024


@dataclass(frozen=True)
class Fault:
    """*unanswered* counts requests without an answer, *wrong* those whose answer says what is not so, *twice* calls
    that ran more than once, and *too_many* gateways or servers that were started beside the one.
    """

    fault: str
    injections: int
    unanswered: int
    wrong: int
    twice: int
    too_many: int
    recovery_p50_ms: float
    recovery_max_ms: float


def killed_in_calls(injections: int) -> Fault:
    """Kill the process while a call runs; then the same client calls again."""
    with _faulty() as (made, server), made.client() as client:
        client.shake_hands()
        _work(client, "first")
        wrong, recoveries_s = 0, list[float]()
        for number in range(injections):
            server.mode = "hang"
            client.send(f"lost{number}", "tools/call", _call(f"lost{number}"))
            _until(lambda number=number: f"lost{number}" in server.runs)  # type: ignore[misc]
            os.kill(made.processes[0], signal.SIGKILL)
            begun_s = time.monotonic()
            lost = client.answer_to(f"lost{number}")
            server.mode = "ok"
            wrong += "may have run" not in json.dumps(lost)
            _work(client, f"next{number}")
            recoveries_s.append(time.monotonic() - begun_s)
        too_many = len(server.pids) - injections - 1
        return _fault("killed in a call", recoveries_s, wrong, server, too_many)


def racing(injections: int) -> Fault:
    """Several clients start at once, and none before them."""
    with _faulty() as (made, server):
        wrong, too_many, recoveries_s = 0, 0, list[float]()
        for number in range(injections):
            begun_s, before = time.monotonic(), len(server.pids)
            with ExitStack() as stack:
                clients = [stack.enter_context(made.client()) for _ in range(_AT_ONCE)]
                for place, client in enumerate(clients):
                    client.shake_hands()
                    _work(client, f"{number}-{place}")
                recoveries_s.append(time.monotonic() - begun_s)
                too_many += len(made.processes) - 1 + len(server.pids) - before - 1
            made.stop()
        return _fault(f"{_AT_ONCE} clients at once", recoveries_s, wrong, server, too_many)


def stale_sockets(injections: int) -> Fault:
    """Kill the process while no client is there, so that its socket stays; then a client comes."""
    with _faulty() as (made, server):
        too_many, recoveries_s = 0, list[float]()
        for number in range(injections):
            begun_s = time.monotonic()
            with made.client() as client:
                client.shake_hands()
                _work(client, f"{number}")
                recoveries_s.append(time.monotonic() - begun_s)
                too_many += len(made.processes) - 1
            os.kill(made.processes[0], signal.SIGKILL)
            _until(lambda: not made.processes)
        return _fault("a stale socket", recoveries_s, 0, server, too_many + len(server.pids) - injections)


@contextmanager
def _faulty() -> Generator[tuple[Machine, StdioFault]]:
    with tempfile.TemporaryDirectory() as folder:
        server = StdioFault(Path(folder))
        with machine(lambda _: {"faulty": {**server.entry, "cwd": "/"}}) as made:
            yield made, server


def _call(call_id: str) -> dict[str, Any]:
    return {"name": "callToolRead", "arguments": {"name": "faulty__work", "arguments": {"id": call_id}}}


def _work(client: StdioGateway, call_id: str) -> None:
    """A call that has to be answered."""
    client.call(**_call(call_id))


def _fault(name: str, recoveries_s: Sequence[float], wrong: int, server: StdioFault, too_many: int) -> Fault:
    """Every request was answered, or the benchmark would still wait for it."""
    twice = sum(count - 1 for count in server.runs.values())
    p50, most = (round(1_000 * value) for value in (statistics.median(recoveries_s), max(recoveries_s)))
    return Fault(name, len(recoveries_s), 0, wrong, twice, too_many, p50, most)


def _until(condition: Callable[[], bool]) -> None:
    ends_s = time.monotonic() + _LONGEST_S
    while not condition():
        if time.monotonic() > ends_s:
            raise TimeoutError
        time.sleep(_LOOK_S)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=10)
    parser.add_argument("--servers", type=int, default=11)
    parser.add_argument("--apart", type=int, default=2, help="clients without a background process; 0: none")
    parser.add_argument("--injections", type=int, default=20)
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    ways = {f"{options.clients} share": share(options.clients, options.servers)}
    if options.apart:
        ways[f"{options.apart} apart"] = share(options.apart, options.servers, "--no-daemon")
    rows = [[name, *map(str, asdict(each).values())] for name, each in ways.items()]
    columns = ["clients", "processes", "servers", "MiB in all", "MiB a client", "MiB the gateway", "ms CPU a client"]
    print_table([*columns, "first list, s", "next lists, s"], rows)
    faults = [measure(options.injections) for measure in (killed_in_calls, racing, stale_sockets) if options.injections]
    columns = ["fault", "injections", "unanswered", "wrong", "ran twice", "too many", "p50, ms", "most, ms"]
    print_table(columns, [list(map(str, asdict(each).values())) for each in faults])
    if options.json:
        figures = {"ways": {name: asdict(each) for name, each in ways.items()}, "faults": list(map(asdict, faults))}
        write_figures(options.json, "gateway_daemon", {"servers": options.servers, **figures})
    return 0


if __name__ == "__main__":
    sys.exit(main())
