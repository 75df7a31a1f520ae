"""URLs of PostgreSQL databases. They may have a password, of which nothing may be told, not even a part."""

from __future__ import annotations

import psycopg
from psycopg.conninfo import conninfo_to_dict

from toolsearch.errors import BadSettingError


def read_url(url: str) -> dict[str, str]:
    """Return what *url* says, by the names of libpq. Raises BadSettingError, with nothing of the URL in the message.

    An ``@``, ``:`` or ``/`` of a password that stands as it is would make the rest of the password the host, which
    errors and logs name. So a URL that can be read in two ways is refused.
    """
    authority, _, path = url.partition("://")[2].partition("?")[0].partition("/")
    try:
        found = {name: str(value) for name, value in conninfo_to_dict(url).items()}
    except psycopg.ProgrammingError:
        found = {}
    ports = found.get("port", "").split(",")
    if (
        not found
        or "@" in path
        or authority.count("@") > 1
        or not all(each == "" or each.isdecimal() for each in ports)
    ):
        raise BadSettingError(
            "the URL of the store cannot be read; it looks like postgresql://user:password@host:5432/name; "
            "percent-encode what is neither letter nor digit in the password"
        )
    return found


def shown(url: str) -> str:
    """How people know the database at *url*, without the user and the password."""
    found = read_url(url)
    if "service" in found:
        return f"the service {found['service']} of PostgreSQL's file"
    host, port = found.get("host") or "this machine", found.get("port") or "5432"
    return f"{found.get('dbname') or 'the default database'} at {host}:{port}"
