"""Statements of PostgreSQL over large tables: each finds its rows, however many others there are."""

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from tests.kit.postgres import PostgresServer
from tests.kit.storage_contracts.contents import tool
from tests.kit.storage_contracts.figures import cell
from tests.kit.storage_contracts.keys import key
from tests.kit.storage_contracts.misses import miss
from tests.kit.storage_contracts.pins import seen
from tests.kit.storage_contracts.receipts import receipt
from toolsearch.storage.audit import AuditRecord
from toolsearch.storage.postgres.place import PostgresStorage
from toolsearch.storage.sessions import SqlMessages
from toolsearch.storage.usage import UsageCell

ROWS = 50_000  # of each table; 50 of each tenant
TIMES = 8  # more often than PostgreSQL makes a new plan for each

# What n stands for is the number of a row, and t its tenant.
FILLED = {
    "records": "t, 'kind' || n % 3, 'id' || n, '{}', n, n, CASE WHEN n % 2 = 0 THEN n END",
    "api_keys": "'key' || n, t, 'name', 'ts_', 'hash' || n, '[]', '[]', '[]', FALSE, n, NULL, NULL, NULL",
    "contents": "t, 'main', 'tool' || n, 'f', '{}', 'source' || n % 3, 'tool', n",
    "revisions": "t, 'catalog' || n, n, 0",
    "receipts": "t, 'r' || n, n, 'k', 's' || n % 9, 'catalog/main', 'tool', 'tool', 'f', 'allowed', 'ok', '', 1.0, ''",
    "figures": "t, n::bigint * 3600, 'k', 's' || n, 'searches', 1.0",
    "misses": "t, 'catalog/main', 'query' || n, 'query', 'weak', 1, n, n, '', 0",
    "usage": "t, 'term' || n, 'tool', 1.0, n",
    "sessions": "t, 's' || n, '{}', 1",
    "pins": "t, 'server' || n % 3, 'tool' || n, n % 2 = 0, 'p', '{}', n, '', 0, ''",
    "counters": "t, 'counter' || n, n",
    "audit (at_us, who, action, subject, outcome, tenant, server, session, took_us, request_id, digest)": (
        "n, '', '', '', '', t, '', '', 0, '', ''"
    ),
    "audit_chains": "t || n, '', '', 1, 0, n",
    "conversations": "'c' || n, '[]'",
    "vectors": "sha256(n::text::bytea), '\\x00'",
}
NUMBERED = f"FROM (SELECT n, 't' || n % {ROWS // 50} AS t FROM generate_series(1, {ROWS}) AS n) AS numbered"  # noqa: S608
READ = """
SELECT relname, seq_tup_read + coalesce(sum(idx_tup_read), 0) FROM pg_stat_user_tables
LEFT JOIN (SELECT relid, idx_tup_read FROM pg_stat_user_indexes) AS indexes USING (relid)
WHERE schemaname = 'toolsearch' GROUP BY relname, seq_tup_read
"""


@pytest.fixture
def url(any_postgres: PostgresServer) -> Iterator[str]:
    url = any_postgres.new_database(is_empty=True)
    with closing(PostgresStorage(url)) as storage, storage.transaction() as database:
        for table, values in FILLED.items():
            database.execute(f"INSERT INTO {table} SELECT {values} {NUMBERED}")
    with closing(PostgresStorage(url)) as storage, storage.reading() as database:
        database.execute("ANALYZE")
    return url


