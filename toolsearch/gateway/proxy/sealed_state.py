"""Seals the state that a client carries from one round of a request to the next, so that nobody else can use it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mcp import MCPError
from mcp.types import INVALID_PARAMS

STATE_TTL_S = 600.0


@dataclass(frozen=True, slots=True)
class Binding:
    """What a state belongs to: whose request it is, and for which *target* (a tool, a prompt or a URI)."""

    principal: str
    server: str
    method: str
    target: str


class StateSeal:
    """Signed, not encrypted: a server that is asked directly shows its state to the client too."""

    def __init__(self, key: bytes, clock: Callable[[], float], *, ttl_s: float = STATE_TTL_S) -> None:
        self._key = key
        self._clock = clock
        self._ttl_s = ttl_s

    def seal(self, binding: Binding, state: dict[str, Any]) -> str:
        body = _encoded(json.dumps([self._clock() + self._ttl_s, state]).encode())
        return f"{body}.{self._tag(binding, body)}"

    def unseal(self, binding: Binding, sealed: str) -> dict[str, Any]:
        """Raise MCPError, without a word on why, for a state that is not of this *binding*, or too old."""
        body, _, tag = sealed.partition(".")
        if not hmac.compare_digest(tag.encode(), self._tag(binding, body).encode()):
            raise bad_state()
        expires_s: float
        state: dict[str, Any]
        expires_s, state = json.loads(base64.urlsafe_b64decode(body))  # it was signed by us, so it is well-formed
        if self._clock() >= expires_s:
            raise bad_state()
        return state

    def _tag(self, binding: Binding, body: str) -> str:
        bound = json.dumps([binding.principal, binding.server, binding.method, binding.target, body])
        return _encoded(hmac.digest(self._key, bound.encode(), hashlib.sha256))


def bad_state() -> MCPError:
    return MCPError(INVALID_PARAMS, "Invalid or expired requestState; make the request anew, without it")


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode()
