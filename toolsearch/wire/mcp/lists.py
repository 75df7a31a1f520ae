"""The lists of a server: their pages, and the field that identifies an entry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from toolsearch.documents.json_values import is_list, is_object
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.wire.mcp import requests

_LONGEST_TTL_MS = 1e15  # 30,000 years; larger numbers may not fit a float and are ignored


@dataclass(frozen=True, slots=True)
class ListOf:
    """One of the lists.

    key       of the entries in a page
    known_by  the field of an entry by which requests refer to it
    """

    method: str
    key: str
    known_by: str

    def name_of(self, entry: JsonObject) -> str | None:
        """The name or URI by which requests refer to *entry*; None if that is no text."""
        name = entry.get(self.known_by)
        return name if isinstance(name, str) else None

    def renamed(self, entry: JsonObject, name: str) -> dict[str, Json]:
        return {**entry, self.known_by: name}

    def page(self, entries: Sequence[JsonObject]) -> dict[str, Any]:
        """The only page of a list."""
        return {self.key: entries}

    def entries_of(self, page: Mapping[str, Any]) -> list[Json] | None:
        """The entries of *page*, of any type; None if it holds no list of them."""
        entries = page.get(self.key)
        return entries if is_list(entries) else None


TOOLS: Final = ListOf(requests.LIST_TOOLS, "tools", "name")
PROMPTS: Final = ListOf(requests.LIST_PROMPTS, "prompts", "name")
RESOURCES: Final = ListOf(requests.LIST_RESOURCES, "resources", "uri")
TEMPLATES: Final = ListOf(requests.LIST_TEMPLATES, "resourceTemplates", "uriTemplate")
SKILLS: Final = ListOf(requests.LIST_SKILLS, "skills", "uri")
MARKDOWN: Final = "text/markdown"
DIRECTORY: Final = "inode/directory"  # of a resource that has children in place of a content


def mime_type(mime_type: str) -> dict[str, str]:
    """The field of a resource with its type."""
    return {"mimeType": mime_type}


def is_directory(resource: JsonObject) -> bool:
    return resource.get("mimeType") == DIRECTORY


def page_params(cursor: str | None) -> dict[str, Json]:
    """The parameters of a request for the page at *cursor*; None means the first page."""
    return {} if cursor is None else {"cursor": cursor}


def next_cursor(page: Mapping[str, Any]) -> str | None:
    """The cursor of the next page; None after the last. An empty text is a valid cursor."""
    cursor = page.get("nextCursor")
    return cursor if isinstance(cursor, str) else None


def ttl_s(page: Mapping[str, Any]) -> float | None:
    """The seconds for which the server says that *page* stays valid; None if it does not say."""
    ttl_ms = page.get("ttlMs")
    if isinstance(ttl_ms, int | float) and 0 < ttl_ms < _LONGEST_TTL_MS:
        return ttl_ms / 1_000
    return None


def without_modification(resource: JsonObject) -> JsonObject:
    """The entry of a resource without its size and its date, which change with its contents.

    They are only left out if they are a number and a date: a text in their place could speak to a model.
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
