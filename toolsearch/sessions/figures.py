"""What the requests and searches of a conversation cost, counted as they are made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from toolsearch.discovery.view import View
from toolsearch.sessions.host import ConversationHost
from toolsearch.sessions.request_history import history_tokens
from toolsearch.sessions.savings import Savings
from toolsearch.sessions.state import SessionState
from toolsearch.tokens import count_json
from toolsearch.tools.definition import Tool, ToolDefinition
from toolsearch.tools.json_types import JsonObject
from toolsearch.wire.capabilities import capabilities_of
from toolsearch.wire.messages import Message
from toolsearch.wire.sendable import sendable


class Counted(Protocol):
    """What counting needs of the conversation that it counts."""

    state: SessionState
    host: ConversationHost

    @property
    def view(self) -> View: ...

    def shown(self) -> list[Tool]: ...


def count_request(conversation: Counted, messages: Sequence[Message] | None) -> int:
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
        if sent.endpoint is not None:  # what its API takes of the messages
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
    conversation: Counted, searches: Sequence[tuple[JsonObject | str, str]], *, is_search_round: bool
) -> None:
    """As `Conversation.note_searches`."""
    counters, counter, written_tokens = conversation.state.counters, conversation.host.counter, 0
    for arguments, answer in searches:
        written = counter.count(arguments) if isinstance(arguments, str) else count_json(arguments, counter)
        written_tokens += written
        counters.history_tokens += written + counter.count(answer)
    counters.written_tokens += written_tokens
    counters.only_searched = int(is_search_round and counters.requests > 0)  # else no request has led to it
    if conversation.host.telemetry.has_metrics and written_tokens:
        conversation.host.telemetry.tokens(saved=-written_tokens)


def savings_of(conversation: Counted) -> Savings:
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
    )
