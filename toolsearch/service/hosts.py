"""By which names requests may address the service."""

from __future__ import annotations

from urllib.parse import urlsplit

from toolsearch.gateway.http_guard import HostPort, served_hosts
from toolsearch.service.settings import ServeSettings


def named_hosts(serve: ServeSettings, host: str, port: int | None) -> list[HostPort]:
    """*host* and *port* are what it is bound to.

    Raises BadSettingError if it is bound to every address of the machine, and no setting names those it is reached by.
    """
    public = urlsplit(serve.public_url or "").netloc
    return served_hosts(
        (*serve.allowed_hosts, *([public] if public else [])), host, port, setting="serve.public_url or allowed_hosts"
    )
