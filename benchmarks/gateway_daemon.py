"""What clients of one configuration take that share a background process, and what faults of that process cost them.

    python -m benchmarks.gateway_daemon [--clients N|real] [--faults] [--json FILE]

Each client is the real command over stdio. N of them start one after the other. Each lists the tools and calls one of
each server. They share a process; then some of them have a gateway and servers of their own. Memory is resident, with
files that are mapped.

With ``--clients real``, coding agents out of npm, SDKs, FastMCP and the Inspector share one process, all at the same
time. They are installed first, about 2 GB. With ``--faults``, each fault of `daemon_faults` is injected 20 times.
Without either option all three are measured.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.clients import installing
from benchmarks.daemon_clients import real_clients, together
from benchmarks.daemon_faults import measured
from benchmarks.daemon_kit import children, machine, until
from benchmarks.environments import Environment, NotInstalledError, python_in
from benchmarks.figure_tables import markdown_table
from benchmarks.memory import resident_kib
from benchmarks.results import ROOT, read_figures, write_figures
from benchmarks.stdio_gateway import StdioGateway

_SERVER: Final = [sys.executable, "-m", "mcp_server_time", "--local-timezone", "UTC"]
_CACHE: Final = ROOT / "benchmarks" / ".cache" / "agents"
_FASTMCP: Final = ROOT / "tests" / "adapters" / "environments" / "fastmcp.txt"
_REAL: Final = "real"


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
    before = children(os.getpid())
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
                until(lambda client=client, number=number: _tells_the_time(client, number))  # type: ignore[misc]
            started.append(client)
        pids = [client.pid for client in started]
        gateways = made.processes
        running = {*pids, *gateways, *(child for pid in gateways for child in children(pid))} - before
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


def _mib(pid: int) -> float:
    return sum(resident_kib(pid)) / 1_024


def page_tables(figures: Mapping[str, Any]) -> dict[str, list[str]]:
    """The tables for the page, of the parts that have been measured."""
    tables: dict[str, list[str]] = {}
    if ways := figures.get("ways"):
        columns = ["clients", "processes", "servers", "MiB in all", "MiB a client", "MiB the gateway"]
        columns += ["ms CPU a client", "first list, s", "next lists, s"]
        rows = [[name, *(f"{value:,}" for value in each.values())] for name, each in ways.items()]
        tables["gateway daemon, clients"] = markdown_table(columns, rows)
    if real := figures.get("real"):
        columns = ["client", "tools listed", "call", "first list, s", "relay ready, ms", "relay MiB"]
        tables["gateway daemon, real"] = markdown_table(columns, map(_real_cells, real["clients"]))
        columns = ["", "processes", "MiB"]
        rows = [
            [name, f"{real[count]:,}", f"{real[f'{mib}_mib']:,.1f}"]
            for name, count, mib in (
                ("relays", "relays", "relays"),
                ("background", "processes", "process"),
                ("servers", "servers", "servers"),
            )
        ]
        tables["gateway daemon, processes"] = markdown_table(
            columns, [*rows, ["left at the end", f"{real['left']:,}", ""]]
        )
    if faults := figures.get("faults"):
        columns = ["fault", "injected", "right", "wrong", "recovery p50, ms", "worst, ms"]
        keys = ("injected", "right", "wrong", "recovery_p50_ms", "recovery_max_ms")
        rows = [[each["fault"], *(f"{each[key]:,}" for key in keys)] for each in faults]
        tables["gateway daemon, faults"] = markdown_table(columns, rows)
    return tables


def _real_cells(row: Mapping[str, Any]) -> list[str]:
    was_held = bool(row["relays"])
    return [
        f"{row['client']} {row['version']}",
        f"{row['tools']:,}",
        "right" if row["called"] else "wrong",
        f"{row['first_list_s']:,.1f}",
        f"{row['ready_ms']:,.0f}" if was_held else "",
        f"{row['relay_mib']:,.1f}" if was_held else "",
    ]


def _real(environments: Path, only: Sequence[str]) -> dict[str, Any]:
    """Raises NotInstalledError."""
    programs = installing.pinned(environments)
    requires = tuple(_FASTMCP.read_text(encoding="utf-8").split())
    fastmcp = python_in(environments / "fastmcp", Environment(requires, sys.executable))
    return asdict(together(programs, real_clients(programs, fastmcp, only)))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gateway_daemon",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--clients", metavar=f"N|{_REAL}", help="so many of our own clients, or real ones; else 10 and real"
    )
    parser.add_argument("--faults", action="store_true", help="inject faults")
    parser.add_argument("--only", default="", metavar="NAMES", help="these real clients or faults, by comma; else all")
    parser.add_argument("--servers", type=int, default=11)
    parser.add_argument("--apart", type=int, default=2, help="clients without a background process; 0: none")
    parser.add_argument("--injections", type=int, default=20)
    parser.add_argument(
        "--environments", type=Path, default=_CACHE, metavar="FOLDER", help="where real clients are installed"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to this file, beside its others")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    is_all = options.clients is None and not options.faults
    only = [name for name in options.only.split(",") if name]
    figures: dict[str, Any] = {}
    if is_all or (options.clients or "").isdecimal():
        count = int(options.clients or 10)
        figures["servers"] = options.servers
        figures["ways"] = {f"{count} share": asdict(share(count, options.servers))}
        if options.apart:
            apart = share(options.apart, options.servers, "--no-daemon")
            figures["ways"][f"{options.apart} apart"] = asdict(apart)
    if is_all or options.clients == _REAL:
        try:
            figures["real"] = _real(options.environments, only)
        except NotInstalledError as error:
            print(f"the clients cannot be installed: {error}", file=sys.stderr)
            return 2
    if is_all or options.faults:
        figures["faults"] = [asdict(each) for each in measured(options.injections, only)]
        for each in figures["faults"]:
            for problem, count in each["problems"].items():
                print(f"{each['fault']}: {problem} ({count} times)", file=sys.stderr)
    for name, lines in page_tables(figures).items():
        print(f"\n{name}\n\n" + "\n".join(lines))
    if options.json:
        before: dict[str, Any] = read_figures(options.json) if options.json.exists() else {}
        write_figures(options.json, "gateway_daemon", before | figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
