"""The bodies about toolsets."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from toolsearch.api.base import AnswerBody, PatchBody, RequestBody, left_out
from toolsearch.api.catalogs import Description, Name, Tags
from toolsearch.api.corpora import CorpusName, Rules, ToolName

ToolState: TypeAlias = Literal["shown", "missing", "refused"]


class ToolsetMemberBody(RequestBody):
    """A tool of a catalog. What is null is as it is there."""

    catalog: CorpusName = "default"
    tool: ToolName
    name: ToolName | None = Field(default=None, description="What the toolset shows it by.")
    description: Annotated[str, Field(max_length=100_000)] | None = None
    title: Annotated[str, Field(max_length=1_000)] | None = None
    tags: Tags = Field(default=[], description="On top of those that it has in its catalog.")


class ToolsetRuleBody(RequestBody):
    """All tools of a catalog that the rules allow, also those that come later, by their names there."""

    catalog: CorpusName = "default"
    allow: Rules = Field(default=["*"])
    deny: Rules = Field(default=[])


Members: TypeAlias = Annotated[list[ToolsetMemberBody], Field(max_length=10_000)]
RulesOfCatalogs: TypeAlias = Annotated[list[ToolsetRuleBody], Field(max_length=100)]


class NewToolset(RequestBody):
    name: Name
    description: Description = ""
    tools: Members = Field(default=[])
    rules: RulesOfCatalogs = Field(default=[])


class ToolsetPatch(PatchBody):
    """What is left out stays; a list is replaced as a whole."""

    description: Description = left_out()
    tools: Members = left_out()
    rules: RulesOfCatalogs = left_out()


class ToolsetBody(AnswerBody):
    name: Name
    number: int = Field(description="Which version this is, counted from 1. The ETag is another one for each.")
    description: str
    tools: list[ToolsetMemberBody]
    rules: list[ToolsetRuleBody]
    changed_at: datetime


class ToolsetEntry(AnswerBody):
    """One tool that the toolset asks for."""

    name: str
    catalog: str
    tool: str = Field(description="Its name in the catalog.")
    state: ToolState
    reason: str = Field(default="", description="Why it is not shown, and what to do.")
    summary: str = ""
    is_callable: bool = False
