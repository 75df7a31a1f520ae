"""An index directory: the second start embeds nothing again, and nothing damaged is trusted."""

import inspect
import logging
import subprocess
import threading
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

import pytest

from tests.kit.index_directories import answers, definition, flip, generation, tools
from toolsearch import Catalog, SessionOptions, Tool, ToolDefinition, ToolSearch, UsageLog
from toolsearch.catalog import index_directory as generation_module
from toolsearch.catalog.index_directory import IndexDirectory
from toolsearch.catalog.request_packs import NO_REQUESTS
from toolsearch.catalog.stored import StoredTools
from toolsearch.engine import EngineOptions
from toolsearch.errors import EncoderError, IndexStoreError
from toolsearch_indexes.encoders.protocol import FloatArray
from toolsearch_indexes.encoders.static import HashingEncoder
from toolsearch_indexes.vector_cache import VectorCache


class Counting(HashingEncoder):
    """Notes the texts that it embeds of our tools, but for their names."""

    def __init__(self, dimensions: int = 32) -> None:
        super().__init__(dimensions)
        self.embedded: list[str] = []

    def encode_documents(self, texts: Sequence[str]) -> FloatArray:
        self.embedded += [text for text in texts if "(ours)" in text]
        return super().encode_documents(texts)


def test_closing_an_engine_leaves_a_cache_that_it_was_given_to_the_other_engines(tmp_path: Path) -> None:
    with VectorCache(tmp_path / "vectors.db") as cache:
        first, second = (ToolSearch(tools(), encoder=Counting(), cache=cache) for _ in range(2))
        first.close()

        second.catalog.add(definition("book_flight", "Book a flight"))
        assert second.search("book a flight", strategy="semantic")[0].name == "book_flight"
        second.close()
    assert [file.name for file in tmp_path.iterdir()] == ["vectors.db"]


def test_closing_an_engine_closes_the_cache_that_it_opened_itself(tmp_path: Path) -> None:
    engine = ToolSearch(tools(), encoder=Counting(), index_dir=tmp_path)
    engine.close()

    assert not (tmp_path / "vectors.sqlite-wal").exists()


def test_the_second_start_answers_the_same_and_embeds_nothing_again(tmp_path: Path) -> None:
    with ToolSearch(tools(), encoder=Counting(), index_dir=tmp_path) as first:
        expected = answers(first)
    encoder = Counting()
    with ToolSearch(tools(), encoder=encoder, index_dir=tmp_path) as second:
        assert answers(second) == expected
        assert second.notes == []
    assert encoder.embedded == []


def test_only_what_changed_is_embedded(tmp_path: Path) -> None:
    ToolSearch(tools(), encoder=Counting(), index_dir=tmp_path).close()
    catalog, encoder = tools(), Counting()
    catalog.replace(definition("get_weather", "Forecast the weather"))
    catalog.remove("list_events")
    catalog.add(definition("watch_volcano", "Watch a volcano"))

    with ToolSearch(catalog, encoder=encoder, index_dir=tmp_path) as engine:
        assert encoder.embedded == [
            "Forecast the weather (ours)",
            "get weather: Forecast the weather (ours)",
            "Watch a volcano (ours)",
            "watch volcano: Watch a volcano (ours)",
        ]
        assert sorted(engine.index.names()) == ["get_weather", "send_mail", "watch_volcano"]
        expected = answers(engine)
    encoder.embedded.clear()
    with ToolSearch.open(tmp_path, encoder=encoder) as reopened:  # the change was written, too
        assert answers(reopened) == expected
    assert encoder.embedded == []


def test_what_is_not_in_the_vectors_text_changes_without_embedding(tmp_path: Path) -> None:
    ToolSearch(tools(), encoder=Counting(), index_dir=tmp_path).close()
    catalog, encoder = tools(), Counting()
    schema = {"type": "object", "properties": {"town": {"type": "string"}}}
    catalog.replace(ToolDefinition("get_weather", "Get the weather of a city (ours)", schema))

    with ToolSearch(catalog, encoder=encoder, index_dir=tmp_path) as engine:
        assert [found.name for found in engine.search("town", strategy="keyword")] == ["get_weather"]
    assert encoder.embedded == []


