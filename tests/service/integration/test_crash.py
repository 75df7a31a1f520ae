"""A service that is killed in the middle of its work; ``python -m benchmarks.service_crashes`` does it 100 times."""

from pathlib import Path

import pytest

from benchmarks.service_crashes import WRITTEN, crash_rounds


@pytest.mark.timeout(300)  # a service is started four times, which takes seconds each on a busy machine
def test_nothing_acknowledged_is_lost_and_nothing_half_written_is_seen(tmp_path: Path) -> None:
    """What is looked at after each restart is asserted in there."""
    rounds = list(crash_rounds(tmp_path / "data", rounds=3))

    assert len(rounds) == 3
    assert rounds[-1].acknowledged > 0
    assert all(rounds[-1].versions[name] > 0 for name in WRITTEN)
