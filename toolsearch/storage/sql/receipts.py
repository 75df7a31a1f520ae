"""Receipts of calls in a SQL database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, fields

from toolsearch.errors import ReceiptStoreError
from toolsearch.storage.receipts import Receipt
from toolsearch.storage.sql.store import SqlStore
from toolsearch.storage.sql.values import storable

_COLUMNS = ", ".join(field.name for field in fields(Receipt))
_PLACES = ", ".join("?" * (len(fields(Receipt)) + 1))
_PRUNE = """
DELETE FROM receipts WHERE (tenant, id) IN (SELECT tenant, id FROM receipts WHERE at_s < ? ORDER BY at_s LIMIT ?)
"""


class SqlReceiptLog(SqlStore):
    """A `ReceiptLog` in SQL."""

    contents = "receipts of calls"
    error_class = ReceiptStoreError
    durability = "ACKNOWLEDGED"

    def append(self, tenant: str, receipts: Sequence[Receipt]) -> None:
        with self._transaction() as database:
            database.executemany(
                f"INSERT INTO receipts (tenant, {_COLUMNS}) VALUES ({_PLACES}) ON CONFLICT (tenant, id) DO NOTHING",  # noqa: S608
                [(tenant, *map(_storable, astuple(receipt))) for receipt in receipts],
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
        conditions = {  # only those that count, so that the database can choose an index by them
            "tenant = ?": tenant,
            "id < ?": before or None,
            "session = ?": session,
            "key = ?": key,
            "tool = ?": tool,
        }
        chosen = {condition: value for condition, value in conditions.items() if value is not None}
        query = f"SELECT {_COLUMNS} FROM receipts WHERE {' AND '.join(chosen)} ORDER BY id DESC LIMIT ?"  # noqa: S608
        with self._reading() as database:
            return [Receipt(*row) for row in database.execute(query, (*chosen.values(), limit))]

    def prune(self, *, before_s: float, limit: int) -> int:
        with self._statement() as database:
            return database.execute(_PRUNE, (before_s, limit)).rowcount


def _storable(value: object) -> object:
    """A model may have made up the tool, and a client the id of the request."""
    return storable(value) if isinstance(value, str) else value