def test_opening_needs_no_sources_and_keeps_what_was_refused(tmp_path: Path) -> None:
    listing = [{"name": "send_mail", "description": "Send an email message"}, {"description": "nameless"}]
    with ToolSearch(Catalog.from_json(listing), index_dir=tmp_path) as engine:
        expected = engine.search("email")
        refused = engine.catalog.refused
    assert len(refused) == 1

    with ToolSearch.open(tmp_path) as opened:
        assert opened.search("email") == expected
        assert opened.catalog.refused == refused
        assert opened.catalog.get("send_mail").definition.description == "Send an email message"


def test_an_opened_index_says_what_servers_are_for_and_a_new_word_of_theirs_is_kept(tmp_path: Path) -> None:
    for words in ("Sells books.", "Sells music."):
        catalog = tools()
        catalog.sync("shop", [Tool(definition("buy", "Buys"))], purposes={"shop": words})
        ToolSearch(catalog, encoder=None, index_dir=tmp_path).close()

        with ToolSearch.open(tmp_path) as opened:
            assert opened.catalog.server_purpose("shop") == words


def test_an_index_is_opened_with_every_option_of_the_constructor(tmp_path: Path) -> None:
    ToolSearch(tools(), index_dir=tmp_path).close()
    usage, clock = UsageLog(), iter(range(99)).__next__

    with ToolSearch.open(tmp_path, options=SessionOptions(limit=1), usage=usage, clock=clock) as opened:
        assert (opened.options.limit, opened.usage, opened.clock) == (1, usage, clock)
        assert opened.strategies[0] == "hybrid"  # the encoder is the one that the index was made with

    taken = {name for name in inspect.signature(ToolSearch).parameters if not name.startswith("_")}
    taken -= {"catalog", "index_dir"}
    assert taken == set(EngineOptions.__annotations__)


@pytest.mark.parametrize("content", [None, "", "nonsense", "generation-none", "../generation-x", "generation-a/../.."])
def test_opening_what_is_no_index_directory_is_an_error(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "CURRENT").write_text(content)
    with pytest.raises(IndexStoreError):
        ToolSearch.open(tmp_path)


def out_of_memory(texts: Sequence[str]) -> FloatArray:
    raise EncoderError(f"no memory for {len(texts)} texts")


def test_what_an_encoder_failed_on_is_indexed_before_it_is_saved(tmp_path: Path) -> None:
    """Else the stored index would be taken for one of the stored catalog, and the old text would stay for good."""
    encoder = Counting()
    with ToolSearch(tools(), encoder=encoder, index_dir=tmp_path) as engine:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(encoder, "encode_documents", out_of_memory)
            engine.catalog.replace(definition("get_weather", "Watch a volcano"))
        assert engine.search("volcano", strategy="keyword") == []
        engine.save()
    with ToolSearch.open(tmp_path, encoder=encoder) as opened:
        assert [found.name for found in opened.search("volcano", strategy="keyword")] == ["get_weather"]
        assert opened.search("city", strategy="keyword") == []


# Damage


def files_of_an_index() -> list[str]:
    return ["manifest.json", "keyword.rows.npy", "regex.own_name.blob.npy", "vectors.matrix.npy", "terms.npy"]


