"""PostgreSQL behind a pooler that drops what a connection wants to be set, as PgBouncer can be told to."""

import psycopg
import pytest

from tests.kit.postgres import PostgresServer
from toolsearch.storage.postgres.schema import UnusableTablesError, is_current, migrate


def test_no_tables_are_made_where_they_would_not_be_found(postgres: PostgresServer) -> None:
    url = postgres.new_database(is_empty=True)
    with psycopg.connect(url, autocommit=True) as dropped:
        with pytest.raises(UnusableTablesError, match=r"ALTER ROLE \.\.\. SET search_path = toolsearch"):
            migrate(dropped)
        assert dropped.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone() == (0,)

        dropped.execute("SET search_path = toolsearch")  # as the role may be told to have it from the start
        migrate(dropped)
        assert is_current(dropped)
