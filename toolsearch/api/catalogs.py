"""The bodies about catalogs, their tools, and toolsets."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from toolsearch.api.base import AnswerBody, CorpusName, PatchBody, RequestBody, Rules, ToolName, left_out
from toolsearch.tools.json_types import JsonObject

Name: TypeAlias = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$", description="a-z, 0-9 and -")]


Description: TypeAlias = Annotated[str, Field(max_length=1_000)]


Tags: TypeAlias = Annotated[list[Annotated[str, Field(min_length=1, max_length=200)]], Field(max_length=100)]


Outcome: TypeAlias = Literal["created", "replaced", "unchanged", "refused", "deleted", "missing"]


class NewCatalog(RequestBody):
    name: Name
    description: Description = ""


class CatalogPatch(PatchBody):
    """What is left out stays."""

    description: Description = left_out()


class CatalogBody(AnswerBody):
    name: Name
    description: str
    tools: int = Field(description="Tools that this key can find, those of MCP servers among them.")
    revision: int = Field(description="Grows with each change of its tools.")
    version: int = Field(description="Changes with the catalog's own description. The ETag is made of it.")
    changed_at: datetime


class ToolOutcome(AnswerBody):
    index: int = Field(description="Which entry of the request, counted from 0.")
    name: str = Field(description="The name in the catalog, with that of its server in front; of a refused one as far "
                      "as it is known.")  # fmt: skip
    outcome: Outcome
    reason: str = Field(default="", description="Why it was refused, and what to do.")


class ToolsWritten(AnswerBody):
    created: int
    replaced: int
    unchanged: int
    refused: int
    outcomes: list[ToolOutcome]
    revision: int


class ToolsDeleted(AnswerBody):
    deleted: int
    missing: int
    refused: int
    outcomes: list[ToolOutcome]
    revision: int


class ToolNames(RequestBody):
    names: Annotated[list[ToolName], Field(min_length=1, max_length=10_000)]


class ToolPatch(PatchBody):
    """What is left out stays."""

    description: Annotated[str, Field(max_length=100_000)] = left_out()
    title: Annotated[str, Field(max_length=1_000)] = left_out()
    tags: Tags = left_out()
    annotations: Annotated[JsonObject, Field(description="MCP's hints, such as readOnlyHint.")] = left_out()
    input_schema: JsonObject = left_out()
    output_schema: Annotated[JsonObject | None, Field(description="null: the tool has none any more.")] = left_out()


class ToolEntry(AnswerBody):
    """One tool of a list."""

    name: str
    title: str
    summary: str
    server: str
    tags: list[str]
    source: str = Field(description="Which source of the catalog it came from; empty for one that was written to it.")
    is_callable: bool = Field(description="Whether the service can run it. If not, the caller does.")


class ToolBody(ToolEntry):
    """A whole definition. Its ETag is its fingerprint."""

    description: str
    input_schema: JsonObject
    output_schema: JsonObject | None
    annotations: JsonObject
    fingerprint: str


class RefusedTool(AnswerBody):
    name: str
    source: str = Field(description="Empty for one that was written to the catalog itself.")
    reason: str


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
