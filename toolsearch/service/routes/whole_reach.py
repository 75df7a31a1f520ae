"""Some things can be done only by who may see every tool, since they are about all of them."""

from __future__ import annotations

from toolsearch.service.callers import ServiceCaller
from toolsearch.service.refusals import whole_reach_needed


def require_whole_reach(caller: ServiceCaller) -> None:
    """Raises HttpRefusal for a key with rules."""
    if not caller.principal.reach.is_everything:
        raise whole_reach_needed()
