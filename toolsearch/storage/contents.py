"""The tools of catalogs, one row each, with a revision of each catalog that grows with every change."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from toolsearch.tools.json_types import JsonObject


@dataclass(frozen=True, slots=True)
class StoredTool:
    """One tool of a catalog.

    fingerprint  of its definition, as `ToolDefinition.fingerprint` makes it
    document     the definition and what runs it, as JSON; see `toolsearch.service.stored_tools`
    source       which source of the catalog it came from; "" for a tool that was written by itself
    """

    name: str
    fingerprint: str
    document: JsonObject
    source: str = ""


@dataclass(frozen=True, slots=True)
class ContentsSince:
    """How a catalog differs from what it was at an earlier revision.

    revision  of the catalog now
    put       the tools that were written since then, and are there
    names     of all tools that are there, if any may have been removed since then; None: none was
    """

    revision: int
    put: Sequence[StoredTool] = ()
    names: Collection[str] | None = None


class CatalogContents(Protocol):
    """Keeps tools by tenant and catalog; safe to share between threads. Each method may raise ContentsStoreError."""

    def revision(self, tenant: str, catalog: str) -> int:
        """0 if nothing has ever been written to it. It grows with each change, also with and after `drop`.

        No two states of the tenant's catalogs of one name have the same, also after the tenant was deleted.
        """
        ...

    def change(
        self,
        tenant: str,
        catalog: str,
        *,
        put: Sequence[StoredTool] = (),
        remove: Collection[str] = (),
        over: int | None = None,
    ) -> int:
        """Write and remove, all or nothing, over the revision *over* (None: whichever); return the new revision.

        Raises ContentsConflictError, and changes nothing, if the catalog has another revision by now.
        """
        ...

    def since(self, tenant: str, catalog: str, revision: int) -> ContentsSince:
        """What has been written since *revision*, of one moment. A tool counts as written whatever of it has changed.

        0 gives all tools. It takes about as long as there is to read, and longer if tools were removed.
        """
        ...

    def fingerprints(self, tenant: str, catalog: str, *, source: str | None = None) -> dict[str, str]:
        """The fingerprint of every tool, of *source* if that is given, by name, in order of the names."""
        ...

    def get(self, tenant: str, catalog: str, names: Collection[str]) -> list[StoredTool]:
        """Those of *names* that are there, by name."""
        ...

    def page(
        self, tenant: str, catalog: str, *, after: str = "", limit: int, source: str | None = None
    ) -> list[StoredTool]:
        """At most *limit* tools, of *source* if that is given, whose name is greater than *after*, by name."""
        ...

    def count(self, tenant: str, catalog: str | None = None) -> int:
        """Tools of one catalog, or of all catalogs of the tenant."""
        ...

    def drop(self, tenant: str, catalog: str) -> None:
        """Remove all tools of the catalog."""
        ...
