"""The bodies about sources, imports and jobs, and about what of MCP servers waits for a person to approve it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from toolsearch.api.base import AnswerBody, RequestBody
from toolsearch.api.catalogs import Name, RefusedTool

Headers: TypeAlias = Annotated[
    dict[
        Annotated[str, Field(pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}$")], Annotated[str, Field(max_length=8_192)]
    ],
    Field(max_length=50),
]

Url: TypeAlias = Annotated[str, Field(pattern=r"^https?://", max_length=4_000)]
Prefix: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{0,48}$")]
Secret: TypeAlias = Annotated[str, Field(min_length=1, max_length=16_384)]


class UserAndPassword(RequestBody):
    user: str = Field(max_length=1_000)
    password: str = Field(max_length=1_000)


class _FromDocument(RequestBody):
    name: Name
    url: Url | None = Field(default=None, description="Where the document is read, now and when it is refreshed.")
    document_headers: Headers = Field(default={}, description="Sent when the document is read. Never shown again.")

    @model_validator(mode="after")
    def _one_origin(self) -> Self:
        if self.url is not None and getattr(self, "document", None) is not None:
            raise ValueError("give either the document or its url")
        return self


class NewOpenApiSource(_FromDocument):
    """The operations of an OpenAPI 3 document, which the service calls over HTTP."""

    kind: Literal["openapi"]
    document: dict[str, Any] | str | None = Field(
        default=None, description="The document, or its text as JSON or YAML; neither this nor a url: it comes later."
    )
    prefix: Prefix | None = Field(default=None, description="Prefix of the tools' names; null: the name of the source.")
    base_url: Url | None = Field(default=None, description="Where the operations are; null: where the document says.")
    headers: Headers = Field(default={}, description="Sent with each call. Never shown again.")
    credentials: dict[str, Secret | UserAndPassword] = Field(
        default={},
        max_length=50,
        description="By the name of a security scheme of the document: a key or token, or user and password for basic "
        "authentication. Sent where the operations are and nowhere else. Never shown again.",
    )


class NewListingSource(_FromDocument):
    """Definitions of tools that live with the caller, in the formats of OpenAI, Anthropic or MCP."""

    kind: Literal["listing"]
    document: dict[str, Any] | list[Any] | str | None = Field(
        default=None, description="The listing, or its text as JSON, JSONL or YAML."
    )
    prefix: Prefix | None = Field(default=None, description="Prefix of the names of tools without a server.")


class NewMcpSource(RequestBody):
    """An MCP server, which the service keeps connected while its catalog is used. Its name stands before its tools'."""

    kind: Literal["mcp"]
    name: Name
    url: Url | None = None
    headers: Headers = Field(default={}, description="Sent with each request. Never shown again.")
    type: Literal["http", "sse"] | None = Field(default=None, description="null: whichever the server speaks.")
    credentials: Literal["shared", "per-user"] = Field(
        default="shared", description="per-user: each key or JWT subject logs in with OAuth on the page Logins."
    )
    command: str | None = Field(default=None, max_length=1_000, description="For operators only: it runs here.")
    args: list[Annotated[str, Field(max_length=4_000)]] = Field(default=[], max_length=100)
    env: dict[str, Annotated[str, Field(max_length=8_192)]] = Field(default={}, description="Never shown again.")
    cwd: str | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.url is None) == (self.command is None):
            raise ValueError("give either the url of the server or the command that starts it")
        if self.url is not None and (self.args or self.env or self.cwd):
            raise ValueError("args, env and cwd go with a command")
        if self.command is not None and (self.headers or self.type):
            raise ValueError("headers and type go with a url")
        if self.credentials == "per-user" and (self.url is None or "authorization" in map(str.lower, self.headers)):
            raise ValueError("credentials per-user needs a url, and no header Authorization")
        return self


NewSource: TypeAlias = Annotated[NewOpenApiSource | NewListingSource | NewMcpSource, Field(discriminator="kind")]


class ErrorBody(AnswerBody):
    code: str = Field(description="Stable, for programs.")
    detail: str = Field(description="The fault, and the remedy.")


