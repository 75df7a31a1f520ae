"""The prompts and resources of all servers, as one caller may know of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from mcp import MCPError
from mcp.types import INVALID_PARAMS

from toolsearch.access.reach import Reach
from toolsearch.errors import UnapprovedToolError
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.exposure.unapproved import HowToApprove, by_command
from toolsearch.gateway.proxy.addresses import Address, Addresses, is_held, unwrapped_for
from toolsearch.gateway.proxy.links import SeenLinks
from toolsearch.gateway.proxy.relay import Relay
from toolsearch.gateway.registry import Registry
from toolsearch.gateway.server_contents import Contents
from toolsearch.tools.definition import ToolDefinition, legal_name
from toolsearch.tools.naming import all_namespaced
from toolsearch.upstreams.interface import Downstream
from toolsearch.wire.mcp.eras import Era
from toolsearch.wire.mcp.lists import PROMPTS
from toolsearch.wire.mcp.methods import COMPLETE, GET_PROMPT, READ_RESOURCE
from toolsearch.wire.mcp.results import ERROR_CODE

T = TypeVar("T")

_RESOURCE_NOT_FOUND = -32002  # up to 2025-11-25; the protocol of 2026 has no code of its own for it


class ContentProxy:
    """The prompts and resources of the servers that a caller may know of.

    A caller may know of a server if it reaches at least one of its tools, or if the server has no tools and a rule by
    server allows it. It may know of a prompt if the rules would allow a tool of that name. Prompts are named like
    tools, ``server__prompt``; for resources see `Addresses`. Every list has one page.
    """

    def __init__(
        self, registry: Registry, rules: Reach, relay: Relay, links: SeenLinks, approving: HowToApprove = by_command
    ) -> None:
        """*rules* hold for everybody, before those of a principal. *approving* says by what people approve entries."""
        self._registry = registry
        self._rules = rules
        self._relay = relay
        self._links = links
        self._approving = approving

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
        """What servers say of themselves, by server."""
        return {each.server: each.instructions for each in self._known(caller) if each.instructions}

    def locate(self, caller: Caller, uri: str) -> Address:
        """Whose resource *uri* is. Raises the MCPError that a server without such a resource would give, or one that
        says that it awaits approval.
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
        """Answer ``resources/read``; raises as `Relay.send`, and MCPError for what is not there."""
        find = partial(self.locate, caller, params["uri"])
        address = find()
        sent = {**params, "uri": address.uri}
        admit = _finding_the_same(find, address)
        return await self._relay.send(caller, address.server, READ_RESOURCE, sent, downstream, admit)

    async def get_prompt(self, caller: Caller, params: Mapping[str, Any], downstream: Downstream) -> dict[str, Any]:
        """Answer ``prompts/get``; raises as `Relay.send`, and MCPError for what is not there."""
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
        """The server that *reference* points to, and what it calls that."""
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
        """Raise the MCPError that says what has to be approved before *uri* can be used, if it is that."""
        for contents in self._known_once_approved(caller):
            if is_held(contents, unwrapped_for(contents.server, uri)):
                raise self._unapproved(f"the resource {uri}", contents.server)

    def _unapproved(self, entry: str, approved_as: str) -> MCPError:
        """No text of the server is in it, since nobody has looked at that: the caller has named the entry."""
        error = UnapprovedToolError(entry, self._approving(approved_as))
        return MCPError(INVALID_PARAMS, str(error), {ERROR_CODE: error.code})

    def _known(self, caller: Caller) -> list[Contents]:
        return [contents for contents in self._contents() if self._knows(caller, contents)]

    def _known_once_approved(self, caller: Caller) -> list[Contents]:
        """The contents of the servers that *caller* knows, or would know if all that awaits approval were approved."""
        reach = caller.principal.reach
        held = {each.server for tool in self._registry.held.values() if reach.allows(each := tool.definition)}
        return [each for each in self._contents() if each.server in held or self._knows(caller, each)]

    def _contents(self) -> list[Contents]:
        """By server: they have listed in another order at each start."""
        return [contents for _, contents in sorted(self._registry.contents.items())]

    def _knows(self, caller: Caller, contents: Contents) -> bool:
        if not contents.has_tools:
            return self._allows(caller, legal_name(contents.server), contents.server)
        tools = self._registry.servers.get(contents.server)
        return tools is not None and any(caller.principal.reach.allows(tool.definition) for tool in tools.admitted)

    def _allows(self, caller: Caller, name: str, server: str) -> bool:
        definition = ToolDefinition(name=name, server=server)
        return self._rules.allows(definition) and caller.principal.reach.allows(definition)


def _finding_the_same(find: Callable[[], T], found: T) -> Callable[[], None]:
    """Make a check that raises if *find* does not give what was *found* any more."""

    def admit() -> None:
        if find() != found:
            raise MCPError(INVALID_PARAMS, "What was asked for has changed; list it again")

    return admit


def _named_prompts(contents: Contents) -> dict[str, Mapping[str, Any]]:
    """By the name that clients see."""
    entries = {name: entry for entry in contents.prompts if (name := PROMPTS.name_of(entry)) is not None}
    return {given: entries[name] for name, given in all_namespaced(contents.server, entries).items()}
