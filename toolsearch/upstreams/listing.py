"""Lists all that one server has, page by page; what is malformed costs only itself."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, TypeAlias

from mcp import MCPError
from mcp.types import METHOD_NOT_FOUND

from toolsearch.documents.json_values import is_object
from toolsearch.tools.refusal import Refusal
from toolsearch.upstreams.config import McpServer
from toolsearch.upstreams.entries import read_listing
from toolsearch.upstreams.faults import fault_of_request
from toolsearch.upstreams.pages import read_pages
from toolsearch.upstreams.protocol import Listing
from toolsearch.upstreams.secrets import redacted
from toolsearch.upstreams.session import McpSession

_TTL = "ttlMs"
_Objects: TypeAlias = tuple[Mapping[str, Any], ...]


async def read_server(server: McpServer, session: McpSession) -> Listing:
    """Raises MCPError where the server refuses to list its tools, or is lost meanwhile."""
    return await _Reading(server, session).whole()


class _Reading:
    """One walk through all lists of a server."""

    def __init__(self, server: McpServer, session: McpSession) -> None:
        self._server = server
        self._session = session
        self._refused: list[Refusal] = []
        self._ttls_s: list[float] = []

    async def whole(self) -> Listing:
        declared = self._session.sdk.server_capabilities
        has_tools = declared is not None and declared.tools is not None
        entries = await self._entries("tools/list", "tools", must=has_tools)
        # thousands of definitions take a second to read, in which no other server's answer should wait
        tools, refused = await asyncio.to_thread(read_listing, self._server.name, entries, self._server.name)
        prompts: _Objects = ()
        resources: _Objects = ()
        templates: _Objects = ()
        if declared is not None and declared.prompts is not None:
            prompts = await self._objects("prompts/list", "prompts", "name")
        if declared is not None and declared.resources is not None:
            resources = await self._objects("resources/list", "resources", "uri")
            templates = await self._objects("resources/templates/list", "resourceTemplates", "uriTemplate")
        return Listing(
            self._server.name,
            tuple(tools),
            (*refused, *self._refused),
            prompts=prompts,
            resources=resources,
            resource_templates=templates,
            instructions=self._session.sdk.instructions or "",
            ttl_s=min(self._ttls_s, default=None),
        )

    async def _objects(self, method: str, key: str, needed: str) -> _Objects:
        """The entries under *key* that are known by what *needed* says; the others are refused."""
        entries = await self._entries(method, key, must=False)
        sound = [entry for entry in entries if is_object(entry) and isinstance(entry.get(needed), str)]
        if len(sound) < len(entries):
            self._refuse(f"{len(entries) - len(sound)} of its {key} have no {needed!r}")
        first = {entry[needed]: entry for entry in reversed(sound)}  # a request could not say which of two it means
        if len(first) < len(sound):
            self._refuse(f"{len(sound) - len(first)} of its {key} have the {needed!r} of another")
        return tuple(entry for entry in sound if first[entry[needed]] is entry)

    async def _entries(self, method: str, key: str, *, must: bool) -> list[Any]:
        async def page(cursor: str | None) -> dict[str, Any]:
            result = await self._session.request(method, {} if cursor is None else {"cursor": cursor})
            if isinstance(ttl_ms := result.get(_TTL), int | float) and ttl_ms > 0:  # 0: it makes no promise
                self._ttls_s.append(ttl_ms / 1_000)
            return result

        try:
            entries, cut_short = await read_pages(page, key)
        except MCPError as error:
            if must or fault_of_request(error) is not None:
                raise
            if error.code != METHOD_NOT_FOUND:
                self._refuse(f"{method} failed: {error.message}")
            return []
        if cut_short:
            self._refuse(cut_short)
        return entries

    def _refuse(self, reason: str) -> None:
        self._refused.append(Refusal(self._server.name, self._server.name, redacted(reason, self._server.secrets)))
