"""Durations as people write them."""

import pytest

from toolsearch.setting_types import parse_duration_s


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30m", 1_800),
        ("1h30m", 5_400),
        ("500ms", 0.5),
        ("1m500ms", 60.5),
        ("2d", 172_800),
        ("1.5h", 5_400),
        (" 10S ", 10),
        ("90", 90),
        ("0.25", 0.25),
        ("0", 0),
    ],
)
def test_a_duration_is_read_as_seconds(text: str, seconds: float) -> None:
    assert parse_duration_s(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "30 minutes", "30m1h", "1m1m", "h", "5mm", "-3m", "1h 30m", "m30"])
def test_what_is_no_duration_is_refused_with_ways_to_write_one(text: str) -> None:
    with pytest.raises(ValueError, match="is no duration; write 30m, 1h30m, 500ms, or a number of seconds"):
        parse_duration_s(text)
