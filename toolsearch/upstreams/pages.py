"""Reads a paged MCP listing to its end; one that goes in circles, or on without end, is cut and says so."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from toolsearch.documents.json_values import is_list

_MOST_PAGES = 1_000


async def read_pages(
    read_page: Callable[[str | None], Awaitable[dict[str, Any]]], key: str = "tools"
) -> tuple[list[Any], str]:
    """Return the raw entries under *key* of all pages, and why the listing was cut short, or ""."""
    entries: list[Any] = []
    cursor: str | None = None
    seen: set[str] = set()
    for _ in range(_MOST_PAGES):
        page = await read_page(cursor)
        listed = page.get(key)
        if not is_list(listed):
            return entries, f"it sent a page without a list of {key}; those before it were taken"
        entries += listed
        cursor = page.get("nextCursor")
        if not isinstance(cursor, str):  # "" is a cursor too
            return entries, ""
        if cursor in seen:
            return (
                entries,
                f"its listing goes in circles at the cursor {cursor[:40]!r}; the {key} up to there were taken",
            )
        seen.add(cursor)
    return entries, f"its listing has over {_MOST_PAGES} pages; the {key} of these were taken"
