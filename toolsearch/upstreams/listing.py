"""The listing of one server: read page by page, kept on disk for the next start, and renewed after changes."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, TypeAlias

from mcp import MCPError
from mcp.client.subscriptions import SubscriptionLost, listen
from mcp.types import INVALID_PARAMS, METHOD_NOT_FOUND, ServerCapabilities

from toolsearch.documents.json_values import is_object
from toolsearch.documents.skills import SKILL_FILE
from toolsearch.errors import StorageError, shown_name
from toolsearch.storage.files import ListingFiles, ListingPersistence
from toolsearch.tools.definition import Refusal
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.upstreams.config import McpServer, identity_hash
from toolsearch.upstreams.faults import delay_s, fault_of_request
from toolsearch.upstreams.interface import Listing, read_listing
from toolsearch.upstreams.secrets import redacted
from toolsearch.upstreams.session import McpSession
from toolsearch.upstreams.settings import UpstreamSettings
from toolsearch.wire.mcp.lists import (
    PROMPTS,
    RESOURCES,
    SKILLS,
    TEMPLATES,
    TOOLS,
    ListOf,
    next_cursor,
    page_params,
    ttl_s,
)
from toolsearch.wire.mcp.requests import GET_SKILL, SKILLS_EXTENSION

_MOST_PAGES = 1_000
_MOST_CHARACTERS = 64 * 1024 * 1024  # of a list on several pages, as JSON
_SHARE_OF_CONTENTS = 0.5  # of the time for a listing; a server that needs longer for its contents has only its tools
_OFTEN_MISSING = (TOOLS, TEMPLATES)  # lists that many servers with nothing to list there do not have
_MOST_NAMED_SKILLS = 20  # skills that are named in instructions but not listed
_AROUND_URIS = re.compile(r"[\s\"'<>()\[\]{}`,;]+")
_Objects: TypeAlias = tuple[JsonObject, ...]


async def read_server(
    server: McpServer, session: McpSession, *, timeout_s: float, before: Listing | None = None
) -> Listing:
    """Read all lists of a server at the same time. *before* is its last listing.

    Lists of contents may fail, or be late: this costs only the entries that are not known from before, and the reason
    is kept. Raises MCPError if the server refuses to list its tools, or is lost.
    """
    declared = session.sdk.server_capabilities or ServerCapabilities()
    skills_settings = (declared.extensions or {}).get(SKILLS_EXTENSION)
    instructions = session.sdk.instructions or ""
    before = before or Listing(server.name, ())
    tools = _ListReading(session, TOOLS, tuple(tool.origin.raw for tool in before.tools if tool.origin))
    prompts = _ListReading(session, PROMPTS, before.prompts if declared.prompts else None)
    resources = _ListReading(session, RESOURCES, before.resources if declared.resources else None)
    templates = _ListReading(session, TEMPLATES, before.resource_templates if declared.resources else None)
    skills = _SkillsReading(session, before.skills if skills_settings is not None else None, instructions)
    lists = (tools, prompts, resources, templates, skills)
    try:
        async with asyncio.TaskGroup() as reading:
            for contents in lists[1:]:
                reading.create_task(contents.try_to_read(timeout_s * _SHARE_OF_CONTENTS))
            await _read_tools(tools, must=declared.tools is not None)
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    # Reading thousands of definitions takes a second, and no other server's answer should wait for it.
    definitions, refused = await asyncio.to_thread(read_listing, server.name, tools.entries, server.name)
    listed = {each.listed: each.objects() for each in lists[1:]}
    cuts = [redacted(each.cut, server.secrets) for each in lists if each.cut]
    reasons = [redacted(reason, server.secrets) for each in lists for reason in each.reasons]
    return Listing(
        server.name,
        tuple(definitions),
        (*refused, *(Refusal(server.name, server.name, reason) for reason in reasons)),
        prompts=listed[PROMPTS],
        resources=listed[RESOURCES],
        resource_templates=listed[TEMPLATES],
        skills=listed[SKILLS],
        reads_directories=skills_settings is not None and skills_settings.get("directoryRead") is True,
        instructions=instructions,
        about=_about(session),
        ttl_s=min((ttl for each in lists for ttl in each.ttls_s), default=None),
        cut="; ".join(cuts),
    )


async def _read_tools(tools: _ListReading, *, must: bool) -> None:
    try:
        await tools.read()
    except MCPError as error:
        if must or fault_of_request(error) is not None:
            raise
        tools.failed(error)


class _ListReading:
    """One list of a server, as far as it has been read.

    known    the entries of the last time; None if the server has no such list
    reasons  why entries are missing
    cut      why the end of the list is missing, or ""; entries that were known under other names are kept then
    """

    def __init__(self, session: McpSession, listed: ListOf, known: Iterable[JsonObject] | None) -> None:
        self.listed = listed
        self.entries: list[Json] = []
        self.reasons: list[str] = []
        self.cut = ""
        self.ttls_s: list[float] = []
        self._session = session
        self._known = known

    async def try_to_read(self, timeout_s: float) -> None:
        """Like `read`, but with a failure as a reason."""
        if self._known is None:
            return
        try:
            async with asyncio.timeout(timeout_s):
                await self.read()
        except MCPError as error:
            self.failed(error)
        except TimeoutError:
            self._end(f"{self.listed.method} was not answered within {timeout_s:g} s")

    async def read(self) -> None:
        """Raises MCPError."""
        self._end(await self._read_pages())

    def failed(self, error: MCPError) -> None:
        if error.code != METHOD_NOT_FOUND or self.listed not in _OFTEN_MISSING:
            self._end(f"{self.listed.method} failed: {error.message}")

    def objects(self) -> _Objects:
        """The entries with a name. Entries without a name, and the second of two with the same name, are refused."""
        listed = self.listed
        sound = [entry for entry in self.entries if is_object(entry) and listed.name_of(entry) is not None]
        if len(sound) < len(self.entries):
            self.reasons.append(f"{len(self.entries) - len(sound)} of its {listed.key} have no {listed.known_by!r}")
        first: dict[str | None, JsonObject] = {}
        for entry in sound:  # the first of two equal names is kept, because a request could not tell them apart
            first.setdefault(listed.name_of(entry), entry)
        if len(first) < len(sound):
            lost = len(sound) - len(first)
            self.reasons.append(f"{lost} of its {listed.key} have the same {listed.known_by!r} as another")
        return tuple(first.values())

    def _end(self, cut: str) -> None:
        if cut:
            self.cut = cut
            self.reasons.append(cut)
            names = self._names()
            self.entries += [entry for entry in self._known or () if self.listed.name_of(entry) not in names]

    def _names(self) -> set[str | None]:
        return {self.listed.name_of(entry) for entry in self.entries if is_object(entry)}

    async def _read_pages(self) -> str:
        """Take the entries of all pages; return why the listing was cut short, or ""."""
        listed = self.listed
        cursor: str | None = None
        seen: set[str] = set()
        characters = 0
        for _ in range(_MOST_PAGES):
            page = await self._session.request(listed.method, page_params(cursor))
            if (promised_s := ttl_s(page)) is not None:
                self.ttls_s.append(promised_s)
            entries = listed.entries_of(page)
            if entries is None:
                return f"it sent a page without a list of {listed.key}; the pages before it are used"
            self.entries += entries
            cursor = next_cursor(page)
            if cursor is None:
                return ""
            if cursor in seen:
                where = f"at the cursor {cursor[:40]!r}"
                return f"its list repeats itself {where}; the {listed.key} before that are used"
            seen.add(cursor)
            characters += len(json.dumps(entries))  # the transport limits a single page
            if characters > _MOST_CHARACTERS:
                return f"its {listed.key} have over {_MOST_CHARACTERS:,} characters; the first ones are used"
        return f"its list has over {_MOST_PAGES} pages; the {listed.key} of the first {_MOST_PAGES} are used"


class _SkillsReading(_ListReading):
    """The skills that a server lists, and those that it has and names only in its *instructions*."""

    def __init__(self, session: McpSession, known: Iterable[JsonObject] | None, instructions: str) -> None:
        super().__init__(session, SKILLS, known)
        self._instructions = instructions

    async def read(self) -> None:
        await super().read()
        words = (word.rstrip(".:!?") for word in _AROUND_URIS.split(self._instructions))
        named = dict.fromkeys(word for word in words if "://" in word and word.endswith(f"/{SKILL_FILE}"))
        listed = self._names()
        for uri in [uri for uri in named if uri not in listed][:_MOST_NAMED_SKILLS]:
            await self._get(uri)

    async def _get(self, uri: str) -> None:
        try:
            entry = (await self._session.request(GET_SKILL, {"uri": uri})).get("skill")
        except MCPError as error:
            if error.code != INVALID_PARAMS:  # which says that this is no skill of the server
                self.reasons.append(f"{GET_SKILL} failed for {shown_name(uri)}: {error.message}")
            return
        if is_object(entry) and self.listed.name_of(entry) == uri:
            self.entries.append(entry)
        else:
            self.reasons.append(f"{GET_SKILL} gave another entry than that of {shown_name(uri)}")


def _about(session: McpSession) -> str:
    info = session.sdk.server_info
    return (info.description or info.title or "") if info is not None else ""


logger = logging.getLogger(__name__)
_FORMAT = 2


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
            "skills": listing.skills,
            "reads_directories": listing.reads_directories,
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
            prompts=_objects(kept["prompts"]),
            resources=_objects(kept["resources"]),
            resource_templates=_objects(kept["resource_templates"]),
            skills=_objects(kept["skills"]),
            reads_directories=kept["reads_directories"] is True,
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
