"""A server over a gateway takes every request as one of the caller that it is told, and asks whether it may be made."""

from dataclasses import replace
from typing import Any

import pytest
from mcp import Client, MCPError

from tests.kit.fake_servers import gateway_of
from tests.kit.skills import REFUND, contents, entry_of, refund_text
from toolsearch.access.principals import Grant, Principal
from toolsearch.access.reach import Reach
from toolsearch.errors import NotPermittedError, TooManyError
from toolsearch.gateway.caller import Caller, caller_of
from toolsearch.gateway.server import Asked, make_server

GUEST = Grant(Principal("guest", Reach.parse(["b__*"])))
modes = pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])


@modes
async def test_tools_prompts_and_instructions_are_those_of_the_caller_that_a_server_is_told(mode: str) -> None:
    async with gateway_of("a", "b") as (gateway, servers):
        for name in "ab":
            content: dict[str, Any] = {"prompts": ({"name": "greet"},), "instructions": f"We are {name}."}
            await servers[name].lists("dig", **content)
        server = make_server(gateway, who=lambda ctx: replace(caller_of(ctx), grant=GUEST), runs_gateway=False)
        async with Client(server, mode=mode) as client:
            found = await client.call_tool("toolSearchTool", {"query": "dig"})
            prompts = (await client.list_prompts()).prompts
            said = client.instructions or ""

    assert [each["name"] for each in (found.structured_content or {})["tools"]] == ["b__dig"]
    assert [prompt.name for prompt in prompts] == ["b__greet"]
    assert "We are a." not in said
    assert ("We are b." in said) == (mode == "legacy")  # the client of 2026 asks for no instructions


@modes
async def test_a_request_that_is_not_allowed_reaches_no_server(mode: str) -> None:
    asked: list[Asked] = []

    async def allow(_: Caller, what: Asked) -> None:
        asked.append(what)
        raise NotPermittedError(what)

    async with gateway_of("a") as (gateway, servers):
        await servers["a"].lists("dig", prompts=({"name": "greet"},))
        async with Client(make_server(gateway, allow=allow, runs_gateway=False), mode=mode) as client:
            refused = [await client.call_tool(name, {"query": "dig"}) for name in ("toolSearchTool", "a__dig")]
            with pytest.raises(MCPError, match="lacks the scope"):
                await client.get_prompt("a__greet")

    assert asked == ["search", "call", "content"]
    assert [(each.meta or {})["toolsearch/error"] for each in refused] == ["not_permitted"] * 2
    assert servers["a"].called == []


@modes
async def test_reading_a_file_of_a_skill_has_to_be_allowed_as_a_call(mode: str) -> None:
    async def allow(_: Caller, what: Asked) -> None:
        if what == "call":
            raise TooManyError("too many calls")

    note = "note://a"
    async with gateway_of("a") as (gateway, servers):
        servers["a"].has = {note: contents(note, "A note.")}
        skills = (entry_of({REFUND: refund_text()}),)
        await servers["a"].lists("dig", skills=skills, resources=({"uri": note, "name": "note"},))
        async with Client(make_server(gateway, allow=allow, runs_gateway=False), mode=mode) as client:
            assert len((await client.read_resource(note)).contents) == 1
            with pytest.raises(MCPError, match="too many"):
                await client.read_resource(f"toolsearch://a/{REFUND}")
    assert servers["a"].called == [(note, None)]
