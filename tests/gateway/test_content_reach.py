"""Whose prompts and resources a caller knows of: those of servers that it may use, and of no other."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from mcp import MCPError

from tests.kit.fake_servers import Nobody
from toolsearch.access.principals import Grant, Principal
from toolsearch.access.reach import Reach
from toolsearch.catalog.catalog import Catalog
from toolsearch.errors import ServerUnavailableError
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.proxy.addresses import Address
from toolsearch.gateway.proxy.content import ContentProxy
from toolsearch.gateway.proxy.relay import Relay, SeenLinks
from toolsearch.gateway.proxy.suspended_calls import ANY_ROOM, Room, StateSeal
from toolsearch.gateway.registry import Registry
from toolsearch.gateway.trust.verdicts import Entry, OpenGate, ReviewItem, ReviewReason, ToolGate, Verdict
from toolsearch.tools.definition import Tool, ToolDefinition, ToolOrigin
from toolsearch.tools.naming import namespaced
from toolsearch.upstreams.interface import Listing
from toolsearch.wire.mcp.eras import Era


def listing(server: str, *tools: str) -> Listing:
    """A server with one prompt, a resource of its own, and one that all servers list."""
    listed = [
        Tool(ToolDefinition(name=namespaced(server, tool), server=server), origin=ToolOrigin(server, tool, {}))
        for tool in tools
    ]
    return Listing(
        server,
        tuple(listed),
        prompts=({"name": "hello"},),
        resources=({"uri": f"{server}:///own", "name": "own"}, {"uri": "all:///same", "name": "same"}),
        resource_templates=({"uriTemplate": f"{server}:///by-id/{{id}}", "name": "by-id"},),
    )


def caller(name: str = "ann", allow: tuple[str, ...] = ("*",), deny: tuple[str, ...] = ()) -> Caller:
    return Caller(Grant(Principal(name, Reach.parse(allow, deny))), Era.MODERN)


ANN = caller(deny=("mail__*",))


async def sent(
    _: Caller, __: str, ___: ToolDefinition, send: Callable[[Room], Awaitable[dict[str, Any]]]
) -> dict[str, Any]:
    return await send(ANY_ROOM)


async def content(
    *listings: Listing, deny: tuple[str, ...] = (), links: SeenLinks | None = None, gate: ToolGate | None = None
) -> ContentProxy:
    links = links or SeenLinks()
    rules = Reach.parse(deny=deny)
    registry = Registry(Catalog(), gate or OpenGate(), rules)
    for each in listings:
        await registry.publish(each)
    return ContentProxy(registry, Relay({}, StateSeal(b"k" * 32, lambda: 0.0), links), links, sent)


def names(entries: list[dict[str, Any]]) -> list[str]:
    return [entry["name"] for entry in entries]


def uris(entries: list[dict[str, Any]]) -> list[str]:
    return [entry["uri"] for entry in entries]


async def test_a_caller_with_no_tool_of_a_server_in_reach_knows_nothing_of_it_not_even_that_it_lists_the_same():
    shown = await content(listing("git", "log"), listing("mail", "send"))
    ann = caller(allow=("git__log",))

    assert names(shown.prompts(caller())) == ["git__hello", "mail__hello"]
    assert uris(shown.resources(ann)) == ["git:///own", "all:///same"]
    assert [each["uriTemplate"] for each in shown.resource_templates(ann)] == ["git:///by-id/{id}"]
    assert shown.locate(ann, "all:///same") == Address("git", "all:///same")
    for hidden in ("mail:///own", "mail:///by-id/7", "toolsearch:mail:mail:///own"):
        with pytest.raises(MCPError, match="Resource not found"):
            shown.locate(ann, hidden)


class HoldingGate(OpenGate):
    """Holds everything."""

    def judge(self, server: str, entries: Sequence[Entry], *, others: Sequence[Entry]) -> Verdict:  # noqa: ARG002
        held = [ReviewItem.of(each, ReviewReason.NEW) for each in entries]
        return Verdict((), tuple(held))


@pytest.mark.parametrize(
    ("asking", "knows"),
    [
        (caller(), True),
        (caller(deny=("git__*",)), False),  # nothing of the server in reach
        (caller(deny=("class:read",)), False),
        (caller(deny=("server:git",)), False),
        (caller(allow=("mail__*",)), False),
    ],
)
async def test_only_who_could_use_what_awaits_approval_learns_that_there_is_such_a_prompt_or_resource(asking, knows):
    shown = await content(listing("git", "log"), gate=HoldingGate())

    with pytest.raises(MCPError) as by_name:
        await shown.get_prompt(asking, {"name": "git__hello"}, Nobody())
    said = "the prompt git__hello waits for a person" if knows else "Unknown prompt: git__hello"
    assert by_name.value.error.message.startswith(said)
    for uri in ("git:///own", "git:///by-id/7", "toolsearch:git:git:///own"):
        with pytest.raises(MCPError, match=f"the resource {uri} waits for" if knows else "Resource not found"):
            shown.locate(asking, uri)


async def test_a_prompt_that_awaits_approval_is_unknown_to_whom_a_rule_keeps_from_it():
    shown = await content(listing("git", "log"), gate=HoldingGate())

    with pytest.raises(MCPError, match="Unknown prompt"):
        await shown.get_prompt(caller(deny=("git__hello",)), {"name": "git__hello"}, Nobody())


@pytest.mark.parametrize(
    ("rules", "prompts"),
    [
        ({"deny": ("git__hello",)}, []),
        ({"deny": ("server:git",)}, []),
        ({"allow": ("git__log",)}, []),  # an allow rule by name allows that name only
        ({"allow": ("git__*",)}, ["git__hello"]),
        ({"allow": ("server:git",)}, ["git__hello"]),
    ],
)
async def test_rules_hold_for_a_prompt_as_for_a_tool_of_its_name(rules, prompts):
    shown = await content(listing("git", "log"))
    assert names(shown.prompts(caller(**rules))) == prompts


async def test_a_server_without_tools_is_known_by_rules_for_servers():
    shown = await content(listing("notes"), listing("diary"), deny=("server:diary",))
    assert names(shown.prompts(caller())) == ["notes__hello"]
    assert names(shown.prompts(caller(deny=("server:notes",)))) == []


async def test_a_link_that_one_principal_was_shown_leads_nobody_else_anywhere():
    links = SeenLinks()
    shown = await content(listing("git", "log"), links=links)
    links.note("ann", "git", linking_to("blob:///1"))

    assert shown.locate(caller("ann"), "blob:///1") == Address("git", "blob:///1")
    assert shown.locate(caller("ann", deny=("git__hello",)), "blob:///1") == Address("git", "blob:///1")
    for other in (caller("bob"), caller("ann", deny=("server:git",))):
        with pytest.raises(MCPError, match="Resource not found"):
            shown.locate(other, "blob:///1")


def test_only_so_many_links_are_remembered_and_the_oldest_goes():
    links = SeenLinks(limit=2)
    for uri in ("a:1", "b:2", "a:1", "c:3"):
        links.note("ann", "git", linking_to(uri))
    assert [links.server_of("ann", uri) for uri in ("a:1", "b:2", "c:3")] == ["git", None, "git"]


def linking_to(uri: str) -> Mapping[str, Any]:
    return {"messages": [{"role": "user", "content": {"type": "resource_link", "uri": uri, "name": "it"}}]}


async def test_prompts_whose_names_would_be_one_are_kept_apart():
    twins = Listing("git", (), prompts=({"name": "say hi"}, {"name": "say_hi"}))
    shown = await content(twins)
    first, second = names(shown.prompts(caller()))
    assert second == "git__say_hi"
    assert first != second
    assert first.startswith("git__say_hi_")


async def test_a_resource_of_a_server_whose_name_is_no_legal_word_is_found_by_the_uri_it_is_listed_by():
    shown = await content(listing("my files", "read"), listing("a:b", "read"))
    wrapped = ["toolsearch:a%3Ab:all:///same", "toolsearch:my%20files:all:///same"]
    assert [uri for uri in uris(shown.resources(caller())) if uri.startswith("toolsearch:")] == wrapped
    assert [shown.locate(caller(), uri).server for uri in wrapped] == ["a:b", "my files"]


@pytest.mark.parametrize(
    ("rules", "seen"),
    [
        ({}, ["git__hello", "all:///same", "git:///by-id/{id}", "git:///own"]),
        ({"deny": ("kind:prompt",)}, ["all:///same", "git:///by-id/{id}", "git:///own"]),
        ({"deny": ("kind:resource",)}, ["git__hello"]),
        ({"deny": ("git__own",)}, ["git__hello", "all:///same", "git:///by-id/{id}"]),
        ({"deny": ("git__by-id",)}, ["git__hello", "all:///same", "git:///own"]),
        ({"allow": ("kind:prompt",)}, ["git__hello"]),
        ({"allow": ("kind:tool",)}, ["all:///same", "git:///by-id/{id}", "git:///own"]),  # results refer to resources
    ],
)
async def test_rules_by_kind_hold_for_prompts_and_resources_in_every_list_and_in_reads(rules, seen):
    shown = await content(listing("git", "log"))
    who = caller(**rules)
    listed = [*names(shown.prompts(who)), *uris(shown.resources(who))]
    listed += [each["uriTemplate"] for each in shown.resource_templates(who)]
    assert sorted(listed) == sorted(seen)
    reference = {"type": "ref/resource", "uri": "toolsearch:git:git:///by-id/{id}"}
    if "git:///by-id/{id}" not in seen:
        with pytest.raises(MCPError, match="Unknown resource template"):
            await shown.complete(who, {"ref": reference}, Nobody())
    for uri, entry in (("git:///own", "git:///own"), ("git:///by-id/7", "git:///by-id/{id}")):
        for asked in (uri, f"toolsearch:git:{uri}"):
            if entry in seen:
                assert shown.locate(who, asked) == Address("git", uri)
            else:
                with pytest.raises(MCPError, match="Resource not found"):
                    shown.locate(who, asked)


async def test_a_link_leads_nowhere_where_a_rule_denies_resources():
    links = SeenLinks()
    shown = await content(listing("git", "log"), links=links)
    links.note("ann", "git", linking_to("blob:///1"))
    with pytest.raises(MCPError, match="Resource not found"):
        shown.locate(caller("ann", deny=("kind:resource",)), "blob:///1")


async def test_a_prompt_that_has_the_name_of_a_tool_keeps_it_for_clients_and_rules_for_either_name_hold():
    shown = await content(listing("git", "hello"))
    assert names(shown.prompts(caller())) == ["git__hello"]
    for denied in ("git__hello", "git__hello_prompt"):
        assert names(shown.prompts(caller(deny=(denied,)))) == []


async def test_what_is_asked_for_by_name_is_judged_alone_however_much_a_server_lists(monkeypatch: pytest.MonkeyPatch):
    asked: list[str] = []
    for judge in (Reach.allows, Reach.denies):

        def counted(reach: Reach, definition: ToolDefinition, *more: Any, judge: Any = judge) -> bool:
            asked.append(definition.name)
            return bool(judge(reach, definition, *more))

        monkeypatch.setattr(Reach, judge.__name__, counted)

    async def judged(number: int) -> list[str]:
        more = tuple({"uri": f"git:///{each}", "name": f"git{each}"} for each in range(number))
        shown = await content(replace(listing("git", "log"), resources=more))
        asked.clear()
        shown.prompts(ANN)
        shown.instructions(ANN)
        assert shown.locate(ANN, "git:///1") == Address("git", "git:///1")
        with pytest.raises(ServerUnavailableError):  # found, and asked for at its server, which is not there
            await shown.get_prompt(ANN, {"name": "git__hello"}, Nobody())
        return list(asked)

    assert await judged(2) == await judged(200)
