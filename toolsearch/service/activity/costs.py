"""What requests of models cost in tokens of tools, and would have cost without a search: one count for every face."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ToolCosts:
    """Sums over the requests of models that the service knows of. Over MCP these are the lists that were handed out.

    sent_tokens       of the lists as they were sent, and of the searches and answers that conversations keep
    written_tokens    what models wrote in order to search
    all_tools_tokens  every definition in reach once in each of these requests, except those that follow a reply which
                      only searched: without a search tool they would not have been made
    """

    requests: int = 0
    sent_tokens: int = 0
    written_tokens: int = 0
    all_tools_tokens: int = 0

    @classmethod
    def of(cls, figures: Mapping[str, float]) -> ToolCosts:
        """*figures* are amounts by `FigureName`."""
        names = ("requests", "sent_tokens", "written_tokens", "all_tools_tokens")
        return cls(*(int(figures.get(name, 0)) for name in names))

    @property
    def saved_tokens(self) -> int:
        """Below 0 if searching took more than it saved."""
        return self.all_tools_tokens - self.sent_tokens - self.written_tokens

    @property
    def saved_share(self) -> float | None:
        """Of *all_tools_tokens*; None while no request is known that would have sent any definition."""
        return self.saved_tokens / self.all_tools_tokens if self.all_tools_tokens else None
