"""Which corpora are in memory, and that those who use them do not get into each other's way."""

import asyncio
import gc
import threading
import weakref
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from toolsearch.catalog.requests_file import packed_tool, write_requests
from toolsearch.errors import Kept, SourceError, StorageError, UnknownRecordError
from toolsearch.freed_memory import give_back_freed_memory
from toolsearch.service.corpora.corpora import Corpora
from toolsearch.service.corpora.corpus import Corpus, CorpusRef
from toolsearch.service.corpora.stored_tools import to_row
from toolsearch.service.corpora.toolset_specs import by_subject
from toolsearch.service.settings import ServiceSettings
from toolsearch.storage.contents import StoredTool
from toolsearch.storage.sqlite.place import SqliteStorage
from toolsearch.threads import in_thread
from toolsearch.tools.definition import EntryKind, Tool, ToolDefinition
from toolsearch_indexes.encoders.static import StaticEncoder

MAIL = ("send_mail", "Send a letter to somebody.")
LOG = ("read_log", "Read the commits of a repository.")


def row(name: str, description: str, kind: EntryKind = "tool") -> StoredTool:
    return to_row(Tool(ToolDefinition(name, description, kind=kind)))


def ref(name: str, tenant: str = "acme") -> CorpusRef:
    return CorpusRef(tenant, "catalog", name)


@pytest.fixture
def storage(tmp_path: Path) -> SqliteStorage:
    return SqliteStorage(tmp_path / "toolsearch.db")


def filled(storage: SqliteStorage, name: str, *tools: tuple[str, str], tenant: str = "acme") -> CorpusRef:
    storage.records.put(tenant, "catalog", name, {}, over=None, at_s=0)
    storage.contents.change(tenant, name, put=[row(*tool) for tool in tools])
    return ref(name, tenant)


def corpora_of(storage: SqliteStorage, *, index_bytes: int = 2**30, is_kept: bool = True) -> Corpora:
    settings = ServiceSettings.model_validate({"memory": {"index_bytes": index_bytes}})
    indexes = storage.path.parent / "indexes" if is_kept else None
    return Corpora(storage, settings, lambda _tenant: lambda _row, _execution: None, indexes=indexes)


async def follow(corpora: Corpora, storage: SqliteStorage, corpus: CorpusRef) -> None:
    """As after a notification from another replica."""
    await corpora.follow(corpus, by_subject(storage.changes.current([corpus.tenant])))


def found(corpus: Corpus, query: str) -> list[str]:
    return [tool.name for tool in corpus.engine.search(query)]


def indexed(corpus: Corpus) -> list[str]:
    return sorted(corpus.engine.index.names())


async def test_an_index_is_built_without_keeping_what_it_is_built_of(storage: SqliteStorage) -> None:
    """A tool is in memory once somebody has asked for it."""
    catalog = filled(storage, "default", MAIL, LOG)
    corpora = corpora_of(storage)
    async with corpora.using(catalog) as corpus:
        assert indexed(corpus) == ["read_log", "send_mail"]
        assert corpus.tally.total == 0
        assert found(corpus, "send a letter")[:1] == ["send_mail"]
        assert corpus.tally.total > 0
    await corpora.aclose()


