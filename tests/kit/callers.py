"""Callers with claims, as the issuer of their JWTs vouches for."""

import time
from typing import Any

from toolsearch.access.claims import Claims
from toolsearch.access.principals import Grant, Principal
from toolsearch.gateway.caller import Caller
from toolsearch.wire.mcp.eras import Era


def caller_with(
    name: str, *, scopes: tuple[str, ...] = (), token: str = "", era: Era = Era.MODERN, **claims: Any
) -> Caller:
    vouched = Claims(name, scopes, time.time() + 3_600, {"sub": name, **claims}, token)
    return Caller(Grant(Principal(name), frozenset(scopes), claims=vouched), era, reached_at="http://gateway.example")
