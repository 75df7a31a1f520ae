"""The operations of the service: each once, as a function that makes its request.

Parameters that are left out have the service's defaults. Their names are those of the API's bodies.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar
from urllib.parse import quote

from pydantic import TypeAdapter

from toolsearch.access.scopes import Scope
from toolsearch.api.activity import AuditEntry, MissBody, ReceiptBody, SavingsAnswer, UsageAnswer
from toolsearch.api.base import Page
from toolsearch.api.catalogs import CatalogBody, RefusedTool, ToolBody, ToolEntry, ToolsDeleted, ToolsWritten
from toolsearch.api.imports import JobBody, JobStepBody, NewListingSource, NewOpenApiSource, SourceBody, SourceStarted
from toolsearch.api.keys import KeyBody, KeyMade, Me, TenantBody
from toolsearch.api.sessions import (
    ActiveTool,
    CallAnswer,
    ChosenTools,
    DeferredTool,
    Evicted,
    Executed,
    SearchAnswer,
    SearchStrategy,
    SessionBody,
    SessionCreated,
    SessionSearchAnswer,
    TurnBegun,
)
from toolsearch.client.exchange import ClientRequest, EventStream, PagedList
from toolsearch.storage.activity import By
from toolsearch.tools.definition import EntryKind
from toolsearch.tools.json_types import JsonObject
from toolsearch.wire.capabilities import Cloud, RevealSetting
from toolsearch.wire.formats import WireFormat

_T = TypeVar("_T")

_NOTHING: TypeAdapter[None] = TypeAdapter(None)
_JSON_LINES = {"content-type": "application/x-ndjson"}


def me() -> ClientRequest[Me]:
    """Your identity, and the permissions of your key."""
    return _request("GET", _path("me"), TypeAdapter(Me))


# Catalogs


def create_catalog(name: str, *, description: str = "") -> ClientRequest[CatalogBody]:
    return _request("POST", _path("catalogs"), TypeAdapter(CatalogBody), name=name, description=description)


def catalogs() -> PagedList[CatalogBody]:
    return _listing(_path("catalogs"), TypeAdapter(Page[CatalogBody]))


def catalog(name: str) -> ClientRequest[CatalogBody]:
    """The purpose of a catalog, and the number of its tools."""
    return _request("GET", _path("catalogs", name), TypeAdapter(CatalogBody))


def describe_catalog(name: str, *, description: str) -> ClientRequest[CatalogBody]:
    return _request("PATCH", _path("catalogs", name), TypeAdapter(CatalogBody), description=description)


def delete_catalog(name: str) -> ClientRequest[None]:
    """With its tools and sources."""
    return _request("DELETE", _path("catalogs", name), _NOTHING)


def write_tools(catalog: str, tools: Iterable[Mapping[str, Any]]) -> ClientRequest[ToolsWritten]:
    """Write definitions in the form of OpenAI, Anthropic or MCP over those of the same names. Returns an outcome for
    each.
    """
    lines = b"".join(json.dumps(dict(tool)).encode() + b"\n" for tool in tools)
    path = _path("catalogs", catalog, "tools")
    return ClientRequest("POST", path, TypeAdapter(ToolsWritten), content=lines, headers=_JSON_LINES)


def tools(catalog: str, *, kind: Sequence[EntryKind] | None = None, source: str | None = None) -> PagedList[ToolEntry]:
    """The entries of *kind*, tools by default."""
    return _listing(_path("catalogs", catalog, "tools"), TypeAdapter(Page[ToolEntry]), kind=kind, source=source)


def tool(catalog: str, name: str) -> ClientRequest[ToolBody]:
    """The whole definition of a tool."""
    return _request("GET", _path("catalogs", catalog, "tools", name), TypeAdapter(ToolBody))


def delete_tools(catalog: str, names: Sequence[str]) -> ClientRequest[ToolsDeleted]:
    return _request("POST", _path("catalogs", catalog, "tools", "delete"), TypeAdapter(ToolsDeleted), names=list(names))


def refused_tools(catalog: str) -> PagedList[RefusedTool]:
    """The entries that were refused last, with the reasons."""
    return _listing(_path("catalogs", catalog, "refused"), TypeAdapter(Page[RefusedTool]))


# Sources, and the jobs that import them


def add_source(catalog: str, source: NewOpenApiSource | NewListingSource) -> ClientRequest[SourceStarted]:
    """Add a source, and begin to import it; `job_events` follows that."""
    body = source.model_dump(mode="json", exclude_unset=True)
    return _request("POST", _path("catalogs", catalog, "sources"), TypeAdapter(SourceStarted), **body)


def sources(catalog: str) -> PagedList[SourceBody]:
    return _listing(_path("catalogs", catalog, "sources"), TypeAdapter(Page[SourceBody]))


def source(catalog: str, name: str) -> ClientRequest[SourceBody]:
    return _request("GET", _path("catalogs", catalog, "sources", name), TypeAdapter(SourceBody))


def refresh_source(catalog: str, name: str) -> ClientRequest[SourceStarted]:
    """Read the source's URL again, and keep unchanged tools."""
    return _request("POST", _path("catalogs", catalog, "sources", name, "refresh"), TypeAdapter(SourceStarted))


