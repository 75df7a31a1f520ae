"""A machine for clients of one configuration over stdio, and what the processes on it take."""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from benchmarks.stdio_gateway import StdioGateway
from toolsearch.gateway.reports.commands import running_gateways

PROGRAM: Final = [sys.executable, "-m", "toolsearch"]
_LOOK_S: Final = 0.01
_LONGEST_S: Final = 60.0


class Machine:
    """One configuration in a folder of its own, and the gateways that serve it."""

    def __init__(self, folder: Path, servers: Mapping[str, Any], settings: Mapping[str, Any] | None = None) -> None:
        self.folder = folder
        self.config = folder / "mcp.json"
        self._settings = {"stateDir": str(folder / "state"), "passThrough": {"maxTools": 0}, **(settings or {})}
        self.write(servers)

    def write(self, servers: Mapping[str, Any]) -> None:
        """Make these the servers of the configuration."""
        self.config.write_text(self.document(servers))

    def document(self, servers: Mapping[str, Any]) -> str:
        return json.dumps({"mcpServers": dict(servers), "toolsearch": self._settings})

    def client(self, *options: str, environment: Mapping[str, str] | None = None) -> StdioGateway:
        return StdioGateway(PROGRAM, self.config, environment, options)

    @property
    def gateways(self) -> list[dict[str, Any]]:
        """The gateways that run, as they tell of themselves."""
        return [each for each in running_gateways(self.folder / "state") if is_running(each["pid"])]

    @property
    def processes(self) -> list[int]:
        return [each["pid"] for each in self.gateways]

    def stop(self) -> None:
        for pid in self.processes:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        until(lambda: not self.processes)


@contextmanager
def machine(servers: Callable[[Path], Mapping[str, Any]], **settings: Any) -> Generator[Machine]:
    """A machine whose gateways end with the block."""
    with tempfile.TemporaryDirectory() as folder:
        made = Machine(Path(folder), servers(Path(folder)), settings)
        try:
            yield made
        finally:
            made.stop()


def is_running(pid: int) -> bool:
    """Whether the process lives, and is no zombie."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def children(pid: int) -> set[int]:
    """The processes that *pid* has started, and those that they have started."""
    found: set[int] = set()
    with suppress(OSError):
        for path in Path(f"/proc/{pid}/task").glob("*/children"):
            found |= {int(child) for child in path.read_text().split()}
    return found | {each for child in found for each in children(child)}


def servers_of(gateways: Iterable[int]) -> set[int]:
    """The servers of *gateways*. The shell that ends servers after a gateway that was killed is none."""
    found = {child for pid in gateways for child in children(pid)}
    return {pid for pid in found if _program_of(pid) != "sh"}


def _program_of(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def pss_mib(pid: int) -> float:
    """The memory of a process; it has its share alone of what several processes have in common. 0 if it has ended."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1_024
    return 0.0


def until(condition: Callable[[], bool], longest_s: float = _LONGEST_S) -> None:
    """Wait until *condition* holds. Raises TimeoutError."""
    ends_s = time.monotonic() + longest_s
    while not condition():
        if time.monotonic() > ends_s:
            raise TimeoutError(f"not within {longest_s} s")
        time.sleep(_LOOK_S)