def requests(storage: PostgresStorage) -> list[Callable[[int], object]]:
    """Every call of a port that a request makes, or that upkeep makes again and again. The number is another each time.

    Nothing is old enough to be pruned: what has to be looked at then is the least.
    """
    records, keys, contents, receipts = storage.records, storage.keys, storage.contents, storage.receipts
    figures, misses, audit, usage = storage.figures, storage.misses, storage.audit, storage.usage
    sessions, pins = storage.sessions("t7"), storage.pins("t7")
    talk = SqlMessages[str](storage.database, write=str, read=str)
    assert storage.vectors is not None
    return [
        lambda n: records.get("t7", "kind1", f"id{n}", at_s=1.0),
        lambda n: records.put("t7", "kind1", f"new{n}", {}, over=0, at_s=1.0),
        lambda n: records.hold("t7", "kind1", f"new{n}", at_s=1.0),
        lambda n: records.delete("t7", "kind1", f"new{n}"),
        lambda _: records.page("t7", "kind1", after="id5", limit=9, at_s=1.0),
        lambda _: records.count("t7", "kind1", at_s=1.0),
        lambda _: records.scan(after=("t7", "kind1", "id5"), limit=9),
        lambda _: records.prune(at_s=0.5, limit=2),
        lambda n: keys.add(key(f"new{n}", "t7")),
        lambda n: keys.by_hash(f"hash{n}"),
        lambda n: keys.get("t7", f"key{n}"),
        lambda _: keys.page("t7", limit=9),
        lambda n: keys.note_use(f"key{n}", at_s=1.0),
        lambda n: keys.revoke("t7", f"new{n}", at_s=1.0),
        lambda _: keys.count("t7", at_s=1.0),
        lambda _: contents.revision("t7", "main"),
        lambda n: contents.change("t7", "main", put=[tool(f"new{n}")], remove=["tool7"]),
        lambda _: contents.fingerprints("t7", "main"),
        lambda _: contents.whole("t7", "main"),
        lambda _: contents.get("t7", "main", ["tool7", "tool8"]),
        lambda _: contents.page("t7", "main", after="tool5", limit=9, source="source1"),
        lambda _: contents.count("t7", "main"),
        lambda n: contents.since("t7", "main", n),
        lambda n: receipts.append("t7", [receipt(f"new{n}")]),
        lambda _: receipts.page("t7", limit=9),
        lambda _: receipts.page("t7", limit=9, before="r5", session="s1"),
        lambda _: receipts.page("t7", limit=9, key="k", tool="tool"),
        lambda _: receipts.prune(before_s=0.5, limit=2),
        lambda n: figures.add("t7", {cell(n): 1.0}),
        lambda _: figures.sums("t7", by="day", since_s=0.5, until_s=900_000.5, key="k"),
        lambda _: figures.prune(before_s=0.5, limit=2),
        lambda n: miss(misses, f"new {n}", 1.0, tenant="t7"),
        lambda _: misses.page("t7", "catalog/main", limit=9),
        lambda n: misses.forget("t7", "catalog/main", f"new {n}"),
        lambda _: misses.prune(before_s=0.5, limit=2),
        lambda _: audit.append(AuditRecord(1.0, "ann", "create", "x", "done", "t7")),
        lambda _: audit.records(limit=9),
        lambda _: audit.records(limit=9, tenant="t7", before=40_000),
        lambda _: audit.prune(before_s=0.000_000_1, limit=2, at_s=1.0),
        lambda _: usage.load("t7"),
        lambda n: usage.add("t7", {UsageCell(f"term{n}", "tool"): 1.0}, at_s=1.0, half_life_s=1.0),
        lambda n: usage.drop("t7", [UsageCell(f"term{n}", "tool")]),
        lambda n: sessions.save(f"new{n}", "{}", version=0),
        lambda _: sessions.load("s7"),
        lambda n: sessions.delete(f"new{n}"),
        lambda _: pins.version(),
        lambda _: pins.approved("server1"),
        lambda n: pins.keep(hold=[seen(f"new{n}", "p")]),
        lambda n: pins.approve("sums@1", f"new{n}", "p", by="ann", at_s=1.0),
        lambda n: pins.revoke("sums@1", f"new{n}", by="ann", at_s=1.0),
        lambda n: talk.update(f"c{n}", lambda messages: [*messages, "x"]),
        lambda n: storage.leases.take(f"new{n}", "me", for_s=1.0),
        lambda n: storage.leases.renew(f"new{n}", "me", for_s=1.0),
        lambda n: storage.leases.held([f"new{n}", "lease7"]),
        lambda n: storage.leases.release(f"new{n}", "me"),
        lambda _: storage.vectors.get([b"x", b"y"]),
        lambda _: storage.changes.current(["t7", "t8"]),
        lambda n: storage.drop_tenant(f"t{n + 100}"),
    ]


def test_a_request_reads_few_rows_however_many_there_are(any_postgres: PostgresServer, url: str) -> None:
    """Of 50,000, fewer than 1,000 in each call, out of indexes or tables: a tenant has 50 of each kind."""

    def read(storage: PostgresStorage) -> dict[str, int]:
        with storage.reading() as database:
            database.execute("SELECT pg_stat_force_next_flush()")
        return dict(any_postgres.execute(READ, database=url.rpartition("/")[2]))

    with closing(PostgresStorage(url)) as storage:
        before, guilty = read(storage), dict[int, dict[str, int]]()
        for place, request in enumerate(requests(storage)):
            for number in range(1, TIMES + 1):
                request(number)
            after = read(storage)
            guilty[place] = {
                table: rows - before[table] for table, rows in after.items() if rows - before[table] >= 1_000 * TIMES
            }
            before = after

    assert {place: tables for place, tables in guilty.items() if tables} == {}
