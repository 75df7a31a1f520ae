"""What bodies have in common: a request with an unknown field is refused, an answer may get more fields later."""

from __future__ import annotations

from typing import Annotated, Generic, Self, TypeAlias, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

_Item = TypeVar("_Item")


def _number(value: object) -> object:
    if isinstance(value, bool | str):  # of which pydantic would make a number
        raise ValueError("must be a whole number")  # noqa: TRY004  pydantic tells a ValueError to the caller
    return value


SearchLimit = Annotated[int, Field(ge=1, le=100), BeforeValidator(_number)]


class RequestBody(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class AnswerBody(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Page(AnswerBody, Generic[_Item]):
    """One page of a list."""

    items: list[_Item]
    next: str | None = Field(default=None, description="Give it as ?after= to get the next page; null on the last one.")


class Problem(AnswerBody):
    """An error, as RFC 9457 has it, with a code that stays the same over versions."""

    type: str = Field(default="about:blank", description="Where the code is explained.")
    title: str
    status: int
    code: str = Field(description="Stable: programs go by it.")
    detail: str = Field(description="What was wrong, and what to do.")
    errors: list[dict[str, str]] = Field(default=[], description="One entry for each field that is wrong.")


CorpusName: TypeAlias = Annotated[str, Field(min_length=1, max_length=63)]
ToolName: TypeAlias = Annotated[str, Field(min_length=1, max_length=200)]

Rules: TypeAlias = Annotated[
    tuple[Annotated[str, Field(max_length=200)], ...],
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


class Health(AnswerBody):
    status: str = Field(description="`ok`, or why no requests can be served.", examples=["ok"])
