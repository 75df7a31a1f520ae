"""What the requests of a session cost in tool tokens, and what they would have cost without a search."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Savings:
    """What a session's requests cost in tool tokens, and what they would have cost with every definition in each.

    sent_tokens       the tool lists, and the searches with their answers, which each request sends again as history
    written_tokens    what the model wrote in order to search
    all_tools_tokens  every definition in reach once per request, without the requests that only a search made necessary

    Neither side counts the rest of the conversation, which a request for a search sends once more, nor the provider's
    prompt cache, which makes repeated text cheaper. *cache_breaks* counts how often a tool list changed anywhere but at
    its end.
    """

    requests: int
    search_rounds: int
    sent_tokens: int
    written_tokens: int
    all_tools_tokens: int
    cache_breaks: int
    is_estimate: bool

    @property
    def saved_tokens(self) -> int:
        return self.all_tools_tokens - self.sent_tokens - self.written_tokens

    @property
    def saved_share(self) -> float:
        """Below 0 if searching cost more than it saved."""
        return self.saved_tokens / self.all_tools_tokens if self.all_tools_tokens else 0.0
