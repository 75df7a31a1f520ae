"""A service is killed in the middle of its work, or its PostgreSQL; `benchmarks.service_crashes` does it 100 times."""

from pathlib import Path
from typing import Literal

import pytest

from benchmarks.service_crashes import WRITTEN, crash_rounds


@pytest.mark.timeout(300)  # processes are started many times, which takes seconds each on a busy machine
@pytest.mark.parametrize(("store", "count"), [("sqlite", 1), ("postgres", 2)])
def test_nothing_acknowledged_is_lost_and_nothing_half_written_is_seen(
    tmp_path: Path, store: Literal["sqlite", "postgres"], count: int
) -> None:
    """What is looked at after each kill is asserted in there. By this seed PostgreSQL is killed, and a replica."""
    rounds = list(crash_rounds(tmp_path, rounds=count, seed=2, store=store))

    assert len(rounds) == count
    assert rounds[-1].acknowledged > 0
    assert all(rounds[-1].versions[name] > 0 for name in WRITTEN)
    assert store == "sqlite" or {"PostgreSQL", "replica"} == {each.killed.split()[0] for each in rounds}
