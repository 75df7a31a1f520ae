"""Where clients reach the service, for the addresses that answers hold."""

from __future__ import annotations

from fastapi import Request

from toolsearch.service.service import service_of


def public_url(request: Request, path: str) -> str:
    """The address of *path*, which begins with ``/``: below the public URL of the settings, or where the request went
    to.
    """
    base = service_of(request).settings.serve.public_url or str(request.base_url)
    return f"{base.rstrip('/')}{path}"