def delete_source(catalog: str, name: str) -> ClientRequest[None]:
    """With its tools."""
    return _request("DELETE", _path("catalogs", catalog, "sources", name), _NOTHING)


def jobs() -> PagedList[JobBody]:
    return _listing(_path("jobs"), TypeAdapter(Page[JobBody]))


def job(job: str) -> ClientRequest[JobBody]:
    return _request("GET", _path("jobs", job), TypeAdapter(JobBody))


def cancel_job(job: str) -> ClientRequest[JobBody]:
    return _request("POST", _path("jobs", job, "cancel"), TypeAdapter(JobBody))


def job_events(job: str) -> EventStream[JobStepBody | JobBody]:
    """Every step of a job from the beginning, as it happens, and at the end the job with its outcome."""
    kinds: dict[str, TypeAdapter[JobStepBody | JobBody]] = {
        "progress": TypeAdapter(JobStepBody),
        "ended": TypeAdapter(JobBody),
    }
    return EventStream(_path("jobs", job, "events"), kinds)


# Searching


def search(
    *queries: str,
    catalog: str | None = None,
    toolset: str | None = None,
    names: Sequence[str] | None = None,
    kinds: Sequence[EntryKind] | None = None,
    strategy: SearchStrategy | None = None,
    limit: int | None = None,
    server: str | None = None,
    allow: Sequence[str] | None = None,
    deny: Sequence[str] | None = None,
    definitions: WireFormat | None = None,
    explain: bool | None = None,
    explain_tools: Sequence[str] | None = None,
) -> ClientRequest[SearchAnswer]:
    """Search without a session."""
    return _request(
        "POST",
        _path("search"),
        TypeAdapter(SearchAnswer),
        queries=list(queries),
        catalog=catalog,
        toolset=toolset,
        names=names,
        kinds=kinds,
        strategy=strategy,
        limit=limit,
        server=server,
        allow=allow,
        deny=deny,
        definitions=definitions,
        explain=explain,
        explain_tools=explain_tools,
    )


# Sessions


def open_session(
    *,
    catalog: str | None = None,
    toolset: str | None = None,
    allow: Sequence[str] | None = None,
    deny: Sequence[str] | None = None,
    pins: Sequence[str] | None = None,
    max_tools: int | None = None,
    max_tokens: int | None = None,
    exposure: RevealSetting | None = None,
    ttl_s: float | None = None,
    url_token: bool | None = None,
) -> ClientRequest[SessionCreated]:
    """Open a tool-searching endpoint for one agent: give it the ``mcp_url``, or ask for its tools yourself."""
    budget = _without_none({"tools": max_tools, "tokens": max_tokens})
    return _request(
        "POST",
        _path("sessions"),
        TypeAdapter(SessionCreated),
        catalog=catalog,
        toolset=toolset,
        allow=allow,
        deny=deny,
        pins=pins,
        budget=budget or None,
        exposure=exposure,
        ttl_s=ttl_s,
        url_token=url_token,
    )


