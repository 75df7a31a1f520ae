"""The prompts, resources and skills of all servers that one caller may know.

A URI identifies the server of a resource. The gateway subscribes to each resource once, for all sessions.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, TypeVar

from mcp import MCPError
from mcp.types import INVALID_PARAMS

from toolsearch.access.principals import Grant
from toolsearch.chores import Chores
from toolsearch.errors import ToolSearchError, UnapprovedToolError
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.proxy.addresses import Address, Addresses, MayKnow, fitting, is_held, unwrapped, unwrapped_for
from toolsearch.gateway.proxy.relay import Relay, SeenLinks
from toolsearch.gateway.proxy.skills import FoundFile, SkillFiles, skill_entry
from toolsearch.gateway.proxy.suspended_calls import Room
from toolsearch.gateway.registry import Contents, Registry, ServerTools
from toolsearch.gateway.trust.verdicts import Kind
from toolsearch.tools.definition import READ_ONLY, EntryKind, Tool, ToolDefinition, legal_name
from toolsearch.tools.naming import all_namespaced
from toolsearch.upstreams.contents import SkillFolders
from toolsearch.upstreams.interface import Downstream, Upstream, UpstreamRequest
from toolsearch.wire.mcp.eras import Era
from toolsearch.wire.mcp.lists import PROMPTS, RESOURCES, TEMPLATES, ListOf
from toolsearch.wire.mcp.requests import (
    COMPLETE,
    ERROR_CODE,
    GET_PROMPT,
    READ_RESOURCE,
    SUBSCRIBE,
    UNSUBSCRIBE,
)

T = TypeVar("T")
_CHANGED: Final = "This entry has changed; list it again"
_RESOURCE_NOT_FOUND = -32002  # the code up to 2025-11-25; the protocol of 2026 has no code for this


class Counted(Protocol):
    """Sends a request by *method* for what an entry contains, within the room that it counts in, and records it."""

    async def __call__(
        self,
        caller: Caller,
        method: str,
        definition: ToolDefinition,
        send: Callable[[Room], Awaitable[dict[str, Any]]],
    ) -> dict[str, Any]: ...


class _Found(NamedTuple):
    """What a request is about. *own* are the parameters by which *server* knows it."""

    server: str
    own: Mapping[str, Any]
    definition: ToolDefinition

    @property
    def asked_for(self) -> tuple[str, Mapping[str, Any]]:
        return self.server, self.own


class ContentProxy:
    """The prompts, resources and skills of the servers that a caller may know.

    A caller may know of a server if it reaches anything of it, or if the server has no tools and a rule by server
    allows it. It may know of what its reach allows, by name, server, class and kind. It may also know of a resource
    that no rule denies, if it reaches a tool of the same server, since results of tools refer to resources. Only those
    who reach a skill may know of its files.

    Prompts are named like tools, ``server__prompt``; for resources see `Addresses`. Every list has one page. *counted*
    sends the requests for what entries contain, as far as limits allow.
    """

    def __init__(self, registry: Registry, relay: Relay, links: SeenLinks, counted: Counted) -> None:
        self._registry = registry
        self._counted = counted
        self._relay = relay
        self._links = links
        self._skills = SkillFiles(registry.catalog)

    def prompts(self, caller: Caller) -> list[dict[str, Any]]:
        """The entries of ``prompts/list``, by server and then as the server has them."""
        return [
            PROMPTS.renamed(entry, name)
            for contents in self._known(caller)
            for name, entry in contents.named_prompts.items()
            if self._allows_prompt(caller, contents, name, entry["name"])
        ]

    def resources(self, caller: Caller) -> list[dict[str, Any]]:
        return self._addresses(caller).resources()

    def resource_templates(self, caller: Caller) -> list[dict[str, Any]]:
        return self._addresses(caller).templates()

    def instructions(self, caller: Caller) -> dict[str, str]:
        """The servers' instructions, by server."""
        return {each.server: each.instructions for each in self._known(caller) if each.instructions}

    def skills(self, caller: Caller) -> list[dict[str, Any]]:
        """The entries of ``skills/list``, by name. All URIs hold the label of the server, so that each means one skill,
        whatever other servers list; the digests are the server's own.
        """
        return [skill_entry(found) for found in self._skills.skills(caller.principal.reach)]

    def skill(self, caller: Caller, uri: str) -> dict[str, Any]:
        """The entry of the skill whose SKILL.md is *uri*, for ``skills/get``. Raises MCPError if there is none, or if
        it awaits approval.
        """
        found = self.file_of_skill(caller, uri)
        if found is None or found.file.uri != found.skill.uri:
            self._require_approved(caller, uri)
            raise MCPError(INVALID_PARAMS, "No skill is served there", {"uri": uri})
        return skill_entry(found)

    def directory(self, caller: Caller, uri: str) -> list[dict[str, Any]]:
        """The entries of ``resources/directory/read``. Raises MCPError for what is no folder of a skill."""
        if children := self._skills.directory(caller.principal.reach, uri):
            return children
        raise MCPError(INVALID_PARAMS, "Not a folder of a skill", {"uri": uri})

    def file_of_skill(self, caller: Caller, uri: str) -> FoundFile | None:
        """The file *uri* of a skill that *caller* reaches; None for anything else, which `locate` then judges: it finds
        nothing in the folder of a skill, since nothing could verify that.
        """
        address = unwrapped(uri) or self._resolve(caller, uri)
        return None if address is None else self._skills.find(caller.principal.reach, address.server, address.uri)

    def locate(self, caller: Caller, uri: str) -> Address:
        """The server of the resource *uri*. Raises the MCPError that a server gives for an unknown resource, or one
        that says that the resource awaits approval.
        """
        address = self._resolve(caller, uri)
        if address is None or self._is_held(address) or not self._may_read(caller, address):
            self._require_approved(caller, uri)
            raise MCPError(
                _RESOURCE_NOT_FOUND if caller.era is Era.LEGACY else INVALID_PARAMS,
                "Resource not found",
                {"uri": uri},
            )
        return address

    async def read(self, caller: Caller, params: Mapping[str, Any], downstream: Downstream) -> dict[str, Any]:
        """Answer ``resources/read``, except for a file of a skill, which only a call of the skill verifies. Raises as
        `Relay.send`, MCPError for an unknown resource, and TooManyError and StorageError as *counted*.
        """

        def find() -> _Found:
            address = self.locate(caller.again(), params["uri"])
            if self._is_of_skill(address):
                raise MCPError(INVALID_PARAMS, _CHANGED)
            return _Found(address.server, {"uri": address.uri}, self._definition_of(address))

        return await self._answer(caller, READ_RESOURCE, params, find, downstream)

    async def get_prompt(self, caller: Caller, params: Mapping[str, Any], downstream: Downstream) -> dict[str, Any]:
        """Answer ``prompts/get``; raises as `read`, and MCPError for an unknown prompt."""

        def find() -> _Found:
            server, name = self._prompt(caller.again(), params["name"])
            return _Found(server, {"name": name}, self._definition_of_prompt(server, params["name"], name))

        return await self._answer(caller, GET_PROMPT, params, find, downstream)

    async def complete(self, caller: Caller, params: Mapping[str, Any], downstream: Downstream) -> dict[str, Any]:
        """Answer ``completion/complete`` for an argument of a prompt, or of a resource's template; raises as `read`."""

        def find() -> _Found:
            server, reference, definition = self._reference(caller.again(), params["ref"])
            return _Found(server, {"ref": reference}, definition)

        return await self._answer(caller, COMPLETE, params, find, downstream)

    async def _answer(
        self,
        caller: Caller,
        method: str,
        params: Mapping[str, Any],
        find: Callable[[], _Found],
        downstream: Downstream,
    ) -> dict[str, Any]:
        found = find()
        admit = _finding_the_same(lambda: find().asked_for, found.asked_for)
        sent = {**params, **found.own}

        async def send(room: Room) -> dict[str, Any]:
            return await self._relay.send(caller, found.server, method, sent, downstream, admit, room=room)

        return await self._counted(caller, method, found.definition, send)

    def _resolve(self, caller: Caller, uri: str) -> Address | None:
        """The one resource, or file of a skill, that *uri* means for *caller*."""
        skills = self._skills.servers(caller.principal.reach, uri)
        linked_by = self._links.server_of(caller.owner, uri)
        return self._addresses(caller).resolve(uri, linked_by, skills=skills)

    def _reference(self, caller: Caller, reference: Mapping[str, Any]) -> tuple[str, dict[str, Any], ToolDefinition]:
        """The server that *reference* points to, the server's own name for it, and its definition."""
        if reference["type"] == "ref/prompt":
            server, name = self._prompt(caller, reference["name"])
            return server, {**reference, "name": name}, self._definition_of_prompt(server, reference["name"], name)
        address = self._addresses(caller).resolve_template(reference["uri"])
        if address is None or self._is_held(address) or not self._may_read(caller, address):
            self._require_approved(caller, reference["uri"])
            raise MCPError(INVALID_PARAMS, "Unknown resource template", {"uri": reference["uri"]})
        definition = _definition(self._registry.contents[address.server], TEMPLATES, address.uri)
        return address.server, {**reference, "uri": address.uri}, definition

    def _prompt(self, caller: Caller, name: str) -> tuple[str, str]:
        """The server of a prompt, and its name there."""
        for contents in self._contents():
            own = PROMPTS.name_of(contents.named_prompts.get(name, {}))
            if own is not None and self._knows(caller, contents) and self._allows_prompt(caller, contents, name, own):
                return contents.server, own
        for contents in self._known_once_approved(caller):
            held = {given: own for own, given in all_namespaced(contents.server, contents.held_prompts).items()}
            if name in held and self._allows_prompt(caller, contents, name, held[name]):
                raise self._unapproved(f"the prompt {name}", name)
        raise MCPError(INVALID_PARAMS, f"Unknown prompt: {name}")

    def _is_held(self, address: Address) -> bool:
        return is_held(self._registry.contents[address.server], address.uri)

    def _require_approved(self, caller: Caller, uri: str) -> None:
        """Raise the MCPError that names the entry to approve before *uri* can be used, if there is one."""
        for contents in self._known_once_approved(caller):
            own = unwrapped_for(contents.server, uri)
            is_denied = self._denies(caller, _definition(contents, RESOURCES, own)) or not any(
                caller.lists(contents.server, which, own) for which in (RESOURCES, TEMPLATES)
            )
            if is_held(contents, own) and not is_denied:
                raise self._unapproved(f"the resource {uri}", contents.server)
        for entry in self._registry.held_within(caller.principal.reach):
            if entry.is_skill and _is_below(entry, unwrapped_for(entry.definition.server, uri)):
                error = self._registry.unapproved(entry)
                raise MCPError(INVALID_PARAMS, str(error), {ERROR_CODE: error.code})

    def _unapproved(self, entry: str, approved_as: str) -> MCPError:
        """The error holds no text of the server, because nobody has reviewed that: the caller itself named the
        entry.
        """
        error = UnapprovedToolError(entry, self._registry.approving(approved_as))
        return MCPError(INVALID_PARAMS, str(error), {ERROR_CODE: error.code})

    def _addresses(self, caller: Caller) -> Addresses:
        return Addresses(self._known(caller), self._may_know(caller))

    def _known(self, caller: Caller) -> list[Contents]:
        """The contents of the servers that *caller* may know."""
        return [contents for contents in self._contents() if self._knows(caller, contents)]

    def _known_once_approved(self, caller: Caller) -> list[Contents]:
        """The contents of the servers that *caller* knows, or would know if all waiting entries were approved."""
        held = {tool.definition.server for tool in self._registry.held_within(caller.principal.reach)}
        return [each for each in self._contents() if each.server in held or self._knows(caller, each)]

    def _contents(self) -> list[Contents]:
        """The contents by server, sorted, because servers list in another order at each start."""
        return [contents for _, contents in sorted(self._registry.contents.items())]

    def _knows(self, caller: Caller, contents: Contents) -> bool:
        of_server = self._registry.servers.get(contents.server, ServerTools())
        reach = caller.principal.reach
        return self._reaches_tools(caller, contents) or any(map(reach.admits, of_server.entries))

    def _reaches_tools(self, caller: Caller, contents: Contents) -> bool:
        if not contents.has_tools:
            return self._allows(caller, ToolDefinition(legal_name(contents.server), server=contents.server))
        of_server = self._registry.servers.get(contents.server, ServerTools())
        return any(map(caller.principal.reach.admits, of_server.admitted))

    def _may_know(self, caller: Caller) -> MayKnow:
        """Whether *caller* may know of an entry, which is asked of one entry at a time: servers list thousands."""
        reach = caller.principal.reach

        @cache
        def reaches_tools(server: str) -> bool:
            return self._reaches_tools(caller, self._registry.contents[server])

        def may_know(contents: Contents, which: ListOf, uri: str) -> bool:
            if contents.lists(which, uri) and not caller.lists(contents.server, which, uri):
                return False
            definition = _definition(contents, which, uri)
            is_linked_to = not self._denies(caller, definition) and reaches_tools(contents.server)
            if not is_linked_to and not self._allows(caller, definition):
                return False
            is_file = which is RESOURCES and contents.skills.holds(uri)
            return not is_file or self._skills.find(reach, contents.server, uri) is not None

        return may_know

    def _may_read(self, caller: Caller, address: Address) -> bool:
        """Whether *caller* may read what a list, a link or the name of a server has led it to."""
        contents, may_know = self._registry.contents[address.server], self._may_know(caller)
        for which in (RESOURCES, TEMPLATES):
            if contents.lists(which, address.uri):
                return may_know(contents, which, address.uri)
        if self._is_of_skill(address):
            return self._skills.find(caller.principal.reach, address.server, address.uri) is not None
        if templates := list(fitting(contents, address.uri)):
            return any(may_know(contents, TEMPLATES, each) for each in templates)
        definition = _definition(contents, RESOURCES, address.uri)
        return self._reaches_tools(caller, contents) and not self._denies(caller, definition)

    def _definition_of(self, address: Address) -> ToolDefinition:
        """The definition of a resource, or of the template that it is read by."""
        contents = self._registry.contents[address.server]
        listed = contents.lists(RESOURCES, address.uri)
        template = None if listed else next(iter(fitting(contents, address.uri)), None)
        return _definition(contents, TEMPLATES if template else RESOURCES, template or address.uri)

    def _definition_of_prompt(self, server: str, name: str, remote_name: str) -> ToolDefinition:
        entry = self._registry.contents[server].entries.get((Kind.PROMPT, remote_name))
        return _unlisted(server, name, "prompt") if entry is None else entry.definition

    def _is_of_skill(self, address: Address) -> bool:
        contents = self._registry.contents.get(address.server)
        return contents is not None and contents.skills.holds(address.uri)

    def _allows(self, caller: Caller, definition: ToolDefinition, original: ToolDefinition | None = None) -> bool:
        return all(each.allows(definition, original) for each in (self._registry.rules, caller.principal.reach))

    def _allows_prompt(self, caller: Caller, contents: Contents, name: str, remote_name: str) -> bool:
        """*name* is the one that clients see. A tool of that name gives the prompt another one in the catalog."""
        if not caller.lists(contents.server, PROMPTS, remote_name):
            return False
        entry = contents.entries.get((Kind.PROMPT, remote_name))
        if entry is None:
            return self._allows(caller, _unlisted(contents.server, name, "prompt"))
        return self._allows(caller, replace(entry.definition, name=name), entry.definition)

    def _denies(self, caller: Caller, definition: ToolDefinition) -> bool:
        return self._registry.rules.denies(definition) or caller.principal.reach.denies(definition)


