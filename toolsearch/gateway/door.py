"""Our stdin and stdout, for the client that has started this process. They are read before anything heavy is loaded.

Each client's process imports this module, so it imports little itself.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from toolsearch.documents.json_values import object_in
from toolsearch.tools.json_types import JsonObject
from toolsearch.wire.relayed import failed, is_request, line_of

if TYPE_CHECKING:
    from toolsearch.gateway.greeting import Greeter

_MOST_WAITING = 1_000  # lines kept until somebody takes them


class Door:
    """Takes over this process's stdin and stdout. Printed text goes to stderr from then on.

    With *greets*, the path of a configuration, a `Greeter` answers the client at once.
    """

    def __init__(self, greets: Path | None = None) -> None:
        self._reading = os.fdopen(os.dup(0), "rb")
        self._writing = os.dup(1)
        with Path(os.devnull).open("rb") as nothing:
            os.dup2(nothing.fileno(), 0)
        os.dup2(2, 1)
        self._writing_lock = threading.Lock()
        self._handing = threading.Condition()
        self._waiting: list[bytes] = []
        self._hand_on: Callable[[bytes], None] | None = None  # None until the gateway is loaded
        self.greeter: Greeter | None = None
        if greets is not None:
            from toolsearch.gateway.greeting import Greeter

            self.greeter = Greeter.of(greets, self.put)
        threading.Thread(target=self._read, name="stdin", daemon=True).start()

    def hand_to(self, take: Callable[[bytes], None]) -> list[bytes]:
        """Call *take* with each line from now on. ``b""`` says that the client has closed our stdin.

        *take* is called in a thread that nobody waits for, because a thread that reads cannot be stopped. Returns the
        lines that came before.
        """
        with self._handing:
            waiting, self._waiting = self._waiting, []
            self._hand_on = take
            self._handing.notify_all()
        return waiting

    def say(self, line: bytes) -> None:
        """Send a line from the gateway, unless the client was told the same before."""
        if self.greeter is None or self.greeter.is_done or (rest := self.greeter.unsaid(line)) is None:
            self._send(line)
        else:
            for message in rest:
                self.put(message)

    def put(self, message: JsonObject) -> None:
        self._send(line_of(message))

    def fail(self, reason: str) -> None:
        """Answer every request that waits for the gateway with *reason*, because the gateway cannot start."""
        with self._handing:
            waiting, self._waiting = self._waiting, []
        for request in map(object_in, waiting):
            if is_request(request) and not (self.greeter and self.greeter.has_answered(request)):
                self.put(failed(request["id"], reason))

    def _read(self) -> None:
        with suppress(RuntimeError, OSError):  # nobody reads any more: the event loop is closed or the client gone
            while line := self._reading.readline():
                greeter = self.greeter
                if greeter is None or greeter.is_for_gateway(line, is_early=self._hand_on is None):
                    self._pass(line)
            self._pass(b"")

    def _pass(self, line: bytes) -> None:
        with self._handing:
            if self._hand_on is None and len(self._waiting) < _MOST_WAITING:
                self._waiting.append(line)
                return
            self._handing.wait_for(lambda: self._hand_on is not None)
            hand_on = self._hand_on
        if hand_on is not None:
            hand_on(line)

    def _send(self, data: bytes) -> None:
        with self._writing_lock:
            while data:
                data = data[os.write(self._writing, data) :]
