"""Keeps the servers' secrets out of the log of the libraries that we use, such as addresses with passwords."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from urllib.parse import quote, quote_plus

from toolsearch.upstreams.secrets import redacted

# Every logger by its own name: a filter does not see the records of child loggers.
_LOGGERS = (
    "client",
    "httpcore2.connection",
    "httpcore2.http11",
    "httpcore2.http2",
    "httpcore2.proxy",
    "httpcore2.socks",
    "httpx2",
    "mcp.client.auth.oauth2",
    "mcp.client.caching",
    "mcp.client.client",
    "mcp.client.sse",
    "mcp.client.stdio",
    "mcp.client.streamable_http",
    "mcp.shared.dispatcher",
    "mcp.shared.jsonrpc_dispatcher",
)


class LogGuard(logging.Filter):
    """From `install` to `remove`, replaces the secrets by ``***`` in those logs, also in the form that URLs write them
    in.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        super().__init__()
        self._secrets = frozenset[str]()
        self.hide(secrets)

    def hide(self, secrets: Iterable[str]) -> None:
        """Replace these as well, from now on."""
        self._secrets |= {form for secret in secrets for form in (secret, quote(secret), quote_plus(secret))}

    def install(self) -> None:
        for name in _LOGGERS:
            logging.getLogger(name).addFilter(self)

    def remove(self) -> None:
        """May be called twice, and before `install`."""
        for name in _LOGGERS:
            logging.getLogger(name).removeFilter(self)

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        told = redacted(message, self._secrets)
        if told != message:
            record.msg, record.args = told, None
        return True
