"""Threads that change one catalog, and what each may rely on once its call returns.

Nothing here is left to chance: a thread is held where a race would be lost, until the other one either waits for it, as
it should, or has gone on without waiting.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from toolsearch.catalog import catalog as catalog_module
from toolsearch.catalog import changes, indexing
from toolsearch.catalog.catalog import Catalog
from toolsearch.catalog.changes import ReportFollower
from toolsearch.catalog.indexing import CatalogIndex
from toolsearch.catalog.source import LoadReport
from toolsearch.engine import ToolSearch
from toolsearch.tools.definition import Refusal, Tool, ToolDefinition
from toolsearch_indexes import index as index_module
from toolsearch_indexes.documents import ToolDocument
from toolsearch_indexes.encoders.protocol import FloatArray
from toolsearch_indexes.encoders.static import HashingEncoder
from toolsearch_indexes.index import ToolSearchIndex

_AT_MOST_S = 10.0  # before a test that hangs fails; none waits for it otherwise


class WatchedLock:
    """A lock that tells when somebody has to wait for it."""

    def __init__(self, on_wait: Callable[[], None]) -> None:
        self._lock = threading.Lock()
        self._on_wait = on_wait

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            self._on_wait()
            self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


@pytest.fixture
def went_on(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set when a thread has to wait for a lock of the catalog, of what follows it or of the index."""
    event = threading.Event()
    watched = SimpleNamespace(Lock=lambda: WatchedLock(event.set), get_ident=threading.get_ident)
    for module in (changes, indexing, index_module):
        monkeypatch.setattr(module, "threading", watched)
    return event


class HeldEncoder(HashingEncoder):
    """Stops at the first tool that tells of a volcano, until it is let go."""

    def __init__(self) -> None:
        super().__init__(256)
        self.stopped, self.let_go = threading.Event(), threading.Event()

    def encode_documents(self, texts: Sequence[str]) -> FloatArray:
        if any("volcano" in text for text in texts) and not self.stopped.is_set():
            self.stopped.set()
            assert self.let_go.wait(_AT_MOST_S)
        return super().encode_documents(texts)


def started(action: Callable[[], object], done: threading.Event | None = None) -> threading.Thread:
    def run() -> None:
        try:
            action()
        finally:
            if done:
                done.set()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def ended(*threads: threading.Thread) -> bool:
    for thread in threads:
        thread.join(_AT_MOST_S)
    return not any(thread.is_alive() for thread in threads)


def found(index: ToolSearchIndex, query: str) -> list[str]:
    return [hit.name for hit in index.search(query)]


def test_a_thread_finds_the_tool_that_it_has_just_added_while_another_is_adding_one(went_on: threading.Event) -> None:
    """The other one is still embedding when this one's change comes."""
    encoder = HeldEncoder()
    catalog = Catalog()
    followed = CatalogIndex(catalog, ToolSearchIndex(encoder=encoder))
    seen: list[list[str]] = []

    def add_and_search() -> None:
        catalog.add(ToolDefinition("send_mail", "Send an email message"))
        seen.append(found(followed.index, "email message"))

    other = started(lambda: catalog.add(ToolDefinition("watch", "Watch a volcano")))
    assert encoder.stopped.wait(_AT_MOST_S)
    this = started(add_and_search, done=went_on)
    assert went_on.wait(_AT_MOST_S)
    encoder.let_go.set()

    assert ended(other, this)
    assert seen == [["send_mail"]]
    assert found(followed.index, "volcano") == ["watch"]


def test_listeners_are_told_of_one_change_after_the_other(went_on: threading.Event) -> None:
    stopped, let_go = threading.Event(), threading.Event()
    catalog = Catalog()
    told: list[str] = []

    def listen(change: changes.CatalogChange) -> None:
        told.append(f"begin {change.added[0].name}")
        if change.added[0].name == "a":
            stopped.set()
            assert let_go.wait(_AT_MOST_S)
        told.append(f"end {change.added[0].name}")

    catalog.subscribe(listen)
    first = started(lambda: catalog.add(ToolDefinition("a")))
    assert stopped.wait(_AT_MOST_S)
    second = started(lambda: catalog.add(ToolDefinition("b")), done=went_on)
    assert went_on.wait(_AT_MOST_S)
    let_go.set()

    assert ended(first, second)
    assert told == ["begin a", "end a", "begin b", "end b"]


def test_a_listener_may_change_the_catalog_and_is_told_of_it_afterwards() -> None:
    catalog = Catalog()
    told: list[str] = []

    def listen(change: changes.CatalogChange) -> None:
        told.append(f"begin {change.added[0].name}")
        if len(catalog) < 3:
            catalog.add(ToolDefinition(f"tool_{len(catalog)}"))
        told.append(f"end {change.added[0].name}")

    catalog.subscribe(listen)
    catalog.add(ToolDefinition("tool_0"))

    assert told == [f"{moment} tool_{number}" for number in range(3) for moment in ("begin", "end")]


