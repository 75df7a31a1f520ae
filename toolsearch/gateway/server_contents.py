"""What a server offers beside tools: prompts, resources, templates, instructions; and which of them await approval."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from toolsearch.tools.json_types import JsonObject
from toolsearch.upstreams.interface import Listing
from toolsearch.upstreams.pinned import Entry, Kind, content_entry
from toolsearch.wire.mcp.lists import RESOURCES, ListOf


@dataclass(frozen=True, slots=True)
class Contents:
    """What one server offers beside tools, as far as it is admitted. *held* holds the URIs of the resources and
    templates that await approval, and *held_prompts* the names of such prompts.
    """

    server: str
    has_tools: bool = False
    prompts: tuple[JsonObject, ...] = ()
    resources: tuple[JsonObject, ...] = ()
    resource_templates: tuple[JsonObject, ...] = ()
    instructions: str = ""
    held: frozenset[str] = frozenset()
    held_prompts: frozenset[str] = frozenset()

    def entries_of(self, which: ListOf) -> tuple[JsonObject, ...]:
        """The resources or the templates, depending on *kind*."""
        return self.resources if which is RESOURCES else self.resource_templates


def content_entries(listing: Listing) -> list[Entry]:
    """Everything in *listing* beside its tools that has to be judged."""
    listed = {
        Kind.PROMPT: listing.prompts,
        Kind.RESOURCE: listing.resources,
        Kind.TEMPLATE: listing.resource_templates,
        Kind.INSTRUCTIONS: [{"instructions": listing.instructions}] if listing.instructions else [],
    }
    return [content_entry(listing.server, kind, raw) for kind, raws in listed.items() for raw in raws]


def contents_of(listing: Listing, admitted: Collection[Entry]) -> Contents:
    """The part of *listing* that was *admitted*."""
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
        held_prompts=frozenset(entry.remote_name for entry in held if entry.kind is Kind.PROMPT),
    )
