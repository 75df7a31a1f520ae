"""The bodies that agents send: searching, sessions and calls of tools."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import Field, model_validator, with_config

from toolsearch.api.base import ANSWER, AnswerBody, OverCorpus, RequestBody, Rules, SearchLimit, ToolName
from toolsearch.tools.definition import FOUND_KINDS, EntryKind, ToolReference
from toolsearch.wire.capabilities import Cloud, RevealSetting
from toolsearch.wire.formats import WireFormat
from toolsearch_indexes.documents import Confidence, Explanation
from toolsearch_indexes.queries import Ranking

Kinds: TypeAlias = Annotated[
    tuple[EntryKind, ...],
    Field(min_length=1, max_length=20, description="Kinds to search; their scores compare."),
]
SearchStrategy: TypeAlias = Literal["auto", "hybrid", "keyword", "semantic", "regex"]


class SearchRequest(OverCorpus):
    """Queries to be ranked, names to be looked up, or both."""

    queries: Annotated[list[Annotated[str, Field(min_length=1, max_length=2_000)]], Field(max_length=20)] = Field(
        default=[], description="A few words each; or select:name1,name2, or /pattern/ for a regular expression."
    )
    names: list[ToolName] = Field(default=[], max_length=200, description="To be looked up by exact name.")
    kinds: Kinds = FOUND_KINDS
    strategy: SearchStrategy | None = None
    limit: SearchLimit = Field(default=5, description="Answers for each query.")
    server: str | None = Field(default=None, max_length=200, description="Only tools of this server.")
    allow: Rules = Field(default=("*",), description="A tool must fit one of these rules, and the key's rules.")
    deny: Rules = Field(default=(), description="And none of these.")
    definitions: WireFormat | None = Field(
        default=None, description="Give all definitions in the form that this API takes."
    )
    explain: bool = Field(default=False, description="Say how the score of each tool came about.")
    explain_tools: list[ToolName] = Field(
        default=[],
        max_length=20,
        description="Give the place of each of these tools, or the reason why it is not found.",
    )

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not self.queries and not self.names:
            raise ValueError("give queries, or names")
        return self


@with_config(ANSWER)
@dataclass(frozen=True, slots=True)
class FoundTool(ToolReference):
    """*score* estimates the probability that the tool serves the request, from 0 to 1."""

    confidence: Annotated[
        Confidence,
        Field(
            description="high: the request probably means this tool. "
            "medium: it fits, and others fit nearly as well. "
            "low: wrong tools often have such a score. If the first tool of an answer is low, all are low: ask again "
            "in other words."
        ),
    ] = "high"
    is_callable: Annotated[
        bool,
        Field(
            alias="runs_here",
            description="Whether the service runs the tool. If not, a call is handed back to the caller.",
        ),
    ] = True
    kind: Annotated[
        EntryKind,
        Field(
            description="A skill, a prompt or a resource is read by a call of its name. A skill takes the path of a "
            "file as *file*, and gives its SKILL.md without one."
        ),
    ] = "tool"


@with_config(ANSWER)
@dataclass(frozen=True, slots=True)
class ExplainedTool(Explanation):
    """The parts of a score: *raw* is *word_score* + *weight* * *deviations*, and has to be *least* at least."""

    place: Annotated[int | None, Field(description="1 is the best; null if it is not found.")] = None
    favoured: Annotated[float, Field(description="The part of learning from use.")] = 0.0
    read: Annotated[
        float | None,
        Field(description="The reader's log odds that the tool serves the request; null if unread."),
    ] = None


class QueryAnswer(AnswerBody):
    query: str
    tools: list[FoundTool]
    explanations: list[ExplainedTool] = Field(default=[])
    error: str = Field(default="", description="The fault of this query, if there are several queries.")


class SearchAnswer(AnswerBody):
    """An answer for each query, in their order. Names and definitions are given once for all queries."""

    answers: list[QueryAnswer]
    not_found: list[str] = Field(default=[], description="Names without an entry of *kinds* in reach.")
    named: list[FoundTool] = Field(default=[], description="The others of *names*.")
    definitions: dict[str, dict[str, Any]] = Field(default={}, description="By name.")


_MAX_TTL_S = 30 * 86_400.0
ChosenNames: TypeAlias = Annotated[list[ToolName], Field(min_length=1, max_length=200)]


class SessionBudget(RequestBody):
    """How many found tools a session keeps. The service's settings give the values that are left out."""

    tools: Annotated[int, Field(ge=1, le=10_000)] | None = Field(default=None, description="Tools between turns.")
    tokens: Annotated[int, Field(ge=1)] | None = Field(default=None, description="Tokens of their definitions.")


