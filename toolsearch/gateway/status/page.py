"""The live page for whoever runs the gateway."""

from __future__ import annotations

from starlette.routing import Route

from toolsearch.gateway.gateway import Gateway


def status_routes(gateway: Gateway) -> list[Route]:  # noqa: ARG001
    """The routes of the page and of what it shows; who may see them is for the application to guard."""
    return []
