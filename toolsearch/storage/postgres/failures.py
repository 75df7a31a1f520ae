"""What went wrong in PostgreSQL, as our own errors: what is worth another try, and when."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final, NamedTuple

import psycopg
from psycopg_pool import PoolClosed, PoolTimeout

from toolsearch.errors import StorageError
from toolsearch.storage.postgres import migration
from toolsearch.storage.sql.values import BadValueError


class OutcomeUnknownError(psycopg.OperationalError):
    """The connection was lost before the answer to a COMMIT: it may have been done or not."""


class _Told(NamedTuple):
    text: str
    retry_after_s: float


_LOST: Final = _Told("PostgreSQL cannot be reached now; try again soon", 2.0)
_UNKNOWN: Final = _Told(
    "PostgreSQL was lost while it was to keep a change, so that this may have been done or not; repeat the request "
    "with the same Idempotency-Key or If-Match, or look",
    2.0,
)
_BUSY: Final = _Told("all connections to PostgreSQL are in use; try again soon", 2.0)
_SLOW: Final = _Told("PostgreSQL took too long; try again later", 5.0)
_OTHERS: Final = _Told("others were writing the same; try again", 1.0)
_READ_ONLY: Final = _Told("PostgreSQL takes no writes now; try again soon", 2.0)
_FULL: Final = _Told("PostgreSQL has no room or memory left; try again later, and tell the operator", 30.0)

# By SQLSTATE, or the first characters of several; the longest that fits is what counts.
_BY_STATE: Final = {
    "08": _LOST,  # the connection
    "28": _LOST,  # the password
    "57P": _LOST,  # it stops, starts or has crashed
    "57014": _SLOW,  # cancelled, by statement_timeout
    "25P": _SLOW,  # idle within a transaction
    "40": _OTHERS,  # deadlock, serialization
    "55P03": _OTHERS,  # lock_timeout
    "25006": _READ_ONLY,
    "53": _FULL,
    "53300": _BUSY,
    "58": _LOST,  # its disk fails
}


@contextmanager
def translated(contents: str, error_class: type[StorageError]) -> Generator[None]:
    """Raise errors of PostgreSQL as *error_class*, which names *contents*, and no value that was sent."""
    try:
        yield
    except migration.UnusableTablesError as error:
        raise error_class(f"the {contents} in PostgreSQL {error}") from error
    except PoolClosed as error:
        raise error_class(f"cannot use the {contents} in PostgreSQL: it was closed") from error
    except BadValueError as error:
        raise error_class(f"cannot be kept among the {contents}: {error}", is_callers_fault=True) from error
    except (psycopg.Error, UnicodeError) as error:
        told = _told(error)
        if told is None:
            raise error_class(f"cannot use the {contents} in PostgreSQL: {_first_line(error)}") from error
        raise error_class(
            f"cannot use the {contents}: {told.text}",
            retry_after_s=told.retry_after_s,
            outcome_is_unknown=isinstance(error, OutcomeUnknownError),
        ) from error


def _told(error: Exception) -> _Told | None:
    """None for what would fail again."""
    if isinstance(error, OutcomeUnknownError):
        return _UNKNOWN
    if isinstance(error, PoolTimeout):
        return _BUSY
    state = (error.sqlstate if isinstance(error, psycopg.Error) else None) or ""
    known = max((each for each in _BY_STATE if state.startswith(each)), key=len, default=None)
    if known is not None:
        return _BY_STATE[known]
    return _LOST if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) and not state else None


def _first_line(error: Exception) -> str:
    """What was wrong, without the values that PostgreSQL quotes in the lines below."""
    return (str(error).splitlines() or [type(error).__name__])[0]
