"""Toolsets in memory: what runs their tools, how they are opened again, and that they keep their catalogs there."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.kit.fake_servers import MODERN, FakeServer, Nobody, entry, text
from tests.service.corpora.test_corpora import filled, found, indexed, row, storage, use_each
from toolsearch.access.principals import Grant, Principal
from toolsearch.calling.rates import ToolRate
from toolsearch.errors import ToolExecutionError
from toolsearch.gateway.config_file import read_gateway_config
from toolsearch.gateway.gateway import Gateway
from toolsearch.gateway.proxy.tool_rates import ToolRates
from toolsearch.gateway.trust.verdicts import OpenGate
from toolsearch.service.corpora.corpora import Corpora
from toolsearch.service.corpora.corpus import Corpus, CorpusRef
from toolsearch.service.corpora.toolset_specs import ToolsetMember, ToolsetRule, ToolsetSpec
from toolsearch.service.settings import ServiceSettings
from toolsearch.storage.sqlite.place import SqliteStorage
from toolsearch.tokens import HeuristicTokenCounter
from toolsearch.tools.definition import ToolContext
from toolsearch.upstreams.interface import UpstreamState
from toolsearch_indexes.encoders.static import StaticEncoder

__all__ = ["storage"]

TEAM = CorpusRef("acme", "toolset", "team")
MAIL = ("send_mail", "Send a letter to somebody.")


class Echo:
    def __init__(self, name: str) -> None:
        self.name = name

    async def call(self, arguments: Mapping[str, Any], context: ToolContext) -> object:  # noqa: ARG002
        if arguments.get("fail"):
            raise ToolExecutionError("it failed")
        return f"{self.name} {dict(arguments)}"


def corpora_of(storage: SqliteStorage, *, index_bytes: int = 2**30, rates: ToolRates | None = None) -> Corpora:
    settings = ServiceSettings.model_validate({"memory": {"index_bytes": index_bytes}})
    indexes = storage.path.parent / "indexes"
    return Corpora(
        storage, settings, lambda _tenant: lambda row, _execution: Echo(row.name), indexes=indexes, rates=rates
    )


def toolset(storage: SqliteStorage, *members: ToolsetMember, rules: tuple[ToolsetRule, ...] = ()) -> None:
    document = ToolsetSpec("", members, rules).document()
    storage.records.put("acme", "toolset", "team", document, over=None, at_s=0)


async def call(corpus: Corpus, tool: str, /, **arguments: Any) -> dict[str, Any]:
    return await corpus.gateway.call(MODERN_OF_ACME, {"name": tool, "arguments": arguments}, Nobody())  # type: ignore[arg-type]


MODERN_OF_ACME = replace(MODERN, grant=Grant(Principal("acme")))


async def test_a_call_by_the_toolsets_name_runs_the_tool_of_the_catalog(storage: SqliteStorage) -> None:
    filled(storage, "tools", MAIL)
    toolset(storage, ToolsetMember("tools", "send_mail", "post"))
    corpora = corpora_of(storage)
    async with corpora.using(TEAM) as corpus:
        assert text(await call(corpus, "post", a=1)) == "send_mail {'a': 1}"
        assert "no tool named 'send_mail'" in text(await call(corpus, "callToolDestructive", name="send_mail"))
    await corpora.aclose()


async def test_a_call_of_a_server_s_tool_passes_through_by_the_server_s_name(
    storage: SqliteStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = partial(Gateway, upstreams=Working, gate=OpenGate())
    monkeypatch.setattr("toolsearch.service.corpora.opening.Gateway", fake)
    catalog = filled(storage, "tools")
    toolset(storage, ToolsetMember("tools", "sums__add", "plus"))
    (settings,) = read_gateway_config({"mcpServers": {"sums": {"command": "none"}}}, {}).upstreams
    corpora = corpora_of(storage)
    async with corpora.using(TEAM) as team, corpora.using(catalog) as corpus:
        await corpus.gateway.servers.add(settings)
        server: Any = corpus.gateway.upstreams["sums"]
        await server.lists(entry("add"))
        assert found(team, "select:plus") == ["plus"]
        answer = await call(team, "plus", a=1)
        assert answer["structuredContent"] == {"name": "add", "arguments": {"a": 1}}

        await server.lists()
        assert found(team, "select:plus") == []
    await corpora.aclose()


async def test_a_call_of_a_server_s_tool_is_counted_until_its_server_has_answered(
    storage: SqliteStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "toolsearch.service.corpora.opening.Gateway", partial(Gateway, upstreams=Working, gate=OpenGate())
    )
    catalog = filled(storage, "tools")
    toolset(storage, ToolsetMember("tools", "sums__add", "plus"))
    (settings,) = read_gateway_config({"mcpServers": {"sums": {"command": "none"}}}, {}).upstreams
    rates = ToolRates({"one": ToolRate(at_once=1)}, HeuristicTokenCounter(), time.monotonic)
    corpora = corpora_of(storage, rates=rates)
    async with corpora.using(TEAM) as team, corpora.using(catalog) as corpus:
        await corpus.gateway.servers.add(settings)
        server: Any = corpus.gateway.upstreams["sums"]
        await server.lists(entry("add"))
        running, go_on = asyncio.Event(), asyncio.Event()

        async def waits(_: object) -> dict[str, Any]:
            running.set()
            await go_on.wait()
            return {"content": []}

        server.request = waits
        first = asyncio.create_task(call(team, "plus"))
        await running.wait()
        assert (await call(team, "plus"))["_meta"]["toolsearch/error"] == "rate_limited"
        go_on.set()
        assert "_meta" not in await first
        assert "_meta" not in await call(team, "plus")
    await corpora.aclose()


async def test_a_toolset_tells_the_states_of_the_servers_that_it_asks_for_and_of_no_others(
    storage: SqliteStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = partial(Gateway, upstreams=Working, gate=OpenGate())
    monkeypatch.setattr("toolsearch.service.corpora.opening.Gateway", fake)
    catalog = filled(storage, "tools", ("other__own", "A tool of nobody."))
    members = (ToolsetMember("tools", "named__add", "plus"), ToolsetMember("tools", "other__own", "own"))
    toolset(storage, *members, rules=(ToolsetRule("tools", ("server:ruled",)),))
    servers = {"mcpServers": {name: {"command": "none"} for name in ("named", "ruled", "other")}}
    corpora = corpora_of(storage)
    async with corpora.using(TEAM) as team, corpora.using(catalog) as corpus:
        for settings in read_gateway_config(servers, {}).upstreams:
            await corpus.gateway.servers.add(settings)
        upstreams: Any = corpus.gateway.upstreams
        await upstreams["named"].lists(entry("add"))
        for server in upstreams.values():
            server.is_now(UpstreamState.DOWN)
        told = (await team.gateway.search(MODERN_OF_ACME, {"query": "servers:"})).text.splitlines()
        assert told[1:] == [
            "- named (1, not reachable)",
            "One tool has no server.",
            "Not searched, since their tools are not known yet: ruled (not reachable).",
        ]
    await corpora.aclose()


class Working(FakeServer):
    async def request(self, request: Any) -> dict[str, Any]:
        return {"content": [], "structuredContent": dict(request.params)}


async def test_a_toolset_keeps_its_catalogs_in_memory_and_lets_them_go_with_itself(storage: SqliteStorage) -> None:
    catalog, other = filled(storage, "tools", MAIL), filled(storage, "other", MAIL)
    toolset(storage, ToolsetMember("tools", "send_mail", "post"))
    corpora = corpora_of(storage, index_bytes=1)
    async with corpora.using(TEAM):
        await use_each(corpora, [other])
        assert corpora.refs == [catalog, TEAM, other] or corpora.refs == [TEAM, catalog, other]
    await use_each(corpora, [other])
    assert corpora.refs == [other]
    await corpora.aclose()


async def test_a_toolset_is_opened_again_without_embedding_anything(
    storage: SqliteStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(storage, "tools", MAIL, ("read_log", "Read the commits."))
    toolset(storage, ToolsetMember("tools", "send_mail", "post", "Post it."), rules=(ToolsetRule("tools"),))
    first = corpora_of(storage)
    async with first.using(TEAM) as corpus:
        assert found(corpus, "post it") == ["post"]
        await first.change(CorpusRef("acme", "catalog", "tools"), put=[row("paint", "Paint a wall.")])
    await first.aclose()

    def never(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr(StaticEncoder, "encode_documents", never)
    corpora = corpora_of(storage)
    async with corpora.using(TEAM) as corpus:
        assert indexed(corpus) == ["paint", "post", "read_log"]
    await corpora.aclose()


async def test_a_catalog_that_changes_while_no_toolset_is_in_memory_is_as_it_is_by_then(
    tmp_path: Path, storage: SqliteStorage
) -> None:
    catalog = filled(storage, "tools", MAIL)
    toolset(storage, ToolsetMember("tools", "send_mail", "post"))
    corpora = corpora_of(storage)
    await use_each(corpora, [TEAM])
    await corpora.aclose()
    storage.contents.change("acme", "tools", put=[row("send_mail", "Throw a bottle into the sea.")])

    again = corpora_of(storage)
    async with again.using(TEAM) as corpus:
        assert found(corpus, "bottle in the sea") == ["post"]
    assert catalog.folder(tmp_path / "indexes").exists()
    await again.aclose()
