"""What the server offers beside tools: the resources and prompts of all servers, completion and logging."""

from __future__ import annotations

from typing import Any

from toolsearch.gateway.gateway import Gateway


def content_handlers(gateway: Gateway) -> dict[str, Any]:  # noqa: ARG001
    """The handlers of the SDK's `Server` for these, as keyword arguments; what is not in here is not advertised."""
    return {}
