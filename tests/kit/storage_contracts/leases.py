"""What leases owe."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from toolsearch.storage.replicas import Leases


class LeasesContract:
    def make(self, folder: Path) -> Leases:
        raise NotImplementedError

    @pytest.fixture
    def leases(self, tmp_path: Path) -> Leases:
        return self.make(tmp_path)

    def test_one_holds_a_lease_until_it_lets_go(self, leases: Leases) -> None:
        assert leases.take("upkeep", "a", for_s=60)
        assert leases.take("upkeep", "a", for_s=60)
        assert not leases.take("upkeep", "b", for_s=60)
        leases.release("upkeep", "b")
        assert not leases.take("upkeep", "b", for_s=60)
        leases.release("upkeep", "a")
        assert leases.take("upkeep", "b", for_s=60)

    def test_only_its_holder_renews_a_lease_and_only_while_it_has_it(self, leases: Leases) -> None:
        assert not leases.renew("upkeep", "a", for_s=60)
        leases.take("upkeep", "a", for_s=60)
        assert leases.renew("upkeep", "a", for_s=60)
        assert not leases.renew("upkeep", "b", for_s=60)
        leases.release("upkeep", "a")
        assert not leases.renew("upkeep", "a", for_s=60)

    def test_those_that_are_held_are_told_whoever_holds_them(self, leases: Leases) -> None:
        for name, holder in (("one", "a"), ("two", "b"), ("three", "a")):
            leases.take(name, holder, for_s=60)
        leases.release("three", "a")

        assert leases.held(["one", "two", "three", "four"]) == {"one", "two"}
        assert leases.held([]) == frozenset()

    def test_of_many_that_take_a_lease_at_once_one_gets_it(self, leases: Leases) -> None:
        with ThreadPoolExecutor(8) as threads:
            taken = list(threads.map(lambda number: leases.take("upkeep", f"r{number}", for_s=60), range(8)))
        assert sum(taken) == 1
