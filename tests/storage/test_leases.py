"""Leases: who alone may do something for a while, in one process and over several replicas."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kit import storage_contracts as contracts
from tests.kit.postgres import PostgresServer
from toolsearch.storage.postgres.place import PostgresStorage
from toolsearch.storage.replicas import Leases, ProcessLeases


class TestLeasesOfOneProcess(contracts.LeasesContract):
    def make(self, folder: Path) -> Leases:  # noqa: ARG002  they are in memory
        return ProcessLeases()


class TestLeasesInPostgres(contracts.LeasesContract):
    @pytest.fixture(autouse=True)
    def _server(self, postgres: PostgresServer) -> None:
        self.url = postgres.new_database()

    def make(self, folder: Path) -> Leases:  # noqa: ARG002  they are in the database
        return PostgresStorage(self.url).leases


@pytest.fixture
def leases(postgres: PostgresServer) -> Leases:
    return PostgresStorage(postgres.new_database()).leases


def test_a_lease_that_has_run_out_is_nobodys_and_cannot_be_renewed(leases: Leases) -> None:
    leases.take("upkeep", "a", for_s=0.05)
    until(lambda: not leases.held(["upkeep"]))

    assert not leases.renew("upkeep", "a", for_s=60)
    assert leases.take("upkeep", "b", for_s=60)
    assert not leases.take("upkeep", "a", for_s=60)


def test_leases_that_have_run_out_are_kept_for_an_hour_and_then_deleted(
    leases: Leases, postgres: PostgresServer
) -> None:
    (name,) = postgres.lent()
    for lease in ("gone", "old", "held"):
        leases.take(lease, "a", for_s=60)
    for lease, seconds in (("gone", 3_700), ("old", 3_500)):
        statement = f"UPDATE toolsearch.leases SET until_s = until_s - 60 - {seconds} WHERE name = '{lease}'"  # noqa: S608
        postgres.execute(statement, database=name)
    leases.take("new", "a", for_s=60)

    rows = postgres.execute("SELECT name FROM toolsearch.leases ORDER BY 1", database=name)
    assert rows == [("held",), ("new",), ("old",)]


def until(is_so: Callable[[], bool]) -> None:
    while not is_so():
        time.sleep(0.01)
