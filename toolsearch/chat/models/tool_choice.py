"""A tool choice, as far as a model takes it."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from toolsearch.wire.capabilities import Capabilities

logger = logging.getLogger(__name__)

_FREE = (None, "auto", "none")


def choice_to_send(choice: str | None, known: Capabilities) -> str | None:
    """*choice*, or "auto" where it would force a call and the model does not take that."""
    return choice if choice in _FREE or known.forced_choice else "auto"


def told_choice(choice: str | None, sent: str | None, model: str) -> Mapping[str, str]:
    """What an answer's metadata says of a *choice* for which another one was *sent*; the log says it as well."""
    if choice == sent or sent is None:
        return {}
    logger.warning("%s takes no tool choice that forces a call: %r was sent as %r", model, choice, sent)
    return {"choice_sent": sent}
