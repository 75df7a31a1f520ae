"""The picture of the README: it shows what the demo counts, and the same input gives the same file."""

import json
from pathlib import Path

import pytest

from benchmarks import picture


@pytest.fixture(scope="module")
def conversation() -> picture.Conversation:
    return picture.play()


def test_what_is_sent_adds_up_to_what_the_demo_tells(conversation: picture.Conversation):
    """Three of the demo's eleven requests follow a reply that only searched, and would not be made without a search."""
    each = conversation.every[-1] // 8

    assert conversation.tools > 400
    assert [total // each for total in conversation.every] == [1, 1, 2, 3, 3, 4, 5, 6, 7, 7, 8]
    assert conversation.sent == sorted(conversation.sent)
    assert conversation.sent[-1] < conversation.every[-1] / 10


def test_the_same_input_gives_the_same_pictures(tmp_path: Path):
    searches = [
        ("keyword", 1_000, 0.04),
        ("keyword", 10_000, 0.06),
        ("rank-bm25", 1_000, 0.4),
        ("rank-bm25", 10_000, 4),
    ]
    stored = tmp_path / "latency.json"
    stored.write_text(json.dumps([{"what": what, "tools": n, "median_ms": ms} for what, n, ms in searches]))

    for folder in ("first", "second"):
        assert picture.main(["--latency", str(stored), "--to", str(tmp_path / folder)]) == 0

    for page in ("light", "dark"):
        first, second = (tmp_path / folder / f"picture-{page}.svg" for folder in ("first", "second"))
        assert first.read_bytes() == second.read_bytes()
        assert first.read_text().count("<svg ") == 1
