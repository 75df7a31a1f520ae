"""An index on disk: it comes back as it was, or not at all."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from toolsearch_indexes.documents import ToolDocument
from toolsearch_indexes.encoders.protocol import FloatArray
from toolsearch_indexes.encoders.static import HashingEncoder
from toolsearch_indexes.errors import IndexStoreError
from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.store import FORMAT, MANIFEST, load_index, save_index

TOOLS = [
    ToolDocument("mail__send", "Send an email message", parameter_names=("to",), server="mail", local_name="send"),
    ToolDocument("cal__list", "List the events of a calendar", server="cal", local_name="list", tags=("read",)),
    ToolDocument("日程", "查询用户的日程安排", requests=("what is on today", "am I free")),
]  # fmt: skip
QUERIES = ("send an email", "calender", "日程", "/^list$/", "select:send,日程", "event", "free today")
ENCODER = HashingEncoder(32)


class Unused(HashingEncoder):
    """Fails if it has to embed a tool."""

    def encode_documents(self, texts: Sequence[str]) -> FloatArray:
        raise AssertionError(f"embedded again: {texts}")


def saved(folder: Path, index: ToolSearchIndex | None = None) -> Path:
    save_index(ToolSearchIndex(TOOLS, encoder=ENCODER) if index is None else index, folder)
    return folder


def assert_same(left: ToolSearchIndex, right: ToolSearchIndex, *strategies: str) -> None:
    for query in QUERIES:
        for strategy in strategies:
            assert left.search(query, strategy=strategy) == right.search(query, strategy=strategy), (query, strategy)


def test_an_index_comes_back_as_it_was_and_embeds_nothing_again(tmp_path: Path) -> None:
    index = ToolSearchIndex(TOOLS, encoder=ENCODER)
    loaded = load_index(saved(tmp_path, index), encoder=Unused(32))

    assert list(loaded.names()) == [tool.name for tool in TOOLS]
    assert_same(loaded, index, "keyword", "regex")
    loaded = load_index(tmp_path, encoder=ENCODER)
    assert_same(loaded, index, "semantic", "hybrid")


def test_removed_tools_are_not_written(tmp_path: Path) -> None:
    index = ToolSearchIndex(TOOLS, encoder=ENCODER)
    index.update([ToolDocument("new", "Watch a volcano")], remove=["cal__list"])
    loaded = load_index(saved(tmp_path, index), encoder=ENCODER)

    assert sorted(loaded.names()) == ["mail__send", "new", "日程"]
    assert b"calendar" not in (tmp_path / "regex.description.blob.npy").read_bytes()
    assert_same(loaded, index, "keyword", "regex", "semantic", "hybrid")


def test_a_loaded_index_can_be_changed_like_any_other(tmp_path: Path) -> None:
    loaded = load_index(saved(tmp_path), encoder=ENCODER)
    loaded.update([ToolDocument("mail__send", "Post a letter"), ToolDocument("new", "Watch a volcano")], ["cal__list"])
    fresh = ToolSearchIndex(
        [TOOLS[2], ToolDocument("mail__send", "Post a letter"), ToolDocument("new", "Watch a volcano")], encoder=ENCODER
    )

    for query in (*QUERIES, "post", "volcano"):
        assert [hit.name for hit in loaded.search(query)] == [hit.name for hit in fresh.search(query)]


def test_an_empty_index_comes_back_able_to_grow(tmp_path: Path) -> None:
    loaded = load_index(saved(tmp_path, ToolSearchIndex(encoder=ENCODER)), encoder=ENCODER)
    loaded.update(TOOLS)

    assert_same(loaded, ToolSearchIndex(TOOLS, encoder=ENCODER), "keyword", "semantic", "hybrid", "regex")


def test_arrays_are_mapped_and_not_read_into_memory(tmp_path: Path) -> None:
    loaded = load_index(saved(tmp_path), encoder=ENCODER)
    (segment,) = loaded.state.segments

    assert isinstance(segment.keyword.rows.base, np.memmap)
    assert not segment.keyword.rows.flags.writeable


def test_without_an_encoder_the_words_of_an_index_with_vectors_can_be_used(tmp_path: Path) -> None:
    loaded = load_index(saved(tmp_path))

    assert_same(loaded, ToolSearchIndex(TOOLS), "auto", "keyword", "regex")


@pytest.mark.parametrize("built_with", [None, HashingEncoder(16)])
def test_vectors_of_another_encoder_or_none_are_refused(tmp_path: Path, built_with: HashingEncoder | None) -> None:
    saved(tmp_path, ToolSearchIndex(TOOLS, encoder=built_with))

    with pytest.raises(IndexStoreError, match=r"was built with the encoder .*, not hashing:32"):
        load_index(tmp_path, encoder=ENCODER)


def files_of(folder: Path) -> list[Path]:
    files = sorted(folder.iterdir())
    assert len(files) > 20
    return files


def test_a_flipped_byte_in_any_file_is_noticed(tmp_path: Path) -> None:
    for file in files_of(saved(tmp_path)):
        whole = file.read_bytes()
        for place in {0, len(whole) // 2, len(whole) - 1}:
            file.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
            with pytest.raises(IndexStoreError):
                load_index(tmp_path, encoder=ENCODER)
        file.write_bytes(whole)
    load_index(tmp_path, encoder=ENCODER)


@pytest.mark.parametrize("left", [0, 0.5])
def test_a_file_that_is_cut_off_is_noticed(tmp_path: Path, left: float) -> None:
    for file in files_of(saved(tmp_path)):
        whole = file.read_bytes()
        file.write_bytes(whole[: int(left * len(whole))])
        with pytest.raises(IndexStoreError):
            load_index(tmp_path, encoder=ENCODER)
        file.write_bytes(whole)


def test_a_missing_file_is_noticed(tmp_path: Path) -> None:
    for file in files_of(saved(tmp_path)):
        whole = file.read_bytes()
        file.unlink()
        with pytest.raises(IndexStoreError, match="damaged or incomplete"):
            load_index(tmp_path, encoder=ENCODER)
        file.write_bytes(whole)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"format": FORMAT - 1}, f"has format {FORMAT - 1}, this version reads {FORMAT}"),
        ({"format": 0}, f"has format 0, this version reads {FORMAT}"),
        ({"format": None}, "has format None"),
        ({"fields": ["name"]}, f"has format {FORMAT}"),
        ({"documents": 4}, "as many tools as it says"),
        ({"documents": 0}, "as many tools as it says"),
        ({"files": {}}, "as many tools as it says"),
        ({"files": []}, "damaged or incomplete"),
        ({"files": {"../terms": ""}}, "damaged or incomplete"),
    ],
)
def test_a_manifest_of_something_else_is_refused(tmp_path: Path, change: dict[str, object], reason: str) -> None:
    manifest = saved(tmp_path) / MANIFEST
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | change))

    with pytest.raises(IndexStoreError, match=reason):
        load_index(tmp_path, encoder=ENCODER)


@pytest.mark.parametrize("text", ["[]", "null", "{}", "nonsense", '{"format": 1, "fields": 3}'])
def test_a_manifest_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    (saved(tmp_path) / MANIFEST).write_text(text)

    with pytest.raises(IndexStoreError):
        load_index(tmp_path, encoder=ENCODER)


def test_a_folder_that_is_not_there_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(IndexStoreError, match="damaged or incomplete"):
        load_index(tmp_path / "nowhere")
    with pytest.raises(IndexStoreError, match="cannot be written"):
        saved(tmp_path / "nowhere")
