"""Servers that come while a catalog is served, as clients of sessions use them: directly, and through another one."""

import itertools
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.kit.gateway import SERVERS, text
from tests.kit.mcp_sessions import Served, mcp_service
from tests.kit.person import Person
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.config_file import read_gateway_config
from toolsearch.gateway.gateway import Gateway
from toolsearch.service.corpora.corpus import CorpusRef
from toolsearch.tools.definition import Tool, ToolContext, ToolDefinition
from toolsearch.upstreams.interface import Downstream
from toolsearch.upstreams.settings import UpstreamSettings

CATALOG, TEAM = CorpusRef("acme", "catalog", "default"), CorpusRef("acme", "catalog", "team")
ERAS = list(itertools.product(("legacy", "auto"), ("legacy", "auto")))


class PassingOn:
    def __init__(self, gateway: Gateway, name: str) -> None:
        self._gateway = gateway
        self._name = name

    async def call(self, arguments: Mapping[str, Any], context: ToolContext) -> object:
        raise NotImplementedError

    async def call_raw(
        self, params: Mapping[str, Any], caller: Caller, downstream: Downstream, _: object
    ) -> dict[str, Any]:
        inner = replace(caller, grant=replace(caller.grant, session=""), session_key=None)
        return await self._gateway.call(inner, {**params, "name": self._name}, downstream)


def rich(era: str, folder: Path) -> UpstreamSettings:
    entry = {"command": sys.executable, "args": [str(SERVERS / "rich_server.py")], "mode": era}
    (settings,) = read_gateway_config({"mcpServers": {"rich": entry}}, {}).upstreams
    return replace(settings, state_folder=folder)


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with mcp_service(tmp_path, []) as running:
        await running.kit.catalog(running.key, "team", tools=[])
        yield running


@pytest.mark.parametrize(("client_era", "server_era"), ERAS)
async def test_a_server_asks_the_person_at_the_client_directly_and_through_another_catalog(
    served: Served, tmp_path: Path, client_era: str, server_era: str
) -> None:
    corpora, ann = served.kit.service.corpora, Person("Ann")
    async with corpora.using(CATALOG) as corpus, corpora.using(TEAM) as team:
        await corpus.gateway.servers.add(rich(server_era, tmp_path))
        server: Any = corpus.gateway.upstreams["rich"]
        await server.listed()
        schema = {"type": "object", "properties": {"message": {"type": "string"}}}
        team.engine.catalog.put(
            Tool(ToolDefinition("ask", "Asks twice.", schema), PassingOn(corpus.gateway, "rich__ask_twice"))
        )
        answers: list[str] = []
        for name, body in (("rich__ask_twice", {}), ("ask", {"catalog": "team"})):
            session = await served.session(**body)
            async with served.mcp(session["mcp_url"], client_era, **ann.callbacks) as client:
                called = await client.call_tool("callToolDestructive", {"name": name, "arguments": {"message": "Who?"}})
                answers.append(text(called).removeprefix("rich: "))
        await corpus.gateway.servers.remove("rich")

    assert answers == ["Who? Ann Ann"] * 2
    assert ann.asked == ["Who?"] * 4
