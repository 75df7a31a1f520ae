"""The tool tokens of requests, and what the search saves: for sessions, and as the service sends them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, computed_field


@dataclass(frozen=True, slots=True)
class ToolTokens:
    """The tool tokens of requests of models, and the tokens that they would have with every definition in each.

    Neither count includes the rest of the conversation, which a request for a search repeats. Neither takes account of
    the provider's prompt cache, which makes repeated text cheaper.
    """

    requests: Annotated[int, Field(description="Lists of tools that were handed out.")] = 0
    sent_tokens: Annotated[
        int, Field(description="Counted tokens of the sent lists, and of calls and answers of searches.")
    ] = 0
    written_tokens: Annotated[int, Field(description="Counted tokens that the model wrote to search.")] = 0
    all_tools_tokens: Annotated[
        int,
        Field(
            description="Tokens of these lists if each had every tool in reach. Requests after a reply that only "
            "searched do not count, because they would not have been made. Counted up to 2,000 tools, else estimated."
        ),
    ] = 0


@dataclass(frozen=True, slots=True)
class ToolCosts(ToolTokens):
    """Tool tokens, and the difference that the search makes."""

    @computed_field(  # type: ignore[prop-decorator]  # mypy knows no decorator above a property
        description="all_tools_tokens less sent_tokens and written_tokens. Below 0 if searching took more."
    )
    @property
    def saved_tokens(self) -> int:
        return self.all_tools_tokens - self.sent_tokens - self.written_tokens

    @computed_field(  # type: ignore[prop-decorator]
        description="The share of all_tools_tokens; null while that is 0."
    )
    @property
    def saved_share(self) -> float | None:
        return self.saved_tokens / self.all_tools_tokens if self.all_tools_tokens else None