SourceKind: TypeAlias = Literal["openapi", "listing", "mcp"]
SourceState: TypeAlias = Literal["awaiting document", "importing", "ready", "failed", "unfinished"]


class SourceBody(AnswerBody):
    """One source. *tools*, *tokens* and *refused* are of the last import that succeeded."""

    name: Name
    kind: SourceKind
    state: SourceState = Field(
        description="unfinished: the last import was cancelled or interrupted; its tools are those of the one before."
    )
    url: str | None = Field(description="The address, without possible secrets.")
    prefix: str | None
    origin: str | None = Field(description="Where calls are sent, and with them the credentials.")
    credentials: list[str] = Field(description="Names of the given credentials.")
    per_user: bool = Field(description="Whether each user logs in at the server.")
    tools: int
    tokens: int = Field(description="Tokens of its tools' definitions, counted as JSON.")
    refused: int
    created_at: datetime
    imported_at: datetime | None
    error: ErrorBody | None
    job: str | None = Field(description="The last import.")
    version: int


class JobStepBody(AnswerBody):
    """How far a job is."""

    stage: str
    done: int
    total: int | None
    refused: int


JobState: TypeAlias = Literal["running", "done", "failed", "cancelled", "interrupted"]


class JobBody(AnswerBody):
    id: str
    subject: str = Field(description="The subject, such as catalog/default/github.")
    state: JobState
    began_at: datetime
    ended_at: datetime | None
    progress: JobStepBody | None = Field(description="The last step.")
    outcome: dict[str, Any] = Field(description="Once it is done: how many tools were written, unchanged and removed.")
    error: ErrorBody | None


class SourceStarted(AnswerBody):
    """A source, and the job that imports it; none if its document is awaited."""

    source: SourceBody
    job: JobBody | None


class ServerBody(AnswerBody):
    """One MCP server, as it is connected now. *tokens* is what its tools cost a model that is shown all of them."""

    name: Name
    transport: Literal["http", "sse", "stdio"]
    state: Literal["idle", "starting", "ready", "degraded", "down", "needs_login"] = Field(
        description="idle: its tools are known, and it is started when one is called."
    )
    error: str = Field(description="The last one, without secrets; empty if there is none.")
    tools: int
    tokens: int
    held: list[str] = Field(description="Names of definitions that await approval.")
    refused: list[RefusedTool]
    calls: int
    failed: int
    protocol: str


JudgedKind: TypeAlias = Literal["tool", "skill", "prompt", "resource", "resource template", "instructions"]
_Text: TypeAlias = Annotated[str, Field(max_length=4_000)]


class FindingBody(AnswerBody):
    rule: str
    place: str = Field(description="Where in the definition, such as inputSchema.properties.path.description.")
    evidence: str = Field(description="The words, made printable.")


class _EntryBody(AnswerBody):
    label: str
    server: str
    kind: JudgedKind
    name: str = Field(description="The server's own name for it; the URI of a skill's SKILL.md.")


class WaitingBody(_EntryBody):
    """What waits. It can be neither found nor called until it is approved, by its pin."""

    pin: str = Field(description="Hash of the waiting definition. An approval names it.")
    why: Literal["new", "changed", "suspicious", "withdrawn", "refused", "approvals cannot be read"]
    refused_by: str = Field(description="The id of the key that refused it; empty if none did.")
    findings: list[FindingBody]
    changes: list[str] = Field(description="Differences from the approved definition: + new, - gone, ~ changed.")
    approved: dict[str, Any] | None = Field(description="The definition that was approved; null if none was.")
    waiting: dict[str, Any] = Field(description="The definition that waits.")
    difference: list[str] = Field(description="A line for each place that differs: `[-gone-]` and `{+new+}` words.")


class ApprovedBody(_EntryBody):
    pin: str
    by: str = Field(description="The id of the key that approved it, or 'first sight'.")
    seen_at: datetime


class Revocation(RequestBody):
    server: _Text
    kind: JudgedKind = "tool"
    name: _Text = ""


class Approval(Revocation):
    pin: _Text
