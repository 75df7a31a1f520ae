"""What the requests of a session cost in tool tokens, and what they would have cost without a search."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Savings:
    """What a session's requests cost in tool tokens, and what they would have cost with every definition in each.

    sent_tokens       the tool lists as they were sent, what messages and answers have added to them, and the searches
                      with their answers; each request sends all of that again
    written_tokens    what the model wrote in order to search
    all_tools_tokens  every definition in reach once per request, without the requests that only a search made necessary

    Neither side counts the rest of the conversation, which a request for a search sends once more, nor the provider's
    prompt cache, which makes repeated text cheaper.

    cache_breaks      how often a request had another tool list than the one before, and began no new one, although the
                      provider may have had that in its cache. What messages and answers add breaks nothing
    break_tokens      what the provider had to read again for that: by its own count of the prompt, as far as `execute`
                      was given it, or else the tokens of tools alone
    """

    requests: int
    search_rounds: int
    sent_tokens: int
    written_tokens: int
    all_tools_tokens: int
    cache_breaks: int
    is_estimate: bool
    break_tokens: int = 0

    @property
    def saved_tokens(self) -> int:
        return self.all_tools_tokens - self.sent_tokens - self.written_tokens

    @property
    def saved_share(self) -> float:
        """Below 0 if searching cost more than it saved."""
        return self.saved_tokens / self.all_tools_tokens if self.all_tools_tokens else 0.0
