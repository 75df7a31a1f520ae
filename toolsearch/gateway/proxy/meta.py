"""Which ``_meta`` of a request is the client's word to the server, and which is about the hop that it came over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolsearch.documents.json_values import is_object

_RESERVED = "io.modelcontextprotocol/"  # protocol version, capabilities, who the client is: each hop has its own
_HOP = frozenset({"progressToken"})


def forwarded_meta(params: Mapping[str, Any]) -> dict[str, Any]:
    """What of the ``_meta`` in *params* goes on to the server, such as ``traceparent``."""
    meta = params.get("_meta")
    if not is_object(meta):
        return {}
    return {key: value for key, value in meta.items() if key not in _HOP and not key.startswith(_RESERVED)}
