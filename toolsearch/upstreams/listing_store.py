"""Keeps the last listing of a server, so that its tools can be found before it has been started."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from toolsearch.documents.json_values import is_object
from toolsearch.errors import StorageError
from toolsearch.storage.listings import ListingFiles, ListingPersistence
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.refusal import Refusal
from toolsearch.upstreams.config import McpServer
from toolsearch.upstreams.entries import read_listing
from toolsearch.upstreams.identity import identity_hash
from toolsearch.upstreams.interface import Listing
from toolsearch.upstreams.settings import UpstreamSettings

logger = logging.getLogger(__name__)

_FORMAT = 1


class ListingStore:
    """Of one server. It is kept under a hash of how the server is reached: another command has another listing."""

    def __init__(self, server: McpServer, kept: ListingPersistence) -> None:
        self._server = server
        self._kept = kept
        self._name = identity_hash(server)

    def load(self) -> tuple[Listing, bool] | None:
        """The listing, and whether the server speaks the older protocol; None where there is nothing sound."""
        try:
            kept = self._kept.load(self._name)
            if kept is None or kept["format"] != _FORMAT:
                return None
            return self._listing(kept), kept["is_old"] is True
        except (StorageError, OSError, ValueError, LookupError, TypeError) as error:
            logger.warning("the listing kept of %s cannot be read: %r", self._server.name, error)
            return None

    def save(self, listing: Listing, *, is_old: bool) -> None:
        kept: JsonObject = {
            "format": _FORMAT,
            "server": self._server.name,
            "is_old": is_old,
            "tools": [tool.origin.raw for tool in listing.tools if tool.origin],
            "refused": [[refusal.name, refusal.reason] for refusal in listing.refused],
            "instructions": listing.instructions,
            "about": listing.about,
            "prompts": listing.prompts,
            "resources": listing.resources,
            "resource_templates": listing.resource_templates,
        }
        try:
            self._kept.save(self._name, kept)
        except (StorageError, OSError, ValueError) as error:  # a lone surrogate, a full disk: it is only a cache
            logger.warning("the listing of %s cannot be kept: %s", self._server.name, error)

    def _listing(self, kept: Mapping[str, Any]) -> Listing:
        name = self._server.name
        listed, _ = read_listing(name, kept["tools"], name)
        return Listing(
            name,
            tuple(listed),
            tuple(Refusal(tool, name, reason) for tool, reason in kept["refused"]),
            instructions=kept["instructions"],
            about=kept["about"],
            is_cached=True,
            prompts=_objects(kept["prompts"]),
            resources=_objects(kept["resources"]),
            resource_templates=_objects(kept["resource_templates"]),
        )


def listing_store(settings: UpstreamSettings) -> ListingStore | None:
    """None if nothing is kept of the server."""
    kept = settings.listings
    if kept is None and settings.state_folder is not None:
        kept = ListingFiles(settings.state_folder / "listings")
    return ListingStore(settings.server, kept) if kept is not None else None


def _objects(entries: list[Any]) -> tuple[JsonObject, ...]:
    return tuple(filter(is_object, entries))