def _definition(contents: Contents, which: ListOf, uri: str) -> ToolDefinition:
    """The definition by which rules find an entry; that of a resource which is no entry has the name of its server."""
    entry = contents.entries.get((Kind.RESOURCE if which is RESOURCES else Kind.TEMPLATE, uri))
    return (
        entry.definition if entry is not None else _unlisted(contents.server, legal_name(contents.server), "resource")
    )


def _unlisted(server: str, name: str, kind: EntryKind) -> ToolDefinition:
    return ToolDefinition(name, server=server, annotations={READ_ONLY: True}, kind=kind)


def _is_below(skill: Tool, uri: str) -> bool:
    return skill.origin is not None and SkillFolders([skill.origin.raw]).holds(uri)


def _finding_the_same(find: Callable[[], T], found: T) -> Callable[[], None]:
    """Make a check that raises unless *find* still gives *found*."""

    def admit() -> None:
        if find() != found:
            raise MCPError(INVALID_PARAMS, _CHANGED)

    return admit


logger = logging.getLogger(__name__)
Tell: TypeAlias = Callable[[], Awaitable[None]]


class _Place(NamedTuple):
    """A resource, and the owner of the connection over which its server tells of changes."""

    address: Address
    owner: str


class Subscriptions:
    """Subscriptions to single resources. Each is made once at its server, for all sessions and streams of clients. A
    server forgets them when its connection is lost, so they are renewed once it has listed again.
    """

    def __init__(self, upstreams: Mapping[str, Upstream]) -> None:
        self._upstreams = upstreams
        self._sessions: defaultdict[_Place, dict[str, Tell]] = defaultdict(dict)
        self._grants: dict[_Place, Grant] = {}  # place -> somebody who may use its connection
        self._asked: dict[_Place, int] = {}  # place -> number of the server's start when we subscribed
        self._changing: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._chores = Chores()

    async def subscribe(self, grant: Grant, address: Address, session_key: str, tell: Tell) -> None:
        """Have *tell* called after each change that the server tells *grant* of. Raises as a request does."""
        upstream = self._upstreams[address.server].of(grant)
        place = _Place(address, upstream.owner)
        async with self._changing[address.server]:
            if self._asked.get(place) != upstream.status().starts:
                await upstream.request(UpstreamRequest(SUBSCRIBE, {"uri": address.uri}))
                self._asked[place] = upstream.status().starts
            self._sessions[place][session_key] = tell
            self._grants[place] = grant

    async def unsubscribe(self, grant: Grant, address: Address, session_key: str) -> None:
        """End a session's subscription, and with the last one the server's. Raises as a request does."""
        upstream = self._upstreams[address.server].of(grant)
        await self._unsubscribe(_Place(address, upstream.owner), session_key)

    async def _unsubscribe(self, place: _Place, session_key: str) -> None:
        server = place.address.server
        async with self._changing[server]:
            sessions = self._sessions.get(place, {})
            if sessions.pop(session_key, None) is None or sessions:
                return
            upstream = self._upstreams[server].of(self._grants[place])
            self._drop(place)
            await upstream.request(UpstreamRequest(UNSUBSCRIBE, {"uri": place.address.uri}))

    def forget(self, session_key: str) -> None:
        """End all subscriptions of a session that is over; servers stop reporting changes that only that session
        wanted.
        """
        for place in [place for place, sessions in self._sessions.items() if session_key in sessions]:
            self._chores.start(self._given_up(place, session_key))

    def updated(self, server: str, uri: str, owner: str) -> None:
        """Tell the sessions that this resource has changed, as its server says over the connection of *owner*. Returns
        at once.
        """
        for tell in list(self._sessions.get(_Place(Address(server, uri), owner), {}).values()):
            self._chores.start(_notify(tell))

    def renew(self, server: str) -> None:
        """Subscribe again at a server that was started again; nobody knows what has changed meanwhile. Returns at
        once.
        """
        for place in [place for place in self._sessions if place.address.server == server]:
            self._chores.start(self._renewed(place))

    def drop(self, server: str) -> None:
        """Forget all subscriptions at a server that was removed."""
        for place in [place for place in {*self._sessions, *self._asked} if place.address.server == server]:
            self._drop(place)

    async def aclose(self) -> None:
        await self._chores.aclose()

    async def _renewed(self, place: _Place) -> None:
        shared, grant = self._upstreams.get(place.address.server), self._grants.get(place)
        if shared is None or grant is None:
            return
        upstream = shared.of(grant)
        try:
            async with self._changing[place.address.server]:
                starts = upstream.status().starts
                if place not in self._sessions or self._asked.get(place) == starts:
                    return
                await upstream.request(UpstreamRequest(SUBSCRIBE, {"uri": place.address.uri}))
                self._asked[place] = starts
        except (MCPError, ToolSearchError) as error:
            logger.warning("%s does not tell of a resource any more: %s", place.address.server, error)
        else:
            self.updated(place.address.server, place.address.uri, place.owner)

    def _drop(self, place: _Place) -> None:
        for kept in (self._sessions, self._asked, self._grants):
            kept.pop(place, None)

    async def _given_up(self, place: _Place, session_key: str) -> None:
        try:
            await self._unsubscribe(place, session_key)
        except (MCPError, ToolSearchError) as error:
            logger.debug("%s keeps a subscription that nobody wants: %s", place.address.server, error)


async def _notify(tell: Tell) -> None:
    try:
        await tell()
    except Exception:
        logger.warning("a client could not be told that a resource has changed", exc_info=True)