def sessions() -> PagedList[SessionBody]:
    """The sessions that have not expired."""
    return _listing(_path("sessions"), TypeAdapter(Page[SessionBody]))


def session(session: str) -> ClientRequest[SessionBody]:
    """The catalog or toolset of a session, and the number of its discovered tools."""
    return _request("GET", _path("sessions", session), TypeAdapter(SessionBody))


def delete_session(session: str) -> ClientRequest[None]:
    return _request("DELETE", _path("sessions", session), _NOTHING)


def session_tools(
    session: str,
    *,
    format: WireFormat = "openai",  # noqa: A002  the API's own name
    model: str | None = None,
) -> ClientRequest[dict[str, Any]]:
    """The tools of the next model request, as arguments of the SDK's call. Call it once for each request."""
    params = _without_none({"format": format, "model": model})
    return ClientRequest("GET", _path("sessions", session, "tools"), TypeAdapter(dict[str, Any]), params)


def session_search(
    session: str,
    *queries: str,
    strategy: SearchStrategy | None = None,
    limit: int | None = None,
    server: str | None = None,
    kinds: Sequence[EntryKind] | None = None,
) -> ClientRequest[SessionSearchAnswer]:
    """Search, and add the tools found to those that the session shows."""
    return _request(
        "POST",
        _path("sessions", session, "search"),
        TypeAdapter(SessionSearchAnswer),
        queries=list(queries),
        strategy=strategy,
        limit=limit,
        server=server,
        kinds=kinds,
    )


def expand(session: str, names: Sequence[str]) -> ClientRequest[ChosenTools]:
    """Show tools by name, without a search."""
    return _chosen(session, "expand", names)


def pin(session: str, names: Sequence[str]) -> ClientRequest[ChosenTools]:
    """Show tools by name, and never evict them."""
    return _chosen(session, "pin", names)


def unpin(session: str, names: Sequence[str]) -> ClientRequest[ChosenTools]:
    return _chosen(session, "unpin", names)


def evict(session: str, names: Sequence[str]) -> ClientRequest[ChosenTools]:
    """Forget tools that were discovered."""
    return _chosen(session, "evict", names)


def begin_turn(
    session: str,
    said: str = "",
    format: WireFormat | None = None,  # noqa: A002
    *,
    model: str = "",
    cloud: Cloud = "",
) -> ClientRequest[TurnBegun]:
    """Say that the user has spoken again. Tools that *said* surely asks for are shown at once; see `TurnBegun`."""
    path = _path("sessions", session, "begin-turn")
    return _request("POST", path, TypeAdapter(TurnBegun), said=said, format=format, model=model, cloud=cloud)


def end_turn(session: str) -> ClientRequest[Evicted]:
    """Say that the model has answered the user."""
    return _request("POST", _path("sessions", session, "end-turn"), TypeAdapter(Evicted))


def active_tools(session: str) -> PagedList[ActiveTool]:
    """The tools that a session shows, in the order of their discovery."""
    return _listing(_path("sessions", session, "active"), TypeAdapter(Page[ActiveTool]))


def deferred_tools(session: str) -> PagedList[DeferredTool]:
    """The tools in reach that are not shown yet."""
    return _listing(_path("sessions", session, "deferred"), TypeAdapter(Page[DeferredTool]))


# Calls and their records


def call(
    name: str, arguments: Mapping[str, Any] | None = None, *, catalog: str | None = None, toolset: str | None = None
) -> ClientRequest[CallAnswer]:
    """Call a tool without a session."""
    body = {"name": name, "arguments": dict(arguments or {}), "catalog": catalog, "toolset": toolset}
    return replace(_request("POST", _path("calls"), TypeAdapter(CallAnswer), **body), has_effects=True)


def call_in_session(session: str, name: str, arguments: Mapping[str, Any] | None = None) -> ClientRequest[CallAnswer]:
    path, body = _path("sessions", session, "calls"), {"name": name, "arguments": dict(arguments or {})}
    return replace(_request("POST", path, TypeAdapter(CallAnswer), **body), has_effects=True)


