"""Identifies a server by its name and by where the configuration points that name."""

from __future__ import annotations

import hashlib
import json
from urllib.parse import urlsplit, urlunsplit

from toolsearch.upstreams.config import McpServer, StdioServer
from toolsearch.upstreams.secrets import redacted

_HASH_DIGITS = 16


def server_identity(server: McpServer) -> str:
    """``<name>@<hash>``, where the hash is over the command and its arguments, or the URL, without any secret.

    A name that points elsewhere is another server, for which nothing is approved. Changing only the credentials keeps
    the identity.
    """
    where = json.dumps([redacted(part, server.credentials) for part in _where(server)])
    return f"{server.name}@{hashlib.sha256(where.encode('utf-8', 'surrogatepass')).hexdigest()[:_HASH_DIGITS]}"


def identity_hash(server: McpServer) -> str:
    """SHA-256 (hex) of its identity, to name a file by."""
    return hashlib.sha256(server_identity(server).encode("utf-8", "surrogatepass")).hexdigest()


def _where(server: McpServer) -> list[str]:
    if isinstance(server, StdioServer):
        return ["stdio", server.command, *server.args, server.cwd or ""]
    parts = urlsplit(server.url)
    host = parts.netloc.rpartition("@")[2]
    return [server.transport, urlunsplit(parts._replace(netloc=host))]
