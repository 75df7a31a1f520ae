"""URIs of resources: which server each means, among the servers that a caller may know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias
from urllib.parse import quote, unquote

from mcp.shared.uri_template import InvalidUriTemplate, UriTemplate

from toolsearch.gateway.registry import Contents
from toolsearch.tools.json_types import JsonObject
from toolsearch.wire.mcp.lists import RESOURCES, TEMPLATES, ListOf
from toolsearch.wire.mcp.views import unwrapped_view

_WRAPPED: Final = "toolsearch:"


@dataclass(frozen=True, slots=True)
class Address:
    server: str
    uri: str  # the server's own URI


# Whether a caller may know of this resource or template, which its server lists.
MayKnow: TypeAlias = Callable[[Contents, ListOf, str], bool]


class Addresses:
    """The resources of some servers, as far as one caller may know of them. Nothing else counts."""

    def __init__(self, listings: Iterable[Contents], may_know: MayKnow) -> None:
        self._listings = {listing.server: listing for listing in listings}
        self._may_know = may_know

    def resources(self) -> list[dict[str, Any]]:
        """The entries of ``resources/list``, by server and then as the server has them."""
        return self._entries(RESOURCES)

    def templates(self) -> list[dict[str, Any]]:
        """The entries of ``resources/templates/list``, in the same order."""
        return self._entries(TEMPLATES)

    def resolve(self, uri: str, linked_by: str | None = None, *, skills: Collection[str] = ()) -> Address | None:
        """The resource that *uri* means. *linked_by* is the server whose result linked to it, if any. Skills of the
        servers *skills* have a file there, which counts only if no server lists or links to that resource.

        None if it means nothing, or could mean several things.
        """
        if wrapped := unwrapped(uri):
            return wrapped if wrapped.server in self._listings else None
        owners = self._listing(RESOURCES, uri)
        if len(owners) == 1:
            return Address(owners[0], uri)
        if linked_by in self._listings:
            return Address(linked_by, uri)
        if owners:
            return None
        fitting = [name for name, listing in self._listings.items() if name in skills or self._fits(listing, uri)]
        return Address(fitting[0], uri) if len(fitting) == 1 else None

    def resolve_template(self, template: str) -> Address | None:
        """The server of this template, found by its listed URI. A resource counts as a template without variables."""
        if wrapped := unwrapped(template):
            return wrapped if wrapped.server in self._listings else None
        owners = self._listing(TEMPLATES, template)
        return Address(owners[0], template) if len(owners) == 1 else self.resolve(template)

    def _entries(self, which: ListOf) -> list[dict[str, Any]]:
        owners = {server: self._known(listing, which) for server, listing in self._listings.items()}
        shared = Counter(uri for known in owners.values() for uri in {uri for uri, _ in known})
        return [
            dict(entry) if shared[uri] == 1 else which.renamed(entry, wrap(Address(server, uri)))
            for server, known in owners.items()
            for uri, entry in known
        ]

    def _known(self, listing: Contents, which: ListOf) -> list[tuple[str, JsonObject]]:
        return [
            (uri, entry)
            for entry in listing.entries_of(which)
            if (uri := which.name_of(entry)) is not None and self._may_know(listing, which, uri)
        ]

    def _listing(self, which: ListOf, uri: str) -> list[str]:
        """The servers that list exactly this URI."""
        return [
            server
            for server, listing in self._listings.items()
            if listing.lists(which, uri) and self._may_know(listing, which, uri)
        ]

    def _fits(self, listing: Contents, uri: str) -> bool:
        return any(self._may_know(listing, TEMPLATES, each) for each in fitting(listing, uri))


def wrap(address: Address) -> str:
    return f"{_WRAPPED}{quote(address.server, safe='')}:{address.uri}"


def wrap_as_path(address: Address) -> str:
    """Like `wrap`, with the server as the authority and its own URI as the path: a skill has to be in a folder."""
    return f"{_WRAPPED}//{quote(address.server, safe='')}/{address.uri}"


def unwrapped(uri: str) -> Address | None:
    """The address in a URI that `wrap`, `wrap_as_path` or `wrapped_view` has made; None for any other."""
    if (view := unwrapped_view(uri)) is not None:
        return Address(*view)
    if not uri.startswith(_WRAPPED):
        return None
    rest = uri.removeprefix(_WRAPPED)
    server, between, own = rest[2:].partition("/") if rest.startswith("//") else rest.partition(":")
    return Address(unquote(server), own) if between else None


def unwrapped_for(server: str, uri: str) -> str:
    """*uri* as *server* would know it."""
    wrapped = unwrapped(uri)
    return wrapped.uri if wrapped is not None and wrapped.server == server else uri


def is_held(contents: Contents, uri: str) -> bool:
    """Whether *uri* is a resource or template that awaits approval, or can only be read by such a template."""
    if uri in contents.held:
        return True
    if contents.lists(RESOURCES, uri) or any(fitting(contents, uri)):
        return False
    return any(_is_template(held) and _fits(held, uri) for held in contents.held)


def fitting(contents: Contents, uri: str) -> Iterator[str]:
    """The templates of which *uri* can be made."""
    templates = (TEMPLATES.name_of(entry) or "" for entry in contents.resource_templates)
    return (each for each in templates if _fits(each, uri))


def _is_template(held: str) -> bool:
    return "{" in held


def _fits(template: str, uri: str) -> bool:
    parsed = _parsed(template)
    return parsed is not None and parsed.match(uri) is not None


@lru_cache(maxsize=4_096)
def _parsed(template: str) -> UriTemplate | None:
    """Parse a template; None if no URI can be matched against it."""
    try:
        return UriTemplate.parse(template)
    except InvalidUriTemplate:
        return None
