"""What the requests of a session cost in tool tokens, and what they would have cost without a search."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Savings:
    """What a session's requests cost in tool tokens, and what they would have cost with every definition in each.

    sent_tokens      the lists of tools, and the searches and their answers, sent again with each request as history is
    written_tokens   what the model wrote to search
    all_tools_tokens every definition in reach, once per request but for those that only a search made necessary

    Not counted, on either side: the rest of the conversation, which the extra requests of searches send once more, and
    the provider's prompt cache, which makes what is sent again cheaper. *cache_breaks* says how often a list of tools
    changed other than at its end.
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
