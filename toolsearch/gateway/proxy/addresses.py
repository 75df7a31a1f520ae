"""Whose resource a URI means, and by what URI a resource is listed.

Servers write URIs into their results, so these have to work as they are. A resource is listed under its own URI where
one server alone lists that; where several do, each is listed as ``toolsearch:<server>:<its own URI>``. The same goes
for templates. What is asked for is looked for, in this order, as

1. a wrapped URI, which names its server
2. a URI that exactly one server lists
3. a URI that some server's result has linked to for this principal
4. a URI that a template of exactly one server fits
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import quote, unquote

from mcp.shared.uri_template import InvalidUriTemplate, UriTemplate

from toolsearch.gateway.server_contents import Contents
from toolsearch.wire.mcp.lists import RESOURCES, TEMPLATES, ListOf

_WRAPPED = "toolsearch:"


@dataclass(frozen=True, slots=True)
class Address:
    server: str
    uri: str  # as the server knows it


class Addresses:
    """The resources of some servers, as one caller may know of them. Resources of other servers do not count."""

    def __init__(self, listings: Iterable[Contents]) -> None:
        self._listings = {listing.server: listing for listing in listings}

    def resources(self) -> list[dict[str, Any]]:
        """The entries of ``resources/list``, by server and then as the server has them."""
        return self._entries(RESOURCES)

    def templates(self) -> list[dict[str, Any]]:
        """The entries of ``resources/templates/list``, in the same order."""
        return self._entries(TEMPLATES)

    def resolve(self, uri: str, linked_by: str | None = None) -> Address | None:
        """Which resource *uri* means; *linked_by* is the server whose result has linked to it, if any.

        None if it means nothing, or could mean several things.
        """
        if wrapped := _unwrapped(uri):
            return wrapped if wrapped.server in self._listings else None
        owners = self._listing(RESOURCES, uri)
        if len(owners) == 1:
            return Address(owners[0], uri)
        if linked_by in self._listings:
            return Address(linked_by, uri)
        if owners:
            return None
        fitting = [name for name, listing in self._listings.items() if _fits_any(listing, uri)]
        return Address(fitting[0], uri) if len(fitting) == 1 else None

    def resolve_template(self, template: str) -> Address | None:
        """Whose template this is, by the URI under which it is listed. A resource counts as a template without
        variables.
        """
        if wrapped := _unwrapped(template):
            return wrapped if wrapped.server in self._listings else None
        owners = self._listing(TEMPLATES, template)
        return Address(owners[0], template) if len(owners) == 1 else self.resolve(template)

    def _entries(self, which: ListOf) -> list[dict[str, Any]]:
        owners = {server: listing.entries_of(which) for server, listing in self._listings.items()}
        shared = Counter(uri for entries in owners.values() for uri in {which.name_of(entry) for entry in entries})
        return [
            dict(entry) if shared[uri] == 1 else which.renamed(entry, wrap(Address(server, uri)))
            for server, entries in owners.items()
            for entry in entries
            if (uri := which.name_of(entry)) is not None
        ]

    def _listing(self, which: ListOf, uri: str) -> list[str]:
        """The servers that list exactly this URI."""
        return [
            server
            for server, listing in self._listings.items()
            if any(which.name_of(entry) == uri for entry in listing.entries_of(which))
        ]


def wrap(address: Address) -> str:
    return f"{_WRAPPED}{quote(address.server, safe='')}:{address.uri}"


def _unwrapped(uri: str) -> Address | None:
    if not uri.startswith(_WRAPPED):
        return None
    server, colon, own = uri.removeprefix(_WRAPPED).partition(":")
    return Address(unquote(server), own) if colon else None


def unwrapped_for(server: str, uri: str) -> str:
    """*uri* as *server* would know it."""
    wrapped = _unwrapped(uri)
    return wrapped.uri if wrapped is not None and wrapped.server == server else uri


def is_held(contents: Contents, uri: str) -> bool:
    """Whether *uri* is a resource or template that awaits approval, or can only be read by such a template."""
    if uri in contents.held:
        return True
    if any(RESOURCES.name_of(entry) == uri for entry in contents.resources) or _fits_any(contents, uri):
        return False
    return any(_fits(held, uri) for held in contents.held)


def _fits_any(contents: Contents, uri: str) -> bool:
    return any(_fits(TEMPLATES.name_of(entry) or "", uri) for entry in contents.resource_templates)


def _fits(template: str, uri: str) -> bool:
    parsed = _parsed(template)
    return parsed is not None and parsed.match(uri) is not None


@lru_cache(maxsize=4_096)
def _parsed(template: str) -> UriTemplate | None:
    """None for one that cannot be matched against."""
    try:
        return UriTemplate.parse(template)
    except InvalidUriTemplate:
        return None