@pytest.mark.parametrize("name", files_of_an_index())
def test_a_damaged_index_is_built_anew_with_a_message(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with ToolSearch(tools(), encoder=Counting(), index_dir=tmp_path) as engine:
        expected = answers(engine)
    file = generation(tmp_path) / name
    flip(file, file.stat().st_size // 2)

    with ToolSearch.open(tmp_path, encoder=Counting()) as opened:
        assert answers(opened) == expected
        (note,) = opened.notes
        assert note.startswith("the stored index is not used")
    caplog.clear()
    with caplog.at_level(logging.WARNING), ToolSearch(tools(), encoder=Counting(), index_dir=tmp_path) as built:
        assert answers(built) == expected
    assert "the stored index is not used" in caplog.text
    caplog.clear()
    with ToolSearch(tools(), encoder=Counting(), index_dir=tmp_path) as healed:
        assert answers(healed) == expected
    assert caplog.text == ""


def test_another_encoders_index_is_built_anew_with_a_message(tmp_path: Path) -> None:
    ToolSearch(tools(), encoder=Counting(16), index_dir=tmp_path).close()

    with ToolSearch.open(tmp_path, encoder=Counting(32)) as opened:
        assert "encoder hashing:16, not hashing:32" in opened.notes[0]
        assert opened.search("email")[0].name == "send_mail"


def test_the_catalog_of_another_index_is_refused(tmp_path: Path) -> None:
    ToolSearch(tools(), index_dir=tmp_path / "a").close()
    ToolSearch(Catalog([definition("watch_volcano", "Watch a volcano")]), index_dir=tmp_path / "b").close()
    (generation(tmp_path / "b") / "catalog.sqlite").replace(generation(tmp_path / "a") / "catalog.sqlite")

    with pytest.raises(IndexStoreError, match=r"catalog\.sqlite has changed; index it again"):
        ToolSearch.open(tmp_path / "a")


def test_a_definition_that_is_damaged_later_is_never_shown(tmp_path: Path) -> None:
    """Definitions are read when they are asked for, which may be long after the index was opened."""
    ToolSearch(tools(), index_dir=tmp_path).close()
    file = generation(tmp_path) / "catalog.sqlite"
    file.write_bytes(file.read_bytes().replace(b"weather of a city", b"weather of a pity"))

    stored = StoredTools(file.parent)
    assert stored["send_mail"].definition.description == "Send an email message (ours)"
    with pytest.raises(IndexStoreError, match=r"damaged.*index it again"):
        stored["get_weather"]


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0", b"nonsense"])
def test_a_catalog_that_is_none_is_an_error_to_open(tmp_path: Path, content: bytes) -> None:
    ToolSearch(tools(), index_dir=tmp_path).close()
    (generation(tmp_path) / "catalog.sqlite").write_bytes(content)

    with pytest.raises(IndexStoreError):
        ToolSearch.open(tmp_path)


def test_a_manifest_that_means_the_same_in_other_bytes_is_not_taken(tmp_path: Path) -> None:
    ToolSearch(tools(), index_dir=tmp_path).close()
    manifest = generation(tmp_path) / "manifest.json"
    manifest.write_text(f"{manifest.read_text()}\n")

    with ToolSearch.open(tmp_path) as opened:
        assert "manifest.json has changed" in opened.notes[0]


def test_an_index_of_another_version_is_told_as_one_and_built_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("toolsearch.catalog.index_directory._FORMAT", 0)
        ToolSearch(tools(), index_dir=tmp_path).close()

    with pytest.raises(IndexStoreError, match="has format 0, this version reads 1"):
        ToolSearch.open(tmp_path)
    ToolSearch(tools(), index_dir=tmp_path).close()
    assert "has format 0, " in caplog.text
    ToolSearch.open(tmp_path).close()


# How it was made


def test_an_index_without_an_encoder_is_opened_without_one(tmp_path: Path) -> None:
    with ToolSearch(tools(), strategy="keyword", index_dir=tmp_path) as engine:
        expected = engine.search("send an email")

    with ToolSearch.open(tmp_path) as opened:
        assert (opened.strategies, opened.notes) == (("keyword", "regex"), [])
        assert opened.search("send an email") == expected


def test_an_index_that_is_made_another_way_is_stored_that_way(tmp_path: Path) -> None:
    for strategy, first in (("hybrid", "hybrid"), ("keyword", "keyword"), ("auto", "hybrid")):
        ToolSearch(tools(), strategy=strategy, index_dir=tmp_path).close()
        with ToolSearch.open(tmp_path) as opened:
            assert (opened.strategies[0], opened.notes) == (first, [])


# Writing


def test_a_save_removes_the_generation_before_and_what_killed_writers_left(tmp_path: Path) -> None:
    with ToolSearch(tools(), index_dir=tmp_path) as engine:
        before = generation(tmp_path)
        (tmp_path / "generation-left").mkdir()
        (tmp_path / "generation-left" / "catalog.sqlite").write_bytes(b"cut off")
        engine.catalog.remove("send_mail")
        engine.save()

    now = generation(tmp_path)
    assert now != before
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["CURRENT", "write.lock", now.name])


def test_an_index_in_a_relative_folder_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with ToolSearch(tools(), index_dir="here") as engine:
        engine.save()
        expected = answers(engine)

    with ToolSearch.open("here") as opened:
        assert (answers(opened), opened.notes) == (expected, [])


_WRITE_AND_WAIT = """
import sys
from toolsearch import Catalog, ToolSearch
from toolsearch.catalog import index_directory

def save_and_wait(index, folder):
    save_index(index, folder)
    print(folder.name, flush=True)
    sys.stdin.readline()

save_index, index_directory.save_index = index_directory.save_index, save_and_wait
ToolSearch(Catalog.from_module("textwrap"), index_dir=sys.argv[1])
"""


@pytest.fixture
def other_writer(tmp_path: Path, start_python: Callable[..., subprocess.Popen[str]]) -> subprocess.Popen[str]:
    """A process that is just writing a generation, and waits for a line before it makes it the current one."""
    return start_python("-c", _WRITE_AND_WAIT, str(tmp_path))


def test_a_save_never_removes_what_another_process_is_writing(
    tmp_path: Path, other_writer: subprocess.Popen[str]
) -> None:
    with ToolSearch(tools(), encoder=None) as engine:
        written = tmp_path / line_of(other_writer)
        with pytest.raises(IndexStoreError, match=r"another process has been writing to .* for 0 s"):
            IndexDirectory(tmp_path, lock_timeout_s=0).save(
                engine.catalog.snapshot(), engine.index, refused=(), encoder_spec=None, requests=NO_REQUESTS
            )
    other_writer.communicate("go on\n")

    assert generation(tmp_path) == written
    with ToolSearch.open(tmp_path) as opened:
        assert "textwrap__dedent" in opened.catalog


def test_what_a_killed_process_was_writing_is_removed_by_the_next_save(
    tmp_path: Path, other_writer: subprocess.Popen[str]
) -> None:
    written = tmp_path / line_of(other_writer)
    other_writer.kill()
    other_writer.wait()

    ToolSearch(tools(), index_dir=tmp_path).close()

    assert not written.exists()
    with ToolSearch.open(tmp_path) as opened:
        assert sorted(opened.catalog.names()) == ["get_weather", "list_events", "send_mail"]


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.parametrize("step", ["StoredTools", "read_index"])
def test_a_reader_whose_generation_is_removed_before_it_is_read_takes_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Three times in a row."""
    engine = ToolSearch(tools(), index_dir=tmp_path)
    read = getattr(generation_module, step)
    saves = iter(range(3))

    def read_after_a_save(folder: Path) -> object:
        for _ in islice(saves, 1):
            engine.save()
        return read(folder)

    monkeypatch.setattr(generation_module, step, read_after_a_save)
    with engine, ToolSearch.open(tmp_path) as opened:
        assert (opened.notes, list(saves)) == ([], [])
        assert answers(opened) == answers(engine)


_OPEN_AGAIN_AND_AGAIN = """
import sys
from toolsearch import ToolSearch

seen = set()
for _ in range(40):
    with ToolSearch.open(sys.argv[1]) as engine:
        names = tuple(sorted(engine.catalog.names()))
        found = [hit.name for hit in engine.search("shorten a text")]
        seen.add((len(names), found[:1] == ["textwrap__shorten"], tuple(engine.notes)))
        assert all(map(engine.catalog.find, names))
        assert set(engine.index.names()) == set(names)
print(sorted(seen))
"""


def test_processes_that_open_an_index_while_it_is_written_see_a_whole_one_each_time(
    tmp_path: Path, start_python: Callable[..., subprocess.Popen[str]]
) -> None:
    engines = [ToolSearch(Catalog.from_module(name), index_dir=tmp_path) for name in ("statistics", "textwrap")]
    readers = [start_python("-c", _OPEN_AGAIN_AND_AGAIN, str(tmp_path)) for _ in range(2)]
    while any(reader.poll() is None for reader in readers):
        for engine in engines:
            engine.save()

    of_statistics, of_textwrap = (len(engine.catalog) for engine in engines)
    seen = [reader.communicate()[0] for reader in readers]
    assert seen == [f"{[(of_textwrap, True, ()), (of_statistics, False, ())]}\n"] * 2


def test_a_save_that_fails_midway_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ToolSearch(tools(), index_dir=tmp_path) as engine:
        expected = answers(engine)
        before = generation(tmp_path)
        engine.catalog.remove("send_mail")

        def disk_full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        for broken in ("toolsearch_indexes.store._write", "pathlib.Path.write_text", "pathlib.Path.replace"):
            with monkeypatch.context() as patch:
                patch.setattr(broken, disk_full)
                with pytest.raises(IndexStoreError, match="No space left on device"):
                    engine.save()

    assert generation(tmp_path) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["CURRENT", "write.lock", before.name])
    with ToolSearch.open(tmp_path) as opened:
        assert answers(opened) == expected


def test_a_directory_that_cannot_be_made_is_an_error_of_ours(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(IndexStoreError, match="cannot be used as an index directory"):
        ToolSearch(tools(), index_dir=tmp_path / "file" / "index")


def test_two_engines_on_one_directory_do_not_disturb_each_other(tmp_path: Path) -> None:
    """The later save counts; who opened the earlier one goes on with it, also with what it has not read yet."""
    ToolSearch(tools(), encoder=Counting(), index_dir=tmp_path).close()
    with (
        ToolSearch.open(tmp_path, encoder=Counting()) as first,
        ToolSearch.open(tmp_path, encoder=Counting()) as second,
    ):
        second.catalog.remove("send_mail")
        second.save()

        assert first.search("send an email")[0].name == "send_mail"
        assert first.catalog.get("send_mail").definition.description == "Send an email message (ours)"
        with ToolSearch.open(tmp_path) as third:
            assert sorted(third.catalog.names()) == ["get_weather", "list_events"]
        first.save()
        with ToolSearch.open(tmp_path) as fourth:
            assert len(fourth.catalog) == 3


def test_engines_that_save_at_once_leave_one_whole_index(tmp_path: Path) -> None:
    engines = [ToolSearch(tools(), index_dir=tmp_path) for _ in range(4)]
    threads = [threading.Thread(target=engine.save) for engine in engines for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    with ToolSearch.open(tmp_path) as opened:
        assert answers(opened) == answers(engines[0])


def test_a_change_while_the_index_is_prepared_is_not_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = tools()
    save = IndexDirectory.save

    def change_and_save(self: IndexDirectory, *args: object, **options: object) -> None:
        save(self, *args, **options)  # type: ignore[arg-type]
        catalog.add(definition("watch_volcano", "Watch a volcano"))
        catalog.remove("send_mail")

    monkeypatch.setattr(IndexDirectory, "save", change_and_save)
    with ToolSearch(catalog, encoder=None, index_dir=tmp_path) as engine:
        assert [found.name for found in engine.search("volcano")] == ["watch_volcano"]
        assert sorted(engine.index.names()) == ["get_weather", "list_events", "watch_volcano"]


async def test_a_saved_change_keeps_the_way_to_run_the_other_tools(tmp_path):
    first = Catalog()
    first.load("module:statistics")
    ToolSearch(first, index_dir=tmp_path).close()
    second = Catalog()
    second.load("module:statistics")
    second.remove("statistics__mode")
    ToolSearch(second, index_dir=tmp_path).close()

    with ToolSearch.open(tmp_path) as engine:
        result = await engine.session("s").call("statistics__median", {"data": [3, 1, 2]})

    assert (result.text, "statistics__mode" in engine.catalog) == ("2", False)
