"""One version of the engine in a process of its own, which does what `speed_paired` asks for, a line of JSON at a time.

It knows nothing but the public names of `toolsearch`, so that it runs with every version that has them.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import toolsearch
from toolsearch import Catalog, ToolDefinition, ToolSearch


class Worker:
    """An engine for each number of tools, over the first tools of a file."""

    def __init__(self, tools: Path) -> None:
        self._tools = [ToolDefinition(**json.loads(line)) for line in tools.read_text("utf-8").splitlines()]
        self._engines: dict[int, tuple[Catalog, ToolSearch]] = {}
        self._changes = 0

    def build(self, tools: int) -> list[list[float]]:
        """Index so many tools, in place of what was built of as many before."""
        self._engines.pop(tools, None)

        def build() -> None:
            catalog = Catalog(self._tools[:tools])
            self._engines[tools] = (catalog, ToolSearch(catalog, encoder="built-in"))

        return [_taken(build)]

    def search(self, tools: int, strategy: Any, queries: list[str]) -> list[list[float]]:
        _, engine = self._engines[tools]
        return [_taken(lambda query=query: engine.search(query, limit=5, strategy=strategy)) for query in queries]  # type: ignore[misc]

    def change(self, tools: int, queries: list[str]) -> list[list[float]]:
        """Before each search, give another tool another description."""
        catalog, engine = self._engines[tools]
        taken: list[list[float]] = []
        for query in queries:
            self._changes += 1
            old = self._tools[self._changes % tools]
            new = replace(old, description=f"{old.description} Version {self._changes}.")

            def change_and_search(new: ToolDefinition = new, query: str = query) -> None:
                catalog.replace(new)
                engine.search(query, limit=5)

            taken.append(_taken(change_and_search))
        return taken

    def memory(self) -> list[list[float]]:
        """The process's resident memory and its peak, in MB."""
        lines = Path("/proc/self/status").read_text("utf-8").splitlines()
        kib = {name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines) if "Vm" in name}
        return [[kib["VmRSS"] / 1024, kib["VmHWM"] / 1024]]


def _taken(action: Callable[[], object]) -> list[float]:
    """The milliseconds that *action* takes: CPU of all threads, and wall."""
    wall, cpu = time.perf_counter_ns(), time.process_time_ns()
    action()
    return [(time.process_time_ns() - cpu) / 1e6, (time.perf_counter_ns() - wall) / 1e6]


def main() -> None:
    worker = Worker(Path(sys.argv[1]))
    print(json.dumps(toolsearch.__file__), flush=True)
    for line in sys.stdin:
        name, arguments = json.loads(line)
        print(json.dumps(getattr(worker, name)(**arguments)), flush=True)


if __name__ == "__main__":
    main()
