"""The requests that continue a reply which the model API has stored."""

from __future__ import annotations

from toolsearch.proxy.body import Body
from toolsearch.proxy.known_replies import CallersReplies, Continued
from toolsearch.wire.proxied import Continuation, ProxiedWire


def continued_by(body: Body, continuation: Continuation | None, replies: CallersReplies) -> Continued | None:
    """The reply that a request with *body* continues; None if it names none, or one that is not known."""
    reply_id = None if continuation is None else body.get(continuation.parameter)
    return replies.get(reply_id) if isinstance(reply_id, str) else None


class NotStoredError(Exception):
    """The API has not stored the conversation that a request continues as the client knows it. *code* is the API's."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


def require_stored(body: Body | None, wire: ProxiedWire, continued: Continued | None, reason: str) -> None:
    """Raises NotStoredError for a request that passes unchanged, for the *reason*, and continues a reply with hidden
    rounds: at the API, its id names another conversation. The ids of the client's calls show such a reply, too.
    """
    continuation = wire.CONTINUATION
    if body is None or continuation is None or not isinstance(given := body.get(continuation.parameter), str):
        return
    is_hidden = any(continuation.carries_rounds(item) for item, _ in body.items(wire.ENTRIES))
    if continued is not None:
        is_hidden = is_hidden or continued.stored.id != given or bool(continued.stored.unanswered)
    if is_hidden:
        advice = f"Send the whole conversation without {continuation.parameter}."
        raise NotStoredError(f"{advice} The proxy cannot continue it: {reason}.", continuation.code)
