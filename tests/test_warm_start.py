"""An index directory: the second start embeds nothing again, and nothing damaged is trusted."""

import logging
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from toolsearch import Catalog, ToolDefinition, ToolSearch
from toolsearch.catalog.warm_start import IndexDirectory
from toolsearch.errors import EncoderError, IndexStoreError
from toolsearch_indexes.encoders.hashing import HashingEncoder
from toolsearch_indexes.encoders.protocol import FloatArray

QUERIES = ("send an email", "calender", "/^list/", "select:list_events", "weather of a city")


class Counting(HashingEncoder):
    """Notes the texts that it embeds of our tools, but for their names."""

    def __init__(self, dimensions: int = 32) -> None:
        super().__init__(dimensions)
        self.embedded: list[str] = []

    def encode_documents(self, texts: Sequence[str]) -> FloatArray:
        self.embedded += [text for text in texts if "(ours)" in text]
        return super().encode_documents(texts)


def definition(name: str, description: str) -> ToolDefinition:
    return ToolDefinition(name, f"{description} (ours)")


def tools() -> Catalog:
    return Catalog(
        [
            definition("send_mail", "Send an email message"),
            definition("list_events", "List the events of a calendar"),
            definition("get_weather", "Get the weather of a city"),
        ]
    )


def answers(engine: ToolSearch) -> list[object]:
    return [engine.search(query, strategy=strategy) for query in QUERIES for strategy in engine.strategies]


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


def generation(path: Path) -> Path:
    return path / (path / "CURRENT").read_text()


def flip(file: Path, place: int) -> None:
    content = bytearray(file.read_bytes())
    content[place] ^= 0x55
    file.write_bytes(content)


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
        assert note.startswith("the stored index is not used, a new one is built: ")
    caplog.clear()
    with caplog.at_level(logging.WARNING), ToolSearch(tools(), encoder=Counting(), index_dir=tmp_path) as built:
        assert answers(built) == expected
    assert "the stored index is not used, a new one is built" in caplog.text
    caplog.clear()
    with ToolSearch(tools(), encoder=Counting(), index_dir=tmp_path) as healed:
        assert answers(healed) == expected
    assert caplog.text == ""


def test_another_encoders_index_is_built_anew_with_a_message(tmp_path: Path) -> None:
    ToolSearch(tools(), encoder=Counting(16), index_dir=tmp_path).close()

    with ToolSearch.open(tmp_path, encoder=Counting(32)) as opened:
        assert "was built with the encoder hashing:16, not hashing:32" in opened.notes[0]
        assert opened.search("email")[0].name == "send_mail"


def test_an_index_of_other_tools_than_the_catalog_is_built_anew(tmp_path: Path) -> None:
    ToolSearch(tools(), index_dir=tmp_path / "a").close()
    ToolSearch(Catalog([definition("watch_volcano", "Watch a volcano")]), index_dir=tmp_path / "b").close()
    (generation(tmp_path / "b") / "catalog.sqlite").replace(generation(tmp_path / "a") / "catalog.sqlite")

    with ToolSearch.open(tmp_path / "a") as opened:
        assert [found.name for found in opened.search("volcano")] == ["watch_volcano"]
        assert "holds other tools than the catalog there" in opened.notes[0]


def test_a_damaged_catalog_costs_a_start_with_its_sources_nothing(tmp_path: Path) -> None:
    """Wherever in the file a byte flips, the tools come from the catalog at hand, and the answers are right."""
    with ToolSearch(tools(), index_dir=tmp_path) as engine:
        expected = answers(engine)
    whole = (generation(tmp_path) / "catalog.sqlite").read_bytes()

    for place in [*range(0, 100, 7), *range(100, len(whole), 331)]:
        damaged = whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :]
        (generation(tmp_path) / "catalog.sqlite").write_bytes(damaged)
        with ToolSearch(tools(), index_dir=tmp_path) as engine:
            assert answers(engine) == expected, place


def test_a_damaged_definition_is_never_shown(tmp_path: Path) -> None:
    ToolSearch(tools(), index_dir=tmp_path).close()
    file = generation(tmp_path) / "catalog.sqlite"
    file.write_bytes(file.read_bytes().replace(b"weather of a city", b"weather of a pity"))

    with ToolSearch.open(tmp_path) as opened:
        assert opened.catalog.get("send_mail").definition.description == "Send an email message (ours)"
        with pytest.raises(IndexStoreError, match=r"damaged.*index it again"):
            opened.catalog.get("get_weather")


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0", b"nonsense"])
def test_a_catalog_that_is_none_is_an_error_to_open(tmp_path: Path, content: bytes) -> None:
    ToolSearch(tools(), index_dir=tmp_path).close()
    (generation(tmp_path) / "catalog.sqlite").write_bytes(content)

    with pytest.raises(IndexStoreError):
        ToolSearch.open(tmp_path)


# Writing


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
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["CURRENT", before.name])
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
