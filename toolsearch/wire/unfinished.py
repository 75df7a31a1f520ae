"""Whether a model's reply is known to have finished, by its provider's own word. Only then may its calls run.

A reply that was cut off may end in the middle of a call, and what is there may look whole: SDKs complete half an object
to a valid one, and a tool without required parameters takes an empty one. Which calls were written before the cut is
told differently on each wire, or not at all, and calls of one reply were meant together. So an unfinished reply runs
none of its calls: the model is told, and makes those again that it still needs.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

NO_REASON: Final = "no finish reason"
REFUSAL: Final = "refusal"  # a model that refuses in words, and calls tools all the same, has not asked for them
_MAX_REASON = 60  # characters; the reason comes from the endpoint


def why_unfinished(reason: object, finished: Collection[str]) -> str:
    """Return "" if *reason*, why the reply ended, is one of those of *finished* replies, else the reason itself."""
    if not isinstance(reason, str) or not reason:
        return NO_REASON
    return "" if reason in finished else reason[:_MAX_REASON]
