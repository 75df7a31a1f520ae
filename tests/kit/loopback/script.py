"""What a scripted model says, the same in every dialect."""

import json
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
    cut: int | None = None  # characters of the last call's arguments that come before the reply ends
    thinking: str = ""  # signed thinking of Anthropic, an encrypted reasoning item of Responses
    stop: Literal["", "length", "content_filter"] = ""
    ended: str | None = ""  # the finish reason, stop reason or status word for word, null too; "" for the usual one
    blocks: Sequence[dict[str, Any]] = ()  # of Anthropic's own tools, after the text
    others: Sequence["Reply"] = ()  # further choices of Chat Completions
    usage: TokenCounts = TokenCounts()
    ending: Literal["whole", "held", "cut", "unfinished"] = "whole"  # of a stream


@dataclass(frozen=True)
class Raw:
    """An answer that no dialect would give: *body* as JSON, or *events* where a stream was asked for."""

    body: Any = None
    events: Sequence[Any] = ()


@dataclass(frozen=True)
class Failure:
    status: int = 500
    message: str = "the server failed"
    code: str = "server_error"
    in_stream: bool = False  # the stream begins well and then holds the error


def written(call: Call, reply: Reply) -> str:
    """The arguments of *call* as far as the model came."""
    text = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)
    return text[: reply.cut] if reply.cut is not None and call is reply.calls[-1] else text


class RefusedError(Exception):
    """A request that the real API would not take."""

    def __init__(self, message: str, *, code: str = "invalid_request_error", status: int = 400) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.status = status
