"""What a server offers beside tools: what of it was admitted, and which addresses are held back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from toolsearch.upstreams.pinned import KEYS, Entry, Kind, content_entry, instructions_entry
from toolsearch.upstreams.protocol import Listing


@dataclass(frozen=True, slots=True)
class Contents:
    """Of one server, which has tools as well or none at all; *held* are the addresses of the resources and templates
    that wait for approval.
    """

    server: str
    has_tools: bool = False
    prompts: tuple[Mapping[str, Any], ...] = ()
    resources: tuple[Mapping[str, Any], ...] = ()
    resource_templates: tuple[Mapping[str, Any], ...] = ()
    instructions: str = ""
    held: frozenset[str] = frozenset()


def content_entries(listing: Listing) -> list[Entry]:
    """All that is to be judged of *listing* beside its tools."""
    entries = [content_entry(listing.server, kind, raw) for kind, raw in _listed(listing)]
    if listing.instructions:
        entries.append(instructions_entry(listing.server, listing.instructions))
    return entries


def contents_of(listing: Listing, admitted: Iterable[Entry]) -> Contents:
    """What *admitted* leaves of *listing*."""
    names = {(entry.kind, entry.remote_name) for entry in admitted}

    def left(kind: Kind) -> tuple[Mapping[str, Any], ...]:
        return tuple(raw for each, raw in _listed(listing) if each is kind and (kind, str(raw[KEYS[kind]])) in names)

    return Contents(
        listing.server,
        has_tools=bool(listing.tools),
        prompts=left(Kind.PROMPT),
        resources=left(Kind.RESOURCE),
        resource_templates=left(Kind.TEMPLATE),
        instructions=listing.instructions if (Kind.INSTRUCTIONS, "") in names else "",
        held=frozenset(
            str(raw[KEYS[kind]])
            for kind, raw in _listed(listing)
            if kind is not Kind.PROMPT and (kind, str(raw[KEYS[kind]])) not in names
        ),
    )


def _listed(listing: Listing) -> Iterator[tuple[Kind, Mapping[str, Any]]]:
    yield from ((Kind.PROMPT, raw) for raw in listing.prompts)
    yield from ((Kind.RESOURCE, raw) for raw in listing.resources)
    yield from ((Kind.TEMPLATE, raw) for raw in listing.resource_templates)
