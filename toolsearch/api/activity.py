"""The bodies about what was done: receipts, usage, savings, misses, feedback and the audit."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Generic, Literal, Self, TypeVar

from pydantic import Field, model_validator

from toolsearch.api.base import AnswerBody, OverCorpus, ToolName
from toolsearch.storage.activity import By, Decision, MissKind, Outcome

_Row = TypeVar("_Row")


class ReceiptBody(AnswerBody):
    """One call: who called which definition, what was decided, how it ended. Never what was said."""

    id: str
    at: datetime
    key: str
    session: str
    corpus: str = Field(description="As catalog/NAME or toolset/NAME.")
    tool: str
    fingerprint: str = Field(description="Of the definition that was called; empty if there was none.")
    decision: Decision
    outcome: Outcome
    code: str = Field(description="The stable code of the error, if there was one.")
    latency_ms: float
    request_id: str


class UsageRow(AnswerBody):
    """What one hour, day, key or session did. Tokens are those of tools alone, counted as in SavingsRow."""

    group: str = Field(description="The beginning of the hour or day, or the id of the key or session.")
    searches: int = Field(description="Queries.")
    weak_searches: int = Field(description="Of these, those that nothing fits well.")
    requests: int = Field(description="Lists of tools that were handed out.")
    sent_tokens: int
    written_tokens: int
    all_tools_tokens: int
    calls: int
    failed_calls: int
    refused_calls: int
    handed_back_calls: int


class _OverTime(AnswerBody, Generic[_Row]):
    by: By
    since: datetime
    until: datetime
    items: list[_Row]
    total: _Row


class Usage(_OverTime[UsageRow]):
    pass


class _Costs(AnswerBody):
    requests: int = Field(description="Lists of tools that were handed out.")
    sent_tokens: int = Field(description="Of the lists as they were sent, and of what searching added. Counted.")
    written_tokens: int = Field(description="By the model, in order to search. Counted.")
    all_tools_tokens: int = Field(
        description="With every tool in reach in each of these requests, except those that follow a reply which only "
        "searched: without a search they would not have been made. Counted up to 2,000 tools, else an estimate."
    )
    saved_tokens: int = Field(
        description="all_tools_tokens without sent_tokens and written_tokens. Below 0 if searching took more."
    )
    saved_share: float | None = Field(description="Of all_tools_tokens; null while that is 0.")


class SavingsRow(_Costs):
    group: str


class SavingsAnswer(_OverTime[SavingsRow]):
    """What searching for tools has saved, as far as the service has handed out lists of tools."""

    notes: list[str] = Field(description="What is counted, what is estimated, and what is left out.")


class SessionSavings(_Costs):
    """What one session has cost and saved: the same count as that of a SavingsRow of the session."""

    session: str
    search_rounds: int = Field(description="Requests over HTTP that follow a reply which only searched.")
    cache_breaks: int = Field(description="Lists that the provider may have had in its cache, and that changed.")
    is_estimate: bool = Field(description="Tokens are estimated from lengths instead of counted.")


class Feedback(OverCorpus):
    """What became of a request: did a search find the right tool?"""

    query: Annotated[str, Field(min_length=1, max_length=2_000)]
    tool: ToolName | None = Field(default=None, description="The tool that is spoken of.")
    outcome: Literal["right", "wrong", "not_found"] = Field(
        description="right: the tool serves the request; wrong: it was found and does not; not_found: nothing does."
    )

    @model_validator(mode="after")
    def _names_a_tool(self) -> Self:
        if (self.tool is None) != (self.outcome == "not_found"):
            raise ValueError("name the tool that was right or wrong, and none where nothing was found")
        return self


class MissBody(AnswerBody):
    """A request that was answered weakly or not at all, in the words of the last time."""

    query: str
    kind: MissKind
    count: int
    first_at: datetime
    last_at: datetime
    best: str = Field(description="The tool that came nearest the last time; empty if none did.")
    best_score: float


class AuditEntry(AnswerBody):
    """Who did what to what, and with which outcome."""

    at: datetime
    key_id: str
    action: str
    subject: str
    outcome: str = Field(description="'done', or why not.")
