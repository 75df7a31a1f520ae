"""What tool search writes into a prompt."""

from __future__ import annotations

from toolsearch.tools.naming import TOOL_NAME
from toolsearch.wire.messages import Message, SystemMessage

DEFAULT_SYSTEM_SUFFIX = (
    f"You may have more tools than you see in your tool list: {TOOL_NAME} finds them. Where no tool in the list does "
    "what a step needs, search for one before you say that it cannot be done."
)


def with_suffix(messages: tuple[Message, ...], suffix: str) -> tuple[Message, ...]:
    """Append *suffix* to the system message in front, unless it ends so, or put one in front.

    A system message that comes later is left alone: it was sent as it is.
    """
    if not messages or not isinstance(messages[0], SystemMessage):
        return (SystemMessage(suffix), *messages)
    text = messages[0].text
    return messages if text.endswith(suffix) else (SystemMessage(f"{text}\n\n{suffix}".lstrip()), *messages[1:])