async def test_memory_that_an_opening_needed_for_a_while_is_given_back(
    storage: SqliteStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once for each opening, however many wait for it."""
    given_back: list[None] = []
    monkeypatch.setattr("toolsearch.service.corpora.corpora.give_back_freed_memory", lambda: given_back.append(None))
    catalog, corpora = filled(storage, "default", MAIL), corpora_of(storage)
    async with corpora.using(catalog), corpora.using(catalog):
        assert len(given_back) == 1
    await corpora.aclose()
    give_back_freed_memory()  # the real one, which does nothing with another C library


async def test_a_catalog_to_which_many_tools_are_written_is_opened_before_anybody_searches(
    storage: SqliteStorage,
) -> None:
    """A small change opens nothing: whoever writes a tool to each of many catalogs evicts none that is in use."""
    many, few, corpora = filled(storage, "many"), filled(storage, "few"), corpora_of(storage)
    await corpora.change(few, put=[row(f"tool_{number}", "Does it.") for number in range(20)])
    await corpora.change(many, put=[row(f"tool_{number}", "Does it.") for number in range(200)])
    await corpora.settled()

    assert corpora.refs == [many]
    async with corpora.using(many) as corpus:
        assert len(indexed(corpus)) == 200
    await corpora.aclose()


class Spied:
    """The contents of *storage*, which notes what is opened, and waits or fails in the threads of openings."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, storage: SqliteStorage) -> None:
        self.opened: list[str] = []
        self.gates: dict[str, threading.Event] = {}
        self.broken: set[str] = set()
        fingerprints = storage.contents.fingerprints

        def spied(tenant: str, catalog: str) -> dict[str, str]:
            self.opened.append(catalog)
            if gate := self.gates.get(catalog):
                assert gate.wait(10)
            if catalog in self.broken:
                raise StorageError("the disk is gone", Kept.CONTENTS)
            return fingerprints(tenant, catalog)

        monkeypatch.setattr(storage.contents, "fingerprints", spied)


@pytest.fixture
def spied(monkeypatch: pytest.MonkeyPatch, storage: SqliteStorage) -> Spied:
    return Spied(monkeypatch, storage)


async def test_what_is_in_the_store_is_found(storage: SqliteStorage) -> None:
    filled(storage, "tools", MAIL, LOG)
    corpora = corpora_of(storage)
    async with corpora.using(ref("tools")) as corpus:
        assert found(corpus, "send a letter") == ["send_mail"]
        assert corpus.revision == 1
    await corpora.aclose()


async def test_a_corpus_is_indexed_with_the_files_of_requests_and_a_damaged_one_is_told_at_the_start(
    storage: SqliteStorage, tmp_path: Path
) -> None:
    file, mail = tmp_path / "requests.jsonl", ToolDefinition(*MAIL)
    settings = ServiceSettings.model_validate({"index": {"requests_files": [str(file)], "encoder": None}})

    def corpora() -> Corpora:
        return Corpora(storage, settings, lambda _tenant: lambda _row, _execution: None, indexes=None)

    with pytest.raises(SourceError, match="cannot be read"):
        corpora()
    write_requests(file, [packed_tool(mail, ["who has no word from grandmother"])])
    async with corpora().using(filled(storage, "tools", MAIL, LOG)) as corpus:
        assert found(corpus, "grandmother") == ["send_mail"]


async def test_a_corpus_of_another_tenant_and_one_of_none_are_unknown_in_the_same_words(storage: SqliteStorage) -> None:
    filled(storage, "secret", MAIL)
    corpora, words = corpora_of(storage), list[str]()
    for name in ("secret", "secrez"):
        with pytest.raises(UnknownRecordError) as told:
            async with corpora.using(ref(name, "globex")):
                pass
        words.append(str(told.value).replace(name, "NAME"))

    assert words[0] == words[1]
    assert corpora.refs == []
    await corpora.aclose()


async def test_fifty_at_once_open_a_corpus_once(storage: SqliteStorage, spied: Spied) -> None:
    filled(storage, "tools", MAIL)
    corpora = corpora_of(storage)

    async def use() -> Corpus:
        async with corpora.using(ref("tools")) as corpus:
            return corpus

    assert len(set(await asyncio.gather(*(use() for _ in range(50))))) == 1
    assert spied.opened == ["tools"]
    await corpora.aclose()


async def test_a_tenant_does_not_wait_while_the_corpus_of_another_is_opened(
    storage: SqliteStorage, spied: Spied
) -> None:
    filled(storage, "slow", MAIL)
    filled(storage, "quick", MAIL, tenant="globex")
    corpora = corpora_of(storage)
    gate = spied.gates["slow"] = threading.Event()

    async def use_slow() -> list[str]:
        async with corpora.using(ref("slow")) as corpus:
            return found(corpus, "letter")

    waiting = asyncio.create_task(use_slow())
    async with corpora.using(ref("quick", "globex")) as corpus:
        assert found(corpus, "letter") == ["send_mail"]
    assert not waiting.done()
    gate.set()
    assert await waiting == ["send_mail"]
    await corpora.aclose()


async def test_an_opening_that_fails_hurts_nobody_else_and_is_tried_again(storage: SqliteStorage, spied: Spied) -> None:
    filled(storage, "broken", MAIL)
    filled(storage, "whole", MAIL)
    corpora = corpora_of(storage)
    spied.broken.add("broken")

    async def use(name: str) -> list[str]:
        async with corpora.using(ref(name)) as corpus:
            return found(corpus, "letter")

    *failed, fine = await asyncio.gather(use("broken"), use("broken"), use("whole"), return_exceptions=True)
    assert [str(each) for each in failed] == ["the disk is gone", "the disk is gone"]
    assert fine == ["send_mail"]
    spied.broken.clear()
    assert await use("broken") == ["send_mail"]
    await corpora.aclose()


async def test_an_opening_goes_on_when_who_asked_for_it_has_gone(storage: SqliteStorage, spied: Spied) -> None:
    filled(storage, "slow", MAIL)
    corpora = corpora_of(storage)
    gate = spied.gates["slow"] = threading.Event()

    async def use() -> None:
        async with corpora.using(ref("slow")):
            pass

    asked = asyncio.create_task(use())
    await asyncio.sleep(0)
    asked.cancel()
    await asyncio.wait([asked])
    gate.set()
    await use()
    assert spied.opened == ["slow"]
    await corpora.aclose()


# Under a budget


async def use_each(corpora: Corpora, refs: Sequence[CorpusRef]) -> None:
    for each in refs:
        async with corpora.using(each):
            pass
    await corpora.settled()


async def test_the_least_recently_used_leaves_first(storage: SqliteStorage) -> None:
    a, b, c = (filled(storage, name, MAIL) for name in "abc")
    measuring = corpora_of(storage)
    async with measuring.using(a) as corpus:
        of_one = corpus.bytes
    await measuring.aclose()

    corpora = corpora_of(storage, index_bytes=int(of_one * 2.5))
    await use_each(corpora, [a, b, a, c])
    assert corpora.refs == [a, c]
    assert corpora.bytes <= of_one * 2.5
    await corpora.aclose()


async def test_none_leaves_while_it_is_used_and_the_last_one_stays(storage: SqliteStorage) -> None:
    a, b, c = (filled(storage, name, MAIL) for name in "abc")
    corpora = corpora_of(storage, index_bytes=1)
    async with corpora.using(a) as corpus:
        await use_each(corpora, [b, c])
        assert corpora.refs == [a, c]
        assert found(corpus, "letter") == ["send_mail"]
    await use_each(corpora, [b])
    assert corpora.refs == [b]
    await corpora.aclose()


async def test_what_leaves_is_closed_and_its_memory_is_free(storage: SqliteStorage) -> None:
    a, b = (filled(storage, name, MAIL) for name in "ab")
    corpora = corpora_of(storage, index_bytes=1)
    async with corpora.using(a) as corpus:
        engine = weakref.ref(corpus.engine)
        corpus.engine.session("s1").search("letter")
    del corpus
    await use_each(corpora, [b])
    for _ in range(50):  # each thread lets go of its last job when it gets another one
        await asyncio.gather(*(in_thread(gc.collect) for _ in range(4)))
        if engine() is None:
            break

    assert engine() is None
    assert storage.sessions("acme").load("s1") is not None
    await corpora.aclose()


async def test_who_comes_while_a_corpus_is_closed_gets_it_opened_again_with_its_sessions(
    storage: SqliteStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = (filled(storage, name, MAIL, LOG) for name in "ab")
    corpora = corpora_of(storage, index_bytes=1)
    async with corpora.using(a) as first:
        first.engine.session("s1").search("letter")
    closing, gate, close = asyncio.Event(), asyncio.Event(), first.gateway.aclose

    async def slowly() -> None:
        closing.set()
        await gate.wait()
        await close()

    monkeypatch.setattr(first.gateway, "aclose", slowly)
    async with corpora.using(b):
        pass
    await closing.wait()
    held = AsyncExitStack()
    coming = asyncio.create_task(held.enter_async_context(corpora.using(a)))
    await asyncio.sleep(0)
    assert not coming.done()
    gate.set()
    again = await coming
    assert again is not first
    assert again.engine.session("s1").discovered == ["send_mail"]
    await held.aclose()
    await corpora.aclose()


# Changes


async def test_a_change_is_found_once_it_has_returned_and_counts_the_revision(storage: SqliteStorage) -> None:
    filled(storage, "tools", MAIL)
    corpora = corpora_of(storage)
    async with corpora.using(ref("tools")) as corpus:
        revision = await corpora.change(ref("tools"), put=[row(*LOG)], remove=["send_mail"])
        assert (corpus.revision, indexed(corpus)) == (revision, ["read_log"])
        assert found(corpus, "commits of a repository") == ["read_log"]
    await corpora.aclose()


async def test_a_change_by_somebody_else_is_read_from_the_store_as_it_is_by_then(storage: SqliteStorage) -> None:
    filled(storage, "tools", MAIL)
    corpora = corpora_of(storage)
    async with corpora.using(ref("tools")) as corpus:
        old = row("send_mail", "Send a letter by pigeon.")
        storage.contents.change("acme", "tools", put=[old])
        await corpora.change(ref("tools"), put=[row("send_mail", "Send a letter by train.")])
        await follow(corpora, storage, ref("tools"))
        assert corpus.engine.catalog.get("send_mail").definition.description == "Send a letter by train."
        storage.contents.drop("acme", "tools")
        await follow(corpora, storage, ref("tools"))
        assert indexed(corpus) == []
    await corpora.aclose()


async def test_what_is_no_tool_is_followed_in_the_store_as_tools_are(storage: SqliteStorage) -> None:
    catalog, change = filled(storage, "tools", MAIL), storage.contents.change
    corpora = corpora_of(storage)
    async with corpora.using(catalog) as corpus:
        change("acme", "tools", put=[row("refund", "Pay a customer back.", "skill"), row(*LOG)])
        await follow(corpora, storage, catalog)
        assert found(corpus, "pay a customer back")[:1] == list(corpus.engine.catalog.contents) == ["refund"]
        change(
            "acme", "tools", put=[row("refund", "Pay a customer back.", "tool"), row("read_log", "A log.", "prompt")]
        )
        await follow(corpora, storage, catalog)
        assert indexed(corpus) == ["refund", "send_mail"]
        assert list(corpus.engine.catalog.contents) == ["read_log"]
        change("acme", "tools", remove=["read_log"])
        await follow(corpora, storage, catalog)
        assert list(corpus.engine.catalog.contents) == []
    await corpora.aclose()


async def test_a_change_during_an_opening_is_not_lost(storage: SqliteStorage, spied: Spied) -> None:
    filled(storage, "tools", MAIL)
    corpora = corpora_of(storage)
    gate = spied.gates["tools"] = threading.Event()
    held = AsyncExitStack()
    opening = asyncio.create_task(held.enter_async_context(corpora.using(ref("tools"))))
    await asyncio.sleep(0)
    changing = asyncio.create_task(corpora.change(ref("tools"), put=[row(*LOG)]))
    await asyncio.sleep(0)
    gate.set()
    await changing
    assert indexed(await opening) == ["read_log", "send_mail"]
    await held.aclose()
    await corpora.aclose()


async def test_a_change_goes_on_to_its_end_when_who_asked_for_it_has_gone(storage: SqliteStorage) -> None:
    filled(storage, "tools", MAIL)
    corpora = corpora_of(storage)
    async with corpora.using(ref("tools")) as corpus:
        changing = asyncio.create_task(corpora.change(ref("tools"), put=[row(*LOG)]))
        await asyncio.sleep(0)
        changing.cancel()
        await corpora.settled()
        assert indexed(corpus) == sorted(storage.contents.fingerprints("acme", "tools")) == ["read_log", "send_mail"]
    await corpora.aclose()


async def test_a_deleted_corpus_is_gone_for_others_and_works_on_for_who_uses_it(storage: SqliteStorage) -> None:
    filled(storage, "tools", MAIL)
    corpora = corpora_of(storage)
    async with corpora.using(ref("tools")) as corpus:
        storage.records.delete("acme", "catalog", "tools")
        await corpora.drop(ref("tools"))
        assert found(corpus, "letter") == ["send_mail"]
        with pytest.raises(UnknownRecordError):
            async with corpora.using(ref("tools")):
                pass
    await corpora.aclose()
    assert not ref("tools").folder(storage.path.parent / "indexes").exists()


# Opened warm


async def test_a_corpus_is_opened_again_without_embedding_or_reading_a_definition(
    storage: SqliteStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(storage, "tools", MAIL, LOG)
    await use_each_once(storage)

    def never(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr(StaticEncoder, "encode_documents", never)
    monkeypatch.setattr(storage.contents, "get", never)
    monkeypatch.setattr(storage.contents, "page", never)
    corpora = corpora_of(storage)
    async with corpora.using(ref("tools")) as corpus:
        assert indexed(corpus) == ["read_log", "send_mail"]
    await corpora.aclose()


async def use_each_once(storage: SqliteStorage) -> None:
    corpora = corpora_of(storage)
    await use_each(corpora, [ref("tools")])
    await corpora.aclose()


async def test_an_index_that_is_older_than_the_store_is_brought_up_to_date_by_what_differs(
    storage: SqliteStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a crash: the store has what was acknowledged, and the index is that of an hour ago."""
    filled(storage, "tools", MAIL, LOG, ("gone", "Goes away."))
    await use_each_once(storage)
    storage.contents.change(
        "acme", "tools", put=[row("send_mail", "Post a parcel."), row("new", "Paint a wall.")], remove=["gone"]
    )

    asked: list[str] = []
    get = storage.contents.get
    monkeypatch.setattr(storage.contents, "get", lambda t, c, names: asked.extend(names) or get(t, c, names))
    corpora = corpora_of(storage)
    async with corpora.using(ref("tools")) as corpus:
        assert sorted(asked) == ["new", "send_mail"]
        assert indexed(corpus) == ["new", "read_log", "send_mail"]
        assert found(corpus, "parcel") == ["send_mail"]
    await corpora.aclose()


@pytest.mark.parametrize("damaged", ["contents.json", "manifest.json", "names.npy", "CURRENT"])
async def test_a_damaged_index_is_built_anew(storage: SqliteStorage, damaged: str) -> None:
    filled(storage, "tools", MAIL, LOG)
    await use_each_once(storage)
    for path in (storage.path.parent / "indexes").rglob(damaged):
        path.write_bytes(b"nonsense")

    corpora = corpora_of(storage)
    async with corpora.using(ref("tools")) as corpus:
        assert indexed(corpus) == ["read_log", "send_mail"]
        assert found(corpus, "letter") == ["send_mail"]
    await corpora.aclose()


async def test_indexes_may_be_kept_in_memory_only(storage: SqliteStorage) -> None:
    filled(storage, "tools", MAIL)
    corpora = corpora_of(storage, is_kept=False, index_bytes=1)
    await use_each(corpora, [ref("tools"), filled(storage, "others", LOG), ref("tools")])
    async with corpora.using(ref("tools")) as corpus:
        assert found(corpus, "letter") == ["send_mail"]
    await corpora.aclose()
    assert {path.name for path in storage.path.parent.iterdir()} <= {
        storage.path.name + end for end in ("", "-wal", "-shm")
    }


def test_no_name_leaves_the_folder_of_indexes_and_no_two_share_a_folder(tmp_path: Path) -> None:
    names = ["a", "A", "..", "../..", "/etc", "a/b", "a\\b", "", "x" * 300, "x" * 301, "\0", "ü", "con", "a-b", "a_b"]
    folders = {CorpusRef(tenant, "catalog", name).folder(tmp_path) for tenant in names for name in names}
    assert len({str(folder).lower() for folder in folders}) == len(names) ** 2
    assert {folder.parent.parent for folder in folders} == {tmp_path}
    assert all(len(folder.name) < 100 and folder.name.isascii() for folder in folders)
