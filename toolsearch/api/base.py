"""What bodies have in common: a request with an unknown field is refused, an answer may get more fields later."""

from __future__ import annotations

from dataclasses import Field as DataclassField
from dataclasses import fields
from typing import Annotated, Any, ClassVar, Final, Generic, Protocol, Self, TypeAlias, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

_Item = TypeVar("_Item")


class _Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, DataclassField[Any]]]


_Body = TypeVar("_Body", bound=_Dataclass)


def _number(value: object) -> object:
    if isinstance(value, bool | str):  # of which pydantic would make a number
        raise ValueError("must be a whole number")  # noqa: TRY004  pydantic tells a ValueError to the caller
    return value


SearchLimit = Annotated[int, Field(ge=1, le=100), BeforeValidator(_number)]


class RequestBody(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class AnswerBody(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


def _as_sent(schema: dict[str, Any]) -> None:
    """Take out what concerns only those who make the object, since all its fields are always sent."""
    for field in schema["properties"].values():
        field.pop("default", None)
        field.pop("readOnly", None)


# For an answer that is a dataclass, because it inherits the fields of an object of ours.
ANSWER: Final = ConfigDict(extra="ignore", json_schema_serialization_defaults_required=True, json_schema_extra=_as_sent)


def body_of(body: type[_Body], source: object, **more: object) -> _Body:
    """Make a *body* that inherits fields of *source*; *more* has the fields that the body adds."""
    shared = {field.name: getattr(source, field.name) for field in fields(body) if field.name not in more}
    return body(**shared, **more)


class Page(AnswerBody, Generic[_Item]):
    """One page of a list."""

    items: list[_Item]
    next: str | None = Field(default=None, description="Give it as ?after= to get the next page; null on the last one.")


class Problem(AnswerBody):
    """An error, as RFC 9457 has it, with a code that stays the same over versions."""

    type: str = Field(default="about:blank", description="Where the code is explained.")
    title: str
    status: int
    code: str = Field(description="Stable, for programs.")
    detail: str = Field(description="The fault, and the remedy.")
    errors: list[dict[str, str]] = Field(default=[], description="One entry for each field that is wrong.")


CorpusName: TypeAlias = Annotated[str, Field(min_length=1, max_length=63)]
ToolName: TypeAlias = Annotated[str, Field(min_length=1, max_length=200)]

Rules: TypeAlias = Annotated[
    tuple[Annotated[str, Field(max_length=200)], ...],
    Field(max_length=1_000, description="Rules such as 'git__*', 'server:git', 'tag:mail' or 'class:read'."),
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
