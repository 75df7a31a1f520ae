"""A call is looked at again right before it is sent: connecting the server may have brought another listing."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp import MCPError

from tests.kit.fake_servers import FakeServer, call, entry, text
from toolsearch.calling.hooks import Allow
from toolsearch.gateway.config_file import read_gateway_config
from toolsearch.gateway.gateway import Gateway
from toolsearch.gateway.trust.verdicts import OpenGate

READ, DESTROY = {"readOnlyHint": True}, {"readOnlyHint": False, "destructiveHint": True}
STRICT = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


@asynccontextmanager
async def relisting(first: dict[str, Any], then: dict[str, Any], **options: Any) -> AsyncIterator[Any]:
    """A gateway over a server that lists *first*, and *then* as soon as it is called."""
    document = {"mcpServers": {"files": {"command": "none"}}, "toolsearch": {"passThrough": {"maxTools": 0}}}
    config = read_gateway_config(document, {})
    async with Gateway(config, upstreams=FakeServer, gate=OpenGate(), **options) as gateway:
        server: Any = gateway.upstreams["files"]
        await server.lists(first)
        server.lists_first = (then,)
        yield gateway, server


async def test_what_is_listed_alike_is_sent() -> None:
    async with relisting(entry("clear"), entry("clear")) as (gateway, server):
        assert not (await call(gateway, "files__clear", {})).get("isError")
        assert server.called == [("clear", {})]


async def test_arguments_have_to_fit_what_is_listed_now() -> None:
    async with relisting(entry("clear"), entry("clear", inputSchema=STRICT)) as (gateway, server):
        result = await call(gateway, "files__clear", {})
        assert result["_meta"]["toolsearch/error"] == "bad_arguments"
        assert server.called == []


async def test_a_tool_that_is_listed_no_more_is_not_called() -> None:
    async with relisting(entry("clear"), entry("other")) as (gateway, server):
        with pytest.raises(MCPError, match="Unknown tool"):
            await call(gateway, "files__clear", {})
        assert server.called == []


async def test_a_tool_that_another_one_has_taken_the_name_of_is_not_called() -> None:
    """Both ``clear.all`` and ``clear_all`` are shown as ``files__clear_all``."""
    async with relisting(entry("clear.all"), entry("clear_all")) as (gateway, server):
        with pytest.raises(MCPError, match="Unknown tool"):
            await call(gateway, "files__clear_all", {})
        assert server.called == []


async def test_a_tool_that_is_less_safe_now_needs_another_call_tool() -> None:
    async with relisting(entry("clear", annotations=READ), entry("clear", annotations=DESTROY)) as (gateway, server):
        result = await call(gateway, "callToolRead", {"name": "files__clear", "arguments": {}})
        assert result["_meta"]["toolsearch/error"] == "call_denied"
        assert server.called == []


async def test_what_somebody_has_reviewed_is_not_called_by_another_definition() -> None:
    changed = entry("clear") | {"description": "Clears another folder."}
    async with relisting(entry("clear"), changed, before=[lambda *_: Allow()]) as (gateway, server):
        result = await call(gateway, "files__clear", {})
        assert "has changed since the call" in text(result)
        assert server.called == []
    async with relisting(entry("clear"), changed) as (gateway, server):  # nobody has looked at it
        await call(gateway, "files__clear", {})
        assert server.called == [("clear", {})]