def test_a_listener_that_is_stopped_leaves_the_next_changes_to_be_told() -> None:
    """Ctrl-C, say. The change after it, and its thread, find nobody delivering."""
    catalog = Catalog()
    told: list[str] = []

    def listen(change: changes.CatalogChange) -> None:
        told.append(change.added[0].name)
        if told == ["a"]:
            raise KeyboardInterrupt

    catalog.subscribe(listen)
    with pytest.raises(KeyboardInterrupt):
        catalog.add(ToolDefinition("a"))
    assert ended(started(lambda: catalog.add(ToolDefinition("b"))))
    assert told == ["a", "b"]


def test_an_index_does_not_change_while_it_is_held_to_a_snapshot(went_on: threading.Event) -> None:
    catalog = Catalog([ToolDefinition("clock")])
    followed = CatalogIndex(catalog, ToolSearchIndex())

    with followed.settled() as snapshot:
        other = started(lambda: catalog.add(ToolDefinition("watch")), done=went_on)
        assert went_on.wait(_AT_MOST_S)
        assert list(followed.index.names()) == list(snapshot.tools) == ["clock"]

    assert ended(other)
    assert sorted(followed.index.names()) == ["clock", "watch"]


def test_a_snapshot_waits_for_the_change_that_is_being_indexed(went_on: threading.Event) -> None:
    encoder = HeldEncoder()
    catalog = Catalog()
    followed = CatalogIndex(catalog, ToolSearchIndex(encoder=encoder))
    inside = threading.Event()

    def hold() -> None:
        with followed.settled():
            inside.set()

    other = started(lambda: catalog.add(ToolDefinition("watch", "Watch a volcano")))
    assert encoder.stopped.wait(_AT_MOST_S)
    this = started(hold, done=went_on)
    assert went_on.wait(_AT_MOST_S)
    too_early = inside.is_set()
    encoder.let_go.set()

    assert ended(other, this)
    assert not too_early


def test_a_change_that_comes_while_a_catalog_is_first_indexed_is_not_lost(went_on: threading.Event) -> None:
    """It is newer than what is being embedded."""
    encoder = HeldEncoder()
    catalog = Catalog([ToolDefinition("watch", "Watch a volcano")])
    followed: list[CatalogIndex] = []

    first = started(lambda: followed.append(CatalogIndex(catalog, ToolSearchIndex(encoder=encoder))))
    assert encoder.stopped.wait(_AT_MOST_S)
    change = started(lambda: catalog.replace(ToolDefinition("watch", "Watch a glacier")), done=went_on)
    assert went_on.wait(_AT_MOST_S)
    encoder.let_go.set()

    assert ended(first, change)
    assert (found(followed[0].index, "glacier"), found(followed[0].index, "volcano")) == (["watch"], [])


class HeldDocument(ToolDocument):
    """Stops the thread that puts it into a segment, until it is let go."""

    stopped, let_go = threading.Event(), threading.Event()

    @property
    def own_name(self) -> str:
        self.stopped.set()
        assert self.let_go.wait(_AT_MOST_S)
        return self.name


def test_an_index_that_two_threads_change_at_once_keeps_both_changes(went_on: threading.Event) -> None:
    index = ToolSearchIndex()

    first = started(lambda: index.update([HeldDocument("watch")]))
    assert HeldDocument.stopped.wait(_AT_MOST_S)
    second = started(lambda: index.update([ToolDocument("clock")]), done=went_on)
    assert went_on.wait(_AT_MOST_S)
    HeldDocument.let_go.set()

    assert ended(first, second)
    assert sorted(index.names()) == ["clock", "watch"]


# ---- live sources


class LiveStub:
    """A source that tells of changes when it is asked to, as from an event loop of its own."""

    description = "a live stub"

    def __init__(self, *names: str) -> None:
        self.report = report(*names)
        self.tell: Callable[[LoadReport], None] = lambda _: None
        self.is_closed = False

    def load(self) -> LoadReport:
        return self.report

    def follow(self, changed: Callable[[LoadReport], None]) -> None:
        self.tell = changed

    def close(self) -> None:
        self.is_closed = True


def report(*names: str, refused: Sequence[str] = ()) -> LoadReport:
    tools = tuple(Tool(ToolDefinition(name, f"Watch a {name}")) for name in names)
    return LoadReport(tools, tuple(Refusal(name, "a live stub", "no tool") for name in refused))


def applied(catalog: Catalog) -> threading.Semaphore:
    """Let through once for each change that is told of from now on."""
    told = threading.Semaphore(0)
    catalog.subscribe(lambda _: told.release())
    return told


def test_a_catalog_follows_a_live_source_until_it_is_closed() -> None:
    catalog = Catalog([ToolDefinition("mine")])
    source = LiveStub("clock", "glacier")
    catalog.load(source)
    told = applied(catalog)
    threads: list[int] = []
    catalog.subscribe(lambda _: threads.append(threading.get_ident()))

    source.tell(report("glacier", "mine", "crater", refused=["broken"]))
    assert told.acquire(timeout=_AT_MOST_S)
    assert catalog.names() == ["mine", "glacier", "crater"]
    assert [refusal.name for refusal in catalog.refused] == ["broken", "mine"]
    assert threading.get_ident() not in threads

    source.tell(report("glacier"))
    assert told.acquire(timeout=_AT_MOST_S)
    assert (catalog.names(), catalog.refused) == (["mine", "glacier"], [])


