"""The lists of a server, page by page, and by what each of their entries is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from toolsearch.documents.json_values import is_list, is_object
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.wire.mcp import methods

_LONGEST_TTL_MS = 1e15  # 30,000 years; a longer promise is none, and may be no number that can be reckoned with


@dataclass(frozen=True, slots=True)
class ListOf:
    """One of the lists.

    key       of the entries in a page
    known_by  the field of an entry that requests know it by
    """

    method: str
    key: str
    known_by: str

    def name_of(self, entry: JsonObject) -> str | None:
        """What *entry* is known by; None where that is no text."""
        name = entry.get(self.known_by)
        return name if isinstance(name, str) else None

    def renamed(self, entry: JsonObject, name: str) -> dict[str, Json]:
        return {**entry, self.known_by: name}

    def page(self, entries: Sequence[JsonObject]) -> dict[str, Any]:
        """The only page of a list."""
        return {self.key: entries}

    def entries_of(self, page: Mapping[str, Any]) -> list[Json] | None:
        """The entries of *page*, whatever they are; None where there is no list of them."""
        entries = page.get(self.key)
        return entries if is_list(entries) else None


TOOLS: Final = ListOf(methods.LIST_TOOLS, "tools", "name")
PROMPTS: Final = ListOf(methods.LIST_PROMPTS, "prompts", "name")
RESOURCES: Final = ListOf(methods.LIST_RESOURCES, "resources", "uri")
TEMPLATES: Final = ListOf(methods.LIST_TEMPLATES, "resourceTemplates", "uriTemplate")


def page_params(cursor: str | None) -> dict[str, Json]:
    """What asks for the page at *cursor*; None is the first."""
    return {} if cursor is None else {"cursor": cursor}


def next_cursor(page: Mapping[str, Any]) -> str | None:
    """Where the next page begins; None after the last. "" is a cursor too."""
    cursor = page.get("nextCursor")
    return cursor if isinstance(cursor, str) else None


def ttl_s(page: Mapping[str, Any]) -> float | None:
    """How long *page* may be relied on, in seconds, by the server's own word; None where it makes no promise."""
    ttl_ms = page.get("ttlMs")
    if isinstance(ttl_ms, int | float) and 0 < ttl_ms < _LONGEST_TTL_MS:
        return ttl_ms / 1_000
    return None


def without_modification(resource: JsonObject) -> JsonObject:
    """The entry of a resource without what follows its contents: its size, and when it was last modified.

    A number and a date can say nothing to a model; whatever else stands in their place is kept.
    """
    kept = {key: value for key, value in resource.items() if key != "size" or not isinstance(value, int | float)}
    annotations = kept.get("annotations")
    if is_object(annotations) and _is_date(annotations.get("lastModified")):
        kept["annotations"] = {key: value for key, value in annotations.items() if key != "lastModified"}
    return kept


def _is_date(value: object) -> bool:
    try:
        datetime.fromisoformat(value if isinstance(value, str) else "")
    except ValueError:
        return False
    return True