def execute(session: str, reply: JsonObject | Sequence[JsonObject]) -> ClientRequest[Executed]:
    """Run the tool calls of a model's whole reply, in the form that the SDK of OpenAI or Anthropic gives it."""
    request = _request("POST", _path("sessions", session, "execute"), TypeAdapter(Executed), reply=reply)
    return replace(request, has_effects=True)


def report_call(call: str, *, is_error: bool = False) -> ClientRequest[None]:
    """Say how a call ended that was handed back."""
    return _request("POST", _path("calls", call, "result"), _NOTHING, is_error=is_error)


def savings(*, by: By = "day") -> ClientRequest[SavingsAnswer]:
    """The savings of tool search."""
    return ClientRequest("GET", _path("savings"), TypeAdapter(SavingsAnswer), {"by": by})


def usage(*, by: By = "day") -> ClientRequest[UsageAnswer]:
    return ClientRequest("GET", _path("usage"), TypeAdapter(UsageAnswer), {"by": by})


def misses() -> PagedList[MissBody]:
    """Requests that were answered weakly or not at all, the most frequent first."""
    return _listing(_path("misses"), TypeAdapter(Page[MissBody]))


def receipts() -> PagedList[ReceiptBody]:
    """Receipts of calls, newest first, without the contents of the calls."""
    return _listing(_path("receipts"), TypeAdapter(Page[ReceiptBody]))


# Keys and tenants


def create_key(
    name: str,
    *,
    scopes: Sequence[Scope] | None = None,
    allow: Sequence[str] | None = None,
    deny: Sequence[str] | None = None,
    expires_in_s: float | None = None,
) -> ClientRequest[KeyMade]:
    """Make a key. It is shown only once. Without *scopes* it is for an agent."""
    return _request(
        "POST",
        _path("keys"),
        TypeAdapter(KeyMade),
        name=name,
        scopes=scopes,
        allow=allow,
        deny=deny,
        expires_in_s=expires_in_s,
    )


def keys() -> PagedList[KeyBody]:
    """All keys, including revoked ones."""
    return _listing(_path("keys"), TypeAdapter(Page[KeyBody]))


def rotate_key(key_id: str, *, overlap_s: float = 0.0) -> ClientRequest[KeyMade]:
    """Exchange a key for a new one; the old one is good for *overlap_s* seconds more."""
    return _request("POST", _path("keys", key_id, "rotate"), TypeAdapter(KeyMade), overlap_s=overlap_s)


def revoke_key(key_id: str) -> ClientRequest[None]:
    return _request("DELETE", _path("keys", key_id), _NOTHING)


def create_tenant(name: str, *, description: str = "") -> ClientRequest[TenantBody]:
    """Make a tenant; for operators only."""
    return _request("POST", _path("tenants"), TypeAdapter(TenantBody), name=name, description=description)


def tenants() -> PagedList[TenantBody]:
    """The tenants; for operators only."""
    return _listing(_path("tenants"), TypeAdapter(Page[TenantBody]))


def audit() -> PagedList[AuditEntry]:
    """The records of actions, latest first."""
    return _listing(_path("audit"), TypeAdapter(Page[AuditEntry]))


def _chosen(session: str, how: str, names: Sequence[str]) -> ClientRequest[ChosenTools]:
    return _request("POST", _path("sessions", session, how), TypeAdapter(ChosenTools), names=list(names))


def _request(method: str, path: str, answer: TypeAdapter[_T], /, **fields: object) -> ClientRequest[_T]:
    """Make a request. *fields* are the body, if there are any; those that are None are left out."""
    body: JsonObject | None = _without_none(fields) if fields else None
    return ClientRequest(method, path, answer, json=body)


def _listing(path: str, page: TypeAdapter[Page[_T]], /, **params: str | Sequence[str] | None) -> PagedList[_T]:
    return PagedList(ClientRequest("GET", path, page, _without_none(params)))


def _without_none(fields: Mapping[str, object]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _path(*parts: str) -> str:
    return "/v1/" + "/".join(quote(part, safe="") for part in parts)
