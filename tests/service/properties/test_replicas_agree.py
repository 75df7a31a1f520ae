"""Whatever two replicas write, both answer from the same once they have followed, and never what the store forbids."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.kit.postgres import PostgresServer
from tests.kit.replicas import DEFAULT, Replicas, eventually, replicas
from tests.kit.service import ServiceKit
from toolsearch.errors import ConflictError, UnknownRecordError
from toolsearch.service.corpora.corpus import CorpusRef
from toolsearch.service.corpora.stored_tools import to_row
from toolsearch.service.corpora.toolset_specs import ToolsetMember, ToolsetRule, ToolsetSpec
from toolsearch.tools.definition import Tool, ToolDefinition

OTHER = CorpusRef("default", "catalog", "other")
TEAM = CorpusRef("default", "toolset", "team")
REFUSED = 401

tools = st.builds(
    lambda name, text: to_row(Tool(ToolDefinition(name, text))),
    st.sampled_from(["tool_a", "tool_b", "tool_c"]),
    st.sampled_from(["paint a wall", "send a letter", "read a book"]),
)
refs = st.sampled_from([DEFAULT, OTHER])
steps = st.one_of(
    st.tuples(st.just("put"), refs, st.lists(tools, min_size=1, max_size=2, unique_by=lambda row: row.name)),
    st.tuples(st.just("remove"), refs, st.sampled_from(["tool_a", "tool_b", "tool_c"])),
    st.tuples(st.sampled_from(["delete", "make", "use"]), refs, st.none()),
    st.tuples(st.just("revise"), st.just(TEAM), st.sampled_from(["tool_a", "tool_b"])),
    st.tuples(st.just("revoke"), st.none(), st.none()),
)
histories = st.lists(st.tuples(st.integers(0, 1), st.booleans(), steps), min_size=1, max_size=10)


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(histories)
def test_two_replicas_agree_after_any_sequence_of_writes(postgres: PostgresServer, history: list[Any]) -> None:
    """Some steps are at the same time as the one before them."""
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_lived(postgres.new_database(), Path(folder), history))


async def _lived(url: str, folder: Path, history: list[Any]) -> None:
    async with replicas(url, folder, index={"strategy": "keyword"}) as both:
        for name in ("default", "other"):
            await both.one.service.catalogs.create("default", name, {})
        spec = ToolsetSpec("", (), (ToolsetRule("default"), ToolsetRule("other")))
        await both.one.service.toolsets.create("default", "team", spec)
        running: list[asyncio.Task[None]] = []
        for place, is_at_once, step in history:
            if not is_at_once:
                await asyncio.gather(*running)
                running.clear()
            running.append(asyncio.create_task(_step(both, (both.one, both.two)[place], *step)))
        await asyncio.gather(*running)
        for ref in (DEFAULT, OTHER, TEAM):
            await eventually(lambda ref=ref: _agree(both, ref))  # type: ignore[misc]


async def _step(both: Replicas, kit: ServiceKit, what: str, ref: CorpusRef, value: Any) -> None:
    service = kit.service
    try:
        match what:
            case "put":
                await service.corpora.change(ref, put=value)
            case "remove":
                await service.corpora.change(ref, remove=[value])
            case "delete":
                await service.catalogs.delete(ref.tenant, ref.name)
            case "make":
                await service.catalogs.create(ref.tenant, ref.name, {})
            case "use":
                await _shown(kit, ref)
            case "revise":
                member = ToolsetMember("default", value, "renamed")
                spec = ToolsetSpec("", (member,), (ToolsetRule("default"), ToolsetRule("other")))
                await service.toolsets.change(ref.tenant, ref.name, lambda _: spec)
            case _:
                await _revoke(both, kit)
    except (UnknownRecordError, ConflictError):
        """Another step was faster."""


async def _revoke(both: Replicas, kit: ServiceKit) -> None:
    """A key that both have just seen is refused by both soon, and never accepted again after that."""
    token, key = kit.service.keys.make("default", "a test's", ["search"])
    for each in (both.one, both.two):
        assert await each.service.keys.of_token(token) is not None
    await kit.service.keys.revoke("default", key.id)
    for each in (both.one, both.two):
        await eventually(lambda each=each: _is_refused(each, token))  # type: ignore[misc]


async def _is_refused(kit: ServiceKit, token: str) -> bool:
    return await kit.service.keys.of_token(token) is None


async def _agree(both: Replicas, ref: CorpusRef) -> bool:
    shown = [await _shown(kit, ref) for kit in (both.one, both.two)]
    return shown[0] == shown[1] == await asyncio.to_thread(_stored, both, ref, shown[0])


async def _shown(kit: ServiceKit, ref: CorpusRef) -> dict[str, str] | None:
    """By the names that its index has, the descriptions. None: there is no such catalog or toolset."""
    try:
        async with kit.service.corpora.using(ref) as corpus:
            found = {name: corpus.engine.catalog.find(name) for name in corpus.engine.index.names()}
            return {name: tool.definition.description for name, tool in sorted(found.items()) if tool is not None}
    except UnknownRecordError:
        return None


def _stored(both: Replicas, ref: CorpusRef, shown: dict[str, str] | None) -> dict[str, str] | None:
    """What a catalog has in the store. A toolset is compared between the replicas alone."""
    storage = both.one.service.storage
    if ref == TEAM:
        return shown
    if storage.records.get(ref.tenant, ref.kind, ref.name, at_s=0) is None:
        return None
    rows = storage.contents.page(ref.tenant, ref.name, limit=9)
    return {row.name: str(row.document["definition"]["description"]) for row in rows}
