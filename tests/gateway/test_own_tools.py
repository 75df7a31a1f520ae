"""Tools of a gateway's catalog that are of no server: run by a callback, passed on, or handed back."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.kit.fake_servers import MODERN, FakeServer, Nobody, call, entry, names, search, text
from tests.kit.skills import write_skill
from toolsearch.access.principals import Grant, Principal
from toolsearch.access.reach import Reach
from toolsearch.calling.hooks import Deny
from toolsearch.engine import ToolSearch
from toolsearch.errors import NotCallableHereError
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.config_file import read_gateway_config
from toolsearch.gateway.gateway import Gateway
from toolsearch.gateway.settings import GatewayConfig, GatewaySettings
from toolsearch.gateway.trust.verdicts import OpenGate
from toolsearch.tools.definition import Tool, ToolContext, ToolDefinition
from toolsearch.tools.function_tools import tool
from toolsearch.upstreams.interface import Downstream
from toolsearch.wire.mcp.eras import Era

NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
LEGACY = Caller(Grant(Principal("local")), Era.LEGACY, session_key="one", client_name="claude-code")


@tool
def double(n: int) -> dict[str, int]:
    """Doubles a number.

    Args:
        n: the number
    """
    return {"twice": 2 * n}


@tool
def fail(n: int) -> str:
    """Always fails.

    Args:
        n: ignored
    """
    raise ValueError(f"no {n} today")


THEIRS = Tool(ToolDefinition("book_flight", "Books a flight.", NUMBER))


@asynccontextmanager
async def gateway_over(*tools: Any, servers: tuple[str, ...] = (), **options: Any) -> AsyncIterator[Gateway]:
    config = (
        read_gateway_config({"mcpServers": {name: {"command": "none"} for name in servers}}, {})
        if servers
        else GatewayConfig("here", (), GatewaySettings())
    )
    with ToolSearch(tools) as engine:
        async with Gateway(config, engine=engine, upstreams=FakeServer, gate=OpenGate(), **options) as gateway:
            yield gateway


@pytest.mark.parametrize("caller", [LEGACY, MODERN], ids=["legacy", "modern"])
async def test_a_tool_with_a_callback_is_found_and_answers_as_mcp_has_it(caller: Caller) -> None:
    async with gateway_over(double) as gateway:
        found = await search(gateway, caller, "double a number")
        by_name = await call(gateway, "double", {"n": 21}, caller)
        by_call_tool = await call(gateway, "callToolDestructive", {"name": "double", "arguments": {"n": 21}}, caller)

    assert [each["name"] for each in found.structured["tools"]] == ["double"]
    assert by_name == {
        "content": [{"type": "text", "text": '{"twice":42}'}],
        "structuredContent": {"twice": 42},
        "isError": False,
    }
    assert by_call_tool == by_name


async def test_a_callback_that_fails_is_a_result_that_a_model_reads() -> None:
    async with gateway_over(fail) as gateway:
        result = await call(gateway, "fail", {"n": 3})

    assert (result["isError"], text(result)) == (True, "no 3 today")
    assert result["_meta"]["toolsearch/error"] == "tool_failed"


async def test_arguments_are_checked_before_a_callback_runs_or_the_call_is_handed_back() -> None:
    async with gateway_over(double, THEIRS) as gateway:
        for name in ("double", "book_flight"):
            for wrong in ("many", json.loads("1e400")):
                result = await call(gateway, name, {"n": wrong})
                assert result["_meta"]["toolsearch/error"] == "bad_arguments"


async def test_a_call_of_a_tool_that_lives_with_the_caller_is_handed_back_with_its_definition() -> None:
    async with gateway_over(THEIRS) as gateway:
        with pytest.raises(NotCallableHereError) as raised:
            await call(gateway, "callToolDestructive", {"name": "book_flight", "arguments": {"n": 2}})

        assert raised.value.definition is THEIRS.definition
        assert raised.value.arguments == {"n": 2}
        assert (gateway.ledger.calls, gateway.ledger.failed_calls) == (1, 0)


async def test_a_hook_may_deny_what_would_be_handed_back() -> None:
    async def deny(_call: Any, _tool: Any, _context: Any) -> Deny:
        return Deny("not today")

    async with gateway_over(THEIRS, before=[deny]) as gateway:
        assert text(await call(gateway, "book_flight", {"n": 2})).endswith("denied: not today")


async def test_a_tool_out_of_reach_is_not_handed_back_but_unknown() -> None:
    nobody = Caller(Grant(Principal("nobody", Reach.parse([]))), Era.MODERN)
    async with gateway_over(THEIRS) as gateway:
        result = await call(gateway, "callToolDestructive", {"name": "book_flight", "arguments": {"n": 2}}, nobody)

    assert result["_meta"]["toolsearch/error"] == "unknown_tool"


class PassingOn:
    """Calls a tool of another gateway by the name that it has there, as toolsets do."""

    def __init__(self, gateway: Gateway, name: str) -> None:
        self._gateway = gateway
        self._name = name

    async def call(self, arguments: Mapping[str, Any], context: ToolContext) -> object:  # noqa: ARG002
        raise AssertionError("the gateway passes the request itself on")

    async def call_raw(
        self, params: Mapping[str, Any], caller: Caller, downstream: Downstream, _: object
    ) -> dict[str, Any]:
        return await self._gateway.call(caller, {**params, "name": self._name}, downstream)


class Listening(Nobody):
    """A client that is told of progress."""

    def __init__(self) -> None:
        self.heard: list[float] = []

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:  # noqa: ARG002
        self.heard.append(progress)


class Working(FakeServer):
    async def request(self, request: Any) -> dict[str, Any]:
        await request.downstream.progress(0.5, None, None)
        return {"content": [{"type": "text", "text": str(request.params)}], "_meta": {"example.org/kept": 1}}


async def test_a_raw_callback_passes_the_request_on_and_progress_comes_back() -> None:
    config = read_gateway_config({"mcpServers": {"sums": {"command": "none"}}}, {})
    async with Gateway(config, upstreams=Working, gate=OpenGate()) as inner:
        server: Any = inner.upstreams["sums"]
        await server.lists(entry("add", inputSchema=NUMBER))
        renamed = Tool(ToolDefinition("plus", "Adds.", NUMBER), PassingOn(inner, "sums__add"))
        async with gateway_over(renamed) as gateway:
            client = Listening()
            params = {"name": "plus", "arguments": {"n": 1}, "_meta": {"example.org/trace": "t"}}
            result = await gateway.call(MODERN, params, client)  # type: ignore[arg-type]

    assert text(result) == str({"name": "add", "arguments": {"n": 1}, "_meta": {"example.org/trace": "t"}})
    assert result["_meta"] == {"example.org/kept": 1}
    assert client.heard == [0.5]


async def test_what_is_handed_back_through_another_gateway_has_the_name_that_the_caller_knows() -> None:
    async with gateway_over(THEIRS) as inner:
        flight = Tool(ToolDefinition("fly", "Books.", NUMBER), PassingOn(inner, "book_flight"))
        async with gateway_over(flight) as gateway:
            with pytest.raises(NotCallableHereError) as raised:
                await call(gateway, "fly", {"n": 2})

    assert raised.value.definition is flight.definition


async def test_servers_list_beside_tools_of_no_server_and_keep_theirs() -> None:
    """A stored tool even keeps its name against a server that wants it."""
    stored = Tool(ToolDefinition("sums__add", "Adds by hand.", NUMBER, server="sums"))
    async with gateway_over(double, stored, servers=("sums",)) as gateway:
        server: Any = gateway.upstreams["sums"]
        await server.lists("add", "subtract")
        await search(gateway, MODERN, "double a number")  # the best tool has no server that could be woken

        assert sorted(gateway.engine.catalog.names()) == ["double", "sums__add", "sums__subtract"]
        assert gateway.engine.catalog.get("sums__add") is stored
        assert await names(gateway, MODERN) == ["double", "sums__add", "sums__subtract"]
        await gateway.servers.remove("sums")
        assert sorted(gateway.engine.catalog.names()) == ["double", "sums__add"]


async def test_a_folder_of_skills_in_the_catalog_is_found_read_and_listed_like_those_of_servers(tmp_path):
    write_skill(tmp_path / "skills", "refunds", files={"rules.md": "Rules.", "logo.png": b"\x89PNG\x00"})
    async with gateway_over() as gateway:
        gateway.engine.catalog.load(f"skills:{tmp_path / 'skills'}")
        (name,) = gateway.engine.catalog.contents
        assert "readSkill" in await names(gateway, MODERN)
        assert name in (await search(gateway, MODERN, "select:" + name)).found
        read = await call(gateway, "readSkill", {"name": name, "file": "rules.md"})
        assert read["content"][1]["text"] == "Rules."
        (entry,) = gateway.content.skills(MODERN)
        assert await gateway.read_resource(MODERN, {"uri": entry["uri"]}, Nobody())
        logo = next(each["uri"] for each in entry["resources"] if each["uri"].endswith("logo.png"))
        (part,) = (await gateway.read_resource(MODERN, {"uri": logo}, Nobody()))["contents"]
        assert part == {"uri": logo, "blob": "iVBORwA="}
        (tmp_path / "skills" / "refunds" / "rules.md").write_text("Other rules.")
        changed = await call(gateway, "readSkill", {"name": name, "file": "rules.md"})
        assert changed["_meta"] == {"toolsearch/error": "skill_changed"}
