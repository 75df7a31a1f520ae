"""Lists everything that one server has, page by page. A malformed entry costs only itself.

A list that repeats itself or does not end is cut, and says so. Entries that were known before and lie behind the cut
are kept, since they may well still exist.
"""

from __future__ import annotations

import asyncio
from typing import TypeAlias

from mcp import MCPError
from mcp.types import METHOD_NOT_FOUND

from toolsearch.documents.json_values import is_object
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.refusal import Refusal
from toolsearch.upstreams.config import McpServer
from toolsearch.upstreams.entries import read_listing
from toolsearch.upstreams.faults import fault_of_request
from toolsearch.upstreams.interface import Listing
from toolsearch.upstreams.secrets import redacted
from toolsearch.upstreams.session import McpSession
from toolsearch.wire.mcp.lists import PROMPTS, RESOURCES, TEMPLATES, TOOLS, ListOf, next_cursor, page_params, ttl_s

_MOST_PAGES = 1_000
_Objects: TypeAlias = tuple[JsonObject, ...]


async def read_server(
    server: McpServer, session: McpSession, *, before: Listing | None = None, tools_only: bool = False
) -> Listing:
    """*before* is what it listed last. Raises MCPError where the server refuses to list its tools, or is lost."""
    return await _Reading(server, session, before).whole(tools_only=tools_only)


class _Reading:
    """One walk through the lists of a server."""

    def __init__(self, server: McpServer, session: McpSession, before: Listing | None) -> None:
        self._server = server
        self._session = session
        self._before = before or Listing(server.name, ())
        self._refused: list[Refusal] = []
        self._cuts: list[str] = []
        self._ttls_s: list[float] = []

    async def whole(self, *, tools_only: bool) -> Listing:
        declared = self._session.sdk.server_capabilities
        has_tools = declared is not None and declared.tools is not None
        before = self._before
        known = tuple(tool.origin.raw for tool in before.tools if tool.origin)
        entries = await self._entries(TOOLS, known, must=has_tools)
        # thousands of definitions take a second to read, in which no other server's answer should wait
        tools, refused = await asyncio.to_thread(read_listing, self._server.name, entries, self._server.name)
        prompts: _Objects = ()
        resources: _Objects = ()
        templates: _Objects = ()
        if declared is not None and declared.prompts is not None and not tools_only:
            prompts = await self._objects(PROMPTS, before.prompts)
        if declared is not None and declared.resources is not None and not tools_only:
            resources = await self._objects(RESOURCES, before.resources)
            templates = await self._objects(TEMPLATES, before.resource_templates)
        return Listing(
            self._server.name,
            tuple(tools),
            (*refused, *self._refused),
            prompts=prompts,
            resources=resources,
            resource_templates=templates,
            instructions=self._session.sdk.instructions or "",
            about=_about(self._session),
            ttl_s=min(self._ttls_s, default=None),
            cut="; ".join(self._cuts),
        )

    async def _objects(self, listed: ListOf, known: _Objects) -> _Objects:
        """The entries that have a name; the others are refused, and so is the second of one name."""
        entries = await self._entries(listed, known, must=False)
        sound = [entry for entry in entries if is_object(entry) and listed.name_of(entry) is not None]
        if len(sound) < len(entries):
            self._refuse(f"{len(entries) - len(sound)} of its {listed.key} have no {listed.known_by!r}")
        first: dict[str | None, JsonObject] = {}
        for entry in sound:  # a request could not say which of two it means
            first.setdefault(listed.name_of(entry), entry)
        if len(first) < len(sound):
            self._refuse(f"{len(sound) - len(first)} of its {listed.key} have the {listed.known_by!r} of another")
        return tuple(first.values())

    async def _entries(self, listed: ListOf, known: _Objects, *, must: bool) -> list[Json]:
        """All raw entries of a list; of one that is cut, those *known* by another name as well."""
        entries: list[Json] = []
        try:
            cut = await self._read_pages(listed, into=entries)
        except MCPError as error:
            if must or fault_of_request(error) is not None:
                raise
            if error.code == METHOD_NOT_FOUND:
                return entries
            cut = f"{listed.method} failed: {error.message}"
        if cut:
            self._refuse(cut)
            self._cuts.append(self._refused[-1].reason)
            names = {listed.name_of(entry) for entry in entries if is_object(entry)}
            entries += [entry for entry in known if listed.name_of(entry) not in names]
        return entries

    async def _read_pages(self, listed: ListOf, *, into: list[Json]) -> str:
        """Put the entries of all pages *into* a list; return why the listing was cut short, or ""."""
        cursor: str | None = None
        seen: set[str] = set()
        for _ in range(_MOST_PAGES):
            page = await self._session.request(listed.method, page_params(cursor))
            if (promised_s := ttl_s(page)) is not None:
                self._ttls_s.append(promised_s)
            entries = listed.entries_of(page)
            if entries is None:
                return f"it sent a page without a list of {listed.key}; those before it were taken"
            into += entries
            cursor = next_cursor(page)
            if cursor is None:
                return ""
            if cursor in seen:
                where = f"at the cursor {cursor[:40]!r}"
                return f"its listing goes in circles {where}; the {listed.key} up to there were taken"
            seen.add(cursor)
        return f"its listing has over {_MOST_PAGES} pages; the {listed.key} of these were taken"

    def _refuse(self, reason: str) -> None:
        self._refused.append(Refusal(self._server.name, self._server.name, redacted(reason, self._server.secrets)))


def _about(session: McpSession) -> str:
    info = session.sdk.server_info
    return (info.description or info.title or "") if info is not None else ""
