"""Counts the tool tokens of requests, and the tokens that they would have without a search.

Both are counted at each request, from the tools in its messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from toolsearch.discovery.view import View
from toolsearch.sessions.costs import ToolCosts
from toolsearch.sessions.host import ConversationHost
from toolsearch.sessions.state import SessionState
from toolsearch.tokens import TokenCounter, count_json
from toolsearch.tools.calls import ToolResult
from toolsearch.tools.definition import Tool, ToolDefinition
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.naming import TOOL_NAME
from toolsearch.wire.capabilities import RevealMode, capabilities_of
from toolsearch.wire.messages import AssistantMessage, Message, ToolChangeMessage, ToolMessage, UserMessage
from toolsearch.wire.native_search import NativeSearch, found_names
from toolsearch.wire.sendable import sendable


@dataclass(frozen=True, slots=True, kw_only=True)
class Savings(ToolCosts):
    """What the requests of one session have cost and saved.

    cache_breaks      how often a request had another tool list than the one before, and began no new one, although the
                      provider may have had that in its cache. What messages and answers add breaks nothing
    break_tokens      tokens that the provider had to read again for that: by its own count of the prompt, if `execute`
                      was given it, or else the tokens of tools alone
    anticipated       tools that were shown for the user's words, before the model was asked
    anticipated_calls how many of these were called
    """

    search_rounds: int
    cache_breaks: int
    is_estimate: bool
    break_tokens: int = 0
    anticipated: int = 0
    anticipated_calls: int = 0

    @property
    def saved_share(self) -> float:
        """Below 0 if searching cost more than it saved."""
        return self.saved_tokens / self.all_tools_tokens if self.all_tools_tokens else 0.0


FOUND_BEFOREHAND = f"[{TOOL_NAME} was asked this beforehand. It answered:]"


"""The first line of a message of the user's that holds the answer to a search which nobody has called."""


def is_answer_beforehand(message: Message) -> bool:
    """Whether *message* is the answer to an automatic search for the user's words, rather than the user's own."""
    return isinstance(message, UserMessage) and message.text.startswith(FOUND_BEFOREHAND)


def revealed_in(messages: Sequence[Message], names: Iterable[str], mode: RevealMode) -> frozenset[str]:
    """The *names* that the model knows from *messages* alone, not from its list."""
    wanted = frozenset(names)
    if mode == "messages":
        changes = (message for message in messages if isinstance(message, ToolChangeMessage))
        return wanted.intersection(definition.name for change in changes for definition in change.added)
    if mode == "append":
        return frozenset()
    found = wanted.intersection(name for result in _results(messages) for name in found_names(result))
    return found if mode == "deferred" else found.union(_defined_in_words(messages, wanted))


def _defined_in_words(messages: Sequence[Message], names: Iterable[str]) -> Iterable[str]:
    """The *names* that an answer may define in its text, if it has no structured content."""
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
    """The tokens in *messages* that the search adds: its calls, its answers, and added definitions.

    An answer that loads *deferred* tools counts with their definitions instead of its text about them.
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


class CountedConversation(Protocol):
    """The parts of a conversation that counting needs."""

    state: SessionState
    host: ConversationHost

    @property
    def view(self) -> View: ...

    def shown(self) -> list[Tool]: ...


def count_request(conversation: CountedConversation, messages: Sequence[Message] | None) -> int:
    """Count a request; return its tokens of tools. See `Conversation.note_request`.

    Without a search tool, a request that follows a reply which only searched would not have been made.
    """
    state, host, view = conversation.state, conversation.host, conversation.view
    sent, counters = state.sent.now, state.counters
    listed: Iterable[ToolDefinition] = sent.listed.values()
    if sent.endpoint is None:
        listed = (tool.definition for tool in conversation.shown())
    tokens = sum(map(view.tokens_of, listed))
    if messages is None:
        tokens += sent.revealed_tokens + counters.history_tokens
    else:
        deferred = sent.deferred_by_name
        if sent.endpoint is not None:  # the part of the messages that its API accepts
            known = capabilities_of(sent.endpoint)
            messages = sendable(messages, known, listed=sent.listed, deferred=deferred)
        tokens += history_tokens(messages, host.counter, tokens_of=view.tokens_of, deferred=deferred)
    is_search_round = counters.only_searched > 0
    counters.only_searched = 0
    counters.requests += 1
    counters.search_rounds += is_search_round
    counters.sent_tokens += tokens
    state.sent.note_request(host.clock(), tokens)
    if host.telemetry.has_metrics:
        all_tools_tokens = 0 if is_search_round else view.estimated_tokens
        host.telemetry.tokens(sent=tokens, saved=all_tools_tokens - tokens)
    return tokens


def count_searches(
    conversation: CountedConversation, searches: Sequence[tuple[JsonObject | str, str]], *, is_search_round: bool
) -> None:
    """As `Conversation.note_searches`."""
    counters, counter, written_tokens = conversation.state.counters, conversation.host.counter, 0
    for arguments, answer in searches:
        written = counter.count(arguments) if isinstance(arguments, str) else count_json(arguments, counter)
        written_tokens += written
        counters.history_tokens += written + counter.count(answer)
    counters.written_tokens += written_tokens
    # A reply that no request led to does not count.
    counters.only_searched = int(is_search_round and counters.requests > 0)
    if conversation.host.telemetry.has_metrics and written_tokens:
        conversation.host.telemetry.tokens(saved=-written_tokens)


def savings_of(conversation: CountedConversation) -> Savings:
    """As `Conversation.savings`."""
    counters, sent = conversation.state.counters, conversation.state.sent.now
    return Savings(
        requests=counters.requests,
        search_rounds=counters.search_rounds,
        sent_tokens=counters.sent_tokens,
        written_tokens=counters.written_tokens,
        all_tools_tokens=(counters.requests - counters.search_rounds) * conversation.view.tokens,
        cache_breaks=sent.breaks,
        is_estimate=conversation.host.counter.estimate,
        break_tokens=sent.break_tokens,
        anticipated=counters.anticipated,
        anticipated_calls=counters.anticipated_calls,
    )
