"""Whether a model's reply is known to have finished, by its provider's own word. Only then may its calls run.

A reply that was cut off may end in the middle of a call, and what is there may look whole: SDKs complete half an object
to a valid one, and a tool without required parameters takes an empty one. Which calls were written before the cut is
told differently on each wire, or not at all, and calls of one reply were meant together. So an unfinished reply runs
none of its calls: the model is told, and makes those again that it still needs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

NO_REASON: Final = "no finish reason"
REFUSAL: Final = "refusal"  # a model that refuses in words, and calls tools all the same, has not asked for them
# As APIs, frameworks, and the model classes in these say it, in lower case, and where they say it.
_FINISHED: Final = frozenset(
    {"complete", "completed", "end_turn", "function_call", "stop", "tool_call", "tool_calls", "tool_use"}
)
_KEYS: Final = ("finish_reason", "stop_reason", "stopReason", "done_reason", "status")
_MAX_REASON = 60  # characters; the reason comes from the endpoint


def why_unfinished(reason: object, finished: Collection[str]) -> str:
    """Return "" if *reason*, why the reply ended, is one of those of *finished* replies, else the reason itself."""
    if not isinstance(reason, str) or not reason:
        return NO_REASON
    return "" if reason in finished else reason[:_MAX_REASON]


def cut_off(reason: object) -> str:
    """As `why_unfinished`, by whatever word a framework has for how a reply ended, of any API."""
    return why_unfinished(reason.lower() if isinstance(reason, str) else reason, _FINISHED)


def cut_off_by(metadata: Mapping[str, object]) -> str:
    """As `cut_off`, by what a framework has kept of a reply; "" if that has no word for it, as in tests' fakes."""
    return next((cut_off(metadata[key]) for key in _KEYS if key in metadata), "")
