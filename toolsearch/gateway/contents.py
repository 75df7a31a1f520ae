"""What a server offers beside tools: what of it was admitted, and which addresses are held back."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from toolsearch.tools.json_types import JsonObject
from toolsearch.upstreams.pinned import Entry, Kind, content_entry
from toolsearch.upstreams.protocol import Listing
from toolsearch.wire.mcp.lists import RESOURCES, ListOf


@dataclass(frozen=True, slots=True)
class Contents:
    """Of one server, which has tools as well or none at all; *held* are the addresses of the resources and templates
    that wait for approval.
    """

    server: str
    has_tools: bool = False
    prompts: tuple[JsonObject, ...] = ()
    resources: tuple[JsonObject, ...] = ()
    resource_templates: tuple[JsonObject, ...] = ()
    instructions: str = ""
    held: frozenset[str] = frozenset()

    def entries_of(self, which: ListOf) -> tuple[JsonObject, ...]:
        """Its resources or its templates, whichever is asked for."""
        return self.resources if which is RESOURCES else self.resource_templates


def content_entries(listing: Listing) -> list[Entry]:
    """All that is to be judged of *listing* beside its tools."""
    listed = {
        Kind.PROMPT: listing.prompts,
        Kind.RESOURCE: listing.resources,
        Kind.TEMPLATE: listing.resource_templates,
        Kind.INSTRUCTIONS: [{"instructions": listing.instructions}] if listing.instructions else [],
    }
    return [content_entry(listing.server, kind, raw) for kind, raws in listed.items() for raw in raws]


def contents_of(listing: Listing, admitted: Collection[Entry]) -> Contents:
    """What *admitted* leaves of *listing*."""
    names = {(entry.kind, entry.remote_name) for entry in admitted}
    held = [entry for entry in content_entries(listing) if (entry.kind, entry.remote_name) not in names]

    def left(kind: Kind) -> tuple[JsonObject, ...]:
        return tuple(entry.raw for entry in admitted if entry.kind is kind)

    return Contents(
        listing.server,
        has_tools=bool(listing.tools),
        prompts=left(Kind.PROMPT),
        resources=left(Kind.RESOURCE),
        resource_templates=left(Kind.TEMPLATE),
        instructions=listing.instructions if (Kind.INSTRUCTIONS, "") in names else "",
        held=frozenset(entry.remote_name for entry in held if entry.kind in (Kind.RESOURCE, Kind.TEMPLATE)),
    )
