"""The bodies about calls of tools."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from toolsearch.api.base import AnswerBody, RequestBody
from toolsearch.api.corpora import OverCorpus, ToolName


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

    id: str | None = Field(default=None, description="Of a call that was handed back: for its report.")
    status: Literal["done", "handed_back"]
    content: list[dict[str, Any]] = Field(default=[])
    structured_content: Any | None = None
    is_error: bool = False
    code: str | None = Field(default=None, description="The stable code of the error, if the call failed here.")
    name: str = Field(description="The tool that was meant.")
    arguments: dict[str, Any] | None = Field(default=None, description="Of a call that was handed back, checked.")
    fingerprint: str | None = Field(
        default=None, description="Of the definition by which the arguments of a handed back call were checked."
    )


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
