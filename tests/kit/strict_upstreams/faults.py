"""Things that go wrong on purpose."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from .core import Wire

Kind = Literal["status", "hang", "junk", "cut", "close", "error_event", "drip", "empty"]


@dataclass(frozen=True)
class Fault:
    """One fault.

    `status` answers with that status and `retry_after`; `hang` waits `seconds` and then drops the connection; `junk`
    sends a 200 that is not what it says; `empty` a 200 without a body; `cut` breaks the connection off after `event`
    stream events (or inside a whole body); `close` ends the stream in good order there, without its closing events;
    `error_event` sends the provider's error event there; `drip` waits `seconds` before each event.
    """

    kind: Kind
    status: int = 500
    retry_after: str | None = None
    event: int = 0
    seconds: float = 0.0
    bytes: int | None = None

    @property
    def label(self) -> str:
        """A short name for records."""
        return f"{self.kind}:{self.status}" if self.kind == "status" else f"{self.kind}@{self.event}"


Script = Mapping[int, Fault] | Callable[[int, Wire], Fault | None]


def pick(script: Script | None, number: int, wire: Wire) -> Fault | None:
    """The fault for request `number` (counted from 0 over all generation requests), if there is one."""
    if script is None:
        return None
    if isinstance(script, Mapping):
        return script.get(number)
    return script(number, wire)
