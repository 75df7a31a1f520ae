"""The requests that the proxy passes on as they came."""

from __future__ import annotations

from toolsearch.proxy.body import Body
from toolsearch.proxy.known_replies import Continued
from toolsearch.wire.proxied import Continuation


class PassUnchangedError(Exception):
    """The request is passed on as it came, for the reason that the message gives."""


def require_changeable(
    body: Body | None, continuation: Continuation | None, continued: Continued | None, *, has_operator: bool
) -> Body:
    """Raises PassUnchangedError for a body that cannot be read, or that the proxy cannot continue."""
    if body is None:
        raise PassUnchangedError("the body is no JSON object, has a key twice, or has too many entries")
    choices = body.get("n")
    if choices not in (None, 1):
        raise PassUnchangedError("the request asks for several choices")
    if continuation is not None:
        _require_conversation(body, continuation, continued)
    part = body.parts.get("tools")
    if not has_operator and (part is None or body.written(part) in ("null", "[]")):
        raise PassUnchangedError("the request has no tools")
    return body


def _require_conversation(body: Body, continuation: Continuation, continued: Continued | None) -> None:
    for key in continuation.unchanged:
        if body.get(key):
            raise PassUnchangedError(f"the request has the parameter {key}")
    if body.get(continuation.parameter) and continued is None:
        raise PassUnchangedError(f"{continuation.parameter} names no reply to this caller that is known")
