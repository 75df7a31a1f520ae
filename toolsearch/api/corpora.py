"""What requests are over: a catalog or a toolset, and the rules that narrow it."""

from __future__ import annotations

from typing import Annotated, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from toolsearch.api.base import RequestBody

CorpusName: TypeAlias = Annotated[str, Field(min_length=1, max_length=63)]
ToolName: TypeAlias = Annotated[str, Field(min_length=1, max_length=200)]
ToolFormat: TypeAlias = Literal["openai", "openai-responses", "anthropic", "mcp"]
Rules: TypeAlias = Annotated[
    list[Annotated[str, Field(max_length=200)]],
    Field(max_length=1_000, description="As 'git__*', 'server:git', 'tag:mail' or 'class:read'."),
]


class OverCorpus(RequestBody):
    """A request over one catalog or one toolset."""

    catalog: CorpusName | None = Field(default=None, description="'default' unless a toolset is named.")
    toolset: CorpusName | None = None

    @model_validator(mode="after")
    def _one_corpus(self) -> Self:
        if self.catalog is not None and self.toolset is not None:
            raise ValueError("give a catalog or a toolset, not both")
        return self
