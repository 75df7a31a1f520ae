"""Small things every wire shares: canonical JSON, refusals, request records, ids."""

from __future__ import annotations

import hashlib
import json
import secrets
from dataclasses import dataclass, field
from typing import Any, Literal

Wire = Literal["messages", "responses", "chat"]
Json = dict[str, Any]

_ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz123456789"


def canonical(value: Any) -> str:
    """The value as JSON with sorted keys and no spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest(value: Any) -> str:
    """A short SHA-256 of the canonical JSON."""
    return hashlib.sha256(canonical(value).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def new_id(prefix: str, length: int = 24) -> str:
    """A fresh random id such as `toolu_...`."""
    return prefix + "".join(secrets.choice(_ALPHABET) for _ in range(length))


def tokens(size: int) -> int:
    """Tokens for a number of bytes: one token for every four bytes, rounded up."""
    return (size + 3) // 4


class Refusal(Exception):
    """A request the provider would refuse; `check` names the rule that was broken."""

    def __init__(
        self,
        check: str,
        message: str,
        *,
        status: int = 400,
        param: str | None = None,
        code: str | None = None,
        kind: str = "invalid_request_error",
    ) -> None:
        super().__init__(message)
        self.check = check
        self.message = message
        self.status = status
        self.param = param
        self.code = code
        self.kind = kind


@dataclass
class RefusalRecord:
    """What is kept of every refusal."""

    wire: Wire
    check: str
    message: str
    status: int
    param: str | None
    body: Any
    number: int


@dataclass
class RequestRecord:
    """What is kept of every request the fake saw, refused or not."""

    number: int
    wire: Wire
    path: str
    model: str = ""
    stream: bool = False
    status: int = 0
    betas: tuple[str, ...] = ()
    tool_names: list[str] = field(default_factory=list)
    visible_names: list[str] = field(default_factory=list)
    tools_bytes: int = 0
    cached_tokens: int = 0
    written_tokens: int = 0
    output_tokens: int = 0
    thinking_dropped: int = 0
    called: list[str] = field(default_factory=list)
    stop: str = ""
    fault: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    body: Any = None
    reply: Any = None


def error_body(wire: Wire, refusal: Refusal, request_id: str) -> Json:
    """The error in the provider's own shape."""
    if wire == "messages":
        return {
            "type": "error",
            "error": {"type": refusal.kind, "message": refusal.message},
            "request_id": request_id,
        }
    return {
        "error": {
            "message": refusal.message,
            "type": refusal.kind,
            "param": refusal.param,
            "code": refusal.code,
        }
    }


ANTHROPIC_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    503: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}
OPENAI_KINDS = {
    401: "invalid_request_error",
    404: "invalid_request_error",
    429: "requests",
    500: "server_error",
    503: "server_error",
    529: "server_error",
}
