"""How every session of an engine behaves."""

from __future__ import annotations

from dataclasses import dataclass

from toolsearch.discovery.discovered import Budget
from toolsearch.discovery.pass_through import PassThrough
from toolsearch.errors import BadSettingError


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """How every session of an engine behaves.

    limit, max_limit     tools in one answer of the search tool: unless the model says otherwise, and at most
    min_score            what scores less is not found, by any search of the engine; scores are from 0 to 1
    answer_tokens        what one answer may take
    budget               what a session may hold between turns
    pass_through         the catalogs that are shown whole
    expand_undiscovered  run a tool in reach that the model calls without having searched for it; else refuse
    """

    limit: int = 5
    max_limit: int = 10
    min_score: float = 0.0
    answer_tokens: int = 800
    budget: Budget = Budget()  # noqa: RUF009  frozen
    pass_through: PassThrough = PassThrough()  # noqa: RUF009  frozen
    expand_undiscovered: bool = True

    def __post_init__(self) -> None:
        if not 0 <= self.min_score <= 1:
            raise BadSettingError(f"min_score must be from 0 to 1; got {self.min_score}")
