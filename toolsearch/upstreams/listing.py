"""The listing of one server: read page by page, kept on disk for the next start, and renewed after changes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, TypeAlias

from mcp import MCPError
from mcp.client.subscriptions import SubscriptionLost, listen
from mcp.types import METHOD_NOT_FOUND

from toolsearch.documents.json_values import is_object
from toolsearch.errors import StorageError
from toolsearch.storage.files import ListingFiles, ListingPersistence
from toolsearch.tools.definition import Refusal
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.upstreams.config import McpServer, identity_hash
from toolsearch.upstreams.faults import delay_s, fault_of_request
from toolsearch.upstreams.interface import Listing, read_listing
from toolsearch.upstreams.secrets import redacted
from toolsearch.upstreams.session import McpSession
from toolsearch.upstreams.settings import UpstreamSettings
from toolsearch.wire.mcp.lists import PROMPTS, RESOURCES, TEMPLATES, TOOLS, ListOf, next_cursor, page_params, ttl_s

_MOST_PAGES = 1_000
_Objects: TypeAlias = tuple[JsonObject, ...]


async def read_server(
    server: McpServer, session: McpSession, *, before: Listing | None = None, tools_only: bool = False
) -> Listing:
    """*before* is the last listing. Raises MCPError if the server refuses to list its tools, or is lost."""
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
        # Reading thousands of definitions takes a second, and no other server's answer should wait for it.
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
        """The entries with a name. Entries without a name, and the second of two with the same name, are refused."""
        entries = await self._entries(listed, known, must=False)
        sound = [entry for entry in entries if is_object(entry) and listed.name_of(entry) is not None]
        if len(sound) < len(entries):
            self._refuse(f"{len(entries) - len(sound)} of its {listed.key} have no {listed.known_by!r}")
        first: dict[str | None, JsonObject] = {}
        for entry in sound:  # the first of two equal names is kept, because a request could not tell them apart
            first.setdefault(listed.name_of(entry), entry)
        if len(first) < len(sound):
            self._refuse(f"{len(sound) - len(first)} of its {listed.key} have the {listed.known_by!r} of another")
        return tuple(first.values())

    async def _entries(self, listed: ListOf, known: _Objects, *, must: bool) -> list[Json]:
        """All raw entries of a list. If the list is cut, entries that are *known* from before under other names are
        kept.
        """
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


logger = logging.getLogger(__name__)
_FORMAT = 1


class ListingStore:
    """Stores the listing of one server, under a hash of how the server is reached: another command has another
    listing.
    """

    def __init__(self, server: McpServer, kept: ListingPersistence) -> None:
        self._server = server
        self._kept = kept
        self._name = identity_hash(server)

    def load(self) -> tuple[Listing, bool] | None:
        """The listing, and whether the server speaks the older protocol; None if nothing usable is stored."""
        try:
            kept = self._kept.load(self._name)
            if kept is None or kept["format"] != _FORMAT:
                return None
            return self._listing(kept), kept["is_old"] is True
        except (StorageError, OSError, ValueError, LookupError, TypeError) as error:
            logger.warning("the listing kept of %s cannot be read: %r", self._server.name, error)
            return None

    def save(self, listing: Listing, *, is_old: bool) -> None:
        kept: JsonObject = {
            "format": _FORMAT,
            "server": self._server.name,
            "is_old": is_old,
            "tools": [tool.origin.raw for tool in listing.tools if tool.origin],
            "refused": [[refusal.name, refusal.reason] for refusal in listing.refused],
            "instructions": listing.instructions,
            "about": listing.about,
            "prompts": listing.prompts,
            "resources": listing.resources,
            "resource_templates": listing.resource_templates,
        }
        try:
            self._kept.save(self._name, kept)
        except (StorageError, OSError, ValueError) as error:  # a lone surrogate or a full disk; it is only a cache
            logger.warning("the listing of %s cannot be kept: %s", self._server.name, error)

    def _listing(self, kept: Mapping[str, Any]) -> Listing:
        name = self._server.name
        listed, _ = read_listing(name, kept["tools"], name)
        return Listing(
            name,
            tuple(listed),
            tuple(Refusal(tool, name, reason) for tool, reason in kept["refused"]),
            instructions=kept["instructions"],
            about=kept["about"],
            is_cached=True,
            prompts=_objects(kept["prompts"]),
            resources=_objects(kept["resources"]),
            resource_templates=_objects(kept["resource_templates"]),
        )


def listing_store(settings: UpstreamSettings) -> ListingStore | None:
    """The store of the server; None if nothing of it is kept."""
    kept = settings.listings
    if kept is None and settings.state_folder is not None:
        kept = ListingFiles(settings.state_folder / "listings")
    return ListingStore(settings.server, kept) if kept is not None else None


def _objects(entries: list[Any]) -> tuple[JsonObject, ...]:
    return tuple(filter(is_object, entries))


async def hear_of_changes(
    session: McpSession,
    *,
    changed: Callable[[], None],
    ended: Callable[[], None],
    may_have_changed: Callable[[], None],
    timeout_s: float,
    random: Callable[[], float],
) -> None:
    """Listen until the session ends, and again after each time that the stream ends.

    changed           called after each change that the server announces
    ended             called when the stream ends, because another server may answer afterwards
    may_have_changed  called whenever listening begins, because earlier changes were missed

    Returns at once if the server announces nothing, or speaks the older protocol, which needs no subscription.
    """
    announced = _announced_lists(session)
    if session.shook_hands or announced == _AnnouncedLists():
        return
    failures = 0
    while not session.ended.is_set():
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(timeout_s):
                    subscription = await stack.enter_async_context(
                        listen(
                            session.sdk,
                            tools_list_changed=announced.tools,
                            prompts_list_changed=announced.prompts,
                            resources_list_changed=announced.resources,
                        )
                    )
                may_have_changed()
                async for _ in subscription:
                    failures = 0
                    changed()
        except MCPError as error:
            fault = fault_of_request(error)
            if fault is None or not fault.counts:
                logger.debug("%s", error)
                return  # the server declares subscriptions but does not have them
        except (SubscriptionLost, TimeoutError):
            pass
        failures += 1
        ended()
        await asyncio.sleep(delay_s(failures, random))


@dataclass(frozen=True, slots=True)
class _AnnouncedLists:
    """The lists whose changes a server announces."""

    tools: bool = False
    prompts: bool = False
    resources: bool = False


def _announced_lists(session: McpSession) -> _AnnouncedLists:
    declared = session.sdk.server_capabilities
    if declared is None:
        return _AnnouncedLists()
    return _AnnouncedLists(
        tools=declared.tools is not None and declared.tools.list_changed is True,
        prompts=declared.prompts is not None and declared.prompts.list_changed is True,
        resources=declared.resources is not None and declared.resources.list_changed is True,
    )
