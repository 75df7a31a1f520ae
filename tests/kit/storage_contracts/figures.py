"""What a place for figures of use owes."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from toolsearch.storage.activity import FigureCell, FigureLog, FigureSum

HOUR_S, DAY_S = 3_600, 86_400


def cell(hour: int, *, key: str = "k1", session: str = "s1", name: str = "searches") -> FigureCell:
    return FigureCell(hour * HOUR_S, key, session, name)


class FigureLogContract:
    def make(self, folder: Path) -> FigureLog:
        raise NotImplementedError

    @pytest.fixture
    def kept(self, tmp_path: Path) -> FigureLog:
        return self.make(tmp_path)

    def test_amounts_add_up_by_hour_day_key_or_session(self, kept: FigureLog) -> None:
        """Hours 1 and 2 are of the first day, hour 25 is of the second."""
        kept.add("a", {cell(1): 1.0, cell(2, key="k2"): 2.0})
        kept.add("a", {cell(1): 4.0, cell(25, session="s2"): 8.0, cell(25, name="calls"): 16.0})

        assert kept.sums("a", by="hour", since_s=0, until_s=2 * DAY_S) == [
            FigureSum("3600", "searches", 5.0),
            FigureSum("7200", "searches", 2.0),
            FigureSum("90000", "calls", 16.0),
            FigureSum("90000", "searches", 8.0),
        ]
        assert kept.sums("a", by="day", since_s=0, until_s=2 * DAY_S) == [
            FigureSum("0", "searches", 7.0),
            FigureSum("86400", "calls", 16.0),
            FigureSum("86400", "searches", 8.0),
        ]
        assert kept.sums("a", by="key", since_s=0, until_s=2 * DAY_S) == [
            FigureSum("k1", "calls", 16.0),
            FigureSum("k1", "searches", 13.0),
            FigureSum("k2", "searches", 2.0),
        ]
        assert kept.sums("a", by="session", since_s=0, until_s=DAY_S) == [FigureSum("s1", "searches", 7.0)]

    def test_sums_are_of_the_hours_that_begin_within_the_time_and_of_one_key_or_session(self, kept: FigureLog) -> None:
        kept.add("a", {cell(1): 1.0, cell(2): 2.0, cell(2, key="k2"): 4.0, cell(2, session="s2"): 8.0, cell(3): 16.0})

        def amount(**chosen: str) -> float:
            sums = kept.sums("a", by="hour", since_s=2 * HOUR_S, until_s=3 * HOUR_S, **chosen)
            return sum(each.amount for each in sums)

        assert [amount(), amount(key="k1"), amount(session="s2"), amount(key="k2", session="s2")] == [14, 10, 8, 0]

    def test_a_tenant_is_told_its_own_figures_alone(self, kept: FigureLog) -> None:
        kept.add("a", {cell(1): 1.0})

        assert kept.sums("b", by="hour", since_s=0, until_s=DAY_S) == []

    def test_old_figures_are_pruned_and_at_most_so_many_at_once(self, kept: FigureLog) -> None:
        kept.add("a", {cell(1): 1.0, cell(3): 4.0, cell(4): 8.0})
        kept.add("b", {cell(2): 2.0})

        assert kept.prune(before_s=4 * HOUR_S, limit=2) == 2
        assert kept.sums("b", by="hour", since_s=0, until_s=DAY_S) == []
        assert (kept.prune(before_s=4 * HOUR_S, limit=2), kept.prune(before_s=4 * HOUR_S, limit=2)) == (1, 0)
        assert kept.sums("a", by="key", since_s=0, until_s=DAY_S) == [FigureSum("k1", "searches", 8.0)]

    def test_of_many_that_add_at_once_nothing_is_lost(self, kept: FigureLog) -> None:
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(lambda _: kept.add("a", {cell(1): 1.0}), range(20)))

        assert kept.sums("a", by="key", since_s=0, until_s=DAY_S) == [FigureSum("k1", "searches", 20.0)]
