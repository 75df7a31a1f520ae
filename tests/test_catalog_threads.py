"""Threads that change one catalog, and what each may rely on once its call returns.

Nothing here is left to chance: a thread is held where a race would be lost, until the other one either waits for it, as
it should, or has gone on without waiting.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from types import SimpleNamespace

import pytest

from toolsearch.catalog import changes, indexing
from toolsearch.catalog.catalog import Catalog
from toolsearch.catalog.indexing import CatalogIndex
from toolsearch.tools.definition import ToolDefinition
from toolsearch_indexes import index as index_module
from toolsearch_indexes.documents import ToolDocument
from toolsearch_indexes.encoders.hashing import HashingEncoder
from toolsearch_indexes.encoders.protocol import FloatArray
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
