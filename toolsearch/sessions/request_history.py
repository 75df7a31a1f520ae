"""What the messages of a request hold of tools: those that they reveal, and what searching takes in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from toolsearch.tokens import TokenCounter, count_json
from toolsearch.tools.calls import ToolResult
from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.naming import TOOL_NAME
from toolsearch.wire.capabilities import RevealMode
from toolsearch.wire.messages import AssistantMessage, Message, ToolChangeMessage, ToolMessage, UserMessage
from toolsearch.wire.native_search import NativeSearch, found_names

FOUND_BEFOREHAND = f"[{TOOL_NAME} was asked this beforehand. It answered:]"
"""The first line of a message of the user's that holds the answer to a search which nobody has called."""


def is_answer_beforehand(message: Message) -> bool:
    """Whether *message* is not the user's own, but the answer to a search made from what they said."""
    return isinstance(message, UserMessage) and message.text.startswith(FOUND_BEFOREHAND)


def revealed_in(messages: Sequence[Message], names: Iterable[str], mode: RevealMode) -> frozenset[str]:
    """Those of *names* that the model knows from *messages*, and not from its list."""
    wanted = frozenset(names)
    if mode == "messages":
        changes = (message for message in messages if isinstance(message, ToolChangeMessage))
        return wanted.intersection(definition.name for change in changes for definition in change.added)
    if mode == "append":
        return frozenset()
    found = wanted.intersection(name for result in _results(messages) for name in found_names(result))
    return found if mode == "deferred" else found.union(_defined_in_words(messages, wanted))


def _defined_in_words(messages: Sequence[Message], names: Iterable[str]) -> Iterable[str]:
    """Those of *names* of which an answer may tell that has nothing but its text."""
    texts = [result.text for result in _results(messages) if result.structured is None]
    texts += [
        message.text for message in messages if isinstance(message, UserMessage) and is_answer_beforehand(message)
    ]
    return (name for name in names if any(name in text for text in texts))


def history_tokens(
    messages: Sequence[Message],
    counter: TokenCounter,
    *,
    tokens_of: Callable[[ToolDefinition], int],
    deferred: Mapping[str, ToolDefinition],
) -> int:
    """What *messages* hold because there is a search: calls of it, answers, and added definitions.

    An answer that loads some of the *deferred* tools holds their definitions in place of what it says of them.
    """
    total, native = 0, NativeSearch(deferred)
    for message in messages:
        if isinstance(message, AssistantMessage):
            asked = [call.arguments for call in message.tool_calls if call.name == TOOL_NAME]
            total += sum(counter.count(each) if isinstance(each, str) else count_json(each, counter) for each in asked)
        elif isinstance(message, ToolChangeMessage):
            total += sum(map(tokens_of, message.added))
        elif isinstance(message, UserMessage) and is_answer_beforehand(message):
            total += counter.count(message.text)
    for result in _results(messages):
        total += sum(map(tokens_of, native.found(result))) + counter.count(native.text_read(result))
    return total


def _results(messages: Iterable[Message]) -> Iterable[ToolResult]:
    """The answers to searches."""
    answered = (message for message in messages if isinstance(message, ToolMessage))
    return (result for message in answered for result in message.results if result.name == TOOL_NAME)
