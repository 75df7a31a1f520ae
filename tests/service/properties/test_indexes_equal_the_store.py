"""Whatever is changed, evicted, opened again or killed: the index of a corpus holds what the store holds."""

import asyncio
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from toolsearch.service.corpora.corpora import Corpora
from toolsearch.service.corpora.corpus import Corpus, CorpusRef
from toolsearch.service.corpora.stored_tools import to_row
from toolsearch.service.corpora.toolset_specs import ToolsetMember, ToolsetRule, ToolsetSpec, by_subject
from toolsearch.service.settings import ServiceSettings
from toolsearch.storage.contents import StoredTool
from toolsearch.storage.sqlite.place import SqliteStorage
from toolsearch.tools.definition import Tool, ToolDefinition

TOOLS = CorpusRef("acme", "catalog", "tools")
OTHER = CorpusRef("acme", "catalog", "other")
TEAM = CorpusRef("acme", "toolset", "team")
MEMBER = ToolsetMember("tools", "tool_a", "renamed", "Its own words.")

names = st.sampled_from([f"tool_{letter}" for letter in "abcdef"])
words = st.sampled_from(["paint a wall", "send a letter", "read a book", "feed the cat"])
rows = st.builds(lambda name, text: to_row(Tool(ToolDefinition(name, text))), names, words)
puts = st.lists(rows, max_size=3, unique_by=lambda row: row.name)
removes = st.lists(names, max_size=2)
steps = st.one_of(
    st.tuples(st.sampled_from(["change", "changed by others", "changed past us"]), puts, removes),
    st.tuples(st.sampled_from(["evict", "restart", "kill"]), st.just([]), st.just([])),
)


@settings(max_examples=8, deadline=None)
@given(st.lists(steps, min_size=1, max_size=8))
def test_the_index_equals_the_store_after_every_opening(
    history: list[tuple[str, list[StoredTool], list[str]]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        storage = SqliteStorage(Path(folder) / "toolsearch.db")
        for ref in (TOOLS, OTHER):
            storage.records.put(ref.tenant, "catalog", ref.name, {}, over=None, at_s=0)
        spec = ToolsetSpec("", (MEMBER,), (ToolsetRule("tools"),))
        storage.records.put("acme", "toolset", "team", spec.document(), over=None, at_s=0)
        asyncio.run(_lived(storage, history))
        storage.close()


async def _lived(storage: SqliteStorage, history: list[tuple[str, list[StoredTool], list[str]]]) -> None:
    corpora = _corpora(storage)
    await _check(storage, corpora)
    for kind, put, remove in history:
        gone = [name for name in remove if name not in {row.name for row in put}]
        if kind == "change":
            await corpora.change(TOOLS, put=put, remove=gone)
        elif kind == "changed by others":
            storage.contents.change(TOOLS.tenant, TOOLS.name, put=put, remove=gone)
            await corpora.follow(TOOLS, by_subject(storage.changes.current([TOOLS.tenant])))
        elif kind == "evict":
            async with corpora.using(OTHER):
                pass
            await corpora.settled()
        else:
            if kind != "kill":
                await corpora.aclose()
            if kind == "changed past us":  # as by a request whose process was killed before it came to the index
                storage.contents.change(TOOLS.tenant, TOOLS.name, put=put, remove=gone)
            corpora = _corpora(storage)
        await _check(storage, corpora)
    await corpora.aclose()


def _corpora(storage: SqliteStorage) -> Corpora:
    settings = ServiceSettings.model_validate({"memory": {"index_bytes": 1}, "index": {"strategy": "keyword"}})
    indexes = storage.path.parent / "indexes"
    return Corpora(storage, settings, lambda _tenant: lambda _row, _execution: None, indexes=indexes)


async def _check(storage: SqliteStorage, corpora: Corpora) -> None:
    stored = {row.name: row for row in storage.contents.page(TOOLS.tenant, TOOLS.name, limit=100)}
    texts = {name: str(row.document["definition"]["description"]) for name, row in stored.items()}  # type: ignore[index,call-overload]
    async with corpora.using(TOOLS) as corpus:
        _is(corpus, texts)
        assert corpus.revision == storage.contents.revision(TOOLS.tenant, TOOLS.name)
    async with corpora.using(TEAM) as corpus:
        renamed = {"renamed": "Its own words."} if texts.pop("tool_a", None) else {}
        _is(corpus, texts | renamed)


def _is(corpus: Corpus, texts: dict[str, str]) -> None:
    """The tools of *corpus*, and what its index finds by their words, are *texts*, by name."""
    engine = corpus.engine
    assert sorted(engine.index.names()) == sorted(engine.catalog.names()) == sorted(texts)
    for name, text in texts.items():
        assert engine.catalog.get(name).definition.description == text
        alike = {other for other, its in texts.items() if its == text}
        best = {tool.name for tool in engine.search(text, limit=len(alike))}
        assert best == alike, text
