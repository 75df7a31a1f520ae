"""Receipts of calls in a SQLite file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, fields

from toolsearch.errors import ReceiptStoreError
from toolsearch.storage.receipts import Receipt
from toolsearch.storage.sqlite.file import SqliteFile

_COLUMNS = ", ".join(field.name for field in fields(Receipt))
_PLACES = ", ".join("?" * (len(fields(Receipt)) + 1))


class SqliteReceiptLog(SqliteFile):
    """A `ReceiptLog` in one SQLite file."""

    contents = "receipts of calls"
    error_class = ReceiptStoreError

    def append(self, tenant: str, receipts: Sequence[Receipt]) -> None:
        with self.transaction() as database:
            database.executemany(
                f"INSERT INTO receipts (tenant, {_COLUMNS}) VALUES ({_PLACES})",  # noqa: S608
                [(tenant, *astuple(receipt)) for receipt in receipts],
            )

    def page(
        self,
        tenant: str,
        *,
        before: str = "",
        limit: int,
        session: str | None = None,
        key: str | None = None,
        tool: str | None = None,
    ) -> list[Receipt]:
        query = (
            f"SELECT {_COLUMNS} FROM receipts WHERE tenant = ?1 AND (?2 = '' OR id < ?2) "  # noqa: S608
            "AND (?3 IS NULL OR session = ?3) AND (?4 IS NULL OR key = ?4) AND (?5 IS NULL OR tool = ?5) "
            "ORDER BY id DESC LIMIT ?6"
        )
        with self.opened() as database:
            return [Receipt(*row) for row in database.execute(query, (tenant, before, session, key, tool, limit))]

    def prune(self, *, before_s: float) -> int:
        with self.opened() as database:
            return database.execute("DELETE FROM receipts WHERE at_s < ?", (before_s,)).rowcount