class NewSession(OverCorpus):
    """An agent's tools: those of one catalog or toolset that rules and the agent's key allow."""

    allow: Rules = Field(default=("*",), description="A tool has to fit one of these rules.")
    deny: Rules = Field(default=(), description="And none of these.")
    pins: list[str] = Field(default=[], max_length=200, description="Tools that are always shown.")
    budget: SessionBudget = SessionBudget()
    exposure: RevealSetting | None = Field(default=None, description="How found tools reach the model.")
    ttl_s: Annotated[float, Field(gt=0, le=_MAX_TTL_S)] | None = Field(
        default=None, description="Seconds that it lasts; null: by the service's settings."
    )
    url_token: bool = Field(default=False, description="Put a token for this session alone into mcp_url.")


class SessionCreated(AnswerBody):
    """The addresses of the session, for an MCP client and for your own requests."""

    id: str
    mcp_url: str
    tools_url: str
    expires_at: datetime


class SessionCounts(AnswerBody):
    """How many tools are active in a session, and how many could be."""

    discovered: int
    pinned: int = Field(description="Pinned ones of the discovered tools.")
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
    exposure: RevealSetting | None
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
    kinds: Kinds | None = Field(default=None, description="Kinds to search; default tools and skills.")


@with_config(ANSWER)
@dataclass(frozen=True, slots=True, kw_only=True)
class FoundInSession(FoundTool):
    fit: Annotated[str, Field(description="fits, likely or related.")]
    is_loaded: Annotated[bool, Field(description="The model is shown its definition from now on.")]
    copies: Annotated[tuple[str, ...], Field(description="Tools with the same text that fit equally well.")]


class SessionFound(AnswerBody):
    query: str
    tools: list[FoundInSession]
    not_found: list[str] = Field(description="Selected names that no tool in reach has.")
    too_long: list[str] = Field(description="Tools that were found and cannot be shown.")
    error: str = ""


class SessionSearchAnswer(AnswerBody):
    """*text* is what the model reads; the rest says the same for programs."""

    text: str
    answers: list[SessionFound]


class Names(RequestBody):
    names: ChosenNames


class ChosenTools(AnswerBody):
    """What was done to which tools. *not_found* has no tool in reach, or none that it can be done to."""

    names: list[str]
    not_found: list[str]
    too_long: list[str]


class Evicted(AnswerBody):
    names: list[str]


class NewTurn(RequestBody):
    """What the user said, and the destination of the next request; needed to anticipate tools, and else not."""

    said: str = Field(default="", max_length=1_000_000, description="The user's message.")
    format: WireFormat | None = Field(default=None, description="Needed before the first request only.")
    model: str = Field(default="", max_length=200)
    cloud: Cloud = ""


class TurnBegun(Evicted):
    """*names* are the tools that were idle for too long."""

    messages: list[dict[str, Any]] = Field(description="Append them behind the user's message.")


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


class SessionCall(RequestBody):
    name: ToolName
    arguments: dict[str, Any] = Field(default={}, description="What the tool's schema asks for.")


class NewCall(OverCorpus):
    """A call of a tool of a catalog, a toolset or a session."""

    session: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    name: ToolName
    arguments: dict[str, Any] = Field(default={}, description="What the tool's schema asks for.")

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if self.session is not None and (self.catalog is not None or self.toolset is not None):
            raise ValueError("a session knows its catalog or toolset; name one of them alone")
        return self


class CallAnswer(AnswerBody):
    """What became of a call.

    A call that was run has the result as MCP has it. A tool that fails is a result with *is_error*, for the model to
    read. A call of a tool that lives with the caller is handed back, checked: run it, and report how it ended.
    """

    id: str | None = Field(default=None, description="Id of a call that was handed back, for its report.")
    status: Literal["done", "handed_back"]
    content: list[dict[str, Any]] = Field(default=[])
    structured_content: Any | None = None
    is_error: bool = False
    code: str | None = Field(default=None, description="The stable code of the error, if the call failed.")
    name: str = Field(description="The tool that was meant.")
    arguments: dict[str, Any] | None = Field(
        default=None, description="Checked arguments of a call that was handed back."
    )
    fingerprint: str | None = Field(default=None, description="Hash of the definition that checked a handed back call.")


class CallReport(RequestBody):
    """How a call ended that was handed back. What it gave is not asked for."""

    is_error: bool = False


class ModelReply(RequestBody):
    """A whole reply of a model, as the SDK of OpenAI or Anthropic gives it, as JSON; or its tool calls."""

    reply: dict[str, Any] | list[dict[str, Any]]


class HandedBackCall(CallAnswer):
    call_id: str = Field(description="The id that the model has given the call.")


class Executed(AnswerBody):
    """*messages* are to be appended to the conversation, in the format of the reply, and after them the results of what
    was handed back.
    """

    messages: list[dict[str, Any]]
    handed_back: list[HandedBackCall]
