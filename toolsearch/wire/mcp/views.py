"""Views of tools (MCP Apps): resources with the scheme ``ui`` that hosts show beside a tool's results.

A host reads the view that a tool names. Two servers may have views of the same URI, so a URI can also hold the name of
its server.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote, unquote

from toolsearch.documents.json_values import is_object
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.wire.mcp.requests import META, meta_of

_VIEW: Final = "ui://"
_WRAPPED: Final = "ui://toolsearch/"
_FLAT: Final = ("ui/resourceUri", "openai/outputTemplate")  # older names of the field, which servers still send


def with_views(entry: JsonObject, address: Callable[[str], str]) -> dict[str, Any]:
    """The entry of a tool with the *address* of each view in place of its URI."""
    meta = meta_of(entry)
    changed: dict[str, Json] = {key: address(uri) for key in _FLAT if isinstance(uri := meta.get(key), str)}
    ui = meta.get("ui")
    if is_object(ui) and isinstance(uri := ui.get("resourceUri"), str):
        changed["ui"] = {**ui, "resourceUri": address(uri)}
    return {**entry, META: {**meta, **changed}} if changed else dict(entry)


def wrapped_view(server: str, uri: str) -> str:
    """*uri* with the name of its server; hosts only read views with the scheme ``ui``, so no other URI is changed."""
    return f"{_WRAPPED}{quote(server, safe='')}/{quote(uri, safe='')}" if uri.startswith(_VIEW) else uri


def unwrapped_view(uri: str) -> tuple[str, str] | None:
    """The server and its own URI in what `wrapped_view` has made; None for any other URI."""
    server, between, own = uri.removeprefix(_WRAPPED).partition("/")
    is_wrapped = uri.startswith(_WRAPPED) and between and unquote(own).startswith(_VIEW)
    return (unquote(server), unquote(own)) if is_wrapped else None
