"""The bodies about searching."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from toolsearch.api.base import AnswerBody, RequestBody


class SearchRequest(RequestBody):
    """One to ten queries, over a catalog."""

    queries: Annotated[list[Annotated[str, Field(min_length=1, max_length=2_000)]], Field(min_length=1, max_length=10)]
    catalog: str = "default"
    limit: Annotated[int, Field(ge=1, le=100)] = 5


class FoundTool(AnswerBody):
    name: str
    score: float
    confidence: str
    summary: str


class QueryAnswer(AnswerBody):
    query: str
    tools: list[FoundTool]


class SearchAnswer(AnswerBody):
    answers: list[QueryAnswer]
