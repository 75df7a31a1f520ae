"""The bodies about what was done: receipts, usage, savings, misses, feedback and the audit."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Generic, Literal, Self, TypeVar

from pydantic import Field, model_validator, with_config

from toolsearch.api.base import ANSWER, AnswerBody, OverCorpus, ToolName
from toolsearch.sessions.costs import ToolCosts, ToolTokens
from toolsearch.storage.activity import By, CallRecord, MissKind

_Row = TypeVar("_Row")


@with_config(ANSWER)
@dataclass(frozen=True, slots=True)
class ReceiptBody(CallRecord):
    """One call: who called which definition, what was decided, how it ended. Never what was said."""

    at: datetime


@with_config(ANSWER)
@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRow(ToolTokens):
    """What one hour, day, key or session did. Tokens are those of tools alone, counted as in SavingsRow."""

    group: Annotated[
        str,
        Field(
            description="The beginning of the hour or day, or the id of the key or session. Requests to models through "
            "the proxy have proxy:FORMAT in place of a session."
        ),
    ]
    searches: Annotated[int, Field(description="Queries.")]
    weak_searches: Annotated[int, Field(description="Searches without a tool that fits well.")]
    held_back_tools: Annotated[int, Field(description="Tools that the proxy did not list, in each request to a model.")]
    revealed_tools: Annotated[int, Field(description="Held back tools that a search found.")]
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


class UsageAnswer(_OverTime[UsageRow]):
    pass


@with_config(ANSWER)
@dataclass(frozen=True, slots=True, kw_only=True)
class SavingsRow(ToolCosts):
    """Costs of one hour, day, key or session, or of all of them."""

    group: str


class SavingsAnswer(_OverTime[SavingsRow]):
    """What searching for tools has saved, as far as the service has handed out lists of tools."""

    notes: list[str] = Field(description="Counted, estimated and omitted parts, in words.")


@with_config(ANSWER)
@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSavings(ToolCosts):
    """What one session has cost and saved: the same count as that of a SavingsRow of the session."""

    session: str
    search_rounds: Annotated[int, Field(description="Requests over HTTP after a reply that only searched.")]
    anticipated: Annotated[int, Field(description="Tools shown for the user's words, before the model was asked.")]
    anticipated_calls: Annotated[int, Field(description="How many of these were called.")]
    cache_breaks: Annotated[
        int, Field(description="Lists that the provider may have had in its cache, and that changed.")
    ]
    is_estimate: Annotated[bool, Field(description="Tokens are estimated from lengths instead of counted.")]


class Feedback(OverCorpus):
    """What became of a request: did a search find the right tool?"""

    query: Annotated[str, Field(min_length=1, max_length=2_000)]
    tool: ToolName | None = Field(default=None, description="The tool of the report.")
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
    request_id: str = Field(default="", description="The id of the request, as logs and errors name it.")
    digest: str = Field(description="The SHA-256 of this record and of the digest of the one before it.")


class AuditChain(AnswerBody):
    """Whether the records of the audit are as they were written."""

    records: int = Field(description="Records that are sound, from the first one on.")
    head: str = Field(
        description="The digest of the newest record; kept elsewhere, it shows a chain that was replaced."
    )
    fault: str = Field(description="Where a record was changed or taken out; '' if none was.")
