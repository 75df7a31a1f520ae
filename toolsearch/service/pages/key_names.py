"""The names of keys, which pages show in place of their ids."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from toolsearch.service.service import Service
from toolsearch.service.visits import Visit


async def key_names(service: Service, visit: Visit, key_ids: Iterable[str]) -> dict[str, str]:
    """By id, the names of those that the visitor may know of: all of the tenant, or its own alone."""
    caller = visit.caller
    wanted = [key_id for key_id in dict.fromkeys(key_ids) if caller.sees_all_keys or key_id == caller.key_id]
    return await asyncio.to_thread(_names, service, caller.tenant, wanted)


def _names(service: Service, tenant: str, key_ids: list[str]) -> dict[str, str]:
    found = (service.storage.keys.get(tenant, key_id) for key_id in key_ids)
    return {key.id: key.name for key in found if key is not None}
