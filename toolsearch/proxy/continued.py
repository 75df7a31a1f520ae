"""Which requests the proxy changes: those that hold their conversation, and those that continue a reply of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from toolsearch.proxy.body import Body
from toolsearch.proxy.tools import PassUnchangedError
from toolsearch.recent import Recent
from toolsearch.wire.capabilities import RevealMode
from toolsearch.wire.openai_responses.restored import carries_rounds
from toolsearch.wire.proxied import Stored

CONTINUES: Final = "previous_response_id"
_ABSENT: Final = ("background", "conversation")  # the request holds not the whole conversation
_MOST_REPLIES: Final = 10_000


@dataclass(frozen=True, slots=True)
class Continued:
    """A reply that the API stores, and what the model was sent of tools with it.

    mode      how found tools reached the model
    listed    names of the tools in the list, in its order
    revealed  names of the tools that were held back, and that the model was shown since
    """

    stored: Stored
    mode: RevealMode
    listed: Sequence[str]
    revealed: Sequence[str]


Replies: TypeAlias = Recent[str, Continued]
"""By the ids that clients got."""


def known_replies() -> Replies:
    return Recent(_MOST_REPLIES)


def continued_by(body: Body, replies: Replies) -> Continued | None:
    """The reply that a request with *body* continues; None if it names none, or one that is not known."""
    reply_id = body.get(CONTINUES)
    return replies.get(reply_id) if isinstance(reply_id, str) else None


class NotStoredError(Exception):
    """The API has not stored the conversation that a request continues as the client knows it."""


def require_stored(body: Body | None, continued: Continued | None, entries: str, reason: str) -> None:
    """Raises NotStoredError for a request that passes unchanged, for the *reason*, and continues a reply with hidden
    rounds: at the API, its id names another conversation. The ids of the client's calls show such a reply, too.
    """
    if body is None or not isinstance(given := body.get(CONTINUES), str):
        return
    is_hidden = any(carries_rounds(item) for item, _ in body.items(entries))
    if continued is not None:
        is_hidden = is_hidden or continued.stored.id != given or bool(continued.stored.unanswered)
    if is_hidden:
        raise NotStoredError(
            f"Send the whole conversation without {CONTINUES}. The proxy cannot continue it: {reason}."
        )


def require_changeable(body: Body | None, continued: Continued | None, *, has_operator: bool) -> Body:
    """Raises PassUnchangedError for a body that cannot be read, or that the proxy cannot continue."""
    if body is None:
        raise PassUnchangedError("the body is no JSON object, has a key twice, or has too many entries")
    choices = body.get("n")
    if choices not in (None, 1):
        raise PassUnchangedError("the request asks for several choices")
    for key in _ABSENT:
        if body.get(key):
            raise PassUnchangedError(f"the request has the parameter {key}")
    if body.get(CONTINUES) and continued is None:
        raise PassUnchangedError(f"{CONTINUES} names no reply that this process has given")
    part = body.parts.get("tools")
    if not has_operator and (part is None or body.written(part) in ("null", "[]")):
        raise PassUnchangedError("the request has no tools")
    return body
