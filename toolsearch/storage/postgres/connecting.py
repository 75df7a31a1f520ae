"""Connections to PostgreSQL for one piece of work, such as a copy."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final

import psycopg
from psycopg.rows import TupleRow

from toolsearch.errors import StorageError
from toolsearch.storage.postgres.migration import UnusableTablesError
from toolsearch.storage.postgres.urls import read_url, shown
from toolsearch.storage.postgres.watched_connection import connection_parameters

_CONNECT_S: Final = 10
_MOST_CHARACTERS: Final = 500  # of what PostgreSQL tells


@contextmanager
def connected(url: str, purpose: str, *, is_for_writing: bool = True) -> Generator[psycopg.Connection[TupleRow]]:
    """A connection that commits each statement, until the block ends. PostgreSQL lists it with *purpose*.

    Of several hosts it leads to the primary; unless *is_for_writing*, to any. Raises StorageError, with the reason and
    nothing of a password, for whatever PostgreSQL refuses within the block, too.
    """
    given = read_url(url)
    wanted = {"connect_timeout": _CONNECT_S, "target_session_attrs": "read-write" if is_for_writing else "any"}
    parameters: dict[str, Any] = {
        **connection_parameters(url),
        **{name: value for name, value in wanted.items() if name not in given},
        "application_name": f"toolsearch {purpose}",
    }
    try:
        with psycopg.connect(autocommit=True, **parameters) as connection:
            yield connection
    except UnusableTablesError as error:
        raise StorageError(f"the data of the service in {shown(url)} {error}") from error
    except (psycopg.Error, UnicodeError) as error:
        raise StorageError(f"PostgreSQL ({shown(url)}): {_reason(error, url)}") from None


def _reason(error: Exception, url: str) -> str:
    if isinstance(error, psycopg.Error) and error.diag.message_primary:
        return error.diag.message_primary  # without the values that PostgreSQL quotes in the lines below
    text = " ".join(str(error).split())[:_MOST_CHARACTERS]
    for name, value in read_url(url).items():
        if "password" in name:
            text = text.replace(value, "***")
    return text
