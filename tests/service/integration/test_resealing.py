"""Everything is sealed anew while services go on writing to the same database."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

from tests.kit.postgres import PostgresServer
from toolsearch.service.sealing import reseal_all
from toolsearch.storage.postgres.place import PostgresStorage
from toolsearch.storage.seal import Seal

OLD, NEW = b"o" * 32, b"n" * 32
ROUNDS = 30
RECORDS = [f"r{number}" for number in range(5)]


def test_nothing_that_a_service_writes_meanwhile_is_lost(postgres: PostgresServer) -> None:
    url = postgres.new_database()
    both = Seal([NEW, OLD])

    def write() -> None:
        with closing(PostgresStorage(url)) as storage:
            for number in range(1, ROUNDS + 1):
                for record in RECORDS:
                    document = {"n": number, "sealed": Seal([OLD]).seal(f"{record} {number}")}
                    storage.records.put("a", "source", record, document, over=None, at_s=1.0)

    with closing(PostgresStorage(url)) as storage, ThreadPoolExecutor(1) as elsewhere:
        writing = elsewhere.submit(write)
        while not writing.done():
            assert reseal_all(storage, both).unreadable == 0
        writing.result()
        reseal_all(storage, both)

        for record in RECORDS:
            found = storage.records.get("a", "source", record, at_s=1.0)
            assert found is not None
            assert found.document["n"] == ROUNDS
            assert Seal([NEW]).open(str(found.document["sealed"])) == f"{record} {ROUNDS}"
