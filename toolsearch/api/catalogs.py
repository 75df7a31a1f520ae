"""The bodies about catalogs, their tools, and toolsets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import ConfigDict, Field, with_config
from typing_extensions import TypedDict

from toolsearch.access.reach import EVERY_TOOL, Reach
from toolsearch.api.base import AnswerBody, CorpusName, RequestBody, Rules, ToolName
from toolsearch.tools.definition import EntryKind, Tool, ToolDefinition
from toolsearch.tools.json_types import JsonObject

EXACT: Final = ConfigDict(extra="forbid")  # of what is sent and is no `RequestBody`
Name: TypeAlias = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$", description="a-z, 0-9 and -")]
Description: TypeAlias = Annotated[str, Field(max_length=1_000)]
Tags: TypeAlias = Annotated[tuple[Annotated[str, Field(min_length=1, max_length=200)], ...], Field(max_length=100)]
WriteOutcome: TypeAlias = Literal["created", "replaced", "unchanged", "refused", "deleted", "missing"]


class NewCatalog(RequestBody):
    name: Name
    description: Description = ""


@with_config(EXACT)
class CatalogPatch(TypedDict, total=False):
    """What is left out stays."""

    description: Description


class CatalogBody(AnswerBody):
    name: Name
    description: str
    tools: int = Field(description="Tools that this key can find, those of MCP servers among them.")
    revision: int = Field(description="Grows with each change of its tools.")
    version: int = Field(description="Changes with the catalog's own description. The ETag is made of it.")
    changed_at: datetime


class ToolOutcome(AnswerBody):
    index: int = Field(description="The entry's place in the request, counted from 0.")
    name: str = Field(description="The name in the catalog, with that of its server in front; of a refused one as far "
                      "as it is known.")  # fmt: skip
    outcome: WriteOutcome
    reason: str = Field(default="", description="The reason of the refusal, and the remedy.")


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


@with_config(EXACT)
class ToolPatch(TypedDict, total=False):
    """What is left out stays."""

    description: Annotated[str, Field(max_length=100_000)]
    title: Annotated[str, Field(max_length=1_000)]
    tags: Tags
    annotations: Annotated[JsonObject, Field(description="MCP's hints, such as readOnlyHint.")]
    input_schema: JsonObject
    output_schema: Annotated[JsonObject | None, Field(description="null: the tool has none any more.")]


class ToolEntry(AnswerBody):
    """One tool, skill, prompt or resource of a list."""

    name: str
    kind: EntryKind
    title: str
    summary: str
    server: str
    tags: list[str]
    source: str = Field(description="Its source in the catalog; empty for a tool written by a request.")
    is_callable: bool = Field(description="Whether the service can run it. If not, the caller does.")


class SkillFileBody(AnswerBody):
    path: str
    digest: str = Field(description="sha256: and hex.")
    size: int = Field(description="In bytes.")


class ToolBody(ToolEntry):
    """A whole definition. Its ETag is its fingerprint."""

    description: str
    input_schema: JsonObject
    output_schema: JsonObject | None
    annotations: JsonObject
    fingerprint: str
    files: list[SkillFileBody] = Field(
        default=[], description="The files of a skill. Other files of its folder are never read."
    )


class RefusedTool(AnswerBody):
    name: str
    source: str = Field(description="Empty for one that was written to the catalog itself.")
    reason: str


ToolState: TypeAlias = Literal["shown", "missing", "refused"]
_Catalog: TypeAlias = Annotated[CorpusName, Field(default="default")]  # a request may leave it out


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class ToolsetMember:
    """A tool of a catalog. What is null is as it is there."""

    catalog: _Catalog
    tool: ToolName
    name: Annotated[ToolName | None, Field(description="Its name in the toolset.")] = None
    description: Annotated[str, Field(max_length=100_000)] | None = None
    title: Annotated[str, Field(max_length=1_000)] | None = None
    tags: Annotated[Tags, Field(description="Added to the tags that it has in its catalog.")] = ()

    @property
    def shown_name(self) -> str:
        return self.name or self.tool

    def shown(self, tool: Tool) -> ToolDefinition:
        """The definition of *tool* as the toolset shows it."""
        given = {"name": self.name, "description": self.description, "title": self.title}
        changes: dict[str, Any] = {field: value for field, value in given.items() if value is not None}
        if self.tags:
            changes["tags"] = tuple(dict.fromkeys((*tool.definition.tags, *self.tags)))
        return replace(tool.definition, **changes) if changes else tool.definition


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class ToolsetRule:
    """All tools of a catalog that the rules allow, also those that come later, by their names there."""

    catalog: _Catalog
    allow: Rules = EVERY_TOOL
    deny: Rules = ()

    @property
    def reach(self) -> Reach:
        """Raises BadSettingError for a rule that cannot be used."""
        return Reach.parse(self.allow, self.deny)


Members: TypeAlias = Annotated[tuple[ToolsetMember, ...], Field(max_length=10_000)]
RulesOfCatalogs: TypeAlias = Annotated[tuple[ToolsetRule, ...], Field(max_length=100)]


class NewToolset(RequestBody):
    name: Name
    description: Description = ""
    tools: Members = ()
    rules: RulesOfCatalogs = ()


@with_config(EXACT)
class ToolsetPatch(TypedDict, total=False):
    """What is left out stays; a list is replaced as a whole."""

    description: Description
    tools: Members
    rules: RulesOfCatalogs


class ToolsetBody(AnswerBody):
    name: Name
    number: int = Field(description="The version, counted from 1. Each version has its own ETag.")
    description: str
    tools: tuple[ToolsetMember, ...]
    rules: tuple[ToolsetRule, ...]
    changed_at: datetime


class ToolsetEntry(AnswerBody):
    """One tool, skill, prompt or resource that the toolset asks for."""

    name: str
    catalog: str
    tool: str = Field(description="Its name in the catalog.")
    state: ToolState
    reason: str = Field(default="", description="The reason why it is not shown, and the remedy.")
    summary: str = ""
    kind: EntryKind = "tool"
    is_callable: bool = False
