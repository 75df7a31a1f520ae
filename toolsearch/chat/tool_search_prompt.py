"""What tool search writes into a prompt, and reads there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import cast

from toolsearch.chat.model import ChatOptions, Prompt
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.naming import TOOL_NAME
from toolsearch.wire.messages import Message, SystemMessage, ToolMessage

DEFAULT_SYSTEM_SUFFIX = (
    f"You have more tools than you see in your tool list: {TOOL_NAME} finds them. Where no tool in the list does what "
    "a step needs, search for one before you say that it cannot be done."
)


def with_suffix(messages: tuple[Message, ...], suffix: str) -> tuple[Message, ...]:
    """Append *suffix* to the first system message, unless it ends so, or put a system message in front."""
    for position, message in enumerate(messages):
        if isinstance(message, SystemMessage):
            if message.text.endswith(suffix):
                return messages
            extended = SystemMessage(f"{message.text}\n\n{suffix}".lstrip())
            return (*messages[:position], extended, *messages[position + 1 :])
    return (SystemMessage(suffix), *messages)


def options_to_send(prompt: Prompt) -> ChatOptions:
    """Return the options of *prompt* with those loaded tools shown whose loading its messages no longer hold.

    For models that search natively. It has to be the last step before the request, as only there all is in place that
    a memory adds or leaves out.
    """
    options = prompt.options
    if not options.loaded_tools:
        return options
    held = _loaded_in(prompt.messages)
    deferred = {tool.name: tool for tool in options.deferred_tools}
    forgotten = [deferred.pop(name) for name in options.loaded_tools if name not in held and name in deferred]
    return replace(options, tools=(*options.tools, *forgotten), deferred_tools=tuple(deferred.values()))


def _loaded_in(messages: Iterable[Message]) -> frozenset[str]:
    """The names of the tools that the answers to searches in *messages* have loaded."""
    results = (result for message in messages if isinstance(message, ToolMessage) for result in message.results)
    answers = (result.structured for result in results if result.name == TOOL_NAME and not result.is_error)
    return frozenset(name for answer in answers for name in _names(answer))


def _names(answer: Json) -> list[str]:
    return cast("JsonObject", answer).get("tools", []) if isinstance(answer, Mapping) else []
