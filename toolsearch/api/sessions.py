"""The bodies about sessions."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from toolsearch.api.base import AnswerBody, RequestBody, SearchLimit
from toolsearch.api.corpora import OverCorpus, Rules, ToolName
from toolsearch.api.search import FoundTool
from toolsearch_indexes.strategies import Ranking

Exposure: TypeAlias = Literal["auto", "messages", "deferred", "fixed", "append"]

_MAX_TTL_S = 30 * 86_400.0

ToolNames: TypeAlias = Annotated[list[ToolName], Field(min_length=1, max_length=200)]


class SessionBudget(RequestBody):
    """How much a session keeps of what it finds. What is left out is as the service's settings say."""

    tools: Annotated[int, Field(ge=1, le=10_000)] | None = Field(default=None, description="Tools between turns.")
    tokens: Annotated[int, Field(ge=1)] | None = Field(default=None, description="Tokens of their definitions.")


class NewSession(OverCorpus):
    """What an agent works with: tools of one catalog or one toolset, as far as rules and its key allow them."""

    allow: Rules = Field(default=["*"], description="A tool has to fit one of these rules.")
    deny: Rules = Field(default=[], description="And none of these.")
    pins: list[str] = Field(default=[], max_length=200, description="Tools that are always shown.")
    budget: SessionBudget = SessionBudget()
    exposure: Exposure | None = Field(default=None, description="How found tools reach the model.")
    ttl_s: Annotated[float, Field(gt=0, le=_MAX_TTL_S)] | None = Field(
        default=None, description="How long it lasts. Unless given, as the service's settings say."
    )
    url_token: bool = Field(default=False, description="Put a token into mcp_url that is good for this session alone.")


class SessionCreated(AnswerBody):
    """Where the session is to be reached: by an MCP client, or by requests of one's own."""

    id: str
    mcp_url: str
    tools_url: str
    expires_at: datetime


class SessionCounts(AnswerBody):
    """How many tools are active in a session, and how many could be."""

    discovered: int
    pinned: int = Field(description="Of the discovered ones.")
    deferred: int = Field(description="In reach, and found only by a search.")
    searches: int
    calls: int
    failed_calls: int


class SessionBody(AnswerBody):
    id: str
    catalog: str | None
    toolset: str | None
    allow: list[str]
    deny: list[str]
    budget: SessionBudget
    exposure: Exposure | None
    key: str = Field(description="The id of the key that has opened it.")
    created_at: datetime
    expires_at: datetime
    used_at: datetime | None = None
    counts: SessionCounts | None = Field(default=None, description="Null where its catalog or toolset is gone.")


class SessionSearch(RequestBody):
    """What the model's search tool takes."""

    queries: Annotated[list[Annotated[str, Field(min_length=1, max_length=1_000)]], Field(min_length=1, max_length=8)]
    strategy: Ranking | None = None
    limit: SearchLimit | None = None
    server: str | None = None


class DiscoveredTool(FoundTool):
    fit: str = Field(description="fits, may fit or related.")
    is_loaded: bool = Field(description="The model is shown its definition from now on.")


class SessionFound(AnswerBody):
    query: str
    tools: list[DiscoveredTool]
    not_found: list[str] = Field(description="Names that were selected, and that no tool in reach has.")
    too_long: list[str] = Field(description="Tools that were found and cannot be shown.")
    error: str = ""


class SessionSearchAnswer(AnswerBody):
    """*text* is what the model reads; the rest says the same for programs."""

    text: str
    answers: list[SessionFound]


class Names(RequestBody):
    names: ToolNames


class ChosenTools(AnswerBody):
    """What was done to which tools. *not_found* has no tool in reach, or none that it can be done to."""

    names: list[str]
    not_found: list[str]
    too_long: list[str]


class Evicted(AnswerBody):
    names: list[str]


class ActiveTool(AnswerBody):
    """A tool that the session shows, in the order in which they came."""

    name: str
    summary: str
    tokens: int
    is_pinned: bool
    is_called: bool
    used_at: datetime


class DeferredTool(AnswerBody):
    """A tool in reach that the session does not show yet."""

    name: str
    summary: str
    server: str
