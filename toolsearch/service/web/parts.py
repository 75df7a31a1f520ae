"""The parts of the service that a route gets: its clock, its settings, each part by its class, and its public URL."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from fastapi import Request

from toolsearch.service.settings import ServiceSettings
from toolsearch.service.web.middleware import Shutdown
from toolsearch.storage.storage import Storage

_Part = TypeVar("_Part")


class ServiceParts:
    """A route gets a part by its class: ``service[Keys].get(tenant, key_id)``.

    So a folder such as ``keys/`` has its own routes and pages, and does not import the other folders.

    clock   gives seconds since 1970, for what is written and read again; the machine may set it forwards and back
    steady  gives seconds that only grow, for limits and durations
    """

    settings: ServiceSettings
    storage: Storage
    clock: Callable[[], float]
    steady: Callable[[], float]
    shutdown: Shutdown

    def __getitem__(self, kind: type[_Part]) -> _Part:
        """Return the part of that class. Raises KeyError if the service has none."""
        for part in vars(self).values():
            if isinstance(part, kind):
                return part
        raise KeyError(kind)


def service_of(request: Request) -> ServiceParts:
    return cast("ServiceParts", request.app.state.service)


async def the_service(request: Request) -> ServiceParts:
    """The dependency by which routes get the service. It is async, since FastAPI would run a plain function in a
    thread.
    """
    return service_of(request)


def public_url(request: Request, path: str) -> str:
    """The full URL of *path*, which begins with ``/``: below the public URL of the settings, or below the request's own
    address.
    """
    base = service_of(request).settings.serve.public_url or str(request.base_url)
    return f"{base.rstrip('/')}{path}"
