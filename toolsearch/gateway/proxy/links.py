"""Remembers which server has linked a principal to which resource."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any

from toolsearch.tools.blocks import link_uri
from toolsearch.wire.mcp.results import all_content_of

MAX_LINKS = 10_000  # of all principals together; the oldest is dropped first
_MAX_URI_CHARACTERS = 4_096


class SeenLinks:
    """The resource links in results, by principal: a link that one principal was shown is no address for another."""

    def __init__(self, *, limit: int = MAX_LINKS) -> None:
        self._limit = limit
        self._servers: OrderedDict[tuple[str, str], str] = OrderedDict()

    def note(self, principal: str, server: str, result: Mapping[str, Any]) -> None:
        """Remember the links in *result*. If several servers link to the same URI, the last one counts."""
        for uri in _links(result):
            self._servers[principal, uri] = server
            self._servers.move_to_end((principal, uri))
        while len(self._servers) > self._limit:
            self._servers.popitem(last=False)

    def server_of(self, principal: str, uri: str) -> str | None:
        return self._servers.get((principal, uri))


def _links(result: Mapping[str, Any]) -> Iterator[str]:
    uris = map(link_uri, all_content_of(result))
    return (uri for uri in uris if uri is not None and len(uri) <= _MAX_URI_CHARACTERS)
