"""Whose activity a caller may look at: all of its tenant's with the scope admin, and its own otherwise."""

from __future__ import annotations

from toolsearch.access.scopes import includes
from toolsearch.errors import NotPermittedError
from toolsearch.service.callers import ServiceCaller


def whose_key(caller: ServiceCaller, key: str | None, *, mine: bool) -> str | None:
    """The id of the key whose activity is shown; None for that of all keys.

    Raises NotPermittedError for the key of somebody else.
    """
    own = caller.key_id
    if includes(caller.scopes, "admin"):
        return own if mine else key
    if key not in (None, own):
        raise NotPermittedError("admin")
    return own