def test_what_a_live_source_tells_after_the_catalog_was_closed_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also what it told before, and what had not been applied by then."""
    applying, let_go, done = threading.Event(), threading.Event(), threading.Event()
    sift = catalog_module.sift

    def held(*args: Any) -> Any:
        applying.set()
        assert let_go.wait(_AT_MOST_S)
        return sift(*args)

    class Watched(ReportFollower):
        def _next(self) -> LoadReport | None:
            if (following := super()._next()) is None:
                done.set()
            return following

    monkeypatch.setattr(catalog_module, "ReportFollower", Watched)
    catalog = Catalog()
    source = LiveStub("clock")
    catalog.load(source)
    monkeypatch.setattr(catalog_module, "sift", held)
    source.tell(report("glacier"))
    assert applying.wait(_AT_MOST_S)
    catalog.close()
    let_go.set()

    assert done.wait(_AT_MOST_S)
    assert source.is_closed
    assert catalog.names() == ["clock"]


def test_of_the_changes_that_come_while_one_is_indexed_only_the_last_is_applied_and_in_order() -> None:
    encoder = HeldEncoder()
    catalog = Catalog()
    followed = CatalogIndex(catalog, ToolSearchIndex(encoder=encoder))
    source = LiveStub("clock")
    catalog.load(source)
    told: list[list[str]] = []
    catalog.subscribe(lambda change: told.append([tool.name for tool in change.added]))
    ended_with_crater = threading.Event()
    catalog.subscribe(lambda _: ended_with_crater.set() if "crater" in catalog else None)

    source.tell(report("volcano"))
    assert encoder.stopped.wait(_AT_MOST_S)
    source.tell(report("glacier"))  # neither call waits for the one that is being indexed
    source.tell(report("crater"))
    encoder.let_go.set()

    assert ended_with_crater.wait(_AT_MOST_S)
    assert told == [["volcano"], ["crater"]]
    assert found(followed.index, "watch") == ["crater"]


def test_a_change_that_cannot_be_applied_does_not_keep_the_next_from_being(caplog: pytest.LogCaptureFixture) -> None:
    catalog = Catalog()
    source = LiveStub("clock")
    catalog.load(source)
    told = applied(catalog)
    failed = threading.Event()
    bad = SimpleNamespace(tools=Unreadable(failed), refused=())

    source.tell(cast("LoadReport", bad))
    assert failed.wait(_AT_MOST_S)
    source.tell(report("glacier"))
    assert told.acquire(timeout=_AT_MOST_S)
    assert catalog.names() == ["glacier"]
    assert "could not be taken over" in caplog.text


class Unreadable:
    def __init__(self, read: threading.Event) -> None:
        self._read = read

    def __iter__(self) -> Any:
        self._read.set()
        raise OSError("the disk is gone")


def test_a_search_during_a_sync_finds_nothing_that_has_gone_and_all_that_is_new_at_once_after_it() -> None:
    encoder = HeldEncoder()
    catalog = Catalog()
    engine = ToolSearch(catalog, encoder=encoder, reader=None)
    catalog.sync("mountains", report("clock", "glacier").tools)

    def search() -> set[str]:
        return {reference.name for reference in engine.search("watch", limit=5)}

    assert search() == {"clock", "glacier"}
    sync = started(lambda: catalog.sync("mountains", report("glacier", "volcano", "crater").tools))
    assert encoder.stopped.wait(_AT_MOST_S)
    meanwhile = (search(), set(catalog.names()))
    encoder.let_go.set()

    assert ended(sync)
    assert meanwhile == ({"glacier"}, {"glacier", "volcano", "crater"})
    assert search() == {"glacier", "volcano", "crater"}


def test_who_reads_a_catalog_while_it_is_synced_sees_what_was_before_or_what_is_after() -> None:
    """No lock is taken to find a tool, so the tools are exchanged at once: here a reader looks after every one of them
    that is being put or taken out.
    """
    seen: set[tuple[str, ...]] = set()
    names = [f"new_{number}" for number in range(3)], [f"old_{number}" for number in range(3)]

    class Spied(dict[str, Tool]):
        def copy(self) -> Spied:
            return Spied(self)

        def update(self, *args: Any, **kwargs: Any) -> None:
            for name, tool in dict(*args, **kwargs).items():
                self[name] = tool
                look()

        def __delitem__(self, name: str) -> None:
            super().__delitem__(name)
            look()

    def look() -> None:
        seen.add(tuple(name for name in (*names[0], *names[1]) if catalog.find(name)))

    catalog = catalog_module.StoredCatalog(Spied(), refused=(), purposes={}, source=LiveStub())
    catalog.sync("a", report(*names[1]).tools)
    seen.clear()
    catalog.sync("a", report(*names[0]).tools)
    look()

    assert seen == {tuple(names[0]), tuple(names[1])}
