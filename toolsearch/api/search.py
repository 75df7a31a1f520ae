"""The bodies about searching."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from toolsearch.api.base import AnswerBody, SearchLimit
from toolsearch.api.corpora import OverCorpus, Rules, ToolFormat, ToolName

SearchStrategy: TypeAlias = Literal["auto", "hybrid", "keyword", "semantic", "regex"]


class SearchRequest(OverCorpus):
    """Queries to be ranked, names to be looked up, or both."""

    queries: Annotated[list[Annotated[str, Field(min_length=1, max_length=2_000)]], Field(max_length=20)] = Field(
        default=[], description="A few words each; or select:name1,name2, or /pattern/ for a regular expression."
    )
    names: list[ToolName] = Field(default=[], max_length=200, description="Tools to be looked up by exact name.")
    strategy: SearchStrategy | None = None
    limit: SearchLimit = Field(default=5, description="Tools for each query.")
    server: str | None = Field(default=None, max_length=200, description="Only tools of this server.")
    allow: Rules = Field(
        default=["*"], description="Narrows what the key allows: a tool has to fit one of these rules."
    )
    deny: Rules = Field(default=[], description="And none of these.")
    definitions: ToolFormat | None = Field(
        default=None, description="Give the definitions of all tools in the answer, as this API takes them."
    )
    explain: bool = Field(default=False, description="Say how the score of each tool came about.")
    explain_tools: list[ToolName] = Field(
        default=[], max_length=20, description="Say of these tools at which place they are, or why they are not found."
    )

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not self.queries and not self.names:
            raise ValueError("give queries, or names")
        return self


class FoundTool(AnswerBody):
    """*score* is how likely a tool that matches so well is what was asked for, from 0 to 1."""

    name: str
    score: float
    confidence: Literal["high", "low"] = Field(
        description="low: requests that no tool serves often have an answer of such a score. If the first tool of an "
        "answer is low, all are: ask again in other words."
    )
    summary: str
    runs_here: bool = Field(description="Whether the service runs it. A call of another is handed back to the caller.")


class ExplainedWord(AnswerBody):
    word: str
    terms: list[str] = Field(description="What the word was read as.")
    fields: list[str] = Field(description="Which fields of the tool hold one of them.")
    score: float


class ExplainedTool(AnswerBody):
    """The parts of a score: *raw* is *word_score* + *weight* * *deviations*, and has to be *least* at least."""

    tool: str
    strategy: str
    outcome: str = Field(
        description="found, by name, by pattern, does not fit, no match, out of reach, no such tool ..."
    )
    place: int | None = Field(description="1 is the best; null if it is not found.")
    score: float
    words: list[ExplainedWord]
    missing: list[str]
    word_score: float
    cosine: float | None
    deviations: float
    weight: float
    raw: float
    least: float
    favoured: float = Field(description="What learning from use adds.")
    read: float | None = Field(
        description="The log odds that it serves the request, by the reader; null if it did not read the tool."
    )


class QueryAnswer(AnswerBody):
    query: str
    tools: list[FoundTool]
    explanations: list[ExplainedTool] = Field(default=[])
    error: str = Field(default="", description="Why this query cannot be searched for, if there are several.")


class SearchAnswer(AnswerBody):
    """An answer for each query, in their order. What is said of names and definitions is said once for all."""

    answers: list[QueryAnswer]
    not_found: list[str] = Field(default=[], description="Those of *names* that no tool in reach has.")
    named: list[FoundTool] = Field(default=[], description="The others of *names*.")
    definitions: dict[str, dict[str, Any]] = Field(default={}, description="By name.")
