"""The bodies about what waits for a person to approve it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from toolsearch.api.base import AnswerBody, RequestBody

EntryKind: TypeAlias = Literal["tool", "prompt", "resource", "resource template", "instructions"]
_Text: TypeAlias = Annotated[str, Field(max_length=4_000)]


class FindingBody(AnswerBody):
    rule: str
    place: str = Field(description="Where in the definition, such as inputSchema.properties.path.description.")
    evidence: str = Field(description="The words, made printable.")


class WaitingBody(AnswerBody):
    """What waits. It can be neither found nor called until it is approved, by its pin."""

    label: str
    server: str
    kind: EntryKind
    name: str = Field(description="The server's own name for it.")
    pin: str = Field(description="Of the definition that waits. An approval names it.")
    why: Literal["new", "changed", "suspicious", "withdrawn", "approvals cannot be read"]
    findings: list[FindingBody]
    changes: list[str] = Field(description="The places that differ from what was approved: + new, - gone, ~ another.")
    approved: dict[str, Any] | None = Field(description="The definition that was approved; null if none was.")
    waiting: dict[str, Any] = Field(description="The definition that waits.")
    difference: list[str] = Field(description="Line by line, or the whole definition if none was approved.")


class ApprovedBody(AnswerBody):
    label: str
    server: str
    kind: EntryKind
    name: str
    pin: str
    by: str = Field(description="The id of the key that approved it, or 'first sight'.")
    seen_at: datetime


class Revocation(RequestBody):
    server: _Text
    kind: EntryKind = "tool"
    name: _Text = ""


class Approval(Revocation):
    pin: _Text
