"""A gateway in a process of its own, which this one speaks with over stdio as a client of the older protocol."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

from benchmarks.memory import resident_kib

_HELLO: Final = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "benchmark", "version": "1"},
}


class StdioGateway:
    """*program* is a ``toolsearch``, and *options* are its own. What it starts ends with the context, unless that is a
    background process.
    """

    def __init__(
        self,
        program: Sequence[str],
        config: Path,
        environment: Mapping[str, str] | None = None,
        options: Sequence[str] = (),
    ) -> None:
        self._process = subprocess.Popen(
            [*program, "gateway", *options, "--config", str(config)],
            cwd=config.parent,  # a checkout in the working folder would go before the one that *program* is of
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._asked = 0

    def __enter__(self) -> Self:
        self._process.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.__exit__(None, None, None)

    @property
    def pid(self) -> int:
        return self._process.pid

    def shake_hands(self) -> None:
        self.ask("initialize", _HELLO)
        self._send({"method": "notifications/initialized"})

    def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """The result of a tool that does not fail."""
        result = self.ask("tools/call", {"name": name, "arguments": arguments})
        assert not result.get("isError"), result
        return result

    def ask(self, method: str, params: Mapping[str, Any]) -> Any:
        self._asked += 1
        self.send(self._asked, method, params)
        return self.answer_to(self._asked)

    def send(self, id_: int | str, method: str, params: Mapping[str, Any]) -> None:
        """Ask without waiting for the answer."""
        self._send({"id": id_, "method": method, "params": params})

    def answer_to(self, id_: int | str) -> Any:
        assert self._process.stdout
        while (answer := json.loads(self._process.stdout.readline())).get("id") != id_:
            pass
        return answer["result"]

    def cpu_ms(self) -> float:
        """The CPU time that it has taken so far, in all of its threads."""
        clock = ~self._process.pid << 3 | 2  # as clock_getcpuclockid(3) gives it
        return time.clock_gettime_ns(clock) / 1e6

    def resident_kib(self) -> tuple[int, int]:
        return resident_kib(self._process.pid)

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self._process.stdin.flush()
