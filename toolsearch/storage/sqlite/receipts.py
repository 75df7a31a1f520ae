"""Receipts of calls in a SQLite file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, fields

from toolsearch.errors import ReceiptStoreError
from toolsearch.storage.receipts import Receipt
from toolsearch.storage.sqlite.file import SqliteFile

_COLUMNS = ", ".join(field.name for field in fields(Receipt))
_PLACES = ", ".join("?" * (len(fields(Receipt)) + 1))
_PRUNE = """
DELETE FROM receipts WHERE (tenant, id) IN (SELECT tenant, id FROM receipts WHERE at_s < ? ORDER BY at_s LIMIT ?)
"""


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
        conditions = {  # only those that count, so that SQLite can choose an index by them
            "tenant = ?": tenant,
            "id < ?": before or None,
            "session = ?": session,
            "key = ?": key,
            "tool = ?": tool,
        }
        chosen = {condition: value for condition, value in conditions.items() if value is not None}
        query = f"SELECT {_COLUMNS} FROM receipts WHERE {' AND '.join(chosen)} ORDER BY id DESC LIMIT ?"  # noqa: S608
        with self.reading() as database:
            return [Receipt(*row) for row in database.execute(query, (*chosen.values(), limit))]

    def prune(self, *, before_s: float, limit: int) -> int:
        with self.transaction() as database:
            return database.execute(_PRUNE, (before_s, limit)).rowcount
