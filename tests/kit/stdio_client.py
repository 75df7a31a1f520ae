"""A client of a gateway over stdio that is written by hand: it says and hears what it wants, line by line."""

import json
import subprocess
from typing import Any


class Client:
    """Writes requests to a gateway, and reads what it says, line by line."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.pid = process.pid
        self.told: list[str] = []  # the methods of notifications

    def ask(self, id_: Any, method: str, **params: Any) -> None:
        self.say({"id": id_, "method": method, "params": params})

    def say(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self._process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        message: dict[str, Any] = json.loads(self._process.stdout.readline())
        if "method" in message:
            self.told.append(message["method"])
            return self.answer()
        return message

    def end(self) -> None:
        """Close its stdin, and note what else it says."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self.told += [message["method"] for line in self._process.stdout if "method" in (message := json.loads(line))]
        self._process.wait(20)

    def kill(self) -> None:
        """End it without a word."""
        self._process.kill()
        self._process.wait(20)

    def ended(self) -> tuple[int, str]:
        """Its exit code, and what it said on stderr, once it has ended."""
        assert self._process.stderr is not None
        errors = self._process.stderr.read()
        return self._process.wait(20), errors
