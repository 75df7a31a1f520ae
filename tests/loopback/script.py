"""What a scripted model says, the same in every dialect."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class Call:
    """*arguments* as text are sent as they are, broken or not; without an id the server gives a unique one."""

    name: str
    arguments: dict[str, Any] | str = field(default_factory=dict)
    id: str = ""


@dataclass(frozen=True)
class TokenCounts:
    """*input* is all of the prompt; *cached* and *cache_write* are parts of it."""

    input: int = 100
    output: int = 20
    cached: int = 0
    cache_write: int = 0


@dataclass(frozen=True)
class Reply:
    text: str = ""
    calls: Sequence[Call] = ()
    thinking: str = ""  # signed thinking of Anthropic, an encrypted reasoning item of Responses
    stop: Literal["", "length", "content_filter"] = ""
    usage: TokenCounts = TokenCounts()
    ending: Literal["whole", "held", "cut", "unfinished"] = "whole"  # of a stream


@dataclass(frozen=True)
class Failure:
    status: int = 500
    message: str = "the server failed"
    code: str = "server_error"
    in_stream: bool = False  # the stream begins well and then holds the error


class RefusedError(Exception):
    """A request that the real API would not take."""

    def __init__(self, message: str, *, code: str = "invalid_request_error", status: int = 400) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.status = status
