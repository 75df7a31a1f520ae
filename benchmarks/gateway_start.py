"""How long does a client wait for its first list? Wall time from the start of the process, over stdio

    python -m benchmarks.gateway_start [--runs 3] [--busy 4] [--program FILE] [--json FILE]

A client of the older protocol shakes hands and lists the tools, in the first run over a configuration, in the second,
for which something is kept, and beside another client: alone, beside a server that hangs, and beside *busy* other
processes that compute without end. Compare two versions by ``--program``.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.busy import busy_processes
from benchmarks.clients.measuring import TIME_SERVERS
from benchmarks.figure_tables import print_table
from benchmarks.results import write_figures
from benchmarks.stdio_gateway import StdioGateway

_STEPS: Final = ("handshake", "first list")
_LEARNS_S: Final = 8.0  # within which a gateway knows its servers, unless one hangs


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3, help="of each case; the median counts")
    parser.add_argument("--busy", type=int, default=4, metavar="N", help="processes that compute beside it")
    parser.add_argument("--program", type=Path, help="another 'toolsearch' than this one")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    options = parser.parse_args(arguments)
    program = [str(options.program)] if options.program else [sys.executable, "-m", "toolsearch"]
    figures: dict[str, dict[str, float]] = {}
    for busy in (0, options.busy):
        for hangs in (False, True):
            runs = []
            with busy_processes(busy):
                for _ in range(options.runs):
                    with tempfile.TemporaryDirectory() as folder:
                        config = _configuration(Path(folder), hangs=hangs)
                        first = _started(program, config)
                        _started(program, config, until_s=_LEARNS_S)
                        runs.append([first, _started(program, config), _started_beside(program, config)])
            beside = [*(["a hung server"] if hangs else []), *([f"{busy} busy processes"] if busy else [])]
            for place, name in enumerate(("first run", "second run", "beside another client")):
                figures[f"{name}, {' and '.join(beside) or 'alone'}"] = {
                    step: round(statistics.median(run[place][at] for run in runs), 3) for at, step in enumerate(_STEPS)
                }
    rows = [[name, *(f"{seconds[step]:.2f}" for step in _STEPS)] for name, seconds in figures.items()]
    print_table(["", *(f"{step}, s" for step in _STEPS)], rows)
    if options.json:
        write_figures(options.json, "gateway_start", figures)
    return 0


def _configuration(folder: Path, *, hangs: bool) -> Path:
    servers = {name: {"command": command[0], "args": [*command[1:]]} for name, command in TIME_SERVERS.items()}
    if hangs:
        servers["hung"] = {"command": str(shutil.which("sleep")), "args": ["600"]}
    path = folder / "mcp.json"
    path.write_text(json.dumps({"mcpServers": servers, "toolsearch": {"stateDir": str(folder / "state")}}))
    return path


def _started_beside(program: Sequence[str], config: Path) -> list[float]:
    """The same beside a client that is served already."""
    with StdioGateway(program, config) as first:
        first.shake_hands()
        first.call("toolSearchTool", {"query": "the time"})
        return _started(program, config)


def _started(program: Sequence[str], config: Path, *, until_s: float = 0) -> list[float]:
    """Seconds from the start of a gateway to each answer. It ends at *until_s* at the earliest, with what it has
    started.
    """
    started_s = time.monotonic()
    answered: list[float] = []
    with StdioGateway(program, config) as gateway:
        gateway.shake_hands()
        answered.append(time.monotonic() - started_s)
        gateway.ask("tools/list", {})
        answered.append(time.monotonic() - started_s)
        time.sleep(max(0.0, until_s - answered[-1]))
    subprocess.run([*program, "gateway", "stop", "--config", str(config)], capture_output=True, check=False)
    return answered


if __name__ == "__main__":
    sys.exit(main())
