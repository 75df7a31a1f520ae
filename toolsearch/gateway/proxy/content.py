"""The prompts and resources of all servers that one caller may know.

A URI identifies the server of a resource. The gateway subscribes to each resource once, for all sessions.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, TypeAlias, TypeVar
from urllib.parse import quote, unquote

from mcp import MCPError
from mcp.shared.uri_template import InvalidUriTemplate, UriTemplate
from mcp.types import INVALID_PARAMS

from toolsearch.errors import ToolSearchError, UnapprovedToolError
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.proxy.relay import Relay, SeenLinks
from toolsearch.gateway.registry import Contents, Registry
from toolsearch.tools.definition import ToolDefinition, legal_name
from toolsearch.tools.naming import all_namespaced
from toolsearch.upstreams.interface import Downstream, Upstream, UpstreamRequest
from toolsearch.wire.mcp.eras import Era
from toolsearch.wire.mcp.lists import PROMPTS, RESOURCES, TEMPLATES, ListOf
from toolsearch.wire.mcp.requests import COMPLETE, ERROR_CODE, GET_PROMPT, READ_RESOURCE, SUBSCRIBE, UNSUBSCRIBE

_WRAPPED = "toolsearch:"


@dataclass(frozen=True, slots=True)
class Address:
    server: str
    uri: str  # the server's own URI


class Addresses:
    """The resources of some servers, that one caller may know. Resources of other servers do not count."""

    def __init__(self, listings: Iterable[Contents]) -> None:
        self._listings = {listing.server: listing for listing in listings}

    def resources(self) -> list[dict[str, Any]]:
        """The entries of ``resources/list``, by server and then as the server has them."""
        return self._entries(RESOURCES)

    def templates(self) -> list[dict[str, Any]]:
        """The entries of ``resources/templates/list``, in the same order."""
        return self._entries(TEMPLATES)

    def resolve(self, uri: str, linked_by: str | None = None) -> Address | None:
        """The resource that *uri* means; *linked_by* is the server whose result linked to it, if any.

        None if it means nothing, or could mean several things.
        """
        if wrapped := _unwrapped(uri):
            return wrapped if wrapped.server in self._listings else None
        owners = self._listing(RESOURCES, uri)
        if len(owners) == 1:
            return Address(owners[0], uri)
        if linked_by in self._listings:
            return Address(linked_by, uri)
        if owners:
            return None
        fitting = [name for name, listing in self._listings.items() if _fits_any(listing, uri)]
        return Address(fitting[0], uri) if len(fitting) == 1 else None

    def resolve_template(self, template: str) -> Address | None:
        """The server of this template, found by its listed URI. A resource counts as a template without variables."""
        if wrapped := _unwrapped(template):
            return wrapped if wrapped.server in self._listings else None
        owners = self._listing(TEMPLATES, template)
        return Address(owners[0], template) if len(owners) == 1 else self.resolve(template)

    def _entries(self, which: ListOf) -> list[dict[str, Any]]:
        owners = {server: listing.entries_of(which) for server, listing in self._listings.items()}
        shared = Counter(uri for entries in owners.values() for uri in {which.name_of(entry) for entry in entries})
        return [
            dict(entry) if shared[uri] == 1 else which.renamed(entry, wrap(Address(server, uri)))
            for server, entries in owners.items()
            for entry in entries
            if (uri := which.name_of(entry)) is not None
        ]

    def _listing(self, which: ListOf, uri: str) -> list[str]:
        """The servers that list exactly this URI."""
        return [
            server
            for server, listing in self._listings.items()
            if any(which.name_of(entry) == uri for entry in listing.entries_of(which))
        ]


def wrap(address: Address) -> str:
    return f"{_WRAPPED}{quote(address.server, safe='')}:{address.uri}"


def _unwrapped(uri: str) -> Address | None:
    if not uri.startswith(_WRAPPED):
        return None
    server, colon, own = uri.removeprefix(_WRAPPED).partition(":")
    return Address(unquote(server), own) if colon else None


def unwrapped_for(server: str, uri: str) -> str:
    """*uri* as *server* would know it."""
    wrapped = _unwrapped(uri)
    return wrapped.uri if wrapped is not None and wrapped.server == server else uri


def is_held(contents: Contents, uri: str) -> bool:
    """Whether *uri* is a resource or template that awaits approval, or can only be read by such a template."""
    if uri in contents.held:
        return True
    if any(RESOURCES.name_of(entry) == uri for entry in contents.resources) or _fits_any(contents, uri):
        return False
    return any(_fits(held, uri) for held in contents.held)


def _fits_any(contents: Contents, uri: str) -> bool:
    return any(_fits(TEMPLATES.name_of(entry) or "", uri) for entry in contents.resource_templates)


def _fits(template: str, uri: str) -> bool:
    parsed = _parsed(template)
    return parsed is not None and parsed.match(uri) is not None


@lru_cache(maxsize=4_096)
def _parsed(template: str) -> UriTemplate | None:
    """Parse a template; None if no URI can be matched against it."""
    try:
        return UriTemplate.parse(template)
    except InvalidUriTemplate:
        return None


T = TypeVar("T")
_RESOURCE_NOT_FOUND = -32002  # the code up to 2025-11-25; the protocol of 2026 has no code for this


class ContentProxy:
    """The prompts and resources of the servers that a caller may know.

    A caller may know of a server if it reaches at least one of its tools, or if the server has no tools and a rule by
    server allows it. It may know of a prompt if the rules would allow a tool of that name. Prompts are named like
    tools, ``server__prompt``; for resources see `Addresses`. Every list has one page.
    """

    def __init__(self, registry: Registry, relay: Relay, links: SeenLinks) -> None:
        self._registry = registry
        self._relay = relay
        self._links = links

    def prompts(self, caller: Caller) -> list[dict[str, Any]]:
        """The entries of ``prompts/list``, by server and then as the server has them."""
        return [
            PROMPTS.renamed(entry, name)
            for contents in self._known(caller)
            for name, entry in _named_prompts(contents).items()
            if self._allows(caller, name, contents.server)
        ]

    def resources(self, caller: Caller) -> list[dict[str, Any]]:
        return Addresses(self._known(caller)).resources()

    def resource_templates(self, caller: Caller) -> list[dict[str, Any]]:
        return Addresses(self._known(caller)).templates()

    def instructions(self, caller: Caller) -> dict[str, str]:
        """The servers' instructions, by server."""
        return {each.server: each.instructions for each in self._known(caller) if each.instructions}

    def locate(self, caller: Caller, uri: str) -> Address:
        """The server of the resource *uri*. Raises the MCPError that a server gives for an unknown resource, or one
        that says that the resource awaits approval.
        """
        address = Addresses(self._known(caller)).resolve(uri, self._links.server_of(caller.owner, uri))
        if address is None or self._is_held(address):
            self._require_approved(caller, uri)
            raise MCPError(
                _RESOURCE_NOT_FOUND if caller.era is Era.LEGACY else INVALID_PARAMS,
                "Resource not found",
                {"uri": uri},
            )
        return address

    async def read(self, caller: Caller, params: Mapping[str, Any], downstream: Downstream) -> dict[str, Any]:
        """Answer ``resources/read``; raises as `Relay.send`, and MCPError for an unknown resource."""
        find = partial(self.locate, caller, params["uri"])
        address = find()
        sent = {**params, "uri": address.uri}
        admit = _finding_the_same(find, address)
        return await self._relay.send(caller, address.server, READ_RESOURCE, sent, downstream, admit)

    async def get_prompt(self, caller: Caller, params: Mapping[str, Any], downstream: Downstream) -> dict[str, Any]:
        """Answer ``prompts/get``; raises as `Relay.send`, and MCPError for an unknown prompt."""
        find = partial(self._prompt, caller, params["name"])
        server, name = find()
        admit = _finding_the_same(find, (server, name))
        return await self._relay.send(caller, server, GET_PROMPT, {**params, "name": name}, downstream, admit)

    async def complete(self, caller: Caller, params: Mapping[str, Any], downstream: Downstream) -> dict[str, Any]:
        """Answer ``completion/complete`` for an argument of a prompt, or of a resource's template."""
        find = partial(self._reference, caller, params["ref"])
        server, reference = find()
        sent = {**params, "ref": reference}
        admit = _finding_the_same(find, (server, reference))
        return await self._relay.send(caller, server, COMPLETE, sent, downstream, admit)

    def _reference(self, caller: Caller, reference: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """The server that *reference* points to, and the server's own name for it."""
        if reference["type"] == "ref/prompt":
            server, name = self._prompt(caller, reference["name"])
            return server, {**reference, "name": name}
        address = Addresses(self._known(caller)).resolve_template(reference["uri"])
        if address is None or self._is_held(address):
            self._require_approved(caller, reference["uri"])
            raise MCPError(INVALID_PARAMS, "Unknown resource template", {"uri": reference["uri"]})
        return address.server, {**reference, "uri": address.uri}

    def _prompt(self, caller: Caller, name: str) -> tuple[str, str]:
        """The server of a prompt, and its name there."""
        for contents in self._known(caller):
            entry = _named_prompts(contents).get(name)
            if entry is not None and self._allows(caller, name, contents.server):
                return contents.server, entry["name"]
        for contents in self._known_once_approved(caller):
            held = all_namespaced(contents.server, contents.held_prompts).values()
            if name in held and self._allows(caller, name, contents.server):
                raise self._unapproved(f"the prompt {name}", name)
        raise MCPError(INVALID_PARAMS, f"Unknown prompt: {name}")

    def _is_held(self, address: Address) -> bool:
        return is_held(self._registry.contents[address.server], address.uri)

    def _require_approved(self, caller: Caller, uri: str) -> None:
        """Raise the MCPError that names the entry to approve before *uri* can be used, if there is one."""
        for contents in self._known_once_approved(caller):
            if is_held(contents, unwrapped_for(contents.server, uri)):
                raise self._unapproved(f"the resource {uri}", contents.server)

    def _unapproved(self, entry: str, approved_as: str) -> MCPError:
        """The error holds no text of the server, because nobody has reviewed that: the caller itself named the
        entry.
        """
        error = UnapprovedToolError(entry, self._registry.approving(approved_as))
        return MCPError(INVALID_PARAMS, str(error), {ERROR_CODE: error.code})

    def _known(self, caller: Caller) -> list[Contents]:
        return [contents for contents in self._contents() if self._knows(caller, contents)]

    def _known_once_approved(self, caller: Caller) -> list[Contents]:
        """The contents of the servers that *caller* knows, or would know if all waiting entries were approved."""
        held = {tool.definition.server for tool in self._registry.held_within(caller.principal.reach)}
        return [each for each in self._contents() if each.server in held or self._knows(caller, each)]

    def _contents(self) -> list[Contents]:
        """The contents by server, sorted, because servers list in another order at each start."""
        return [contents for _, contents in sorted(self._registry.contents.items())]

    def _knows(self, caller: Caller, contents: Contents) -> bool:
        if not contents.has_tools:
            return self._allows(caller, legal_name(contents.server), contents.server)
        tools = self._registry.servers.get(contents.server)
        return tools is not None and any(caller.principal.reach.allows(tool.definition) for tool in tools.admitted)

    def _allows(self, caller: Caller, name: str, server: str) -> bool:
        definition = ToolDefinition(name=name, server=server)
        return self._registry.rules.allows(definition) and caller.principal.reach.allows(definition)


def _finding_the_same(find: Callable[[], T], found: T) -> Callable[[], None]:
    """Make a check that raises unless *find* still gives *found*."""

    def admit() -> None:
        if find() != found:
            raise MCPError(INVALID_PARAMS, "What was asked for has changed; list it again")

    return admit


def _named_prompts(contents: Contents) -> dict[str, Mapping[str, Any]]:
    """The prompts, by the name that clients see."""
    entries = {name: entry for entry in contents.prompts if (name := PROMPTS.name_of(entry)) is not None}
    return {given: entries[name] for name, given in all_namespaced(contents.server, entries).items()}


logger = logging.getLogger(__name__)
Tell: TypeAlias = Callable[[], Awaitable[None]]


class Subscriptions:
    """Subscriptions of older clients at older servers. A server forgets them when its connection is lost, so the next
    session that subscribes renews its subscription.
    """

    def __init__(self, upstreams: Mapping[str, Upstream]) -> None:
        self._upstreams = upstreams
        self._sessions: defaultdict[Address, dict[str, Tell]] = defaultdict(dict)
        self._asked: dict[Address, int] = {}  # address -> number of the server's start when we subscribed
        self._changing: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._chores: set[asyncio.Task[None]] = set()

    async def subscribe(self, address: Address, session_key: str, tell: Tell) -> None:
        """Have *tell* called after each change. Raises as `Upstream.request` does."""
        upstream = self._upstreams[address.server]
        async with self._changing[address.server]:
            if self._asked.get(address) != upstream.status().starts:
                await upstream.request(UpstreamRequest(SUBSCRIBE, {"uri": address.uri}))
                self._asked[address] = upstream.status().starts
            self._sessions[address][session_key] = tell

    async def unsubscribe(self, address: Address, session_key: str) -> None:
        """End a session's subscription, and with the last one the server's. Raises as `Upstream.request` does."""
        async with self._changing[address.server]:
            sessions = self._sessions.get(address, {})
            if sessions.pop(session_key, None) is None or sessions:
                return
            del self._sessions[address]
            del self._asked[address]
            await self._upstreams[address.server].request(UpstreamRequest(UNSUBSCRIBE, {"uri": address.uri}))

    def forget(self, session_key: str) -> None:
        """End all subscriptions of a session that is over; servers stop reporting changes that only that session
        wanted.
        """
        for address in [address for address, sessions in self._sessions.items() if session_key in sessions]:
            self._do(self._given_up(address, session_key))

    def updated(self, server: str, uri: str) -> None:
        """Tell the sessions that this resource has changed, as its server says. Returns at once."""
        for tell in list(self._sessions.get(Address(server, uri), {}).values()):
            self._do(_notify(tell))

    def drop(self, server: str) -> None:
        """Forget all subscriptions at a server that was removed."""
        for address in [address for address in {*self._sessions, *self._asked} if address.server == server]:
            self._sessions.pop(address, None)
            self._asked.pop(address, None)

    async def aclose(self) -> None:
        for chore in self._chores:
            chore.cancel()
        if self._chores:
            await asyncio.wait(self._chores)

    async def _given_up(self, address: Address, session_key: str) -> None:
        try:
            await self.unsubscribe(address, session_key)
        except (MCPError, ToolSearchError) as error:
            logger.debug("%s keeps a subscription that nobody wants: %s", address.server, error)

    def _do(self, chore: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(chore)
        self._chores.add(task)
        task.add_done_callback(self._chores.discard)


async def _notify(tell: Tell) -> None:
    try:
        await tell()
    except Exception:
        logger.warning("a client could not be told that a resource has changed", exc_info=True)
