"""The bodies about catalogs."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field

from toolsearch.api.base import AnswerBody, RequestBody

Name: TypeAlias = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$", description="a-z, 0-9 and -")]


class NewCatalog(RequestBody):
    name: Name
    description: str = Field(default="", max_length=1_000)


class CatalogBody(AnswerBody):
    name: Name
    description: str
    version: int


class Unwritten(AnswerBody):
    name: str
    reason: str


class ToolsWritten(AnswerBody):
    written: list[str]
    refused: list[Unwritten]
    revision: int
