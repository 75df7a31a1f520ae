"""Who makes a thing closes it; what was given stays open. Only a source that is loaded changes hands."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from toolsearch import (
    Catalog,
    LoadReport,
    SessionStore,
    Tool,
    ToolCallingManager,
    ToolDefinition,
    ToolSearch,
    UsageLog,
    VectorCache,
)
from toolsearch.catalog.catalog import StoredCatalog
from toolsearch.chat import ChatClient, MemoryAdvisor, MessageWindowMemory, ScriptedModel
from toolsearch.chat.models.sdk import Clients
from toolsearch.gateway.config_file import read_gateway_config
from toolsearch.gateway.gateway import Gateway
from toolsearch.gateway.trust.gate import PinStore
from toolsearch.gateway.trust.verdicts import OpenGate
from toolsearch.storage.memory import InMemoryMessageStore, InMemorySessionPersistence, InMemoryUsageStore
from toolsearch.storage.sqlite.stores import SqlitePins
from toolsearch_indexes.encoders.static import HashingEncoder
from toolsearch_indexes.vector_store import VectorFile


def closings(patch: pytest.MonkeyPatch, *kinds: type) -> list[object]:
    """Return the objects of *kinds* that are closed from now on, in order."""
    closed: list[object] = []

    def close(self: object) -> None:
        closed.append(self)

    for kind in kinds:
        patch.setattr(kind, "close", close)
    return closed


TOOLS = [ToolDefinition("send_mail", "Send a letter")]


class Closing:
    """Counts how often it was closed."""

    closed = 0

    def close(self) -> None:
        self.closed += 1


class RecordingSource(Closing):
    description = "a source"

    def load(self) -> LoadReport:
        return LoadReport((Tool(ToolDefinition("post", "Post a letter")),))


class RecordingVectors(Closing):
    """A store of vectors that is empty, and has a length."""

    def __init__(self) -> None:
        self.vectors: dict[bytes, bytes] = {}

    def __len__(self) -> int:
        return len(self.vectors)

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        return {key: self.vectors[key] for key in keys if key in self.vectors}

    def put(self, values: Mapping[bytes, bytes]) -> None:
        self.vectors.update(values)


class ClosableEncoder(Closing, HashingEncoder):
    pass


class ClosableSessions(Closing, InMemorySessionPersistence):
    pass


class ClosableUsage(Closing, InMemoryUsageStore):
    pass


class ClosableMessages(Closing, InMemoryMessageStore[object]):
    pass


class ClosableModel(Closing, ScriptedModel):
    pass


def test_an_engine_leaves_open_whatever_it_was_given() -> None:
    source, vectors, encoder = RecordingSource(), RecordingVectors(), ClosableEncoder()
    sessions, usage = ClosableSessions(), ClosableUsage()
    catalog = Catalog()
    catalog.load(source)
    cache = VectorCache(vectors)
    options = {"encoder": encoder, "cache": cache, "sessions": SessionStore(persistence=sessions)}

    with ToolSearch(catalog, usage=UsageLog(usage), manager=ToolCallingManager(), **options) as engine:
        engine.session("a").search("letter")
    cache.close()

    assert vectors.vectors, "the store is used, though it was empty"
    assert sessions.ids() == ["a"]
    assert [each.closed for each in (source, vectors, encoder, sessions, usage)] == [0, 0, 0, 0, 0]


def test_two_engines_over_a_catalog_do_not_close_it_for_each_other() -> None:
    source, catalog = RecordingSource(), Catalog()
    catalog.load(source)
    first, second = ToolSearch(catalog), ToolSearch(catalog)
    first.close()
    catalog.add(*TOOLS)

    assert source.closed == 0
    assert {found.name for found in second.search("letter")} == {"post", "send_mail"}


def test_an_engine_closes_what_it_has_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = closings(monkeypatch, Catalog, VectorCache)
    with ToolSearch(TOOLS, index_dir=tmp_path) as engine:
        assert closed == []
    assert [type(each) for each in closed] == [VectorCache, Catalog]
    assert closed[1] is engine.catalog

    closed.clear()
    ToolSearch.open(tmp_path).close()
    assert [type(each) for each in closed] == [VectorCache, StoredCatalog]


def test_a_source_that_is_loaded_belongs_to_its_catalog() -> None:
    source, catalog = RecordingSource(), Catalog()
    catalog.load(source)
    catalog.close()
    catalog.close()

    assert source.closed == 1


def test_a_cache_of_vectors_closes_its_file_and_no_store_that_it_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = closings(monkeypatch, VectorFile)
    with VectorCache(tmp_path / "vectors.db"):
        assert closed == []
    assert len(closed) == 1


def test_a_memory_leaves_the_store_and_a_client_the_model_that_it_was_given() -> None:
    store, model = ClosableMessages(), ClosableModel("Hello.")
    client = ChatClient(model, advisors=[MemoryAdvisor(MessageWindowMemory(store))])
    client.prompt("Hi").context(conversation_id="a").content_sync()

    assert (store.closed, model.closed) == (0, 0)


def test_a_model_closes_the_client_that_it_has_made_and_none_that_it_was_given() -> None:
    class Client:
        closed = 0

        async def close(self) -> None:
            self.closed += 1

    async def closed_after(clients: Clients[Client]) -> int:
        client = clients.get()
        await clients.close()
        return client.closed

    assert asyncio.run(closed_after(Clients(Client(), Client))) == 0
    assert asyncio.run(closed_after(Clients(None, Client))) == 1


async def test_a_gateway_closes_the_gate_that_it_has_made_and_none_that_it_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = closings(monkeypatch, SqlitePins)
    config = read_gateway_config({"mcpServers": {}, "toolsearch": {"stateDir": str(tmp_path)}}, {})

    async with Gateway(config):
        assert closed == []
    assert len(closed) == 1

    class Given(Closing, OpenGate):
        pass

    given = Given()
    async with Gateway(config, gate=given):
        pass
    assert given.closed == 0


def test_a_store_of_pins_leaves_open_what_it_was_given(tmp_path: Path) -> None:
    with SqlitePins(tmp_path / "trust.db") as kept:
        PinStore(kept, {}).close()
        assert kept.approved("nobody") == {}
