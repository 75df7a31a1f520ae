"""Entries for a client that is listed every tool and searches by itself: with what users ask for, as its search matches
words alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolsearch.catalog.request_packs import RequestSource, cleaned_requests
from toolsearch.gateway.exposure.clients import KnownClient
from toolsearch.tools.definition import ToolDefinition
from toolsearch.wire.mcp.definitions import with_search_hint

_MOST_REQUESTS = 8  # of one tool


def searchable(
    entry: Mapping[str, Any], definition: ToolDefinition, requests: RequestSource, client: KnownClient
) -> dict[str, Any]:
    """*entry* with what users ask for when they need the tool.

    It is a hint where *client* takes one, and else the end of the description.
    """
    asked = cleaned_requests([*definition.requests, *requests.requests_for(definition)])[:_MOST_REQUESTS]
    if not asked:
        return dict(entry)
    if client.takes_hints:
        return dict(with_search_hint(entry, "; ".join(asked)))
    return {**entry, "description": f"{entry.get('description', '')} Asked for as: {'; '.join(asked)}".lstrip()}
